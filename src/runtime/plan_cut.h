// SPDX-License-Identifier: Apache-2.0
// The cut of a plan: which nodes run together as a segment, a straight line that one thread runs in order, and which
// are counted for readiness by themselves.
#pragma once

#include <vector>

#include "runtime/plan_graph.h"

namespace millrace {

struct PlanUnit {
  std::vector<int> nodes;   // of the PlanGraph, in an order in which they can run
  bool is_segment = false;  // else one node, which runs by readiness
};
// All nodes of a step. No unit reads what a later one makes, but for the back edges of loops.
using PlanCut = std::vector<PlanUnit>;

// Every node by itself: each order that the graph allows can happen.
PlanCut CutIntoNodes(const PlanGraph& graph);

// By what nodes wait for. By themselves are nodes that wait (asynchronous kernels), nodes of loops, and each Merge
// whose inputs do not wait for the same, since it goes on with the first that comes. All other nodes that depend on the
// same set of those are one segment: when one of them could run, so can the rest. Two, if some of them lead to a node
// that waits or to a transfer; these run first. So one segment is all there is where nothing waits.
PlanCut CutByWaits(const PlanGraph& graph);

}  // namespace millrace
