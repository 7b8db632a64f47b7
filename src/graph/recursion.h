// SPDX-License-Identifier: Apache-2.0
// Which functions of a library call which. A function that calls itself, by way of others too, is not expanded: what
// calls it becomes a StatefulPartitionedCall with the attribute below, whose kernel runs the function.
#pragma once

#include <string>
#include <vector>

#include "base/hash_map.h"
#include "graph/graph.h"

namespace millrace {

inline constexpr char kCalledAtRunTime[] = "_called_at_run_time";

// Names of the functions that a body calls or passes on, sorted.
std::vector<absl::string_view> CallsOf(const Graph& graph, const wire::FunctionDef& def);

// The functions of a library that call themselves.
HashSet<std::string> RecursiveFunctions(const Graph& library);

}  // namespace millrace
