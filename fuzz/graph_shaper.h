// SPDX-License-Identifier: Apache-2.0
// Changes of the structure of graphs: loops, conditionals, functions, devices, control edges, width and depth.
#pragma once

#include <random>
#include <vector>

#include "graph_mutator.h"

namespace millrace::fuzz {

inline size_t Below(Random& random, size_t n) {
  return n == 0 ? 0 : std::uniform_int_distribution<size_t>(0, n - 1)(random);
}
inline bool IsLikely(Random& random, int percent) { return static_cast<int>(Below(random, 100)) < percent; }
inline wire::NodeDef* AnyNode(Random& random, std::vector<wire::NodeDef>* nodes) {
  return nodes->empty() ? nullptr : &(*nodes)[Below(random, nodes->size())];
}

// One change.
void Reshape(const OpRegistry& ops, Random& random, wire::GraphDef* graph);

// Inputs that name a node of the body alone get the name of its first output, as function bodies want it.
void NameFunctionInputs(const OpRegistry& ops, wire::GraphDef* body);

}  // namespace millrace::fuzz
