// SPDX-License-Identifier: Apache-2.0
#include "graph/control_flow.h"

#include <algorithm>

namespace millrace {

namespace {

bool OlderReadsNewer(const Graph& graph, int mark) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [mark](const Node* node) {
    return node->id() >= mark && std::any_of(node->consumers().begin(), node->consumers().end(),
                                             [mark](const Consumer& c) { return c.node->id() < mark; });
  });
}

// A reference would let others change the value while it is on its way.
Output Value(const GraphBuilder& b, Output o) { return IsRef(o.dtype()) ? b.WithName("read").Identity(o) : o; }

Status CheckScalar(Output o, DType want, const char* what) {
  if (!o) return InvalidArgument(what, " is missing");
  if (BaseType(o.dtype()) != want) {
    return InvalidArgument(what, " must be ", DTypeName(want), ", got ", DTypeName(o.dtype()), " from ", o.ToString());
  }
  if (!o.shape().IsCompatibleWith(PartialShape::Scalar())) {
    return InvalidArgument(what, " must be a scalar, got shape ", o.shape().ToString(), " from ", o.ToString());
  }
  return absl::OkStatus();
}

Status CheckResult(Output o, const char* what, size_t i) {
  if (o.node == nullptr) return InvalidArgument(what, " returns nothing as its result ", i);
  if (o.index != kOperation && (o.index < 0 || o.index >= o.node->num_outputs())) {
    return InvalidArgument(
        what, " returns output ", o.index, " of ", o.node->Describe(), ", which has ", o.node->num_outputs());
  }
  return absl::OkStatus();
}

bool SaysAsMuchAs(const PartialShape& shape, const PartialShape& invariant) {
  const auto both = invariant.Merge(shape);
  return both.ok() && *both == shape;
}

}  // namespace

void TakeBack(Graph* graph, int mark) {
  if (!OlderReadsNewer(*graph, mark)) graph->RollbackTo(mark);
}

BlockBuilder::BlockBuilder(const GraphBuilder& b, absl::string_view name)
    : outside_(b.Scope(name)),
      inside_(outside_.WithoutControl()),
      mark_(b.graph().num_node_ids()),
      outer_(b.graph().context()),
      current_(outer_) {}

BlockBuilder::~BlockBuilder() {
  if (!done_) TakeBack(&graph(), mark_);
}

Status BlockBuilder::CheckInnermost() const {
  MR_RETURN_IF_ERROR(inside_.status());
  if (IsInnermost()) return absl::OkStatus();
  return FailedPrecondition("'", inside_.scope(), "' cannot go on: a conditional or loop inside it has not ended");
}

void BlockBuilder::Open(ControlFlowContext* context) {
  graph().SetContext(context);
  current_ = context;
}

void BlockBuilder::Close() {
  graph().SetContext(outer_);
  current_ = outer_;
}

CondBuilder::~CondBuilder() {
  if (!is_done()) Close();
}

Status CondBuilder::Begin(Output predicate) {
  MR_RETURN_IF_ERROR(CheckScalar(predicate, DType::kBool, "the predicate of a conditional"));
  const GraphBuilder& b = outside_;
  Node* both = b.OpNode("Switch", {predicate, predicate});
  if (both == nullptr) return b.status();
  pivots_[1] = b.WithName("switch_t").Identity(both->output(1));
  pivots_[0] = b.WithName("switch_f").Identity(both->output(0));
  predicate_ = b.WithName("pred_id").Identity(predicate);
  MR_RETURN_IF_ERROR(b.status());
  OpenBranch(1);
  return absl::OkStatus();
}

void CondBuilder::OpenBranch(int side) {
  Close();
  branch_ = std::make_unique<BranchContext>(&graph(), predicate_, side);
  branch_->Insert(pivots_[side].node);
  branch_->set_pivot(pivots_[side].node);
  Open(branch_.get());
}

// The results as values from inside the branch.
StatusOr<std::vector<Output>> CondBuilder::Results(absl::Span<const Output> results, const char* branch) {
  MR_RETURN_IF_ERROR(CheckInnermost());
  std::vector<Output> values;
  for (size_t i = 0; i < results.size(); ++i) {
    Output o = results[i];
    MR_RETURN_IF_ERROR(CheckResult(o, branch, i));
    if (o.index == kOperation) {
      const Output pivot{branch_->pivot(), 0};
      values.push_back(inside_.WithName("control_dependency").WithControl({o.node}).Identity(pivot));
    } else {
      MR_ASSIGN_OR_RETURN(o, branch_->Inside(o, inside_.scope()));
      values.push_back(Value(inside_, o));
    }
  }
  MR_RETURN_IF_ERROR(inside_.status());
  return values;
}

