// SPDX-License-Identifier: Apache-2.0
// Loops as straight lines: the kernel of `_Loop` nodes, and the rewrite that makes them.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "runtime/loop_region.h"
#include "runtime/plan.h"

namespace millrace {

// A graph in which loops have become `_Loop` nodes, with the kernels of those.
struct CollapsedGraph {
  std::unique_ptr<Graph> graph;  // null: there was nothing to collapse, the graph stands as it was
  absl::flat_hash_map<const Node*, std::shared_ptr<Kernel>> kernels;
};

// Loops with asynchronous kernels, and those of another form than LoopRegion's, stay as they are.
StatusOr<CollapsedGraph> CollapseLoops(const Graph& graph, const Plan::Options& options);

}  // namespace millrace
