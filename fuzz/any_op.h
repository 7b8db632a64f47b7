// SPDX-License-Identifier: Apache-2.0
// Nodes of any op, made from its declaration alone: attributes of the kinds and inputs of the types that it wants, with
// shapes and values that fit now and then and are odd otherwise.
#pragma once

#include "graph_mutator.h"

namespace millrace::fuzz {

// Appends a node of `op` with constants, variables, handles, data sets and functions for what it takes. It is the last
// one of the graph.
void AddNodeOf(const OpDef& op, const OpRegistry& ops, Random& random, wire::GraphDef* graph);

}  // namespace millrace::fuzz
