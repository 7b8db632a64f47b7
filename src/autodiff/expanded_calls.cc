// SPDX-License-Identifier: Apache-2.0
#include "autodiff/expanded_calls.h"

#include <algorithm>

#include "autodiff/stack_links.h"
#include "base/hash_map.h"
#include "graph/control_depth.h"
#include "graph/control_flow_context.h"
#include "graph/verify.h"

namespace millrace {
namespace {

constexpr int kMaxNewNodes = 1'000'000;
constexpr int kMaxDepth = 256;

bool MayCarryGradient(DType t) {
  t = BaseType(t);
  return t == DType::kInvalid || IsFloating(t) || IsComplex(t) || t == DType::kResource || t == DType::kVariant;
}

}  // namespace

std::string LibraryGradient(const Graph& graph, const Node& call) {
  if (graph.gradient_defs().empty()) return "";
  std::string function = call.op_name();
  if (graph.FindFunction(function) == nullptr) {
    auto f = call.Attr<FuncAttr>("f");
    if (!f.ok() || !call.op_name().ends_with("PartitionedCall")) return "";
    function = f->name;
  }
  for (const wire::GradientDef& g : graph.gradient_defs()) {
    if (g.function_name == function) return g.gradient_func;
  }
  return "";
}

ExpandedCalls::~ExpandedCalls() {
  for (size_t i = redirected_.size(); i-- > 0;) {
    const Redirected& r = redirected_[i];
    graph_.SetInput(r.consumer.node, r.consumer.input, r.original).IgnoreError();  // types are as they were
  }
}

Output ExpandedCalls::Meant(Output o) const {
  while (o) {
    const Expansion* e = graph_.FindExpansion(o.node);
    if (e == nullptr || o.index < 0 || static_cast<size_t>(o.index) >= e->outputs.size()) break;
    o = e->outputs[static_cast<size_t>(o.index)];
  }
  return o;
}

std::vector<Output> ExpandedCalls::Meant(std::vector<Output> list) const {
  for (Output& o : list) o = Meant(o);
  return list;
}

bool ExpandedCalls::HasOwnGradient(const Node& call) const {
  if (auto own = call.Attr<std::string>("_gradient_op_type"); own.ok()) {
    if (options_.custom.contains(*own) || graph_.registry().Find(*own) != nullptr) return true;
  }
  if (options_.custom.contains(call.op_name())) return true;
  return !LibraryGradient(graph_, call).empty();
}

std::vector<Node*> ExpandedCalls::CallsBetween(const std::vector<Output>& ys, const std::vector<Output>& xs) const {
  const size_t num_ids = static_cast<size_t>(graph_.num_node_ids());
  std::vector<bool> reached(num_ids, false), seen(num_ids, false);
  std::vector<Node*> stack;
  const auto push = [&](Node* n, std::vector<bool>* marks) {
    if ((*marks)[static_cast<size_t>(n->id())]) return;
    (*marks)[static_cast<size_t>(n->id())] = true;
    stack.push_back(n);
  };
  HashMap<const Node*, Node*> pop_of_push, push_of_pop;
  for (const StackLink& link : StackLinks(graph_)) {
    pop_of_push[link.push] = link.pop;
    push_of_pop[link.pop] = link.push;
  }
  const auto push_linked = [&](Node* n, const HashMap<const Node*, Node*>& links, std::vector<bool>* marks) {
    if (const auto it = links.find(n); it != links.end()) push(it->second, marks);
  };
  const auto push_consumers = [&](Node* n) {
    push_linked(n, pop_of_push, &reached);
    for (const Consumer& c : n->consumers()) {
      if (MayCarryGradient(c.node->input(c.input).dtype())) push(c.node, &reached);
    }
  };
  for (const Output& x : xs) {
    if (x) push_consumers(x.node);
  }
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    push_consumers(n);
  }
  std::vector<Node*> calls;
  for (const Output& y : ys) {
    if (y) push(y.node, &seen);
  }
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    if (reached[static_cast<size_t>(n->id())] && IsCall(graph_, *n) && !HasOwnGradient(*n)) calls.push_back(n);
    for (const Output& o : n->inputs()) {
      if (o && reached[static_cast<size_t>(o.node->id())]) push(o.node, &seen);
    }
    push_linked(n, push_of_pop, &seen);
  }
  std::sort(calls.begin(), calls.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return calls;
}

