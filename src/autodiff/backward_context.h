// SPDX-License-Identifier: Apache-2.0
// What stands around the nodes of a gradient while they are built. In the outermost one values are read as they are. In
// the loop that runs a forward loop backwards, a value of a forward iteration is popped from the stack that recorded
// it, or computed again when that is cheaper, and a value from outside is carried in by a constant Enter. So the
// gradient functions of ops need not know of loops. Each value is brought in once.
#pragma once

#include <string>
#include <vector>

#include "autodiff/forward_tape.h"
#include "base/hash_map.h"

namespace millrace {

class BackwardContext : public GraphContext {
 public:
  // A loop variable of the backward loop.
  struct Variable {
    Node* enter = nullptr;
    Node* merge = nullptr;
    Node* gate = nullptr;
    Output value() const { return gate->output(1); }  // in the body
  };

  // For nodes in the root frame of `tape`.
  explicit BackwardContext(ForwardTape* tape) : tape_(*tape) {}
  // For the loop that runs `forward` backwards, within `parent`.
  BackwardContext(BackwardContext* parent, Loop* forward) : tape_(parent->tape_), parent_(parent), forward_(forward) {}

  Status Adapt(Graph& graph, NodeSpec* spec) override;
  void Added(Node* node) override;
  void Forget(int mark) override;

  bool is_root() const { return parent_ == nullptr; }
  Loop* forward() const { return forward_; }

  // While the gradient of a node in a branch is built: the gradients of its outputs, which are live when the node was.
  // Empty: the node is live whenever the context runs.
  void set_guards(std::vector<Output> guards);
  // A node that is live when the nodes being built should be; null when they always are.
  StatusOr<Node*> Pivot();

  // What nodes in this context read for `o`.
  StatusOr<Output> Resolve(Output o);

  // The frame, its condition and its counter. Before anything else is added to a loop.
  Status Begin();
  StatusOr<Variable> AddVariable(Output initial, const PartialShape& shape);
  Status CloseVariable(const Variable& v, Output next);
  StatusOr<Output> Exit(const Variable& v);
  // Starts once `after` have run.
  Status End(const std::vector<Node*>& after);
  // A node around the loop that runs when the loop is over.
  StatusOr<Node*> Done();
  // The next iteration waits for `node`. `conditional`: it may be dead.
  Status Sync(Node* node, bool conditional);

  // Records `g` on the stack with this root handle, and takes it back: how gradients cross from the gradient of a
  // backward loop to that of its forward loop.
  Status PushGradient(Output handle, Output g, bool conditional);
  StatusOr<Output> PopGradient(Output handle, DType dtype, const Liveness& when);

 private:
  AttrMap SwapAttrs(absl::string_view name) const;
  Status AdaptAround(Graph& graph, GraphContext* around, NodeSpec* spec);
  bool IsForward(const Loop* loop) const { return !is_root() && loop == forward_; }
  StatusOr<Output> ResolveForward(Output o);
  StatusOr<Output> ResolveUncached(Output o);
  StatusOr<Output> CarryIn(Output outside);
  StatusOr<Output> CarryToRoot(Output o);
  StatusOr<Output> Popped(Output o);
  StatusOr<Node*> Pop(Output handle, DType dtype, const Liveness& when);
  StatusOr<std::vector<Node*>> PivotsOf(const Liveness& when);
  StatusOr<Node*> BranchPivot(int literal);
  const LoopVariable* VariableOf(Output o) const;
  StatusOr<Output> Index(DType dtype, int64_t start);
  bool IsCheap(Output o, int depth);
  bool IsInvariant(Output o, int depth);
  bool IsUpdated(Output o);
  StatusOr<Output> Recompute(Output o);
  StatusOr<Output> Hoist(Output o);
  StatusOr<Output> EmitConst(const Tensor& value);
  StatusOr<Output> EmitNumber(DType dtype, double v);
  Status AdaptShapeOp(NodeSpec* spec);
  StatusOr<Output> ForwardShape(const NodeSpec& spec, absl::string_view op);
  StatusOr<Node*> AddHere(absl::string_view name, absl::string_view op, std::vector<Output> inputs, AttrMap attrs = {},
                          std::vector<Node*> controls = {});

  ForwardTape& tape_;
  BackwardContext* parent_ = nullptr;
  Loop* forward_ = nullptr;
  Loop* loop_ = nullptr;  // the backward loop
  std::string frame_;
  Node* count_enter_ = nullptr;
  Node* count_gate_ = nullptr;
  Node* condition_ = nullptr;
  Node* pivot_ = nullptr;
  Node* step_ = nullptr;
  Node* trigger_ = nullptr;
  Node* done_ = nullptr;
  Output trips_, index_;
  std::vector<Output> guards_;
  Node* guard_pivot_ = nullptr;
  HashMap<Output, Output> resolved_;
  HashMap<Output, Output> hoisted_;
  HashMap<const Node*, bool> updated_;  // variables, by the node that makes them
  HashMap<int, Node*> branch_pivots_;
  HashMap<std::pair<std::string, Output>, Output> forward_shapes_;
};

}  // namespace millrace
