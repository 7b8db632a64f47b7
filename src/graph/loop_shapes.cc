// SPDX-License-Identifier: Apache-2.0
// A fixed point: each Merge of a loop is supposed to have the shape that enters it, shapes are inferred through the
// body, and what comes back takes away what it contradicts, until nothing changes. Suppositions live in a copy of the
// graph, as shapes become constants there that would stay. What holds at the end holds for all iterations, by
// induction.
#include "graph/loop_shapes.h"

#include <optional>

#include "base/hash_map.h"

namespace millrace {
namespace {

constexpr int kMaxRounds = 16;

// What both have in common.
PartialShape Common(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || a.rank() != b.rank()) return PartialShape::Unknown();
  std::vector<int64_t> dims(a.dims());
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) dims[static_cast<size_t>(i)] = -1;
  }
  return PartialShape::Of(std::move(dims));
}

struct LoopMerge {
  Node* merge;
  Node* enter;
  Node* next;
};

std::optional<LoopMerge> AsLoopMerge(Node* n) {
  if (n->control_op() != ControlOp::kMerge || n->num_inputs() != 2) return std::nullopt;
  for (int i : {0, 1}) {
    const Output from = n->input(i), back = n->input(1 - i);
    if (!from || !back || from.node->control_op() != ControlOp::kEnter) continue;
    if (back.node->control_op() == ControlOp::kNextIteration) return LoopMerge{n, from.node, back.node};
  }
  return std::nullopt;
}

class LoopShapes {
 public:
  LoopShapes(Graph* graph, std::vector<LoopMerge> merges) : graph_(*graph), merges_(std::move(merges)) {}

  Status Run() {
    MR_ASSIGN_OR_RETURN(order_, TopologicalOrder(graph_));
    FindAffected();
    for (int round = 0; round < kMaxRounds; ++round) {
      MR_ASSIGN_OR_RETURN(const bool stable, Suppose());
      if (stable) return Apply();
    }
    return absl::OkStatus();
  }

 private:
  // The merges, and what follows from their shapes.
  void FindAffected() {
    for (const LoopMerge& m : merges_) by_node_.emplace(m.merge, &m);
    for (Node* n : order_) {
      bool affected = by_node_.contains(n);
      for (const Output& in : n->inputs()) affected = affected || (in && affected_.contains(in.node));
      if (affected) affected_.insert(n);
    }
  }

  // One round. True when what came back agrees with what was supposed.
  StatusOr<bool> Suppose() {
    Graph scratch(&graph_.registry());
    HashMap<const Node*, Node*> copies;
    supposed_.clear();
    for (Node* n : order_) {
      const auto merge = by_node_.find(n);
      std::vector<Output> inputs;
      for (const Output& in : n->inputs()) {
        const auto from = copies.find(in.node);  // the back edge is not there yet
        inputs.push_back(from == copies.end() ? Output() : from->second->output(in.index));
      }
      MR_ASSIGN_OR_RETURN(Node * copy, scratch.CopyNode(*n, inputs, {}));
      copies.emplace(n, copy);
      if (merge != by_node_.end()) {
        PartialShape shape = copies[merge->second->enter]->shape(0);
        if (const auto back = back_.find(n); back != back_.end()) shape = Common(shape, back->second);
        MR_ASSIGN_OR_RETURN(shape, shape.Merge(n->shape(0)));
        copy->set_shape(0, shape);
        supposed_.emplace(n, std::move(shape));
      } else if (affected_.contains(n)) {
        MR_RETURN_IF_ERROR(scratch.InferShapes(copy));
      }
    }
    bool stable = true;
    for (const LoopMerge& m : merges_) {
      const PartialShape& next = copies[m.next]->shape(0);
      const PartialShape& shape = supposed_[m.merge];
      const auto left = Common(shape, next).Merge(m.merge->shape(0));
      if (left.ok() && *left == shape) continue;
      stable = false;
      const auto [at, first] = back_.emplace(m.merge, next);
      if (!first) at->second = Common(at->second, next);
    }
    return stable;
  }

  Status Apply() {
    for (Node* n : order_) {
      if (!affected_.contains(n)) continue;
      const auto shape = supposed_.find(n);
      MR_RETURN_IF_ERROR(
          shape == supposed_.end() ? graph_.InferShapes(n) : graph_.RefineShape(n->output(0), shape->second));
    }
    return absl::OkStatus();
  }

  Graph& graph_;
  const std::vector<LoopMerge> merges_;
  HashMap<const Node*, const LoopMerge*> by_node_;
  std::vector<Node*> order_;
  HashSet<const Node*> affected_;
  HashMap<const Node*, PartialShape> back_;      // what all rounds brought back
  HashMap<const Node*, PartialShape> supposed_;  // by this round
};

}  // namespace

void RefineLoopShapes(Graph* graph) {
  std::vector<LoopMerge> merges;
  bool vague = false;
  for (Node* n : graph->nodes()) {
    const std::optional<LoopMerge> m = AsLoopMerge(n);
    if (!m) continue;
    merges.push_back(*m);
    vague = vague || (!n->shape(0).has_rank() && m->enter->shape(0).has_rank());
  }
  // What cannot be supposed (a body that refuses the shapes of its first iteration) is not an error of the graph.
  if (vague) LoopShapes(graph, std::move(merges)).Run().IgnoreError();
}

}  // namespace millrace
