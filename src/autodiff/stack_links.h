// SPDX-License-Identifier: Apache-2.0
// Where the values that gradients of loops leave on stacks are read: an edge of the graph, though none leads there.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace millrace {

struct StackLink {
  Node* push;
  Node* pop;
};

// Of stacks with one push and one pop, which are those of gradients. Through the stacks of programs nothing flows.
std::vector<StackLink> StackLinks(const Graph& graph);

}  // namespace millrace
