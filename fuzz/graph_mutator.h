// SPDX-License-Identifier: Apache-2.0
// Changes of graphs that keep them graphs: what byte-wise mutation seldom finds.
#pragma once

#include <random>

#include "op/op_registry.h"
#include "wire/graph.h"

namespace millrace::fuzz {

using Random = std::minstd_rand;

// Makes one change: adds an op with the inputs of one of its examples, or spoils a constant, an attribute, an input, an
// op's name, or removes a node; of the graph or of one of its functions. Or changes the structure, see graph_shaper.h.
void Mutate(const OpRegistry& ops, Random& random, wire::GraphDef* graph);

// Puts `from` beside `to`, and lets a few nodes of one read those of the other.
void Join(Random& random, const wire::GraphDef& from, wire::GraphDef* to);

// Ops with effects outside the process, which a fuzzer must not run.
bool TouchesFiles(const wire::GraphDef& graph);

}  // namespace millrace::fuzz
