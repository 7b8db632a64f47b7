// SPDX-License-Identifier: Apache-2.0
// Placement by simulated execution (white paper 3.2.1). Nodes are met in the order in which their inputs would be
// there. The first member of a group that is met chooses for the group: of the devices that fit, the one where it would
// end first, given when the device is free, when the inputs end, and what it takes to move those that are elsewhere. A
// value moves to a device once. Sources that cost nothing, such as constants, go where they are first read.
//
// A device's memory is counted as the simulation goes: variables for good, other values until their last reader has
// run. Where a value would not fit, the device is passed over; where it fits nowhere, the one with most room is taken.
#include <algorithm>
#include <queue>

#include "absl/strings/str_format.h"
#include "base/hash_map.h"
#include "op/op_cost.h"
#include "passes/cost_model.h"
#include "passes/placement_groups.h"

namespace millrace {
namespace {

constexpr int kNowhere = -1;

class Simulation {
 public:
  Simulation(const Graph& graph, const PassEnvironment& env, PlacementGroups& groups)
      : graph_(graph),
        env_(env),
        costs_(env),
        groups_(groups),
        device_of_(groups.groups.size(), kNowhere),
        ends_(static_cast<size_t>(graph.num_node_ids())),
        free_at_(env.devices.size()),
        bytes_on_(env.devices.size()) {
    for (size_t g = 0; g < groups.groups.size(); ++g) {
      if (groups.groups[g].devices.size() == 1) Settle(static_cast<int>(g), groups.groups[g].devices.front());
    }
  }

  Status Run() {
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph_));
    std::vector<int> place(ends_.size()), pending(ends_.size());
    const auto later = [&](const std::pair<double, Node*>& a, const std::pair<double, Node*>& b) {
      return a.first != b.first ? a.first > b.first : place[Id(a.second)] > place[Id(b.second)];
    };
    std::priority_queue<std::pair<double, Node*>, std::vector<std::pair<double, Node*>>, decltype(later)> ready(later);
    for (size_t k = 0; k < order.size(); ++k) {
      place[Id(order[k])] = static_cast<int>(k);
      ForEachSource(*order[k], [&](const Node&) { ++pending[Id(order[k])]; });
      readers_left_[order[k]] = static_cast<int>(order[k]->consumers().size());
      if (pending[Id(order[k])] == 0) ready.emplace(0, order[k]);
    }
    while (!ready.empty()) {
      Node* n = ready.top().second;
      ready.pop();
      Visit(*n);
      const auto release = [&](Node* to) {
        if (--pending[Id(to)] > 0) return;
        double begin = 0;
        ForEachSource(*to, [&](const Node& from) { begin = std::max(begin, ends_[Id(&from)]); });
        ready.emplace(begin, to);
      };
      for (const Consumer& c : n->consumers()) {
        if (!IsBackEdge(n->control_op(), c.node->control_op())) release(c.node);
      }
      for (Node* to : n->control_outputs()) release(to);
    }
    // Sources that nobody reads.
    for (size_t g = 0; g < device_of_.size(); ++g) {
      if (device_of_[g] != kNowhere) continue;
      Settle(static_cast<int>(g), groups_.groups[g].devices.front());
      groups_.groups[g].why = "read nowhere";
    }
    for (size_t g = 0; g < device_of_.size(); ++g) groups_.groups[g].devices = {static_cast<size_t>(device_of_[g])};
    return absl::OkStatus();
  }

 private:
  static size_t Id(const Node* n) { return static_cast<size_t>(n->id()); }
  int GroupOf(const Node& n) const { return groups_.group_of[Id(&n)]; }
  int DeviceOf(const Node& n) const { return device_of_[static_cast<size_t>(GroupOf(n))]; }

  template <typename Visit>
  static void ForEachSource(const Node& n, Visit visit) {
    for (const Output in : n.inputs()) {
      if (!IsBackEdge(in.node->control_op(), n.control_op())) visit(*in.node);
    }
    for (const Node* c : n.control_inputs()) visit(*c);
  }

  void Settle(int group, size_t device) {
    device_of_[static_cast<size_t>(group)] = static_cast<int>(device);
    for (Node* n : groups_.groups[static_cast<size_t>(group)].members) {
      if (n->Is(OpTrait::kMakesVariable) && n->num_outputs() > 0) bytes_on_[device] += VariableBytes(*n);
    }
  }
  double VariableBytes(Node& n) const {
    if (n.output_type(0) != DType::kResource) return costs_.Bytes(n.output(0));
    const StatusOr<DType> type = n.Attr<DType>("dtype");
    const StatusOr<PartialShape> shape = n.Attr<PartialShape>("shape");
    return type.ok() && shape.ok() ? EstimateBytes(*type, *shape) : 0;
  }

  // Waits for a reader to say where.
  bool FollowsItsReader(const Node& n) const {
    const PlacementGroup& group = groups_.groups[static_cast<size_t>(GroupOf(n))];
    return group.members.size() == 1 && n.Is(OpTrait::kConstant) && n.control_inputs().empty();
  }