Status CondBuilder::Else(absl::Span<const Output> true_results) {
  if (branch_ == nullptr || branch_->pivot() != pivots_[1].node) {
    return FailedPrecondition("the true branch of a conditional is not open");
  }
  MR_ASSIGN_OR_RETURN(true_results_, Results(true_results, "the true branch"));
  OpenBranch(0);
  return absl::OkStatus();
}

StatusOr<std::vector<Output>> CondBuilder::End(absl::Span<const Output> false_results) {
  if (branch_ == nullptr || branch_->pivot() != pivots_[0].node) {
    return FailedPrecondition("the false branch of a conditional is not open");
  }
  MR_ASSIGN_OR_RETURN(const std::vector<Output> if_false, Results(false_results, "the false branch"));
  Close();
  MR_ASSIGN_OR_RETURN(std::vector<Output> merged, Merge(if_false));
  Done();
  branch_.reset();
  return merged;
}

StatusOr<std::vector<Output>> CondBuilder::Merge(const std::vector<Output>& if_false) const {
  if (true_results_.size() != if_false.size()) {
    return InvalidArgument("the branches of '", inside_.scope(), "' must have as many results: the true branch has ",
                           true_results_.size(), ", the false branch ", if_false.size());
  }
  std::vector<Output> merged;
  for (size_t i = 0; i < if_false.size(); ++i) {
    const DType want = true_results_[i].dtype(), got = if_false[i].dtype();
    if (want != got) {
      return InvalidArgument(
          "result ", i, " of '", inside_.scope(), "' is ", DTypeName(want), " in the true branch ('",
          true_results_[i].ToString(), "'), but ", DTypeName(got), " in the false branch ('", if_false[i].ToString(),
          "')");
    }
    merged.push_back(inside_.Op("Merge", {std::vector<Output>{if_false[i], true_results_[i]}}));
  }
  MR_RETURN_IF_ERROR(inside_.status());
  return merged;
}

WhileBuilder::~WhileBuilder() {
  if (!is_done()) Close();
}

StatusOr<std::vector<Output>> WhileBuilder::Begin(absl::Span<const Output> variables) {
  if (variables.empty()) return InvalidArgument("a loop needs at least one variable");
  if (options_.parallel_iterations < 1) {
    return InvalidArgument("parallel_iterations must be positive, got ", options_.parallel_iterations);
  }
  if (!options_.shape_invariants.empty() && options_.shape_invariants.size() != variables.size()) {
    return InvalidArgument(
        "the loop has ", variables.size(), " variables, but ", options_.shape_invariants.size(), " shape invariants");
  }
  if (options_.maximum_iterations) MR_RETURN_IF_ERROR(AddCounter());
  MR_RETURN_IF_ERROR(EnterVariables(variables));
  Open(loop_.get());
  for (const Output& enter : enters_) {
    merges_.push_back(inside_.Op("Merge", {std::vector<Output>{enter, enter}}));
  }
  MR_RETURN_IF_ERROR(inside_.status());
  loop_->set_pivot(merges_[0].node);
  if (counts_) {
    within_limit_ = inside_.Op("Less", {merges_[0], options_.maximum_iterations});
    MR_RETURN_IF_ERROR(inside_.status());
  }
  return OfClient(merges_);
}

// A variable of our own goes first.
Status WhileBuilder::AddCounter() {
  const Output limit = options_.maximum_iterations;
  const DType type = limit.dtype() == DType::kInt64 ? DType::kInt64 : DType::kInt32;
  MR_RETURN_IF_ERROR(CheckScalar(limit, type, "maximum_iterations"));
  counts_ = true;
  starts_.push_back(outside_.WithName("iteration_counter").ScalarOf(type, 0));
  if (!options_.shape_invariants.empty()) {
    std::vector<std::optional<PartialShape>> invariants(1);
    for (std::optional<PartialShape>& s : options_.shape_invariants) invariants.push_back(std::move(s));
    options_.shape_invariants = std::move(invariants);
  }
  return outside_.status();
}

