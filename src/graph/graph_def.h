// SPDX-License-Identifier: Apache-2.0
// Graph <-> GraphDef.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace millrace {

struct ImportOptions {
  std::string prefix;           // put before every name, "/" added
  bool uniquify_names = false;  // else a clash is InvalidArgument
  bool uniquify_prefix = false;
  std::map<std::string, Output>
      input_map;  // "name:index" (or "^name" for control) of the GraphDef -> value in the graph
  std::map<std::string, Node*> control_map;
  std::vector<Node*> control_dependencies;  // every imported node without inputs waits for these
  std::vector<std::string> return_outputs;  // "name:index", also through input_map
  std::vector<std::string> return_nodes;
  std::string default_device;
  bool validate_colocation = true;
  // A graph that this system has compiled: what is internal to the runtime, and what has been removed since, is let in,
  // and nodes have whatever names programs gave them.
  bool is_compiled = false;
  // The body of a function: TensorFlow does not read what it notes there of shapes, and rewrites make it wrong.
  bool is_body = false;
};
struct ImportResult {
  std::vector<Output> return_outputs;
  std::vector<Node*> return_nodes;
  std::vector<std::string> unused_input_map;
};

// All or nothing: on error the graph is unchanged. Names, arity, types, attributes, edges and cycles are checked;
// versions and attribute defaults handled; nodes may come in any order. An op that the registry lacks is accepted.
StatusOr<ImportResult> ImportGraphDef(const wire::GraphDef& def, const ImportOptions& options, Graph* graph);

StatusOr<wire::NodeDef> NodeToProto(const Node& node);
StatusOr<wire::GraphDef> GraphToProto(const Graph& graph);

// Splits "name:3", "name" or "^name" into name and port; port -1 for control.
struct TensorName {
  absl::string_view node;
  int port = 0;
};
StatusOr<TensorName> ParseTensorName(absl::string_view text);

}  // namespace millrace
