// SPDX-License-Identifier: Apache-2.0
// Placement (white paper 3.2.1, 4.3): nodes that must be together form groups (union-find over colocation attributes,
// reference edges and resource handles); a group goes to the first device that satisfies every member's constraint and
// has every member's kernel. Choosing among several by simulated execution has its place here.
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/strip.h"
#include "base/logging.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

class Groups {
 public:
  explicit Groups(size_t n) : parent_(n) {
    for (size_t i = 0; i < n; ++i) parent_[i] = i;
  }
  size_t Find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Join(size_t a, size_t b) {
    a = Find(a), b = Find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);  // the earliest node leads
  }

 private:
  std::vector<size_t> parent_;
};

struct Group {
  DeviceName constraint;
  std::vector<Node*> members;
};

class Placer {
 public:
  Placer(Graph& graph, const PassEnvironment& env, std::vector<std::string>* reasons)
      : graph_(graph), env_(env), reasons_(reasons), groups_(graph.nodes().size()) {}

  Status Place() {
    JoinColocated();
    std::map<size_t, Group> groups;  // in the order of the graph, so that the same fault is told each time
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      Node* n = graph_.nodes()[i];
      Group& group = groups[groups_.Find(i)];
      group.members.push_back(n);
      MR_RETURN_IF_ERROR(Constrain(group, *n));
    }
    for (auto& [leader, group] : groups) MR_RETURN_IF_ERROR(Assign(group));
    return absl::OkStatus();
  }

 private:
  void JoinColocated() {
    absl::flat_hash_map<std::string, size_t> by_name;
    absl::flat_hash_map<const Node*, size_t> position;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      position[graph_.nodes()[i]] = i;
      by_name.emplace(graph_.nodes()[i]->name(), i);
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node* n = graph_.nodes()[i];
      if (auto loc = n->Attr<std::vector<std::string>>("_class"); loc.ok()) {
        for (absl::string_view name : *loc) {
          if (!absl::ConsumePrefix(&name, "loc:@")) continue;
          // A group may be named after a node that this run does not need.
          groups_.Join(i, by_name.emplace(std::string(name), i).first->second);
        }
      }
      for (int k = 0; k < n->num_inputs(); ++k) {
        const Output in = n->input(k);
        if (in && (IsRef(n->input_type(k)) || n->input_type(k) == DType::kResource)) {
          groups_.Join(i, position.at(in.node));
        }
      }
    }
  }

  Status Constrain(Group& group, const Node& n) {
    if (n.device().empty()) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const DeviceName wanted, DeviceName::Parse(n.device()));
    StatusOr<DeviceName> merged = group.constraint.Merge(wanted);
    if (merged.ok()) {
      group.constraint = *merged;
      return absl::OkStatus();
    }
    if (env_.soft_placement) {
      LogInfo("placement: ", n.Describe(), " cannot be on ", n.device(), " beside ", group.members.front()->name(),
              "; its own wish is dropped");
      return absl::OkStatus();
    }
    return InvalidArgument("Cannot assign a device for ", n.Describe(), ": it must be with '",
                           group.members.front()->name(), "', and ", merged.status().message());
  }

  bool HasKernels(const Group& group, const DeviceName& device) const {
    return std::all_of(
        group.members.begin(), group.members.end(), [&](const Node* n) { return env_.has_kernel(*n, device.type); });
  }

  // A member that the client knows: what a fetch returns rather than the fetch.
  static const Node& OfTheClient(const Group& group) {
    const Node* first = group.members.front();
    return first->Is(OpTrait::kResult) && first->input(0) ? *first->input(0).node : *first;
  }

  Status Assign(Group& group) {
    const DeviceName* chosen = nullptr;
    const DeviceName* matching = nullptr;
    for (const DeviceName& device : env_.devices) {
      if (!group.constraint.Matches(device)) continue;
      if (!matching) matching = &device;
      if (HasKernels(group, device)) {
        chosen = &device;
        break;
      }
    }
    const char* why = env_.devices.size() == 1 ? "the only device" : "the first that fits and has the kernels";
    // A variable is in one place in all steps, whatever else is beside it in this one.
    const bool has_variable = std::any_of(
        group.members.begin(), group.members.end(), [](const Node* n) { return n->Is(OpTrait::kMakesVariable); });
    if (!chosen && matching && env_.soft_placement && !has_variable) {
      for (const DeviceName& device : env_.devices) {
        if (!HasKernels(group, device)) continue;
        LogInfo("placement: ", matching->ToString(), " has not all kernels for ", OfTheClient(group).Describe(),
                "; it goes to ", device.ToString());
        chosen = &device, why = "by soft placement: what is asked for has not all kernels";
        break;
      }
    }
    // Where no device has all kernels, the plan's compiler says which is missing.
    if (!chosen && matching) chosen = matching, why = "the first that fits; no device has the kernels";
    const Node& first = *group.members.front();
    // A value that is fed or fetched is the caller's: it needs no device of its own.
    if (!chosen && group.members.size() == 1 && (first.Is(OpTrait::kArgument) || first.Is(OpTrait::kResult)))
      chosen = &env_.devices.front(), why = "the client's";
    if (!chosen && env_.soft_placement) {
      LogInfo("placement: no device matches ", group.constraint.ToString(), " for ", OfTheClient(group).Describe(),
              "; it goes to ", env_.devices.front().ToString());
      chosen = &env_.devices.front(), why = "by soft placement: no device is as asked for";
    }
    if (!chosen) {
      std::string have;
      for (const DeviceName& d : env_.devices) absl::StrAppend(&have, " ", d.ToString());
      return InvalidArgument(
          "Cannot assign a device for ", OfTheClient(group).Describe(), ": no device matches '",
          group.constraint.ToString(), "'; there are:", have,
          "; with allow_soft_placement in the ConfigProto it would run on one of these");
    }
    const std::string name = chosen->ToString();
    for (Node* n : group.members) {
      n->set_assigned_device(name);
      if (reasons_ != nullptr) reasons_->push_back(Reason(group, *n, name, why));
    }
    return absl::OkStatus();
  }

  static std::string Reason(const Group& group, const Node& n, const std::string& device, const char* why) {
    std::string line = absl::StrCat(n.name(), " (", n.op_name(), ") is on ", device, ": ", why);
    const std::string wanted = group.constraint.ToString();
    if (!wanted.empty()) absl::StrAppend(&line, ", of '", wanted, "'");
    if (group.members.size() > 1) {
      absl::StrAppend(&line, ", with ", group.members.size() - 1, " more beside ", group.members.front()->name());
    }
    return line;
  }

  Graph& graph_;
  const PassEnvironment& env_;
  std::vector<std::string>* const reasons_;
  Groups groups_;
};

}  // namespace

Status Place(Graph& graph, const PassEnvironment& env, std::vector<std::string>* reasons) {
  return Placer(graph, env, reasons).Place();
}

}  // namespace millrace
