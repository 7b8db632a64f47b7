// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops for every client, made of the primitives that TensorFlow 1.x builds:
//
//   cond:  pred -> Switch -> switch_t, switch_f; value -> Switch(pred) -> branch -> Merge(false, true)
//   while: variable -> Enter -> Merge -> condition -> LoopCond
//          Merge -> Switch: false -> Exit; true -> Identity -> body -> NextIteration -> Merge
//
// Whatever is added to the graph while a branch or a loop is open lies inside it (control_flow_context.h). An error
// leaves the graph as it was before the constructor. One thread builds; blocks end in the reverse order of their
// beginnings.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/control_flow_context.h"
#include "graph/graph_builder.h"

namespace millrace {

// Builds a part of a graph in the scope of `b`; `inputs` are its arguments. A result with index kOperation stands for a
// node that shall run, without a value.
using BuildFn = std::function<StatusOr<std::vector<Output>>(const GraphBuilder& b, const std::vector<Output>& inputs)>;
inline constexpr int kOperation = -1;

struct LoopOptions {
  int parallel_iterations = 10;    // how many iterations may be under way at once
  bool back_prop = true;           // whether gradients flow through the loop
  bool swap_memory = false;        // whether what the gradient needs of each iteration may go to the host's memory
  Output maximum_iterations = {};  // an integer scalar; null: no limit
  // What is to be known of the shape of each variable in every iteration; empty: the shape that it starts with. One
  // entry may be null: likewise.
  std::vector<std::optional<PartialShape>> shape_invariants = {};
};

// Attributes of a LoopCond that tell the gradient what the options said; absent where they said the default.
inline constexpr char kBackPropAttr[] = "_back_prop";      // bool, true
inline constexpr char kSwapMemoryAttr[] = "_swap_memory";  // bool, false

// Removes what was added to the graph since it had `mark` node ids, unless an older node reads some of it by now.
void TakeBack(Graph* graph, int mark);

// What conditionals and loops under construction have in common. Destroyed before its end, it takes back all that was
// added to the graph since its beginning.
class BlockBuilder {
 public:
  BlockBuilder(const BlockBuilder&) = delete;
  BlockBuilder& operator=(const BlockBuilder&) = delete;
  // The scope of what is inside; its status is shared with the builder that the block was made from.
  const GraphBuilder& inside() const { return inside_; }
  Graph& graph() const { return inside_.graph(); }
  // Whether nothing that was begun inside is still open.
  bool IsInnermost() const { return graph().context() == current_; }

 protected:
  BlockBuilder(const GraphBuilder& b, absl::string_view name);
  ~BlockBuilder();
  Status CheckInnermost() const;
  void Open(ControlFlowContext* context);
  void Close();
  // Closed for good: what was built stays.
  void Done() { done_ = true; }
  bool is_done() const { return done_; }

  const GraphBuilder outside_;  // the block's scope, with the control dependencies in force around it
  const GraphBuilder inside_;

 private:
  const int mark_;
  GraphContext* const outer_;
  GraphContext* current_;
  bool done_ = false;
};

// A conditional, for callers that cannot hand over functions: Begin; build the true branch; Else; build the false
// branch; End.
class CondBuilder : public BlockBuilder {
 public:
  explicit CondBuilder(const GraphBuilder& b, absl::string_view name = "cond") : BlockBuilder(b, name) {}
  ~CondBuilder();
  Status Begin(Output predicate);
  Status Else(absl::Span<const Output> true_results);
  // As many values as both branches have results.
  StatusOr<std::vector<Output>> End(absl::Span<const Output> false_results);

 private:
  void OpenBranch(int side);
  StatusOr<std::vector<Output>> Results(absl::Span<const Output> results, const char* branch);
  StatusOr<std::vector<Output>> Merge(const std::vector<Output>& if_false) const;

  Output predicate_;
  Output pivots_[2];
  std::unique_ptr<BranchContext> branch_;
  std::vector<Output> true_results_;
};

// A loop, likewise: Begin; build the condition on the values that it returns; Body; build the body on the values that
// it returns; End.
class WhileBuilder : public BlockBuilder {
 public:
  WhileBuilder(const GraphBuilder& b, LoopOptions options, absl::string_view name = "while")
      : BlockBuilder(b, name), options_(std::move(options)) {}
  ~WhileBuilder();
  StatusOr<std::vector<Output>> Begin(absl::Span<const Output> variables);
  StatusOr<std::vector<Output>> Body(Output condition);
  // The values of the variables after the loop.
  StatusOr<std::vector<Output>> End(absl::Span<const Output> results);

 private:
  Status AddCounter();
  Status EnterVariables(absl::Span<const Output> variables);
  Status CheckResults(absl::Span<const Output> results) const;
  size_t IndexOfClient(size_t i) const { return counts_ ? i - 1 : i; }
  StatusOr<PartialShape> Invariant(size_t i, Output variable) const;
  // Without the counter, where there is one.
  std::vector<Output> OfClient(const std::vector<Output>& all) const;

  LoopOptions options_;
  std::unique_ptr<LoopContext> loop_;
  std::vector<Output> starts_, enters_, merges_, switches_, variables_;
  Output within_limit_, next_count_;
  bool counts_ = false;
};

// The results of `if_true` where `predicate`, a bool scalar, is true, else those of `if_false`. Both have as many, of
// the same types. Only the branch that is taken runs.
StatusOr<std::vector<Output>> Cond(const GraphBuilder& b, Output predicate, const BuildFn& if_true,
                                   const BuildFn& if_false, absl::string_view name = "cond");

// Repeats `body` on the variables while `condition`, which returns one bool scalar, is true.
StatusOr<std::vector<Output>> WhileLoop(
    const GraphBuilder& b, absl::Span<const Output> variables, const BuildFn& condition, const BuildFn& body,
    const LoopOptions& options = {}, absl::string_view name = "while");

struct CaseBranch {
  Output predicate;
  BuildFn build;
};
// The results of the first branch whose predicate is true, else those of `otherwise`; without that one, a step in which
// no predicate is true fails. With `exclusive`, a step in which more than one is true fails.
StatusOr<std::vector<Output>> Case(const GraphBuilder& b, absl::Span<const CaseBranch> branches,
                                   const BuildFn& otherwise, bool exclusive = false, absl::string_view name = "case");

// The value, once these nodes have run.
Output WithDependencies(const GraphBuilder& b, std::vector<Node*> nodes, Output value);
// A node that has run once all these have.
Node* Group(const GraphBuilder& b, std::vector<Node*> nodes, absl::string_view name = "group_deps");
// The values, none of which is there before all of them, and the nodes, are. Null values stay null.
StatusOr<std::vector<Output>> Tuple(const GraphBuilder& b, absl::Span<const Output> values,
                                    std::vector<Node*> nodes = {}, absl::string_view name = "tuple");

}  // namespace millrace
