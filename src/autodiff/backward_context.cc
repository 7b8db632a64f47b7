// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward_context.h"

#include <algorithm>

#include "graph/variable_use.h"

namespace millrace {
namespace {

constexpr int64_t kSmall = 16;  // elements of a value that is computed again rather than recorded
constexpr int kMaxRecomputeDepth = 6;

bool IsNumber(DType t) {
  t = BaseType(t);
  return IsFloating(t) || IsComplex(t) || IsInteger(t) || t == DType::kBool;
}

bool IsSmall(Output o) {
  const PartialShape& s = o.shape();
  if (!IsNumber(o.dtype()) || !s.IsFullyDefined()) return false;
  int64_t n = 1;
  for (int64_t d : s.dims()) {
    if (d > kSmall) return false;
    n *= d;
    if (n > kSmall) return false;
  }
  return true;
}

// A function of its inputs alone, with one result; not a call, and nothing that could change a variable.
bool IsPure(const Graph& graph, const Node* n) {
  const std::vector<DType>& types = n->signature().input_types;
  return n->op() != nullptr && std::none_of(types.begin(), types.end(), IsRef) && !n->op()->stateful &&
         n->control_op() == ControlOp::kNone && n->num_outputs() == 1 &&
         graph.registry().Find(n->op_name()) != nullptr &&
         std::none_of(n->attrs().begin(), n->attrs().end(), [](const auto& a) {
           return a.second.template get<FuncAttr>() != nullptr;
         });
}

}  // namespace

void BackwardContext::Added(Node* node) {
  if (is_root() && tape_.emit().around() != nullptr) tape_.emit().around()->Added(node);
}

// Here a failed gradient is given up as a whole; around it life goes on.
void BackwardContext::Forget(int mark) {
  if (GraphContext* around = tape_.emit().around(); around != nullptr) around->Forget(mark);
}

void BackwardContext::set_guards(std::vector<Output> guards) {
  guards_ = std::move(guards);
  guard_pivot_ = nullptr;
}

StatusOr<Node*> BackwardContext::Pivot() {
  if (guard_pivot_ != nullptr) return guard_pivot_;
  if (!guards_.empty()) {
    guard_pivot_ = guards_[0].node;
    if (guard_pivot_->control_op() == ControlOp::kSwitch) {  // its control output does not say which side was taken
      MR_ASSIGN_OR_RETURN(guard_pivot_, AddHere("guard", "Identity", {guards_[0]}));
    }
    return guard_pivot_;
  }
  if (!is_root()) return pivot_;
  const std::vector<Node*> controls = tape_.RootControls();
  return controls.empty() ? nullptr : controls[0];
}

StatusOr<Node*> BackwardContext::AddHere(absl::string_view name, absl::string_view op, std::vector<Output> inputs,
                                         AttrMap attrs, std::vector<Node*> controls) {
  if (is_root()) return tape_.emit().AddAround(name, op, std::move(inputs), std::move(attrs), std::move(controls));
  return tape_.emit().Add(name, op, std::move(inputs), std::move(attrs), std::move(controls));
}

Status BackwardContext::Adapt(Graph& graph, NodeSpec* spec) {
  GraphContext* around = is_root() ? tape_.emit().around() : nullptr;
  if (around != nullptr) return AdaptAround(graph, around, spec);
  if (!is_root()) MR_RETURN_IF_ERROR(AdaptShapeOp(spec));
  for (Output& o : spec->inputs) {
    if (!o) continue;
    MR_ASSIGN_OR_RETURN(o, Resolve(o));
  }
  std::vector<Node*> controls;
  for (Node* c : spec->control_inputs) {
    MR_ASSIGN_OR_RETURN(const Loop* at, tape_.structure().LoopOf(c));
    if (at == (is_root() ? tape_.root() : loop_)) controls.push_back(c);
  }
  spec->control_inputs = std::move(controls);
  if (spec->inputs.empty() && spec->control_inputs.empty()) {
    MR_ASSIGN_OR_RETURN(Node * pivot, Pivot());
    if (pivot != nullptr) spec->control_inputs.push_back(pivot);
  }
  return absl::OkStatus();
}

// The context that was there before does the rest.
Status BackwardContext::AdaptAround(Graph& graph, GraphContext* around, NodeSpec* spec) {
  if (spec->inputs.empty() && spec->control_inputs.empty() && !guards_.empty()) {
    MR_ASSIGN_OR_RETURN(Node * pivot, Pivot());
    spec->control_inputs.push_back(pivot);
  }
  return around->Adapt(graph, spec);
}

StatusOr<Output> BackwardContext::Resolve(Output o) {
  MR_ASSIGN_OR_RETURN(const Loop* at, tape_.structure().LoopOf(o.node));
  if (at == (is_root() ? tape_.root() : loop_)) return o;
  if (IsForward(at)) return ResolveForward(o);
  if (const auto it = resolved_.find(o); it != resolved_.end()) return it->second;
  Output in;
  if (is_root()) {
    MR_ASSIGN_OR_RETURN(in, CarryToRoot(o));
  } else {
    MR_ASSIGN_OR_RETURN(const Output outside, parent_->Resolve(o));
    MR_ASSIGN_OR_RETURN(in, CarryIn(outside));
  }
  return resolved_[o] = in;
}

// A value from around the root frame.
StatusOr<Output> BackwardContext::CarryToRoot(Output o) {
  MR_ASSIGN_OR_RETURN(const Loop* at, tape_.structure().LoopOf(o.node));
  if (!ControlFlowStructure::Encloses(at, tape_.root())) {
    return InvalidArgument(
        o.ToString(), " is inside of the loop '", at->name, "', where its gradient cannot be taken from outside");
  }
  if (tape_.emit().around() != nullptr) {  // the context there carries it
    MR_ASSIGN_OR_RETURN(Node * carried, tape_.emit().AddAround("carry", "Identity", {o}));
    return carried->output(0);
  }
  std::vector<Loop*> down;
  for (Loop* l = tape_.root(); l != at; l = l->parent) down.push_back(l);
  for (auto it = down.rbegin(); it != down.rend(); ++it) {
    MR_ASSIGN_OR_RETURN(
        Node * enter,
        tape_.emit().Add("carry", "Enter", {o}, EnterAttrs((*it)->name, (*it)->parallel_iterations, true)));
    o = enter->output(0);
  }
  return o;
}

StatusOr<Output> BackwardContext::CarryIn(Output outside) {
  MR_ASSIGN_OR_RETURN(
      Node * enter,
      tape_.emit().Add("carry", "Enter", {outside}, EnterAttrs(frame_, forward_->parallel_iterations, true)));
  return enter->output(0);
}

StatusOr<Output> BackwardContext::ResolveForward(Output o) {
  o = ControlFlowStructure::StripIdentities(o);
  MR_ASSIGN_OR_RETURN(const Loop* at, tape_.structure().LoopOf(o.node));
  if (at != forward_) return Resolve(o);
  if (const LoopVariable* v = VariableOf(o)) o = v->gate == nullptr ? o : v->gate->output(1);
  if (const auto it = resolved_.find(o); it != resolved_.end()) return it->second;
  MR_ASSIGN_OR_RETURN(const Output in, ResolveUncached(o));
  return resolved_[o] = in;
}

StatusOr<Output> BackwardContext::ResolveUncached(Output o) {
  const Graph& graph = tape_.emit().graph();
  if (const Tensor* value = graph.ConstantValue(o)) return EmitConst(*value);
  if (o.node->IsConstantEnter()) return Resolve(o.node->input(0));
  if (const LoopVariable* v = VariableOf(o)) {
    int64_t start = 0;
    if (IsCounter(graph, *v, &start)) return Index(o.dtype(), start);
    const Output next = ControlFlowStructure::StripIdentities(v->next->input(0));
    if (v->gate != nullptr && next == v->gate->output(1)) return Resolve(v->enter->input(0));
    return Popped(o);
  }
  if (ControlFlowStructure::IsGate(o.node)) return Resolve(o.node->input(0));
  if (IsCheap(o, 0)) return Recompute(o);
  if (IsInvariant(o, 0)) {
    MR_ASSIGN_OR_RETURN(const Output outside, Hoist(o));
    return CarryIn(outside);
  }
  return Popped(o);
}

// The variable whose value in the current iteration `o` is.
const LoopVariable* BackwardContext::VariableOf(Output o) const {
  for (const LoopVariable& v : forward_->variables) {
    if (o == v.merge->output(0) || (v.gate != nullptr && o.index == 1 && o.node->control_op() == ControlOp::kSwitch &&
                                    o.node->input(0) == v.merge->output(0) && ControlFlowStructure::IsGate(o.node))) {
      return &v;
    }
  }
  return nullptr;
}

StatusOr<Output> BackwardContext::EmitConst(const Tensor& value) {
  MR_ASSIGN_OR_RETURN(Node * node, AddHere("Const", "Const", {}, {{"value", value}, {"dtype", value.dtype()}},
                                           is_root() ? tape_.RootControls() : std::vector<Node*>{pivot_}));
  return node->output(0);
}

StatusOr<Output> BackwardContext::EmitNumber(DType dtype, double v) {
  Graph& graph = tape_.emit().graph();
  const GraphBuilder b(&graph);
  GraphContext* before = graph.SetContext(nullptr);
  const Output out = b.ScopeExact(frame_).WithControl({pivot_}).ScalarOf(dtype, v);
  graph.SetContext(before);
  MR_RETURN_IF_ERROR(b.status());
  return out;
}

// Iterations are numbered from the last down to 0.
StatusOr<Output> BackwardContext::Index(DType dtype, int64_t start) {
  if (!index_) {
    MR_ASSIGN_OR_RETURN(
        Node * one,
        AddHere("b_count/one", "Const", {},
                count_enter_->output_type(0) == DType::kInt32
                    ? AttrMap{{"value", Tensor::Scalar<int32_t>(1)}, {"dtype", DType::kInt32}}
                    : AttrMap{{"value", Tensor::Scalar<int64_t>(1)}, {"dtype", DType::kInt64}},
                {pivot_}));
    MR_ASSIGN_OR_RETURN(Node * index, AddHere("b_count/index", "Sub", {pivot_->output(0), one->output(0)}));
    index_ = index->output(0);
  }
  Output out = index_;
  if (out.dtype() != dtype) {
    MR_ASSIGN_OR_RETURN(Node * cast, AddHere("b_count/cast", "Cast", {out}, {{"DstT", dtype}}));
    out = cast->output(0);
  }
  if (start == 0) return out;
  MR_ASSIGN_OR_RETURN(
      const Output from, EmitConst(dtype == DType::kInt32 ? Tensor::Scalar<int32_t>(static_cast<int32_t>(start))
                                                          : Tensor::Scalar<int64_t>(start)));
  MR_ASSIGN_OR_RETURN(Node * sum, AddHere("b_count/offset", "AddV2", {out, from}));
  return sum->output(0);
}

// Whether `o` follows from the counter, constants and loop variables by a little arithmetic on small tensors.
bool BackwardContext::IsCheap(Output o, int depth) {
  o = ControlFlowStructure::StripIdentities(o);
  if (o.node->IsConstantEnter()) return !IsUpdated(o);
  if (resolved_.contains(o) || tape_.emit().graph().ConstantValue(o) != nullptr) return true;
  if (const LoopVariable* v = VariableOf(o)) {
    // A small variable is recorded at most once, whatever is computed from it.
    int64_t start = 0;
    return (v->gate != nullptr && (IsSmall(o) || resolved_.contains(v->gate->output(1)))) ||
           IsCounter(tape_.emit().graph(), *v, &start) ||
           (v->gate != nullptr && ControlFlowStructure::StripIdentities(v->next->input(0)) == v->gate->output(1));
  }
  if (depth >= kMaxRecomputeDepth) return false;
  if (ControlFlowStructure::IsGate(o.node)) return IsCheap(o.node->input(0), depth + 1);
  if (o.node->control_op() == ControlOp::kSwitch) return IsCheap(o.node->input(0), depth + 1);
  if (!IsPure(tape_.emit().graph(), o.node) || !IsSmall(o) || o.node->num_inputs() == 0) return false;
  return std::all_of(o.node->inputs().begin(), o.node->inputs().end(), [&](const Output& in) {
    return IsSmall(in) && IsCheap(in, depth + 1);
  });
}

StatusOr<Output> BackwardContext::Recompute(Output o) {
  const Node* n = o.node;
  std::vector<Output> inputs;
  for (const Output& in : n->inputs()) {
    MR_ASSIGN_OR_RETURN(inputs.emplace_back(), Resolve(in));
  }
  AttrMap attrs = n->attrs();
  attrs.erase("_class");
  // A reference comes as the value that it led to.
  absl::string_view op = n->op_name();
  if (n->control_op() == ControlOp::kSwitch && !IsRef(inputs[0].dtype())) op = "Switch";
  MR_ASSIGN_OR_RETURN(Node * copy, AddHere(n->name(), op, std::move(inputs), std::move(attrs)));
  return copy->output(o.index);
}

// Whether `o` is a variable, or read from one, that changes while the loops run that are differentiated: what follows
// from it is not the same again.
bool BackwardContext::IsUpdated(Output o) {
  const Output ref = ReferenceBehind(o);
  if (!ref) return false;
  Node* maker = MakerOf(ref);
  const auto [it, fresh] = updated_.try_emplace(maker, false);
  if (!fresh) return it->second;
  const Loop* outermost = forward_;
  while (outermost->parent != tape_.root()) outermost = outermost->parent;
  for (const Node* n : UpdatesOf(maker)) {
    const StatusOr<Loop*> at = tape_.structure().LoopOf(n);
    if (at.ok() && ControlFlowStructure::Encloses(outermost, *at)) return it->second = true;
  }
  return false;
}

// Whether `o` is the same in every iteration, and not by reading state.
bool BackwardContext::IsInvariant(Output o, int depth) {
  o = ControlFlowStructure::StripIdentities(o);
  if (o.node->IsConstantEnter()) return !IsUpdated(o);
  if (depth >= kMaxRecomputeDepth || !IsPure(tape_.emit().graph(), o.node)) return false;
  if (o.node->num_inputs() == 0) return o.node->Is(OpTrait::kConstant);
  return std::all_of(o.node->inputs().begin(), o.node->inputs().end(), [&](const Output& in) {
    return IsNumber(in.dtype()) && IsInvariant(in, depth + 1);
  });
}

// An invariant, computed once around the backward loop.
StatusOr<Output> BackwardContext::Hoist(Output o) {
  o = ControlFlowStructure::StripIdentities(o);
  if (o.node->IsConstantEnter()) return parent_->Resolve(o.node->input(0));
  if (const auto it = hoisted_.find(o); it != hoisted_.end()) return it->second;
  std::vector<Output> inputs;
  for (const Output& in : o.node->inputs()) {
    MR_ASSIGN_OR_RETURN(inputs.emplace_back(), Hoist(in));
  }
  AttrMap attrs = o.node->attrs();
  attrs.erase("_class");
  std::vector<Node*> controls;
  if (inputs.empty()) controls = parent_->is_root() ? tape_.RootControls() : std::vector<Node*>{parent_->pivot_};
  MR_ASSIGN_OR_RETURN(
      Node * copy,
      parent_->AddHere(o.node->name(), o.node->op_name(), std::move(inputs), std::move(attrs), std::move(controls)));
  copy->set_device(o.node->device());
  return hoisted_[o] = copy->output(0);
}

StatusOr<Output> BackwardContext::Popped(Output o) {
  MR_ASSIGN_OR_RETURN(const Liveness when, tape_.structure().LivenessOf(o));
  MR_ASSIGN_OR_RETURN(const Output handle, tape_.Push(forward_, o));
  MR_ASSIGN_OR_RETURN(Node * pop, Pop(handle, BaseType(o.dtype()), when));
  pop->set_shape(0, o.shape());
  return pop->output(0);
}

StatusOr<Node*> BackwardContext::Pop(Output handle, DType dtype, const Liveness& when) {
  MR_ASSIGN_OR_RETURN(const Output inside, Resolve(handle));
  MR_ASSIGN_OR_RETURN(std::vector<Node*> pivots, PivotsOf(when));
  const bool conditional = pivots.size() > 1;
  MR_ASSIGN_OR_RETURN(Node * pop, AddHere("pop", "StackPopV2", {inside}, {{"elem_type", dtype}}, std::move(pivots)));
  pop->set_device(handle.node->device());
  MR_RETURN_IF_ERROR(Sync(pop, conditional));
  return pop;
}

// The loop's pivot is always among them: an invariant predicate is live in the last evaluation of the condition too.
StatusOr<std::vector<Node*>> BackwardContext::PivotsOf(const Liveness& when) {
  std::vector<Node*> out = {pivot_};
  for (int l : when) {
    if (tape_.structure().literal(l).predicate.node->control_op() == ControlOp::kLoopCond) continue;
    MR_ASSIGN_OR_RETURN(out.emplace_back(), BranchPivot(l));
  }
  return out;
}

StatusOr<Node*> BackwardContext::BranchPivot(int literal) {
  if (const auto it = branch_pivots_.find(literal); it != branch_pivots_.end()) return it->second;
  const Literal l = tape_.structure().literal(literal);
  MR_ASSIGN_OR_RETURN(const Output predicate, Resolve(l.predicate));
  MR_ASSIGN_OR_RETURN(Node * choice, AddHere("branch", "Switch", {predicate, predicate}));
  MR_ASSIGN_OR_RETURN(Node * pivot, AddHere("branch_pivot", "Identity", {choice->output(l.side)}));
  return branch_pivots_[literal] = pivot;
}

// A shape is recorded instead of the tensor that has it. ZerosLike and OnesLike need no more either.
Status BackwardContext::AdaptShapeOp(NodeSpec* spec) {
  const bool is_shape = spec->op == "Shape" || spec->op == "Size" || spec->op == "Rank";
  const bool is_like = spec->op == "ZerosLike" || spec->op == "OnesLike";
  if ((!is_shape && !is_like) || spec->inputs.size() != 1 || !spec->inputs[0] || !IsNumber(spec->inputs[0].dtype())) {
    return absl::OkStatus();
  }
  const Output x = spec->inputs[0];
  MR_ASSIGN_OR_RETURN(const Loop* at, tape_.structure().LoopOf(x.node));
  if (!IsForward(at) || IsCheap(x, 0)) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const Output shape, ForwardShape(*spec, is_like ? "Shape" : spec->op));
  MR_ASSIGN_OR_RETURN(const Output known, Resolve(shape));
  AttrMap attrs;
  if (const auto it = spec->attrs.find("_class"); it != spec->attrs.end()) attrs.insert(*it);
  spec->attrs = std::move(attrs);
  if (is_shape) {
    spec->op = "Identity";
    spec->inputs = {known};
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const Output number, EmitNumber(BaseType(x.dtype()), spec->op == "OnesLike" ? 1 : 0));
  spec->op = "Fill";
  spec->inputs = {known, number};
  return absl::OkStatus();
}