Status WhileBuilder::EnterVariables(absl::Span<const Output> variables) {
  for (size_t i = 0; i < variables.size(); ++i) {
    MR_RETURN_IF_ERROR(CheckResult(variables[i], "the list of loop variables", i));
    if (variables[i].index < 0) return InvalidArgument("loop variable ", i, " has no value");
    starts_.push_back(Value(outside_, variables[i]));
  }
  const std::string frame = graph().UniqueName(absl::StrCat(inside_.scope(), "/while_context"));
  loop_ = std::make_unique<LoopContext>(&graph(), frame, options_.parallel_iterations);
  for (size_t i = 0; i < starts_.size(); ++i) {
    Node* enter = outside_.OpNode("Enter", {starts_[i]}, loop_->EnterAttrs(/*is_constant=*/false));
    if (enter == nullptr) return outside_.status();
    loop_->Entered(enter);
    MR_ASSIGN_OR_RETURN(PartialShape shape, Invariant(i, starts_[i]));
    enter->set_shape(0, std::move(shape));
    enters_.push_back(enter->output(0));
  }
  return absl::OkStatus();
}

StatusOr<PartialShape> WhileBuilder::Invariant(size_t i, Output variable) const {
  if (options_.shape_invariants.empty() || !options_.shape_invariants[i]) return variable.shape();
  const PartialShape& invariant = *options_.shape_invariants[i];
  if (SaysAsMuchAs(variable.shape(), invariant)) return invariant;
  return InvalidArgument(
      "the shape invariant ", invariant.ToString(), " of loop variable ", IndexOfClient(i), " ('", variable.ToString(),
      "') does not hold for the shape that it starts with, ", variable.shape().ToString());
}

StatusOr<std::vector<Output>> WhileBuilder::Body(Output condition) {
  if (merges_.empty() || !switches_.empty()) return FailedPrecondition("the condition of a loop is not open");
  MR_RETURN_IF_ERROR(CheckInnermost());
  MR_RETURN_IF_ERROR(CheckScalar(condition, DType::kBool, "the condition of a loop"));
  if (counts_) condition = inside_.Op("LogicalAnd", {within_limit_, condition});
  AttrMap attrs;
  if (!options_.back_prop) attrs.emplace(kBackPropAttr, AttrValue(false));
  if (options_.swap_memory) attrs.emplace(kSwapMemoryAttr, AttrValue(true));
  Node* loop_cond = inside_.OpNode("LoopCond", {condition}, std::move(attrs));
  if (loop_cond == nullptr) return inside_.status();
  for (const Output& merge : merges_) {
    Node* node = inside_.OpNode("Switch", {merge, loop_cond->output(0)});
    if (node == nullptr) return inside_.status();
    switches_.push_back(node->output(0));
  }
  for (const Output& o : switches_) variables_.push_back(inside_.Identity(o.node->output(1)));
  MR_RETURN_IF_ERROR(inside_.status());
  loop_->set_pivot(variables_[0].node);
  if (counts_) {
    const GraphBuilder b = inside_;
    next_count_ = b.WithName("add").Add(variables_[0], b.WithName("add/y").ScalarOf(variables_[0].dtype(), 1));
    MR_RETURN_IF_ERROR(b.status());
  }
  return OfClient(variables_);
}

StatusOr<std::vector<Output>> WhileBuilder::End(absl::Span<const Output> results) {
  if (variables_.empty()) return FailedPrecondition("the body of a loop is not open");
  MR_RETURN_IF_ERROR(CheckInnermost());
  MR_RETURN_IF_ERROR(CheckResults(results));
  std::vector<Output> next(results.begin(), results.end());
  if (counts_) next.insert(next.begin(), next_count_);
  std::vector<Output> exits;
  for (size_t i = 0; i < next.size(); ++i) {
    const Output back = inside_.Op("NextIteration", {next[i]});
    MR_RETURN_IF_ERROR(inside_.status());
    MR_RETURN_IF_ERROR(graph().SetInput(merges_[i].node, 1, back));
  }
  for (size_t i = 0; i < switches_.size(); ++i) {
    exits.push_back(inside_.Op("Exit", {switches_[i]}));
    MR_RETURN_IF_ERROR(inside_.status());
    loop_->Left(exits[i].node);
    MR_RETURN_IF_ERROR(graph().RefineShape(exits[i], merges_[i].shape()));
  }
  Close();
  Done();
  loop_.reset();
  return OfClient(exits);
}

