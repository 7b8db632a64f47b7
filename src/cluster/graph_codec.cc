// SPDX-License-Identifier: Apache-2.0
#include "cluster/graph_codec.h"

#include "graph/graph_def.h"

namespace millrace {
namespace {

constexpr char kOutputShapes[] = "_output_shapes";
constexpr char kLocation[] = "_location";

// Inputs tell the rest.
Status AddShapes(const Node& node, wire::NodeDef* def) {
  if (node.op() == nullptr || node.num_inputs() > 0 || node.num_outputs() == 0) return absl::OkStatus();
  std::vector<PartialShape> shapes;
  for (int i = 0; i < node.num_outputs(); ++i) shapes.push_back(node.shape(i));
  MR_ASSIGN_OR_RETURN(def->attr[kOutputShapes], AttrToProto(AttrValue(std::move(shapes))));
  return absl::OkStatus();
}

}  // namespace

void PutLocation(const Node& node, wire::NodeDef* def) {
  if (node.location().empty()) return;
  wire::AttrValue& value = def->attr[kLocation];
  value.kind = wire::AttrValue::Kind::kS;
  value.s = node.location();
}

void TakeLocations(int first_id, Graph* graph) {
  const auto& nodes = graph->nodes();
  for (auto at = nodes.rbegin(); at != nodes.rend() && (*at)->id() >= first_id; ++at) {
    StatusOr<std::string> location = (*at)->Attr<std::string>(kLocation);
    if (!location.ok()) continue;
    (*at)->set_location(*std::move(location));
    (*at)->ClearAttr(kLocation);
  }
}

StatusOr<std::string> EncodeGraph(const Graph& graph) {
  MR_ASSIGN_OR_RETURN(wire::GraphDef def, GraphToProto(graph));
  size_t i = 0;
  for (const Node* n : graph.nodes()) {
    wire::NodeDef& node = def.node[i++];
    if (!n->assigned_device().empty()) node.device = n->assigned_device();
    PutLocation(*n, &node);
    MR_RETURN_IF_ERROR(AddShapes(*n, &node));
  }
  return wire::Encode(def);
}

StatusOr<std::unique_ptr<Graph>> DecodeGraph(absl::string_view bytes, const OpRegistry& registry) {
  wire::GraphDef def;
  MR_RETURN_IF_ERROR(wire::Decode(bytes, &def));
  auto graph = std::make_unique<Graph>(&registry);
  ImportOptions options;
  options.is_compiled = true;
  options.validate_colocation = false;
  MR_RETURN_IF_ERROR(ImportGraphDef(def, options, graph.get()).status());
  TakeLocations(0, graph.get());
  for (Node* n : graph->nodes()) n->set_assigned_device(n->device());
  return graph;
}

}  // namespace millrace
