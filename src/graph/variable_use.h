// SPDX-License-Identifier: Apache-2.0
// How variables that are passed by reference, and the values read from them, go through a graph.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace millrace {

// Hands on what it takes at input 0, into a branch, or into a loop for all of it.
bool CarriesValue(const Node& n);
// A read of a reference that waits for nothing: where its value is used after an update, TensorFlow's programs expect
// the new one.
bool ReadsVariable(const Node& n);
// The reference that `value` was read of, through carriers and Identities; itself when it is one; none for other
// values.
Output ReferenceBehind(Output value);

// The node that made the variable of a reference, as far as references are passed on by one way only.
Node* MakerOf(Output ref);
// The same for all nodes that make the same variable.
std::string VariableKey(const Node& maker);
// What takes a reference that comes from `maker`, and so may change the variable. Control flow only passes it on.
std::vector<Node*> UpdatesOf(Node* maker);

// Whether a step of the graph may change variables or tables, what calls itself included. No: it may change other
// states, as queues are. Where a handle comes from outside, as into a function, it may.
bool ChangesVariables(const Graph& graph);

}  // namespace millrace