Status WhileBuilder::CheckResults(absl::Span<const Output> results) const {
  const std::vector<Output> variables = OfClient(variables_);
  if (results.size() != variables.size()) {
    return InvalidArgument("the body of '", inside_.scope(), "' must return a value for each of the ", variables.size(),
                           " loop variables, got ", results.size());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Output got = results[i];
    MR_RETURN_IF_ERROR(CheckResult(got, "the body of a loop", i));
    if (got.index == kOperation) return InvalidArgument("the body returns an operation for loop variable ", i);
    if (BaseType(got.dtype()) != variables[i].dtype()) {
      return InvalidArgument("loop variable ", i, " is ", DTypeName(variables[i].dtype()), ", but the body returns ",
                             DTypeName(got.dtype()), " for it ('", got.ToString(), "')");
    }
    const PartialShape& before = variables[i].shape();
    if (!SaysAsMuchAs(got.shape(), before)) {
      return InvalidArgument(
          "loop variable ", i, " ('", OfClient(starts_)[i].ToString(), "') enters the loop with shape ",
          before.ToString(), ", but has shape ", got.shape().ToString(),
          " after one iteration. To let its shape vary, give it a less specific one in the "
          "shape_invariants of the loop.");
    }
  }
  return absl::OkStatus();
}

std::vector<Output> WhileBuilder::OfClient(const std::vector<Output>& all) const {
  return {all.begin() + (counts_ ? 1 : 0), all.end()};
}

StatusOr<std::vector<Output>> Cond(const GraphBuilder& b, Output predicate, const BuildFn& if_true,
                                   const BuildFn& if_false, absl::string_view name) {
  CondBuilder cond(b, name);
  MR_RETURN_IF_ERROR(cond.Begin(predicate));
  MR_ASSIGN_OR_RETURN(const std::vector<Output> when_true, if_true(cond.inside(), {}));
  MR_RETURN_IF_ERROR(cond.Else(when_true));
  MR_ASSIGN_OR_RETURN(const std::vector<Output> when_false, if_false(cond.inside(), {}));
  return cond.End(when_false);
}

StatusOr<std::vector<Output>> WhileLoop(
    const GraphBuilder& b, absl::Span<const Output> variables, const BuildFn& condition, const BuildFn& body,
    const LoopOptions& options, absl::string_view name) {
  WhileBuilder loop(b, options, name);
  MR_ASSIGN_OR_RETURN(const std::vector<Output> before, loop.Begin(variables));
  MR_ASSIGN_OR_RETURN(const std::vector<Output> go_on, condition(loop.inside(), before));
  if (go_on.size() != 1) return InvalidArgument("the condition of a loop must return one value, got ", go_on.size());
  MR_ASSIGN_OR_RETURN(const std::vector<Output> current, loop.Body(go_on[0]));
  MR_ASSIGN_OR_RETURN(const std::vector<Output> next, body(loop.inside(), current));
  return loop.End(next);
}

Output WithDependencies(const GraphBuilder& b, std::vector<Node*> nodes, Output value) {
  return b.WithName("control_dependency").WithControl(std::move(nodes)).Identity(value);
}

Node* Group(const GraphBuilder& b, std::vector<Node*> nodes, absl::string_view name) {
  return b.WithName(name).WithControl(std::move(nodes)).OpNode("NoOp", {});
}

StatusOr<std::vector<Output>> Tuple(const GraphBuilder& b, absl::Span<const Output> values, std::vector<Node*> nodes,
                                    absl::string_view name) {
  for (const Output& o : values) {
    if (o) nodes.push_back(o.node);
  }
  if (nodes.empty()) return InvalidArgument("a tuple needs at least one value or node");
  const GraphBuilder inside = b.Scope(name);
  Node* all = Group(inside, std::move(nodes));
  std::vector<Output> out;
  for (const Output& o : values) out.push_back(o ? WithDependencies(inside, {all}, o) : o);
  MR_RETURN_IF_ERROR(inside.status());
  return out;
}

}  // namespace millrace
