// SPDX-License-Identifier: Apache-2.0
// Keeps values that a device will need much later in host memory meanwhile (white paper 4.1): a copy to the host when
// the value is there, a copy back before it is read again.
//
// Which: input numbers that an attribute `_swap_to_host` of the reader names, where the session's options say MANUAL or
// more; by cost, where the peak of values would be more than the device has, those that are unused for longest around
// the peak. The copy back waits for a node that runs before the reader, as long before as the copy takes.
#include <algorithm>
#include <map>

#include "passes/value_memory.h"

namespace millrace {
namespace {

constexpr double kRoom = 0.9;  // of a device's memory, for values; the rest is for what kernels need meanwhile

class Swapper {
 public:
  // `has_branches`: of the step, on whatever device. What is received may be dead then.
  Swapper(Partition& partition, const PassEnvironment& env, size_t device, bool has_branches)
      : graph_(*partition.graph), env_(env), device_(device), has_branches_(has_branches), costs_(env) {}

  Status Run(std::vector<std::string>* notes) {
    MR_RETURN_IF_ERROR(ReadOrder());
    const double before = Peak();
    if (env_.memory.by_hand) MR_RETURN_IF_ERROR(SwapMarked());
    if (env_.memory.swap_by_cost) MR_RETURN_IF_ERROR(SwapByCost());
    if (swapped_ == 0 || notes == nullptr) return absl::OkStatus();
    MR_RETURN_IF_ERROR(ReadOrder());
    notes->push_back(absl::StrCat(
        swapped_, " values wait in host memory: peak of values on ", env_.devices[device_].ToString(), " ",
        BytesText(before), ", then ", BytesText(Peak())));
    return absl::OkStatus();
  }

 private:
  static size_t Id(const Node* n) { return static_cast<size_t>(n->id()); }

  Status ReadOrder() {
    MR_ASSIGN_OR_RETURN(order_, TopologicalOrder(graph_));
    place_.assign(static_cast<size_t>(graph_.num_node_ids()), 0);
    may_be_dead_.assign(place_.size(), false);
    for (size_t k = 0; k < order_.size(); ++k) {
      const Node* n = order_[k];
      place_[Id(n)] = k;
      bool dead = n->control_op() != ControlOp::kNone || (has_branches_ && n->Is(OpTrait::kTransfer));
      for (const Output in : n->inputs()) dead |= may_be_dead_[Id(in.node)];
      for (const Node* c : n->control_inputs()) dead |= may_be_dead_[Id(c)];
      may_be_dead_[Id(n)] = dead;
    }
    return absl::OkStatus();
  }
  double Peak() const { return ValueMemory(order_, env_, device_).PeakOf(order_).bytes; }

  Status SwapMarked() {
    std::map<std::pair<size_t, int>, std::vector<Node*>> readers;  // by place and output of what is swapped
    for (Node* n : order_) {
      const auto mark = n->attrs().find("_swap_to_host");
      if (mark == n->attrs().end()) continue;
      std::vector<int64_t> inputs;
      if (const auto* list = mark->second.get<std::vector<int64_t>>()) inputs = *list;
      if (const auto* one = mark->second.get<int64_t>()) inputs = {*one};
      for (const int64_t i : inputs) {
        if (i < 0 || i >= n->num_inputs()) {
          return InvalidArgument(n->Describe(), " has ", n->num_inputs(), " inputs; _swap_to_host names input ", i);
        }
        const Output value = n->input(static_cast<int>(i));
        if (value) readers[{place_[Id(value.node)], value.index}].push_back(n);
      }
    }
    for (const auto& [value, late] : readers) {
      MR_RETURN_IF_ERROR(Swap(order_[value.first]->output(value.second), late, 0, order_.size()));
    }
    return absl::OkStatus();
  }

  // Largest first, of those that nobody reads around the peak, until the values have room.
  Status SwapByCost() {
    const double limit =
        device_ < env_.memory_limits.size() ? kRoom * static_cast<double>(env_.memory_limits[device_]) : 0;
    const ValueMemory memory(order_, env_, device_);
    const ValueMemory::Peak peak = memory.PeakOf(order_);
    double surplus = peak.bytes - limit;
    for (Node* n : order_) {
      const bool stays = n->Is(OpTrait::kMakesVariable) || n->Is(OpTrait::kConstant);
      if (stays && n->num_outputs() > 0) surplus += costs_.Bytes(n->output(0));
    }
    if (limit <= 0 || surplus <= 0) return absl::OkStatus();
    struct Idle {
      double bytes;
      Output value;
      std::vector<Node*> late;
    };
    std::vector<Idle> idle;
    for (const ValueMemory::Value& v : memory.values()) {
      Idle found{v.bytes, v.output, {}};
      bool is_idle = place_[Id(v.output.node)] < peak.at && !v.is_kept;
      for (Node* reader : v.readers) {
        if (place_[Id(reader)] < peak.at) continue;
        const std::vector<Output>& inputs = reader->inputs();
        // Not what it was passed on as.
        is_idle &= place_[Id(reader)] > peak.at && std::find(inputs.begin(), inputs.end(), v.output) != inputs.end();
        found.late.push_back(reader);
      }
      if (is_idle && !found.late.empty()) idle.push_back(found);
    }
    std::stable_sort(idle.begin(), idle.end(), [](const Idle& a, const Idle& b) { return a.bytes > b.bytes; });
    for (const Idle& v : idle) {
      if (surplus <= 0) break;
      const int before = swapped_;
      // What came back at once would only move the peak: half of the way from it, others have made room.
      size_t first = place_[Id(v.late.front())];
      for (const Node* reader : v.late) first = std::min(first, place_[Id(reader)]);
      MR_RETURN_IF_ERROR(Swap(v.value, v.late, peak.at + (first - peak.at) / 2, peak.at));
      if (swapped_ > before) surplus -= v.bytes;
    }
    return absl::OkStatus();
  }

