// SPDX-License-Identifier: Apache-2.0
// What stands around the nodes of a conditional's branch or of a loop while they are added. Values from outside are
// carried in, once each: by a Switch into a branch, by a constant Enter into a loop. A node that nothing inside would
// hold back waits for the pivot, so that it runs only when the branch is taken, and once an iteration. Contexts nest:
// the node that carries a value in is itself added in the context around, which carries its input in from further out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "graph/graph.h"

namespace millrace {

// The context of a graph until the end of a block.
class ScopedContext {
 public:
  ScopedContext(Graph* graph, GraphContext* context) : graph_(graph), before_(graph->SetContext(context)) {}
  ~ScopedContext() { graph_->SetContext(before_); }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  Graph* graph_;
  GraphContext* before_;
};

// Lies inside the context that the graph has when it is made, and does not outlive it.
class ControlFlowContext : public GraphContext {
 public:
  explicit ControlFlowContext(Graph* graph);

  Status Adapt(Graph& graph, NodeSpec* spec) override;
  void Added(Node* node) override { Insert(node); }
  void Forget(int mark) override;

  // What nodes inside read for `o`: itself when it is from inside, else the output of its carrier. A carrier that must
  // be made first is named after `reader`.
  StatusOr<Output> Inside(Output o, absl::string_view reader);
  // Whether nodes here may read `node` as it is.
  virtual bool Contains(const Node* node) const { return inside_.contains(node); }
  // Nodes here may read `node` as it is from now on.
  virtual void Insert(const Node* node) { inside_.insert(node); }

  Graph& graph() const { return *graph_; }
  GraphContext* outer() const { return outer_; }
  Node* pivot() const { return pivot_; }
  void set_pivot(Node* pivot) { pivot_ = pivot; }

 protected:
  // Makes the node that carries `o` in, in the context around, which is the graph's current one meanwhile.
  virtual StatusOr<Output> Carry(Output o, absl::string_view reader) = 0;
  // What nodes inside wait for instead of `node`, a control input from outside; null: nothing.
  virtual StatusOr<Node*> CarryControl(Node* node, absl::string_view reader) = 0;
  // Whether a node with these inputs, all from inside, could run before the pivot has.
  virtual bool RunsUnasked(const NodeSpec& spec) const;
  // Nodes inside a loop that has ended here: nobody else may read them.
  virtual void Hide(const HashSet<const Node*>& nodes);
  // To be called by a context whose nodes are in a frame of their own when it ends.
  void HideFromOuter();
  // `node` belongs to what is around this context.
  void HandOut(Node* node);
  static void HideIn(ControlFlowContext* context, const HashSet<const Node*>& nodes) { context->Hide(nodes); }
  ControlFlowContext* outer_flow() const { return outer_flow_; }  // outer(), where it is a ControlFlowContext

 private:
  bool CallsFunction(const NodeSpec& spec) const;

  Graph* graph_;
  GraphContext* outer_;
  ControlFlowContext* outer_flow_;
  Node* pivot_ = nullptr;
  HashSet<const Node*> inside_;
  HashSet<const Node*> hidden_;
  HashMap<Output, Output> carried_;
  HashMap<Node*, Node*> carried_control_;
};

// One branch of a conditional: `side` 1 when the predicate is true, else 0.
class BranchContext : public ControlFlowContext {
 public:
  BranchContext(Graph* graph, Output predicate, int side);
  void Insert(const Node* node) override;

 protected:
  StatusOr<Output> Carry(Output o, absl::string_view reader) override;
  StatusOr<Node*> CarryControl(Node* node, absl::string_view reader) override;
  void Hide(const HashSet<const Node*>& nodes) override;

 private:
  const Output predicate_;
  const int side_;
};

// A loop: its condition and its body are one frame.
class LoopContext : public ControlFlowContext {
 public:
  LoopContext(Graph* graph, std::string frame_name, int parallel_iterations);
  ~LoopContext() override;
  // Tells of an Enter into this loop, which is added in the context around, with EnterAttrs.
  void Entered(Node* enter) { Insert(enter); }
  // Tells of an Exit from this loop, which is added in it.
  void Left(Node* exit) { HandOut(exit); }
  AttrMap EnterAttrs(bool is_constant) const;
  const std::string& frame_name() const { return frame_name_; }

 protected:
  StatusOr<Output> Carry(Output o, absl::string_view reader) override;
  StatusOr<Node*> CarryControl(Node* node, absl::string_view reader) override;
  bool RunsUnasked(const NodeSpec& spec) const override;

 private:
  const std::string frame_name_;
  const int parallel_iterations_;
};

}  // namespace millrace
