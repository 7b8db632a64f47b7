// SPDX-License-Identifier: Apache-2.0
// Says what a legal graph is, in code. Import checks each node as it comes; this checks the whole: edges agree with
// types and counts, no cycle but a loop's, frames well formed, function calls within their depth.
#pragma once

#include "graph/graph.h"

namespace millrace {

Status VerifyGraph(const Graph& graph);
// The part about functions: none calls itself, no chain of calls is deeper than the limit.
Status VerifyFunctions(const Graph& graph);

}  // namespace millrace
