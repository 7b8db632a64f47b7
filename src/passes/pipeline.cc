// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include "base/logging.h"
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

// Where there is one device, what goes to it is known before folding and merging take the client's names away.
std::vector<std::string> PlacementOnTheOnlyDevice(const Graph& graph, const PassEnvironment& env) {
  std::vector<std::string> lines;
  if (!env.log_placement || env.devices.size() > 1) return lines;
  const std::string device = env.devices.front().ToString();
  for (const Node* n : graph.nodes()) lines.push_back(absl::StrCat(n->name(), ": (", n->op_name(), "): ", device));
  return lines;
}

}  // namespace

StatusOr<std::vector<Partition>> RunPasses(std::unique_ptr<Graph> graph, const PassEnvironment& env) {
  if (env.devices.empty()) return Internal("there is no device to run on");
  Graph& g = *graph;
  const std::vector<std::string> placement = PlacementOnTheOnlyDevice(g, env);
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
  for (const std::string& line : placement) LogInfo(line);
  return PartitionGraph(std::move(graph), env);
}

}  // namespace millrace
