// SPDX-License-Identifier: Apache-2.0
// Constant folding: a stateless node whose inputs are all constants becomes constants itself.
#include "base/hash_map.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

bool IsConst(const Node& n) { return n.Is(OpTrait::kConstant); }

// Ops whose meaning is where or whether they run, not only what they return.
bool MayFold(const Node& n) {
  if (!n.op() || n.op()->stateful || n.num_inputs() == 0 || n.num_outputs() == 0) return false;
  if (n.Is(OpTrait::kInternal) || n.Is(OpTrait::kNeverFolds) || !n.control_inputs().empty()) return false;
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (!n.input(i) || !IsConst(*n.input(i).node) || !n.input(i).node->control_inputs().empty()) return false;
  }
  for (DType t : n.signature().output_types) {
    if (IsRef(t) || t == DType::kResource || t == DType::kVariant) return false;
  }
  return n.control_op() == ControlOp::kNone;
}

using NodeSet = HashSet<const Node*>;

// Nothing happens at it in a step that somebody could wait for: a constant, or a group of nothing.
bool IsSettled(const Node& n, const NodeSet& folded) {
  if (!n.control_inputs().empty()) return false;
  return folded.contains(&n) || IsConst(n) || (n.Is(OpTrait::kDoesNothing) && n.num_inputs() == 0);
}

bool IsUnused(const Node& n) { return n.consumers().empty() && n.control_outputs().empty(); }

// Removes an unused node, and the constants that only it read: values on the way to the last one may be large.
void RemoveWithConstants(Graph& graph, Node* n) {
  const std::vector<Output> inputs(n->inputs().begin(), n->inputs().end());
  graph.RemoveNode(n);
  NodeSet seen;
  for (const Output in : inputs) {
    if (seen.insert(in.node).second && IsUnused(*in.node)) graph.RemoveNode(in.node);
  }
}

void DropSettledControls(Graph& graph, Node* n, const NodeSet& folded) {
  const std::vector<Node*> before = n->control_inputs();
  for (Node* c : before) {
    if (IsSettled(*c, folded)) graph.RemoveControlEdge(c, n);
  }
}

}  // namespace

Status FoldConstants(Graph& graph, const PassEnvironment& env, absl::FunctionRef<Status()> keep_going) {
  MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph));
  NodeSet folded;  // still there, unread; somebody waits for them
  for (Node* n : order) {
    if (!n->control_inputs().empty()) DropSettledControls(graph, n, folded);
    if (!MayFold(*n)) continue;
    std::vector<Tensor> inputs;
    bool known = true;
    for (Output in : n->inputs()) {
      StatusOr<Tensor> value = in.node->Attr<Tensor>("value");
      known = known && value.ok();
      if (value.ok()) inputs.push_back(*std::move(value));
    }
    if (!known) continue;
    // An output known to be large is not worth computing twice.
    int64_t bytes = 0;
    for (int o = 0; o < n->num_outputs(); ++o) {
      const int64_t elements = n->shape(o).num_elements();
      // Compared before it is multiplied: a shape may promise more elements than bytes can be counted.
      if (elements > env.max_folded_bytes) bytes = env.max_folded_bytes + 1;
      if (elements > 0 && bytes <= env.max_folded_bytes) {
        bytes += elements * static_cast<int64_t>(DTypeSize(n->output_type(o)));
      }
    }
    if (bytes > env.max_folded_bytes) continue;
    MR_RETURN_IF_ERROR(keep_going());
    StatusOr<std::vector<Tensor>> values = env.evaluate(*n, inputs, keep_going);
    if (!values.ok()) {
      MR_RETURN_IF_ERROR(keep_going());
      continue;  // the node fails again in the step, with its own message
    }
    bytes = 0;
    for (const Tensor& v : *values) bytes += static_cast<int64_t>(v.TotalBytes());
    if (bytes > env.max_folded_bytes) continue;
    for (int o = 0; o < n->num_outputs(); ++o) {
      if (n->ConsumersOf(o).empty()) continue;
      NodeSpec spec;
      spec.name = graph.UniqueName(absl::StrCat(n->name(), "/_folded_", o));
      spec.op = "Const";
      spec.attrs["dtype"] = n->output_type(o);
      spec.attrs["value"] = (*values)[static_cast<size_t>(o)];
      spec.device = n->device();
      spec.location = n->location();
      MR_ASSIGN_OR_RETURN(Node * constant, graph.AddNode(std::move(spec)));
      MR_RETURN_IF_ERROR(graph.ReplaceUses(n->output(o), constant->output(0)));
    }
    if (IsUnused(*n)) {
      RemoveWithConstants(graph, n);
    } else {
      folded.insert(n);
    }
  }
  // They, and then the constants that only they read or waited for, those that stood for folded ones among them.
  for (const bool constants : {false, true}) {
    const std::vector<Node*> nodes = graph.nodes();
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      Node* n = *it;
      const bool done = constants ? IsConst(*n) : folded.contains(n);
      if (done && IsUnused(*n)) graph.RemoveNode(n);
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
