// SPDX-License-Identifier: Apache-2.0
// Placement (white paper 3.2.1, 4.3): nodes that must be together form groups; a group may go to each device that
// satisfies every member's constraint and has every member's kernel. Of several it goes to the first, or, where it is
// asked for, to the one that simulated execution chooses.
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
    for (const PlacementGroup& group : all.groups) Assign(group);
    return absl::OkStatus();
  }

 private:
  bool HasKernels(const PlacementGroup& group, size_t device) const {
    return std::all_of(group.members.begin(), group.members.end(), [&](const Node* n) {
      return env_.has_kernel(*n, env_.devices[device].type);
    });
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

  Status FindDevices(PlacementGroup& group) const {
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
      for (size_t d = 0; d < env_.devices.size() && group.devices.empty(); ++d) {
        if (HasKernels(group, d)) group.devices = {d};
      }
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
    const Node& first = *group.members.front();
    group.devices = {0};
    if (group.members.size() == 1 && (first.Is(OpTrait::kArgument) || first.Is(OpTrait::kResult))) {
      group.why = "the client's";
      return absl::OkStatus();
    }
    if (env_.soft_placement) {
      LogSoft(group, " has no device", "no device matches ", wanted, " for ", OfTheClient(group).Describe(),
              "; it goes to ", env_.devices.front().ToString());
      group.why = "by soft placement: no device is as asked for";
      return absl::OkStatus();
    }
    std::string have;
    for (const DeviceName& d : env_.devices) absl::StrAppend(&have, " ", d.ToString());
    return InvalidArgument(
        "Cannot assign a device for ", OfTheClient(group).Describe(), ": no device matches '", wanted,
        "'; there are:", have, "; with allow_soft_placement in the ConfigProto it would run on one of these");
  }

  void Assign(const PlacementGroup& group) {
    const std::string device = env_.devices[group.devices.front()].ToString();
    const Node* const leader = group.asker != nullptr ? group.asker : group.members.front();
    for (Node* n : group.members) {
      n->set_assigned_device(device);
      const bool keeps_state = n->op() != nullptr && n->op()->stateful && !n->Is(OpTrait::kInternal);
      if (env_.place_by_cost && env_.placement && keeps_state) env_.placement->Pin(n->name(), device);
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
  if (!env.place_by_cost || !env.placement) return Placer(graph, env, placed).Place();
  absl::MutexLock lock(&env.placement->placing());
  return Placer(graph, env, placed).Place();
}

}  // namespace millrace
