// SPDX-License-Identifier: Apache-2.0
#include "graph/control_flow_context.h"

#include <algorithm>

#include "base/hash_map.h"

namespace millrace {

namespace {

bool TakesPlaceOfCall(absl::string_view op) {
  static constexpr absl::string_view kCalls[] = {
      "PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "SymbolicGradient", "If", "StatelessIf",
      "While",           "StatelessWhile",          "Case",       "StatelessCase",    "For"};
  return std::find(std::begin(kCalls), std::end(kCalls), op) != std::end(kCalls);
}

NodeSpec Carrier(const Graph& graph, absl::string_view op, std::string name, Output input) {
  NodeSpec spec;
  const bool is_reference = IsRef(input.dtype()) && graph.FindOp(absl::StrCat("Ref", op)) != nullptr;
  spec.op = is_reference ? absl::StrCat("Ref", op) : std::string(op);
  spec.name = std::move(name);
  spec.inputs.push_back(input);
  spec.location = input.node->location();
  return spec;
}

}  // namespace

ControlFlowContext::ControlFlowContext(Graph* graph)
    : graph_(graph), outer_(graph->context()), outer_flow_(dynamic_cast<ControlFlowContext*>(outer_)) {}

Status ControlFlowContext::Adapt(Graph&, NodeSpec* spec) {
  for (Output& o : spec->inputs) {
    if (!o) continue;  // the back edge of a loop, still to come
    MR_ASSIGN_OR_RETURN(o, Inside(o, spec->name));
  }
  std::vector<Node*> controls;
  for (Node* control : spec->control_inputs) {
    if (control != nullptr && !Contains(control)) {
      auto [it, is_new] = carried_control_.try_emplace(control, nullptr);
      if (is_new) {
        auto carried = CarryControl(control, spec->name);
        if (!carried.ok()) {
          carried_control_.erase(control);
          return carried.status();
        }
        carried_control_[control] = *carried;
      }
      control = carried_control_[control];
    }
    if (control != nullptr) controls.push_back(control);
  }
  spec->control_inputs = std::move(controls);
  const bool waits = std::any_of(
      spec->control_inputs.begin(), spec->control_inputs.end(), [this](const Node* n) { return Contains(n); });
  if (!waits && pivot_ != nullptr && (RunsUnasked(*spec) || CallsFunction(*spec))) {
    spec->control_inputs.push_back(pivot_);
  }
  return absl::OkStatus();
}

bool ControlFlowContext::RunsUnasked(const NodeSpec& spec) const { return spec.inputs.empty(); }

// What a call expands to may hold nodes without inputs.
bool ControlFlowContext::CallsFunction(const NodeSpec& spec) const {
  return TakesPlaceOfCall(spec.op) || graph_->FindFunction(spec.op) != nullptr;
}

StatusOr<Output> ControlFlowContext::Inside(Output o, absl::string_view reader) {
  if (Contains(o.node)) return o;
  if (hidden_.contains(o.node)) {
    return InvalidArgument("'", reader, "' cannot read '", o.ToString(),
                           "': it is inside a loop that has ended; only the results of a loop leave it");
  }
  if (auto it = carried_.find(o); it != carried_.end()) return it->second;
  StatusOr<Output> carried = Output();
  {
    const ScopedContext around(graph_, outer_);
    carried = Carry(o, reader);
  }
  MR_RETURN_IF_ERROR(carried.status());
  inside_.insert(carried->node);
  carried_.emplace(o, *carried);
  return carried;
}

void ControlFlowContext::Forget(int mark) {
  const auto gone = [mark](const Node* n) { return n != nullptr && n->id() >= mark; };
  std::erase_if(inside_, gone);
  std::erase_if(hidden_, gone);
  std::erase_if(carried_, [&](const auto& e) { return gone(e.first.node) || gone(e.second.node); });
  std::erase_if(carried_control_, [&](const auto& e) { return gone(e.first) || gone(e.second); });
  if (outer_ != nullptr) outer_->Forget(mark);
}

void ControlFlowContext::Hide(const HashSet<const Node*>& nodes) {
  for (const Node* node : nodes) inside_.erase(node);
  hidden_.insert(nodes.begin(), nodes.end());
}

void ControlFlowContext::HideFromOuter() {
  if (outer_flow_ == nullptr) return;
  inside_.insert(hidden_.begin(), hidden_.end());
  outer_flow_->Hide(inside_);
}

void ControlFlowContext::HandOut(Node* node) {
  inside_.erase(node);
  if (outer_flow_ != nullptr) {
    outer_flow_->Insert(node);
  } else if (outer_ != nullptr) {
    outer_->Added(node);
  }
}

BranchContext::BranchContext(Graph* graph, Output predicate, int side)
    : ControlFlowContext(graph), predicate_(predicate), side_(side) {}

// A branch is in the frame of what is around it, which may read its values: they are dead where it was not taken.
void BranchContext::Insert(const Node* node) {
  ControlFlowContext::Insert(node);
  if (outer_flow() != nullptr) outer_flow()->Insert(node);
}

StatusOr<Output> BranchContext::Carry(Output o, absl::string_view reader) {
  NodeSpec spec = Carrier(graph(), "Switch", graph().UniqueName(absl::StrCat(reader, "/Switch")), o);
  spec.inputs.push_back(predicate_);
  MR_ASSIGN_OR_RETURN(Node * node, graph().AddNode(std::move(spec)));
  return node->output(side_);
}

// An edge between nodes of one frame may stay; from further out, what is around knows what to wait for.
StatusOr<Node*> BranchContext::CarryControl(Node* node, absl::string_view reader) {
  if (outer_flow() == nullptr || outer_flow()->Contains(node)) return node;
  NodeSpec probe;
  probe.name = std::string(reader);
  probe.op = "NoOp";
  probe.control_inputs.push_back(node);
  const ScopedContext around(&graph(), outer());
  MR_RETURN_IF_ERROR(outer()->Adapt(graph(), &probe));
  return probe.control_inputs.empty() ? nullptr : probe.control_inputs.front();
}

void BranchContext::Hide(const HashSet<const Node*>& nodes) {
  ControlFlowContext::Hide(nodes);
  if (outer_flow() != nullptr) HideIn(outer_flow(), nodes);
}

LoopContext::LoopContext(Graph* graph, std::string frame_name, int parallel_iterations)
    : ControlFlowContext(graph), frame_name_(std::move(frame_name)), parallel_iterations_(parallel_iterations) {}

LoopContext::~LoopContext() { HideFromOuter(); }

AttrMap LoopContext::EnterAttrs(bool is_constant) const {
  AttrMap attrs;
  attrs.emplace("frame_name", AttrValue(frame_name_));
  attrs.emplace("is_constant", AttrValue(is_constant));
  attrs.emplace("parallel_iterations", AttrValue(static_cast<int64_t>(parallel_iterations_)));
  return attrs;
}

StatusOr<Output> LoopContext::Carry(Output o, absl::string_view reader) {
  NodeSpec spec = Carrier(graph(), "Enter", graph().UniqueName(absl::StrCat(reader, "/Enter")), o);
  spec.attrs = EnterAttrs(/*is_constant=*/true);
  MR_ASSIGN_OR_RETURN(Node * enter, graph().AddNode(std::move(spec)));
  MR_RETURN_IF_ERROR(graph().RefineShape(enter->output(0), o.shape()));
  return enter->output(0);
}

// A control edge cannot enter a frame: a token that waits outside is carried in, and read each iteration.
StatusOr<Node*> LoopContext::CarryControl(Node* node, absl::string_view reader) {
  NodeSpec token;
  token.name = graph().UniqueName(absl::StrCat(reader, "/after"));
  token.op = "Const";
  token.control_inputs.push_back(node);
  token.attrs.emplace("dtype", AttrValue(DType::kBool));
  token.attrs.emplace("value", AttrValue(Tensor::Scalar(true)));
  Node* outside = nullptr;
  {
    const ScopedContext around(&graph(), outer());
    MR_ASSIGN_OR_RETURN(outside, graph().AddNode(std::move(token)));
  }
  NodeSpec arrival;
  arrival.name = graph().UniqueName(absl::StrCat(reader, "/arrival"));
  arrival.op = "Identity";
  arrival.inputs.push_back(outside->output(0));
  const ScopedContext here(&graph(), this);
  return graph().AddNode(std::move(arrival));
}

// Loop constants are there in every iteration, also in the one that is not taken.
bool LoopContext::RunsUnasked(const NodeSpec& spec) const {
  return std::all_of(
      spec.inputs.begin(), spec.inputs.end(), [](Output o) { return o.node != nullptr && o.node->IsConstantEnter(); });
}

}  // namespace millrace
