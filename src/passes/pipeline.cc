// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include "graph/verify.h"

namespace millrace {
namespace {

struct Pass {
  const char* name;
  bool enabled;
  std::function<Status()> run;
};

#ifdef NDEBUG
constexpr bool kVerifyBetweenPasses = false;
#else
constexpr bool kVerifyBetweenPasses = true;
#endif

}  // namespace

StatusOr<std::vector<Partition>> RunPasses(std::unique_ptr<Graph> graph, const PassEnvironment& env) {
  if (env.devices.empty()) return Internal("there is no device to run on");
  Graph& g = *graph;
  // Merging comes first too: equal nodes fold once, which spares memory when they are large.
  const Pass passes[] = {
      {"merge what the client made twice", env.merge_common_subexpressions && env.fold_constants,
       [&] { return MergeCommonSubexpressions(g); }},
      {"fold constants", env.fold_constants && env.evaluate != nullptr, [&] { return FoldConstants(g, env); }},
      {"simplify arithmetic", env.simplify_arithmetic, [&] { return SimplifyArithmetic(g); }},
      {"merge common subexpressions", env.merge_common_subexpressions, [&] { return MergeCommonSubexpressions(g); }},
      {"drop work wanted for its order alone", env.drop_order_only_work, [&] { return DropOrderOnlyWork(g); }},
      {"place", true, [&] { return Place(g, env); }},
      {"read variables after their updates", true, [&] { return ReadAfterUpdates(g); }},
  };
  for (const Pass& pass : passes) {
    if (!pass.enabled) continue;
    MR_RETURN_IF_ERROR(pass.run());
    if (kVerifyBetweenPasses)
      MR_RETURN_IF_ERROR(Annotate(VerifyGraph(g), absl::StrCat("after pass ", pass.name, ": ")));
  }
  return PartitionGraph(std::move(graph), env);
}

}  // namespace millrace
