// SPDX-License-Identifier: Apache-2.0
// What a loop leaves behind for its gradient: how often it ran, and the values of its iterations, each kind on a stack
// of its own. Nodes are added to the loop's frame; nodes that were there stay as they are. Pushes wait for a counter
// and the counter waits for them, so that they happen in the order of iterations, also in loops within loops, whose
// stacks are the same for all iterations around them.
#pragma once

#include <string>

#include "autodiff/control_flow_structure.h"
#include "base/hash_map.h"
#include "graph/graph_builder.h"

namespace millrace {

// Adds nodes, some of them past the graph's context.
class NodeEmitter {
 public:
  // Names are below `scope`. `around`: the context of the nodes that surround all this; may be null.
  NodeEmitter(Graph* graph, std::string scope, GraphContext* around)
      : graph_(graph), scope_(std::move(scope)), around_(around) {}

  Graph& graph() const { return *graph_; }
  GraphContext* around() const { return around_; }
  // Exactly what is asked for, in no context.
  StatusOr<Node*> Add(absl::string_view name, absl::string_view op, std::vector<Output> inputs, AttrMap attrs = {},
                      std::vector<Node*> controls = {}) const;
  // In the surrounding context.
  StatusOr<Node*> AddAround(absl::string_view name, absl::string_view op, std::vector<Output> inputs,
                            AttrMap attrs = {}, std::vector<Node*> controls = {}) const;
  // Tells the surrounding context that an Exit leads into it.
  void Surface(Node* exit) const;

 private:
  NodeSpec Spec(absl::string_view name, absl::string_view op, std::vector<Output> inputs, AttrMap attrs,
                std::vector<Node*> controls) const;

  Graph* graph_;
  std::string scope_;
  GraphContext* around_;
};

// Enter's attributes for `loop`.
AttrMap EnterAttrs(const std::string& frame, int64_t parallel_iterations, bool is_constant);

// Counter that starts at a constant and grows by one an iteration.
struct LoopCounter {
  const LoopVariable* variable = nullptr;
  int64_t start = 0;
};
std::optional<LoopCounter> FindCounter(const Graph& graph, const Loop& loop);
// Whether `v` counts up by one from a constant.
bool IsCounter(const Graph& graph, const LoopVariable& v, int64_t* start);

class ForwardTape {
 public:
  // The loops around and including `root` are not differentiated: the stacks live in it. `anchor`: a node there that is
  // live whenever gradients are taken; null in the outermost frame.
  ForwardTape(ControlFlowStructure* structure, NodeEmitter emit, Loop* root)
      : structure_(*structure), emit_(std::move(emit)), root_(root) {}

  const NodeEmitter& emit() const { return emit_; }
  ControlFlowStructure& structure() const { return structure_; }
  Loop* root() const { return root_; }
  void set_anchor(Node* anchor) { anchor_ = anchor; }

  // How often the loop ran: an integer scalar outside of it. `own`: by the counter that orders pushes.
  StatusOr<Output> TripCount(Loop* loop, bool own);
  bool has_own_counter(const Loop* loop) const { return counters_.contains(loop); }
  DType CounterType(const Loop* loop) const;
  // The final value of a loop variable, outside of the loop.
  StatusOr<Output> FinalValue(Loop* loop, LoopVariable* v);
  // A new stack, its handle in the root frame.
  StatusOr<Output> NewStack(DType dtype, absl::string_view name, const std::string& device);
  // Records `value`, which is inside of `loop`, in every iteration in which it is live. Returns the handle.
  StatusOr<Output> Push(Loop* loop, Output value);
  // What makes nodes without inputs in the root frame run only when they should; empty when nothing must.
  std::vector<Node*> RootControls() const {
    return anchor_ == nullptr ? std::vector<Node*>() : std::vector<Node*>{anchor_};
  }

 private:
  struct Counter {
    Node* pivot = nullptr;
    Node* step = nullptr;
    Node* trigger = nullptr;  // between pushes in branches and the step
    Output trips;
  };
  StatusOr<Counter*> OwnCounter(Loop* loop);
  StatusOr<Output> CounterStart(Loop* loop, DType dtype);
  StatusOr<Output> HandleInside(Loop* loop, Output handle);
  // A node around the loop that is live when the loop runs; null when it always does.
  StatusOr<Node*> LoopAnchor(Loop* loop);

  ControlFlowStructure& structure_;
  NodeEmitter emit_;
  Loop* root_;
  Node* anchor_ = nullptr;
  Output unbounded_;
  HashMap<const Loop*, Counter> counters_;
  HashMap<const Loop*, Node*> loop_anchors_;
  HashMap<std::pair<const Loop*, Output>, Output> handles_;
};

}  // namespace millrace
