// SPDX-License-Identifier: Apache-2.0
// The conditionals and loops of a graph, recovered from its primitives alone: which loop a node is in, what a loop is
// made of, and under which decisions a value is live. Everything is worked out when asked for, so a graph without
// control flow costs nothing. Nodes that are added later may be asked about too. No recursion follows the depth of the
// graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "graph/graph.h"

namespace millrace {

// What goes around a loop.
struct LoopVariable {
  Node* enter = nullptr;
  Node* merge = nullptr;
  Node* next = nullptr;  // NextIteration
  Node* gate = nullptr;  // the Switch on the loop's condition; null when only the condition reads the variable
  std::vector<Node*> exits;
};

struct Loop {
  std::string name;  // of the frame
  Loop* parent = nullptr;
  int depth = 1;
  bool back_prop = true;
  bool swap_memory = false;
  int64_t parallel_iterations = 10;
  Node* condition = nullptr;  // LoopCond
  std::vector<Node*> enters;  // all
  std::vector<LoopVariable> variables;
  bool described = false;
  Status problem;  // why it is not understood
};

// A value is live when every literal holds.
struct Literal {
  Output predicate;
  int side = 0;  // 1: true
  bool operator==(const Literal&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Literal& l) {
    return H::combine(std::move(h), l.predicate, l.side);
  }
};
// A conjunction of literals, as sorted numbers. A loop's own condition counts like any other predicate.
using Liveness = std::vector<int>;

class ControlFlowStructure {
 public:
  static constexpr int kMaxLoopDepth = 200;

  explicit ControlFlowStructure(const Graph& graph) : graph_(graph) {}

  // The loop that the outputs of `n` are in; null: none.
  StatusOr<Loop*> LoopOf(const Node* n);
  // The loop that an Exit leaves.
  StatusOr<Loop*> LoopLeft(const Node* exit) { return LoopOf(exit->input(0).node); }
  // Whether `outer` is `inner` or around it; null is around everything.
  static bool Encloses(const Loop* outer, const Loop* inner);

  // Fills in the parts of a loop. InvalidArgument, naming the node, when it is not one condition with variables that go
  // Enter -> Merge -> Switch -> ... -> NextIteration -> Merge.
  Status Describe(Loop* loop);

  StatusOr<Liveness> LivenessOf(Output o);
  StatusOr<Liveness> LivenessOf(const Node* n);  // of its control output
  StatusOr<Liveness> LivenessOf(const Loop* loop);
  const Literal& literal(int i) const { return literals_[static_cast<size_t>(i)]; }
  int NumberOf(Literal l);

  // For a Merge of a conditional with two inputs: the predicate that tells which one is live, and the side of input 0.
  // A null predicate when there is none.
  StatusOr<Literal> Decides(const Node* merge);

  // Switch on the condition of the loop around it.
  static bool IsGate(const Node* n) {
    return n->control_op() == ControlOp::kSwitch && n->input(1).node->control_op() == ControlOp::kLoopCond;
  }
  static bool IsLoopMerge(const Node* n);  // also of a loop whose body is being built
  // Behind nodes that only pass it on.
  static Output StripIdentities(Output o);

 private:
  struct LoopKey {
    const Loop* parent;
    std::string name;
    bool operator==(const LoopKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const LoopKey& k) {
      return H::combine(std::move(h), k.parent, k.name);
    }
  };

  StatusOr<Loop*> LoopEntered(const Node* enter, Loop* parent);
  Status CollectEnters();
  Status AddVariable(Loop* loop, Node* enter);
  Status FindGate(Loop* loop, LoopVariable* v);
  Status FillIn(Loop* loop);
  // What the liveness of `n` depends on.
  StatusOr<std::vector<const Node*>> Needs(const Node* n);
  StatusOr<Liveness> Join(const Node* n);
  Liveness Meet(const Node* merge);
  Liveness KnownLiveness(Output o);

  const Graph& graph_;
  std::vector<std::unique_ptr<Loop>> loops_;
  HashMap<LoopKey, Loop*> by_key_;
  std::vector<Loop*> loop_of_;  // by node id
  std::vector<bool> loop_known_;
  bool enters_collected_ = false;
  std::vector<Literal> literals_;
  HashMap<Literal, int> numbers_;
  HashMap<const Node*, Liveness> liveness_;
};

}  // namespace millrace
