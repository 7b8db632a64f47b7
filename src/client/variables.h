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

// InvalidArgument when validate_shape is set and the shape of `initial` is not fully known.
StatusOr<ClientVariable> AddVariable(const GraphBuilder& b, absl::string_view name, Output initial,
                                     bool validate_shape = true);
// The same as a resource variable: `ref` is its handle (w, w/Assign, w/Read/ReadVariableOp).
StatusOr<ClientVariable> AddResourceVariable(const GraphBuilder& b, absl::string_view name, Output initial,
                                             bool validate_shape = true);

// A variable with this attribute set is its client's alone, such as the counts of a metric: VariablesOf passes it over,
// and with it savers and initializers of all variables.
inline constexpr char kLocalVariableAttr[] = "_local";

// The variable nodes of a graph, in construction order.
std::vector<Node*> VariablesOf(const Graph& graph);

// A node that runs the first assignment of every variable of the graph ("<variable>/Assign").
StatusOr<Node*> AddInitializer(const GraphBuilder& b, absl::string_view name);

}  // namespace millrace
