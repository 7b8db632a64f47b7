// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_def.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace millrace {

StatusOr<TensorName> ParseTensorName(absl::string_view text) {
  TensorName out{text, 0};
  if (absl::ConsumePrefix(&out.node, "^")) {
    out.port = -1;
    if (out.node.empty()) return InvalidArgument("'", text.substr(0, 100), "' is not a tensor name");
    return out;
  }
  size_t digits = text.size();
  while (digits > 0 && absl::ascii_isdigit(text[digits - 1])) --digits;
  if (digits > 0 && digits < text.size() && text[digits - 1] == ':') {
    if (!absl::SimpleAtoi(text.substr(digits), &out.port)) {
      return InvalidArgument("output index of '", text.substr(0, 100), "' is too large");
    }
    out.node = text.substr(0, digits - 1);
  }
  if (out.node.empty()) return InvalidArgument("'", text.substr(0, 100), "' is not a tensor name");
  return out;
}

StatusOr<wire::NodeDef> NodeToProto(const Node& node) {
  wire::NodeDef def;
  def.name = node.name();
  def.op = node.op_name();
  def.device = node.device();
  def.input.reserve(node.inputs().size() + node.control_inputs().size());
  for (const Output& o : node.inputs()) {
    if (!o) return FailedPrecondition(node.Describe(), " lacks an input");
    def.input.push_back(o.index == 0 ? o.node->name() : absl::StrCat(o.node->name(), ":", o.index));
  }
  for (const Node* c : node.control_inputs()) def.input.push_back(absl::StrCat("^", c->name()));
  for (const auto& [name, value] : node.attrs()) {
    auto attr = AttrToProto(value);
    if (!attr.ok()) return Annotate(attr.status(), absl::StrCat(node.Describe(), ", attribute '", name, "': "));
    def.attr.emplace_hint(def.attr.end(), name, *std::move(attr));
  }
  return def;
}

StatusOr<wire::GraphDef> GraphToProto(const Graph& graph) {
  wire::GraphDef def;
  def.versions.Ensure() = graph.versions();
  def.node.reserve(graph.nodes().size());
  for (const Node* n : graph.nodes()) {
    MR_ASSIGN_OR_RETURN(wire::NodeDef node, NodeToProto(*n));
    def.node.push_back(std::move(node));
  }
  const auto functions = graph.Functions();
  if (!functions.empty() || !graph.gradient_defs().empty()) {
    wire::FunctionDefLibrary& library = def.library.Ensure();
    for (const wire::FunctionDef* f : functions) library.function.push_back(*f);
    library.gradient = graph.gradient_defs();
  }
  return def;
}

}  // namespace millrace
