// SPDX-License-Identifier: Apache-2.0
// Says what a legal graph is, in code. Import checks each node as it comes; this checks the whole: edges agree with
// types and counts, no cycle but a loop's, frames well formed, function calls within their depth.
#pragma once

#include "graph/graph.h"

namespace millrace {

// Of a partition the Switch that ends a loop, or the Exit, may be in another.
enum class GraphExtent { kWhole, kPartition };

Status VerifyGraph(const Graph& graph, GraphExtent extent = GraphExtent::kWhole);
// The part about functions: no chain of calls is deeper than the limit, unless it comes back to where it was.
Status VerifyFunctions(const Graph& graph);

}  // namespace millrace
