// SPDX-License-Identifier: Apache-2.0
// Part of a graph as a function that other graphs can call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace millrace {

struct FunctionSpec {
  std::string name;
  bool append_hash = false;                // makes the name depend on the content
  std::optional<std::vector<Node*>> body;  // none: every node that gives no input
  std::vector<Output> inputs;              // each at most once
  std::vector<Output> outputs;
  std::vector<std::string> output_names;          // empty: after the nodes
  std::vector<Node*> control_outputs;             // nodes of the body that a call always runs
  std::vector<std::string> control_output_names;  // empty: after the nodes
  std::string description;
};

// Argument names are the nodes' names in lower case with '_' for what is neither letter nor digit, made unique. The
// signature is stateful when a node of the body is.
//
// InvalidArgument: an input given twice, an input or output that is a reference, an input from a node of several
// outputs where the body is the whole graph, two outputs of one name, a body node that reads (or waits for) what is
// neither in the body nor an input, an op of the body that this system does not have.
StatusOr<wire::FunctionDef> GraphToFunctionDef(const Graph& graph, const FunctionSpec& spec);

}  // namespace millrace
