// SPDX-License-Identifier: Apache-2.0
// The cut of a plan: which nodes run together as a segment, a straight line that one thread runs in order, and which
// are counted for readiness by themselves.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan_graph.h"

namespace millrace {

struct PlanUnit {
  std::vector<int> nodes;      // of the PlanGraph, in an order in which they can run
  bool is_segment = false;     // else one node, which runs by readiness
  bool pays_a_thread = false;  // another thread may be asked to run it
};
// All nodes of a step. No unit reads what a later one makes, but for the back edges of loops.
struct PlanCut {
  std::vector<PlanUnit> units;
  std::vector<std::pair<int, int>> order;  // the unit of the second node waits for that of the first
};

struct CutReport {
  int64_t segments = 0;
  int64_t single_nodes = 0;  // by themselves
  int64_t longest = 0;       // nodes of a segment
  int64_t nanos = 0;         // that it took to cut, and to lay the units out
  int64_t order_nanos = 0;   // and before, to move updates up
};

// What uses a state (StateUse) stays in the graph's order with what changes it, in every cut: by the order within
// segments, else by PlanCut::order. So every way to run a plan gives the same bits. Where a plan waits, this holds for
// uses of which one waits for all that the other one waits for; if for more, the other one goes first. Between all
// others there is no order: to keep one, a node would wait for what only comes when another step, or another partition,
// has what this one gives. Uses in different iterations of a loop, or in and outside of one, have none either, nor have
// those of nodes that wait.

// Every node by itself: each order that the graph and the states allow can happen.
PlanCut CutIntoNodes(const PlanGraph& graph);

// By what nodes wait for. By themselves are nodes that wait (asynchronous kernels), those that lead into a loop, out of
// it or to its next iteration, and each Merge whose inputs do not wait for the same, since it goes on with the first
// that comes. All other nodes of one loop, or outside of all, that depend on the same set of those are one segment:
// when one of them could run, so can the rest. Two, if some of them lead to a node that waits, to a transfer, or to
// what decides whether the loop goes on; these run first, with the uses of states that stand before theirs. So one
// segment is all there is where nothing waits.
PlanCut CutByWaits(const PlanGraph& graph);

// Whether two nodes that may cost more than a hand-over between threads are independent of each other, in a graph that
// is one segment: only then there may be something to gain by CutByCost.
bool MayHaveWidth(const PlanGraph& graph);

// For several threads, by what each node (of the graph, those of no step too) costs on one of them, in nanoseconds.
// Only for graphs that are one segment.
PlanCut CutByCost(const PlanGraph& graph, absl::Span<const double> nanos, int threads);
// What a step would take then.
double EstimateNanos(const PlanGraph& graph, const PlanCut& cut, absl::Span<const double> nanos, int threads);

// For who makes cuts. By unit: those that wait for it.
std::vector<std::vector<int>> FollowersOf(const PlanGraph& graph, const PlanCut& cut);
// With the units in an order in which they can run.
PlanCut SortedCut(const PlanGraph& graph, PlanCut cut);

}  // namespace millrace
