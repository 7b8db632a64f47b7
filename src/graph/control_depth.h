// SPDX-License-Identifier: Apache-2.0
// How deep nodes are in conditionals and loops, counted along edges.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace millrace {

// What the depth of a node's outputs is more than the depth of its inputs: 1 where a conditional or loop begins, -1
// where it ends.
int ControlDepthChange(const Node& n);

// By node id: whether the node may not run, or run more than once. All are when the graph has a cycle that is no loop.
std::vector<bool> InsideControlFlow(const Graph& graph);

}  // namespace millrace
