// SPDX-License-Identifier: Apache-2.0
// Placement (white paper 3.2.1, 4.3): nodes that must be together form groups; a group may go to each device that
// satisfies every member's constraint and has every member's kernel. Of several it goes to the first, or, where that is
// asked for, to the one that simulated execution chooses. As in TensorFlow's placer a node by itself may follow others:
// what has no inputs goes to its readers if they are together, what reads only the shape of a value goes to the value.
#include <algorithm>

#include "base/logging.h"
#include "passes/placement_groups.h"
#include "passes/placement_state.h"

namespace millrace {
namespace {

class Placer {
 public:
  Placer(Graph& graph, const PassEnvironment& env, std::vector<PlacedNode>* placed)
      : graph_(graph), env_(env), placed_(placed) {}

  Status Place() {
    MR_ASSIGN_OR_RETURN(PlacementGroups all, GroupForPlacement(graph_, env_));
    for (PlacementGroup& group : all.groups) MR_RETURN_IF_ERROR(FindDevices(group));
    if (env_.place_by_cost) MR_RETURN_IF_ERROR(ChooseBySimulation(graph_, env_, &all));
    if (!env_.place_by_cost && env_.devices.size() > 1) {
      for (PlacementGroup& group : all.groups) ResultFollowsInput(group, all);
      for (PlacementGroup& group : all.groups) ShapeFollowsValue(group, all);
      for (PlacementGroup& group : all.groups) SourceFollowsReaders(group, all);
    }
    for (const PlacementGroup& group : all.groups) Assign(group);
    return absl::OkStatus();
  }

 private:
  bool HasKernels(const PlacementGroup& group, size_t device) const {
    return std::all_of(group.members.begin(), group.members.end(), [&](const Node* n) {
      return env_.has_kernel(*n, env_.devices[device].type);
    });
  }

  static size_t DeviceOf(const Node* n, const PlacementGroups& all) {
    return all.groups[static_cast<size_t>(all.group_of[static_cast<size_t>(n->id())])].devices.front();
  }

  void Follow(PlacementGroup& group, size_t device, const char* why) const {
    const bool fits = group.constraint.Matches(env_.devices[device]) && HasKernels(group, device);
    if (!fits || device == group.devices.front()) return;
    group.devices = {device};
    group.why = why;
  }

  void ResultFollowsInput(PlacementGroup& group, const PlacementGroups& all) const {
    const Node& n = *group.members.front();
    if (!n.Is(OpTrait::kResult) || group.members.size() > 1 || !n.input(0)) return;
    Follow(group, DeviceOf(n.input(0).node, all), "its input is there");
  }

  // Not what has state: that is in one place in all steps, whoever reads it in this one.
  static bool IsSource(const Node& n) {
    if (n.num_inputs() > 0 || n.num_outputs() != 1 || n.op() == nullptr) return false;
    return !n.op()->stateful || n.Is(OpTrait::kArgument);
  }

  // A source is placed by its readers, of which this may be one.
  void ShapeFollowsValue(PlacementGroup& group, const PlacementGroups& all) const {
    const Node& n = *group.members.front();
    if (group.members.size() > 1 || !n.Is(OpTrait::kReadsShape) || !n.input(0) || IsSource(*n.input(0).node)) return;
    Follow(group, DeviceOf(n.input(0).node, all), "the value whose shape it reads is there");
  }

  void SourceFollowsReaders(PlacementGroup& group, const PlacementGroups& all) const {
    const Node& n = *group.members.front();
    if (group.members.size() > 1 || !IsSource(n) || n.consumers().empty()) return;
    const size_t device = DeviceOf(n.consumers().front().node, all);
    const auto is_there = [&](const Node* reader) { return DeviceOf(reader, all) == device; };
    const bool together =
        std::all_of(n.consumers().begin(), n.consumers().end(), [&](const Consumer& c) { return is_there(c.node); }) &&
        std::all_of(n.control_outputs().begin(), n.control_outputs().end(), is_there);
    if (together) Follow(group, device, "its readers are there");
  }

  // A member that the client knows: what a fetch returns rather than the fetch.
  static const Node& OfTheClient(const PlacementGroup& group) {
    const Node* first = group.members.front();
    return first->Is(OpTrait::kResult) && first->input(0) ? *first->input(0).node : *first;
  }

  // Once for each type of op.
  template <typename... Text>
  void LogSoft(const PlacementGroup& group, absl::string_view kind, const Text&... text) const {
    if (env_.placement && !env_.placement->IsNews(absl::StrCat(OfTheClient(group).op_name(), kind))) return;
    LogInfo("placement: ", text...);
  }

  // Soft placement: the first device with the kernels, of the task that is asked for.
  std::vector<size_t> SoftlyPlaced(const PlacementGroup& group) const {
    DeviceName task = group.constraint;
    task.type.clear();
    task.id = -1;
    for (size_t d = 0; d < env_.devices.size(); ++d) {
      if (task.Matches(env_.devices[d]) && HasKernels(group, d)) return {d};
    }
    return {};
  }

