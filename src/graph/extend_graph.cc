// SPDX-License-Identifier: Apache-2.0
#include "graph/extend_graph.h"

#include "base/hash_map.h"

namespace millrace {

Status ExtendGraph(const wire::GraphDef& def, Graph* graph) {
  ImportOptions options;
  HashSet<absl::string_view> added;
  for (const wire::NodeDef& node : def.node) added.insert(node.name);
  for (const wire::NodeDef& node : def.node) {
    for (const std::string& input : node.input) {
      MR_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(input));
      Node* const old = added.contains(name.node) ? nullptr : graph->Find(name.node);
      if (old == nullptr) continue;
      if (name.port < 0) {
        options.control_map.insert_or_assign(absl::StrCat("^", name.node), old);
      } else if (name.port < old->num_outputs()) {
        options.input_map.insert_or_assign(absl::StrCat(name.node, ":", name.port), Output{old, name.port});
      }
    }
  }
  return ImportGraphDef(def, options, graph).status();
}

}  // namespace millrace