  struct Outlook {
    double end = 0;
    double moved = 0;  // bytes
  };
  Outlook Look(const Node& n, size_t device) const {
    double begin = free_at_[device], moved = 0;
    const auto wait = [&](const Node& from, Output value, double bytes) {
      const int at = DeviceOf(from);
      if (at == kNowhere || at == static_cast<int>(device)) {
        begin = std::max(begin, ends_[Id(&from)]);
      } else if (const auto arrived = arrived_.find({value, device}); arrived != arrived_.end()) {
        begin = std::max(begin, arrived->second);
      } else {
        moved += bytes;
        begin = std::max(begin, ends_[Id(&from)] + costs_.TransferNanos(bytes, static_cast<size_t>(at), device));
      }
    };
    for (const Output in : n.inputs()) {
      if (!IsBackEdge(in.node->control_op(), n.control_op())) wait(*in.node, in, costs_.Bytes(in));
    }
    for (Node* c : n.control_inputs()) wait(*c, {c, -1}, 0);
    return {begin + costs_.Nanos(n, device), moved};
  }

  double OutputBytes(Node& n) const {
    if (n.Is(OpTrait::kMakesVariable) || costs_.SharesItsInput(n)) return 0;
    double bytes = 0;
    for (int o = 0; o < n.num_outputs(); ++o) bytes += IsRef(n.output_type(o)) ? 0 : costs_.Bytes(n.output(o));
    return bytes;
  }
  // What a group, met at `n`, would add.
  double GroupBytes(Node& n) const {
    double bytes = OutputBytes(n);
    for (Node* m : groups_.groups[static_cast<size_t>(GroupOf(n))].members) {
      if (m->Is(OpTrait::kMakesVariable)) bytes += VariableBytes(*m);
    }
    return bytes;
  }
  double Limit(size_t device) const {
    const bool has = device < env_.memory_limits.size() && env_.memory_limits[device] > 0;
    return has ? static_cast<double>(env_.memory_limits[device]) : 1e300;
  }

  void Visit(Node& n) {
    if (DeviceOf(n) == kNowhere) {
      if (FollowsItsReader(n)) return;  // ends at 0
      Choose(n);
    }
    const auto device = static_cast<size_t>(DeviceOf(n));
    for (const Output in : n.inputs()) {
      const int source = GroupOf(*in.node);
      if (device_of_[static_cast<size_t>(source)] != kNowhere) continue;
      PlacementGroup& group = groups_.groups[static_cast<size_t>(source)];
      const bool fits = std::find(group.devices.begin(), group.devices.end(), device) != group.devices.end();
      Settle(source, fits ? device : group.devices.front());
      group.why = absl::StrCat("beside its reader ", n.name());
    }
    const Outlook there = Look(n, device);
    for (const Output in : n.inputs()) Arrive(in, device);
    for (Node* c : n.control_inputs()) Arrive({c, -1}, device);
    ends_[Id(&n)] = there.end;
    if (costs_.Nanos(n, device) > 0) free_at_[device] = there.end;
    bytes_on_[device] += OutputBytes(n);
    for (const Output in : n.inputs()) {
      if (--readers_left_[in.node] == 0 && DeviceOf(*in.node) != kNowhere) {
        bytes_on_[static_cast<size_t>(DeviceOf(*in.node))] -= OutputBytes(*in.node);
      }
    }
  }
  void Arrive(Output value, size_t device) {
    const int at = DeviceOf(*value.node);
    if (at == kNowhere || at == static_cast<int>(device)) return;
    const double bytes = value.index < 0 ? 0 : costs_.Bytes(value);
    arrived_.try_emplace(
        {value, device}, ends_[Id(value.node)] + costs_.TransferNanos(bytes, static_cast<size_t>(at), device));
  }

  void Choose(Node& n) {
    PlacementGroup& group = groups_.groups[static_cast<size_t>(GroupOf(n))];
    const double bytes = GroupBytes(n);
    int best = kNowhere;
    double best_end = 0, most_room = 0;
    std::string numbers;
    for (const size_t d : group.devices) {
      const Outlook look = Look(n, d);
      const double room = Limit(d) - bytes_on_[d] - bytes;
      absl::StrAppendFormat(&numbers, "%s%.1f us on %s", numbers.empty() ? "" : ", ", look.end / 1e3, ShortName(d));
      if (look.moved > 0) absl::StrAppendFormat(&numbers, " (%.0f bytes moved)", look.moved);
      if (room < 0) {
        absl::StrAppend(&numbers, " but no room");
        if (best == kNowhere && (most_room == 0 || room > most_room)) fallback_ = d, most_room = room;
        continue;
      }
      if (best != kNowhere && look.end >= best_end) continue;
      best = static_cast<int>(d);
      best_end = look.end;
    }
    if (best == kNowhere) {
      Settle(GroupOf(n), fallback_);
      group.why = absl::StrCat("nowhere is room for it, most here: ", numbers);
    } else {
      Settle(GroupOf(n), static_cast<size_t>(best));
      group.why = absl::StrCat("cheapest by simulation, ends after ", numbers);
    }
  }
  std::string ShortName(size_t device) const {
    const DeviceName& d = env_.devices[device];
    const bool alone = d.task == env_.devices[env_.client].task && d.job == env_.devices[env_.client].job;
    return absl::StrCat(alone ? "" : absl::StrCat(d.job, ":", d.task, " "), d.type, ":", d.id);
  }

  const Graph& graph_;
  const PassEnvironment& env_;
  const CostModel costs_;
  PlacementGroups& groups_;
  std::vector<int> device_of_;              // by group
  std::vector<double> ends_;                // by node id
  std::vector<double> free_at_, bytes_on_;  // by device
  HashMap<const Node*, int> readers_left_;
  HashMap<std::pair<Output, size_t>, double> arrived_;
  size_t fallback_ = 0;
};

}  // namespace

Status ChooseBySimulation(const Graph& graph, const PassEnvironment& env, PlacementGroups* groups) {
  return Simulation(graph, env, *groups).Run();
}

}  // namespace millrace
