// SPDX-License-Identifier: Apache-2.0
// The compiler: the only road from a client's graph, or a function, to the partitions that workers run. Its stages
// stand in one table (compile.cc), in order; each has a name by which it is reported, and switched off where that keeps
// the meaning. In debug builds, and where MILLRACE_VERIFY_GRAPHS is in the environment, graphs are verified after each.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "passes/pipeline.h"
#include "passes/prune.h"
#include "passes/report.h"

namespace millrace {

// Of the stages that workers finish. Without the first, updates of variables run where they were stated.
inline constexpr char kOrderUpdatesStage[] = "order_updates";
// Without this one nodes run one by one.
inline constexpr char kCutStage[] = "cut";

// Lends the graph to its argument, which is called once; nobody changes the graph meanwhile.
using LendGraph = absl::FunctionRef<Status(absl::FunctionRef<Status(const Graph&)>)>;

// The graph is lent for as long as it takes to copy what the signature needs. `report` may be null.
// Errors name nodes: InvalidArgument (a feed or fetch that does not exist, a placement that cannot be met, a broken
// function), Unimplemented, ResourceExhausted (calls that expand to too much), or what options.calls.keep_going says.
StatusOr<std::vector<Partition>> CompileGraph(
    LendGraph lend, const RunSignature& signature, const PruneOptions& options, const PassEnvironment& env,
    CompileReport* report = nullptr);

// InvalidArgument unless `name` is a stage that may be switched off.
Status CheckOptionalStage(absl::string_view name);

}  // namespace millrace