  // By itself, an argument or a result of the step.
  static bool IsTheClients(const PlacementGroup& group) {
    const Node& n = *group.members.front();
    return group.members.size() == 1 && (n.Is(OpTrait::kArgument) || n.Is(OpTrait::kResult));
  }

  Status FindDevices(PlacementGroup& group) const {
    if (IsTheClients(group) && group.asker == nullptr && !env_.place_by_cost) {
      group.devices = {env_.client};
      group.why = "the client's";
      return absl::OkStatus();
    }
    std::vector<size_t> matching;
    for (size_t d = 0; d < env_.devices.size(); ++d) {
      if (group.constraint.Matches(env_.devices[d])) matching.push_back(d);
    }
    const bool first_does = !env_.place_by_cost && placed_ == nullptr;
    for (const size_t d : matching) {
      if (HasKernels(group, d)) group.devices.push_back(d);
      if (first_does && !group.devices.empty()) break;
    }
    const std::string wanted = group.constraint.ToString();
    const bool is_asked_for = group.asker != nullptr && !wanted.empty();
    if (!group.devices.empty()) {
      if (env_.devices.size() == 1) {
        group.why = "the only device";
      } else if (group.devices.size() > 1) {
        group.why = absl::StrCat("the first of ", group.devices.size(), " that fit");
      } else if (matching.size() > 1) {
        group.why = "the only device with the kernels";
      } else if (group.pinned != nullptr) {
        group.why = absl::StrCat("the state of ", group.pinned->name(), " is there");
      } else {
        group.why = "asked for";
      }
      if (is_asked_for) absl::StrAppend(&group.why, ", of '", wanted, "'");
      return absl::OkStatus();
    }
    // A variable is in one place in all steps, whatever else is beside it in this one.
    if (!matching.empty() && env_.soft_placement && !group.makes_variable) {
      group.devices = SoftlyPlaced(group);
      if (!group.devices.empty()) {
        const DeviceName& to = env_.devices[group.devices.front()];
        LogSoft(group, " has no kernel", env_.devices[matching.front()].ToString(), " has not all kernels for ",
                OfTheClient(group).Describe(), "; it goes to ", to.ToString());
        group.why = "by soft placement: what is asked for has not all kernels";
        return absl::OkStatus();
      }
    }
    if (!matching.empty()) {
      // The plan's compiler says which kernel is missing.
      group.devices = {matching.front()};
      group.why = "the first that fits; no device has the kernels";
      return absl::OkStatus();
    }
    // A value that is fed or fetched is the caller's: it needs no device of its own.
    group.devices = {env_.client};
    if (IsTheClients(group)) {
      group.why = "the client's";
      return absl::OkStatus();
    }
    const std::vector<size_t> softly = SoftlyPlaced(group);
    if (env_.soft_placement && !softly.empty()) {
      group.devices = softly;
      LogSoft(group, " has no device", "no device matches ", wanted, " for ", OfTheClient(group).Describe(),
              "; it goes to ", env_.devices[softly.front()].ToString());
      group.why = "by soft placement: no device is as asked for";
      return absl::OkStatus();
    }
    std::string have;
    for (const DeviceName& d : env_.devices) absl::StrAppend(&have, " ", d.ToString());
    return InvalidArgument(
        "Cannot assign a device for ", OfTheClient(group).Describe(), ": no device matches '", wanted,
        "'; there are:", have,
        softly.empty() ? "" : "; with allow_soft_placement in the ConfigProto it would run on one of these");
  }

  void Assign(const PlacementGroup& group) {
    const std::string device = env_.devices[group.devices.front()].ToString();
    const Node* const leader = group.asker != nullptr ? group.asker : group.members.front();
    for (Node* n : group.members) {
      n->set_assigned_device(device);
      const bool keeps_state = n->op() != nullptr && n->op()->stateful && !n->Is(OpTrait::kInternal);
      const bool pins = keeps_state && env_.placement && env_.devices.size() > 1;
      if (pins && (env_.place_by_cost || MakesState(*n))) env_.placement->Pin(n->name(), device);
      if (placed_ == nullptr) continue;
      const std::string beside = n != leader ? absl::StrCat("colocated with ", leader->name(), ", ") : "";
      placed_->push_back({n->name(), n->op_name(), device, absl::StrCat(beside, group.why)});
    }
  }

  Graph& graph_;
  const PassEnvironment& env_;
  std::vector<PlacedNode>* const placed_;
};

}  // namespace

Status Place(Graph& graph, const PassEnvironment& env, std::vector<PlacedNode>* placed) {
  if (!env.placement || env.devices.size() == 1) return Placer(graph, env, placed).Place();
  absl::MutexLock lock(&env.placement->placing());
  return Placer(graph, env, placed).Place();
}

}  // namespace millrace