  // `readers` read it from a copy that comes back from the host, not before what stands at `earliest` in the order.
  // What stands at `gone_by` does not begin before the value has left.
  Status Swap(Output value, std::vector<Node*> readers, size_t earliest, size_t gone_by) {
    if (may_be_dead_[Id(value.node)] || IsRef(value.dtype()) || !IsPlain(value.dtype())) return absl::OkStatus();
    const ArgMemory memory = env_.memory_of(*value.node, env_.devices[device_].type);
    if (memory.host_outputs.at(static_cast<size_t>(value.index))) return absl::OkStatus();  // it is there already
    if (value.node->Is(OpTrait::kConstant) || value.node->Is(OpTrait::kMakesVariable)) return absl::OkStatus();
    std::sort(
        readers.begin(), readers.end(), [&](const Node* a, const Node* b) { return place_[Id(a)] < place_[Id(b)]; });
    if (std::any_of(readers.begin(), readers.end(), [&](const Node* r) { return may_be_dead_[Id(r)]; })) {
      return absl::OkStatus();
    }
    const double nanos = costs_.TransferNanos(costs_.Bytes(value), 0, device_);
    Node* const trigger = NodeBefore(*readers.front(), std::max(place_[Id(value.node)] + 1, earliest), nanos);
    if (trigger == nullptr) return absl::OkStatus();  // it is read at once
    MR_ASSIGN_OR_RETURN(Node * out, AddCopy("_CopyToHost", "swap_out", value, nullptr));
    // What runs ahead of the copy would find the memory still taken.
    graph_.AddControlEdge(out, NodeBehind(*value.node, std::min(gone_by, place_[Id(trigger)]), nanos));
    MR_ASSIGN_OR_RETURN(Node * in, AddCopy("_CopyFromHost", "swap_in", out->output(0), trigger));
    for (Node* reader : readers) {
      for (int i = 0; i < reader->num_inputs(); ++i) {
        if (reader->input(i) == value) MR_RETURN_IF_ERROR(graph_.SetInput(reader, i, in->output(0)));
      }
    }
    ++swapped_;
    return absl::OkStatus();
  }

  bool MayBeWaitedFor(const Node& n) const {
    return !may_be_dead_[Id(&n)] && !n.Is(OpTrait::kInternal) && costs_.Nanos(n, device_) > 0;
  }

  // The last node in front of `reader` that leaves so much time, from place `first` on; null: there is none.
  Node* NodeBefore(const Node& reader, size_t first, double nanos) const {
    Node* found = nullptr;
    for (size_t k = place_[Id(&reader)]; k-- > first;) {
      if (!MayBeWaitedFor(*order_[k])) continue;
      found = order_[k];
      if (nanos <= 0) break;
      nanos -= costs_.Nanos(*found, device_);
    }
    return found;
  }
  // The first node behind `maker` that leaves so much time, at the latest what stands at `last`.
  Node* NodeBehind(const Node& maker, size_t last, double nanos) const {
    for (size_t k = place_[Id(&maker)] + 1; k < last; ++k) {
      if (!MayBeWaitedFor(*order_[k])) continue;
      if (nanos <= 0) return order_[k];
      nanos -= costs_.Nanos(*order_[k], device_);
    }
    return order_[last];
  }

  StatusOr<Node*> AddCopy(const char* op, const char* name, Output value, Node* trigger) {
    NodeSpec spec;
    spec.op = op;
    spec.name = graph_.UniqueName(absl::StrCat("_", name, "_", value.node->name(), "_", value.index));
    spec.inputs = {value};
    if (trigger != nullptr) spec.control_inputs = {trigger};
    spec.location = value.node->location();
    MR_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(std::move(spec)));
    node->set_assigned_device(env_.devices[device_].ToString());
    node->set_shape(0, value.shape());
    return node;
  }

  Graph& graph_;
  const PassEnvironment& env_;
  const size_t device_;
  const bool has_branches_;
  const CostModel costs_;
  std::vector<Node*> order_;
  std::vector<size_t> place_;  // by node id
  std::vector<bool> may_be_dead_;
  int swapped_ = 0;
};

}  // namespace

Status SwapToHost(std::vector<Partition>& partitions, const PassEnvironment& env, std::vector<std::string>* notes) {
  if (!env.memory.by_hand && !env.memory.swap_by_cost) return absl::OkStatus();
  bool has_branches = false;
  for (const Partition& p : partitions) {
    for (const Node* n : p.graph->nodes()) has_branches |= n->control_op() != ControlOp::kNone;
  }
  for (Partition& p : partitions) {
    const size_t device = PositionOfDevice(env, p.device);
    if (device >= env.own_memory.size() || !env.own_memory[device]) continue;
    MR_RETURN_IF_ERROR(Swapper(p, env, device, has_branches).Run(notes));
  }
  return absl::OkStatus();
}

}  // namespace millrace
