// SPDX-License-Identifier: Apache-2.0
// Variables as clients make them: the variable, the assignment of its first value, and the tensor that reads it, with
// TensorFlow's node names (w, w/Assign, w/read).
#pragma once

#include "graph/graph_builder.h"

namespace millrace {

struct ClientVariable {
  Output ref;
  Output read;
  Node* assign = nullptr;
};

// InvalidArgument when the shape of `initial` is not fully known.
StatusOr<ClientVariable> AddVariable(const GraphBuilder& b, absl::string_view name, Output initial);
// The same as a resource variable: `ref` is its handle (w, w/Assign, w/Read/ReadVariableOp).
StatusOr<ClientVariable> AddResourceVariable(const GraphBuilder& b, absl::string_view name, Output initial);

// The variable nodes of a graph, in construction order.
std::vector<Node*> VariablesOf(const Graph& graph);

// A node that runs the first assignment of every variable of the graph ("<variable>/Assign").
StatusOr<Node*> AddInitializer(const GraphBuilder& b, absl::string_view name);

}  // namespace millrace
