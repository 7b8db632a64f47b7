// SPDX-License-Identifier: Apache-2.0
// Graphs of partitions, and what they need besides, as bytes.
#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace millrace {

// Where in the user's program a node was made, which is no part of a NodeDef, travels as an attribute of it.
void PutLocation(const Node& node, wire::NodeDef* def);
// Of the nodes from this id on.
void TakeLocations(int first_id, Graph* graph);

// An encoded GraphDef with the functions that the graph has, where devices are those that nodes were placed on, and
// what is known of the shapes of nodes without inputs.
StatusOr<std::string> EncodeGraph(const Graph& graph);
// Nodes are in the same order, but for those that stood before their inputs.
StatusOr<std::unique_ptr<Graph>> DecodeGraph(absl::string_view bytes, const OpRegistry& registry);

}  // namespace millrace
