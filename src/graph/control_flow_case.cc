// SPDX-License-Identifier: Apache-2.0
// A case is a chain of conditionals: each next one lies in the false branch of the one before.
#include "graph/control_flow.h"

namespace millrace {

namespace {

// Conditionals that are open in each other; the innermost goes first.
class Chain {
 public:
  ~Chain() {
    while (!open_.empty()) open_.pop_back();
  }
  CondBuilder& Add(const GraphBuilder& b) {
    open_.push_back(std::make_unique<CondBuilder>(b));
    return *open_.back();
  }
  bool empty() const { return open_.empty(); }
  CondBuilder& last() { return *open_.back(); }
  void Pop() { open_.pop_back(); }

 private:
  std::vector<std::unique_ptr<CondBuilder>> open_;
};

// Fails a step in which more than one predicate is true, or (not `at_most`) none is.
Node* CheckPredicates(const GraphBuilder& b, absl::Span<const CaseBranch> branches, bool at_most) {
  std::vector<Output> predicates;
  for (const CaseBranch& branch : branches) predicates.push_back(branch.predicate);
  const Output all = b.WithName("preds_c").Op("Pack", {predicates});
  const Output count = b.WithName("num_true_conds").Sum(b.Cast(all, DType::kInt32), b.Vector<int32_t>({0}));
  const Output one = b.WithName("n_true_conds").Scalar<int32_t>(1);
  const Output good = b.Op(at_most ? "LessEqual" : "GreaterEqual", {count, one});
  const char* text = at_most ? "More than one condition evaluated as True but exclusive=True. Conditions: "
                             : "None of the conditions evaluated as True. Conditions: ";
  const Output message = b.Scalar(TString(text));
  AttrMap attrs;
  attrs.emplace("summarize", AttrValue(static_cast<int64_t>(branches.size())));
  return b.OpNode("Assert", std::vector<Arg>{good, std::vector<Output>{message, all}}, std::move(attrs));
}

StatusOr<std::vector<Output>> BuildCase(const GraphBuilder& scope, absl::Span<const CaseBranch> branches,
                                        const BuildFn& otherwise, bool exclusive) {
  if (branches.empty() && !otherwise) return InvalidArgument("a case without a branch");
  for (size_t i = 0; i < branches.size(); ++i) {
    const Output p = branches[i].predicate;
    if (!p || BaseType(p.dtype()) != DType::kBool) {
      return InvalidArgument("predicate ", i, " of a case must be bool, got ", p ? DTypeName(p.dtype()) : "nothing");
    }
    if (!branches[i].build) return InvalidArgument("branch ", i, " of a case is missing");
  }
  std::vector<Node*> checks;
  if (exclusive && branches.size() > 1) checks.push_back(CheckPredicates(scope, branches, /*at_most=*/true));
  if (!otherwise) checks.push_back(CheckPredicates(scope, branches, /*at_most=*/false));
  MR_RETURN_IF_ERROR(scope.status());
  const GraphBuilder checked = scope.WithControl(checks);

  const BuildFn& last = otherwise ? otherwise : branches.back().build;
  const size_t conditionals = branches.size() - (otherwise ? 0 : 1);
  Chain chain;
  for (size_t i = 0; i < conditionals; ++i) {
    CondBuilder& cond = chain.Add(chain.empty() ? checked : chain.last().inside());
    MR_RETURN_IF_ERROR(cond.Begin(branches[i].predicate));
    MR_ASSIGN_OR_RETURN(const std::vector<Output> results, branches[i].build(cond.inside(), {}));
    MR_RETURN_IF_ERROR(cond.Else(results));
  }
  if (chain.empty()) {
    MR_ASSIGN_OR_RETURN(std::vector<Output> results, last(scope, {}));
    for (Output& o : results) {
      if (!checks.empty() && o && o.index >= 0) o = WithDependencies(scope, checks, o);
    }
    MR_RETURN_IF_ERROR(scope.status());
    return results;
  }
  MR_ASSIGN_OR_RETURN(std::vector<Output> results, last(chain.last().inside(), {}));
  for (; !chain.empty(); chain.Pop()) {
    MR_ASSIGN_OR_RETURN(results, chain.last().End(results));
  }
  return results;
}

}  // namespace

StatusOr<std::vector<Output>> Case(const GraphBuilder& b, absl::Span<const CaseBranch> branches,
                                   const BuildFn& otherwise, bool exclusive, absl::string_view name) {
  const int mark = b.graph().num_node_ids();
  StatusOr<std::vector<Output>> results = BuildCase(b.Scope(name), branches, otherwise, exclusive);
  if (!results.ok()) TakeBack(&b.graph(), mark);
  return results;
}

}  // namespace millrace