StatusOr<Output> BackwardContext::ForwardShape(const NodeSpec& spec, absl::string_view op) {
  const Output x = spec.inputs[0];
  DType out_type = DType::kInt32;
  if (const auto it = spec.attrs.find("out_type"); it != spec.attrs.end() && it->second.get<DType>())
    out_type = *it->second.get<DType>();
  Output& known = forward_shapes_[{absl::StrCat(op, DTypeName(out_type)), x}];
  if (known) return known;
  AttrMap attrs;
  if (op != "Rank") attrs["out_type"] = out_type;
  MR_ASSIGN_OR_RETURN(Node * node, tape_.emit().Add("shape", op, {x}, std::move(attrs)));
  node->set_device(x.node->device());
  return known = node->output(0);
}

Status BackwardContext::PushGradient(Output handle, Output g, bool conditional) {
  MR_ASSIGN_OR_RETURN(const Output inside, Resolve(handle));
  std::vector<Node*> controls;
  if (!is_root()) controls.push_back(pivot_);
  MR_ASSIGN_OR_RETURN(
      Node * push, AddHere("push", "StackPushV2", {inside, g}, SwapAttrs("swap_memory"), std::move(controls)));
  return is_root() ? absl::OkStatus() : Sync(push, conditional);
}

// What a backward loop keeps for a further gradient may be swapped like what its forward loop keeps.
AttrMap BackwardContext::SwapAttrs(absl::string_view name) const {
  if (forward_ == nullptr || !forward_->swap_memory) return {};
  return {{std::string(name), true}};
}

StatusOr<Output> BackwardContext::PopGradient(Output handle, DType dtype, const Liveness& when) {
  MR_ASSIGN_OR_RETURN(Node * pop, Pop(handle, dtype, when));
  return pop->output(0);
}

Status BackwardContext::Sync(Node* node, bool conditional) {
  Graph& graph = tape_.emit().graph();
  if (is_root()) return absl::OkStatus();
  if (!conditional) {
    graph.AddControlEdge(node, step_);
    return absl::OkStatus();
  }
  if (trigger_ == nullptr) {
    MR_ASSIGN_OR_RETURN(trigger_, AddHere("b_sync", "ControlTrigger", {}, {}, {pivot_}));
    graph.AddControlEdge(trigger_, step_);
  }
  graph.AddControlEdge(node, trigger_);
  return absl::OkStatus();
}

}  // namespace millrace