Status ExpandedCalls::Redirect(Node* call, const Expansion& expansion) {
  for (int i = 0; i < call->num_outputs(); ++i) {
    const Output from = call->output(i), to = expansion.outputs[static_cast<size_t>(i)];
    for (const Consumer& c : call->ConsumersOf(i)) {
      MR_RETURN_IF_ERROR(graph_.SetInput(c.node, c.input, to));
      redirected_.push_back({c, from});
    }
  }
  return absl::OkStatus();
}

// What a call expands to lies where the call does: in the branch or the loop under construction that has it.
void ExpandedCalls::LayBeside(const Node* call, int mark) {
  auto* context = dynamic_cast<ControlFlowContext*>(graph_.context());
  while (context != nullptr && !context->Contains(call)) {
    context = dynamic_cast<ControlFlowContext*>(context->outer());
  }
  if (context == nullptr) return;
  for (const Node* node : graph_.nodes()) {
    if (node->id() >= mark) context->Insert(node);
  }
}

Status ExpandedCalls::ExpandOne(Node* call) {
  if (const Expansion* known = graph_.FindExpansion(call)) return Redirect(call, *known);
  ExpandOptions options;
  options.differentiate = AddDenseGradients;
  const std::string prefix = graph_.UniqueName(absl::StrCat(call->name(), "/expanded"));
  const bool wait_for_inputs = call->id() < first_new_ && inside_[static_cast<size_t>(call->id())];
  const int mark = graph_.num_node_ids();
  MR_ASSIGN_OR_RETURN(Expansion expansion, ExpandCall(call, prefix, wait_for_inputs, options, &graph_));
  const GraphBuilder b = GraphBuilder(&graph_).ScopeExact(prefix).WithName("result");
  GraphContext* context = graph_.SetContext(nullptr);
  for (Output& o : expansion.outputs) {
    if (o.node->id() < mark) o = b.Identity(o);  // an input that is returned is another value than the input
  }
  graph_.SetContext(context);
  MR_RETURN_IF_ERROR(b.status());
  LayBeside(call, mark);
  MR_RETURN_IF_ERROR(Redirect(call, expansion));
  graph_.SetExpansion(call, std::move(expansion));
  return absl::OkStatus();
}

Status ExpandedCalls::Expand(const std::vector<Output>& ys, const std::vector<Output>& xs) {
  first_new_ = graph_.num_node_ids();
  for (const auto* list : {&ys, &xs}) {
    for (const Output& o : *list) {
      if (!o) continue;
      if (const Expansion* known = graph_.FindExpansion(o.node)) MR_RETURN_IF_ERROR(Redirect(o.node, *known));
    }
  }
  std::vector<Node*> calls = CallsBetween(Meant(ys), Meant(xs));
  if (calls.empty()) return absl::OkStatus();
  MR_RETURN_IF_ERROR(VerifyFunctions(graph_));
  MR_RETURN_IF_ERROR(CheckExpandedSize(graph_, calls));
  inside_ = InsideControlFlow(graph_);
  for (int depth = 1; !calls.empty(); ++depth, calls = CallsBetween(Meant(ys), Meant(xs))) {
    if (depth > kMaxDepth) {
      return InvalidArgument("functions call each other more than ", kMaxDepth, " deep, at ", calls[0]->Describe());
    }
    for (Node* call : calls) {
      MR_RETURN_IF_ERROR(ExpandOne(call));
      if (graph_.num_node_ids() - first_new_ > kMaxNewNodes) {
        return ResourceExhausted("the calls between xs and ys expand to more than ", kMaxNewNodes, " nodes");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
