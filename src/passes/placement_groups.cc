// SPDX-License-Identifier: Apache-2.0
#include "passes/placement_groups.h"

#include <algorithm>
#include <map>

#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "base/logging.h"
#include "graph/frame_tree.h"
#include "passes/placement_state.h"

namespace millrace {
namespace {

class UnionFind {
 public:
  explicit UnionFind(size_t n) : parent_(n) {
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

class Grouper {
 public:
  Grouper(const Graph& graph, const PassEnvironment& env, bool is_quiet)
      : graph_(graph),
        env_(env),
        is_quiet_(is_quiet),
        sets_(graph.nodes().size()),
        position_(static_cast<size_t>(graph.num_node_ids())) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) PositionOf(graph.nodes()[i]) = i;
  }

  StatusOr<PlacementGroups> Run() {
    JoinColocated();
    if (env_.place_by_cost) MR_RETURN_IF_ERROR(JoinLoops());
    PlacementGroups result;
    result.group_of.assign(position_.size(), -1);
    std::vector<int> group_of_leader(graph_.nodes().size(), -1);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      Node* n = graph_.nodes()[i];
      int& at = group_of_leader[sets_.Find(i)];
      if (at < 0) {
        at = static_cast<int>(result.groups.size());
        result.groups.emplace_back();
      }
      PlacementGroup& group = result.groups[static_cast<size_t>(at)];
      group.members.push_back(n);
      group.makes_variable |= n->Is(OpTrait::kMakesVariable);
      result.group_of[static_cast<size_t>(n->id())] = at;
    }
    for (PlacementGroup& group : result.groups) MR_RETURN_IF_ERROR(Constrain(group));
    return result;
  }

 private:
  size_t& PositionOf(const Node* n) { return position_[static_cast<size_t>(n->id())]; }

  void JoinColocated() {
    HashMap<absl::string_view, size_t> by_name;  // made when the first class is met
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node* n = graph_.nodes()[i];
      if (n->attrs().contains("_class")) {
        if (by_name.empty()) {
          for (size_t k = 0; k < graph_.nodes().size(); ++k) by_name.emplace(graph_.nodes()[k]->name(), k);
        }
        const auto* names = n->attrs().find("_class")->second.get<std::vector<std::string>>();
        for (size_t k = 0; names != nullptr && k < names->size(); ++k) {
          absl::string_view name = (*names)[k];
          if (!absl::ConsumePrefix(&name, "loc:@")) continue;
          // A group may be named after a node that this run does not need.
          sets_.Join(i, by_name.emplace(name, i).first->second);
        }
      }
      for (int k = 0; k < n->num_inputs(); ++k) {
        const Output in = n->input(k);
        if (in && (IsRef(n->input_type(k)) || n->input_type(k) == DType::kResource)) sets_.Join(i, PositionOf(in.node));
      }
    }
  }

  // With each other those that nobody asks to be anywhere, or with what is asked for.
  Status JoinLoops() {
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph_));
    MR_ASSIGN_OR_RETURN(const FrameTree tree, FrameTree::Of(order, graph_.num_node_ids()));
    std::map<int, size_t> first;  // by outermost loop
    for (const Node* n : order) {
      int frame = std::max(tree.RunsIn(n), tree.OutputsIn(n));
      if (frame == 0 || !n->device().empty()) continue;
      while (tree.frames()[static_cast<size_t>(frame)].parent > 0) {
        frame = tree.frames()[static_cast<size_t>(frame)].parent;
      }
      sets_.Join(PositionOf(n), first.emplace(frame, PositionOf(n)).first->second);
    }
    return absl::OkStatus();
  }

  // As in TensorFlow, who makes state decides where it is. Of those that use it the first which asks for a device does,
  // where the makers do not; what others ask for is dropped.
  Status Constrain(PlacementGroup& group) {
    std::vector<const Node*> makers, others;
    for (const Node* n : group.members) (MakesState(*n) ? makers : others).push_back(n);
    if (!env_.place_by_cost) {
      for (const Node* n : makers) MR_RETURN_IF_ERROR(ConstrainByPin(group, *n));
    }
    for (const Node* n : makers) MR_RETURN_IF_ERROR(Constrain(group, *n, n->device(), group.pinned != nullptr));
    for (const Node* n : others) MR_RETURN_IF_ERROR(Constrain(group, *n, n->device(), !makers.empty()));
    return env_.place_by_cost ? ConstrainByState(group) : absl::OkStatus();
  }

  // `yields`: it need not be as it asks for.
  Status Constrain(PlacementGroup& group, const Node& n, const std::string& device, bool yields) {
    if (device.empty()) return absl::OkStatus();
    const StatusOr<DeviceName> wanted = DeviceName::Parse(device);
    if (!is_quiet_) MR_RETURN_IF_ERROR(wanted.status());
    const StatusOr<DeviceName> merged = wanted.ok() ? group.constraint.Merge(*wanted) : wanted;
    if (merged.ok()) {
      group.constraint = *merged;
      if (group.asker == nullptr) group.asker = &n;
      return absl::OkStatus();
    }
    if (is_quiet_) {
      group.is_disputed |= !yields;
      return absl::OkStatus();
    }
    if (env_.soft_placement || yields) {
      if (!env_.placement || env_.placement->IsNews(absl::StrCat(n.op_name(), " beside another ", device))) {
        LogInfo("placement: ", n.Describe(), " cannot be on ", device, " beside ", group.members.front()->name(),
                "; its own wish is dropped");
      }
      return absl::OkStatus();
    }
    return InvalidArgument("Cannot assign a device for ", n.Describe(), ": it must be with '",
                           group.members.front()->name(), "', and ", merged.status().message());
  }

  // State that an earlier step has put somewhere is there.
  Status ConstrainByState(PlacementGroup& group) {
    for (const Node* n : group.members) {
      if (n->op() && n->op()->stateful) MR_RETURN_IF_ERROR(ConstrainByPin(group, *n));
    }
    return absl::OkStatus();
  }
  Status ConstrainByPin(PlacementGroup& group, const Node& n) {
    const std::string pin = env_.placement ? env_.placement->PinOf(n.name()) : "";
    if (pin.empty()) return absl::OkStatus();
    MR_RETURN_IF_ERROR(Constrain(group, n, pin, false));
    group.pinned = &n;
    return absl::OkStatus();
  }

  const Graph& graph_;
  const PassEnvironment& env_;
  const bool is_quiet_;
  UnionFind sets_;
  std::vector<size_t> position_;  // in the graph, by id
};

}  // namespace

StatusOr<PlacementGroups> GroupForPlacement(const Graph& graph, const PassEnvironment& env) {
  return Grouper(graph, env, false).Run();
}

bool MakesState(const Node& n) {
  const auto has_state = [](DType t) { return IsRef(t) || t == DType::kResource; };
  const NodeSignature& s = n.signature();
  return std::any_of(s.output_types.begin(), s.output_types.end(), has_state) &&
         std::none_of(s.input_types.begin(), s.input_types.end(), has_state);
}

Status AskAsWholeGraph(const Graph& whole, const PassEnvironment& env, Graph* pruned) {
  MR_ASSIGN_OR_RETURN(const PlacementGroups all, Grouper(whole, env, true).Run());
  for (const PlacementGroup& group : all.groups) {
    const std::string wanted = group.constraint.ToString();
    if (group.members.size() == 1 || wanted.empty() || group.is_disputed) continue;
    for (const Node* n : group.members) {
      if (Node* const copy = pruned->Find(n->name())) copy->set_device(wanted);
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
