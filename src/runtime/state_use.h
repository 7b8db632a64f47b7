// SPDX-License-Identifier: Apache-2.0
// Which states nodes use: variables, resources, whatever stateful ops have. Plans keep the uses of a state in order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace millrace {

struct PlanGraph;

// Of what outlives the node.
enum class StateUse : uint8_t { kNone, kReads, kChanges };

// Of the states that its inputs refer to. Control flow passes a handle on without a look at what it refers to.
StateUse UseOfInputs(const Node& n);

// Numbers the states that handles lead to: one number for all nodes that make the same one, and for states of which one
// node takes the handles together. A handle from outside, an argument, may lead to any of them; where there is one, all
// have one number.
class StateNumbers {
 public:
  static constexpr int kOutside = 0;  // what stateful ops without a handle use: files, a terminal, a foreign library

  explicit StateNumbers(const std::vector<Node*>& order, int num_ids);  // `order` is topological
  // Of the state that `n` uses, if it uses one.
  int Of(const Node& n) const;

 private:
  int Root(int state) const;
  int Join(int a, int b);  // -1: none

  std::vector<int> joined_to_;  // by number; itself: a root
  std::vector<int> of_node_;    // by id: that its handles lead to, -1: it has none
};

// Groups of nodes whose uses of states stay in order.
struct GroupOrder {
  // By node; -1: it takes no part. Uses in one group stay in the graph's order.
  absl::Span<const int> group;
  // Whether all uses of the first group go before those of the second; neither: there is no order between them. With
  // (a, b) and (b, c) it holds for (a, c).
  absl::FunctionRef<bool(int, int)> goes_first;
  // Of a group: less than that of each which it goes before.
  absl::FunctionRef<size_t(int)> rank;
  // A group runs as one: a pair between two is enough, and none is needed within.
  bool as_one = false;
};

// Pairs of nodes of `graph` of which the second must wait for the first, so that what changes a state stays in order
// with all else that uses it.
std::vector<std::pair<int, int>> OrderOfStates(const PlanGraph& graph, const GroupOrder& groups);

}  // namespace millrace
