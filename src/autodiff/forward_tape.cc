// SPDX-License-Identifier: Apache-2.0
#include "autodiff/forward_tape.h"

#include <algorithm>

namespace millrace {
namespace {

std::optional<int64_t> ScalarInteger(const Graph& graph, Output o) {
  const Tensor* t = graph.ConstantValue(o);
  if (t == nullptr || t->shape().rank() != 0) return std::nullopt;
  if (t->dtype() == DType::kInt32) return *t->data<int32_t>();
  if (t->dtype() == DType::kInt64) return *t->data<int64_t>();
  return std::nullopt;
}

}  // namespace

NodeSpec NodeEmitter::Spec(absl::string_view name, absl::string_view op, std::vector<Output> inputs, AttrMap attrs,
                           std::vector<Node*> controls) const {
  NodeSpec spec;
  spec.name = graph_->UniqueName(absl::StrCat(scope_, "/", name));
  spec.op = std::string(op);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.control_inputs = std::move(controls);
  return spec;
}

StatusOr<Node*> NodeEmitter::Add(absl::string_view name, absl::string_view op, std::vector<Output> inputs,
                                 AttrMap attrs, std::vector<Node*> controls) const {
  GraphContext* before = graph_->SetContext(nullptr);
  auto node = graph_->AddNode(Spec(name, op, std::move(inputs), std::move(attrs), std::move(controls)));
  graph_->SetContext(before);
  return node;
}

StatusOr<Node*> NodeEmitter::AddAround(absl::string_view name, absl::string_view op, std::vector<Output> inputs,
                                       AttrMap attrs, std::vector<Node*> controls) const {
  GraphContext* before = graph_->SetContext(around_);
  auto node = graph_->AddNode(Spec(name, op, std::move(inputs), std::move(attrs), std::move(controls)));
  graph_->SetContext(before);
  return node;
}

void NodeEmitter::Surface(Node* exit) const {
  if (around_ != nullptr) around_->Added(exit);
}

AttrMap EnterAttrs(const std::string& frame, int64_t parallel_iterations, bool is_constant) {
  return {{"frame_name", frame}, {"parallel_iterations", parallel_iterations}, {"is_constant", is_constant}};
}

bool IsCounter(const Graph& graph, const LoopVariable& v, int64_t* start) {
  if (v.gate == nullptr || (v.merge->output_type(0) != DType::kInt32 && v.merge->output_type(0) != DType::kInt64))
    return false;
  const auto first = ScalarInteger(graph, v.enter->input(0));
  const Node* step = ControlFlowStructure::StripIdentities(v.next->input(0)).node;
  if (!first || step->op() == nullptr || (step->op_name() != "AddV2" && step->op_name() != "Add")) return false;
  for (int i : {0, 1}) {
    if (ControlFlowStructure::StripIdentities(step->input(i)) == v.gate->output(1) &&
        ScalarInteger(graph, ControlFlowStructure::StripIdentities(step->input(1 - i))) == 1) {
      *start = *first;
      return true;
    }
  }
  return false;
}

std::optional<LoopCounter> FindCounter(const Graph& graph, const Loop& loop) {
  for (const LoopVariable& v : loop.variables) {
    int64_t start = 0;
    if (IsCounter(graph, v, &start) && start == 0) return LoopCounter{&v, start};
  }
  return std::nullopt;
}

DType ForwardTape::CounterType(const Loop* loop) const {
  const auto existing = FindCounter(emit_.graph(), *loop);
  return existing ? existing->variable->merge->output_type(0) : DType::kInt64;
}

StatusOr<Output> ForwardTape::FinalValue(Loop* loop, LoopVariable* v) {
  if (v->exits.empty()) {
    MR_ASSIGN_OR_RETURN(Node * exit, emit_.Add(absl::StrCat(v->merge->name(), "_exit"), "Exit", {v->gate->output(0)}));
    if (loop->parent == root_) emit_.Surface(exit);
    v->exits.push_back(exit);
  }
  return v->exits[0]->output(0);
}

StatusOr<Output> ForwardTape::TripCount(Loop* loop, bool own) {
  if (!own && !counters_.contains(loop)) {
    if (const auto existing = FindCounter(emit_.graph(), *loop)) {
      for (LoopVariable& v : loop->variables) {
        if (&v == existing->variable) return FinalValue(loop, &v);
      }
    }
  }
  MR_ASSIGN_OR_RETURN(const Counter* counter, OwnCounter(loop));
  return counter->trips;
}

StatusOr<Node*> ForwardTape::LoopAnchor(Loop* loop) {
  if (const auto it = loop_anchors_.find(loop); it != loop_anchors_.end()) return it->second;
  MR_ASSIGN_OR_RETURN(Liveness when, structure_.LivenessOf(loop));
  if (loop->parent != nullptr && loop->parent->condition != nullptr && loop->parent != root_) {
    std::erase(when, structure_.NumberOf({loop->parent->condition->output(0), 1}));
  }
  Node* anchor = nullptr;
  if (!when.empty() || (loop->parent == root_ && root_ != nullptr)) {
    // The input that needs most is live when all are.
    Output from;
    size_t most = 0;
    for (const Node* enter : loop->enters) {
      MR_ASSIGN_OR_RETURN(const Liveness l, structure_.LivenessOf(enter->input(0)));
      MR_ASSIGN_OR_RETURN(const Loop* at, structure_.LoopOf(enter->input(0).node));
      if (at != loop->parent || (from && l.size() <= most)) continue;
      from = enter->input(0);
      most = l.size();
    }
    if (!from) return InvalidArgument("nothing enters the loop '", loop->name, "'");
    anchor = from.node;
    if (anchor->control_op() == ControlOp::kSwitch) {
      MR_ASSIGN_OR_RETURN(anchor, emit_.Add("anchor", "Identity", {from}));
      if (loop->parent == root_) emit_.Surface(anchor);
    }
  }
  loop_anchors_[loop] = anchor;
  return anchor;
}

StatusOr<Output> ForwardTape::CounterStart(Loop* loop, DType dtype) {
  std::vector<Node*> controls;
  MR_ASSIGN_OR_RETURN(Node * anchor, LoopAnchor(loop));
  if (anchor != nullptr) controls.push_back(anchor);
  const Tensor zero = dtype == DType::kInt32 ? Tensor::Scalar<int32_t>(0) : Tensor::Scalar<int64_t>(0);
  const AttrMap attrs = {{"value", zero}, {"dtype", dtype}};
  if (loop->parent == root_) {
    MR_ASSIGN_OR_RETURN(Node * node, emit_.AddAround("f_count/start", "Const", {}, attrs, std::move(controls)));
    return node->output(0);
  }
  MR_ASSIGN_OR_RETURN(const Counter* outer, OwnCounter(loop->parent));
  controls.push_back(outer->pivot);
  MR_ASSIGN_OR_RETURN(Node * node, emit_.Add("f_count/start", "Const", {}, attrs, std::move(controls)));
  return node->output(0);
}

StatusOr<ForwardTape::Counter*> ForwardTape::OwnCounter(Loop* loop) {
  if (const auto it = counters_.find(loop); it != counters_.end()) return &it->second;
  MR_RETURN_IF_ERROR(structure_.Describe(loop));
  if (loop->condition == nullptr) return InvalidArgument("the loop '", loop->name, "' has no LoopCond");
  const DType dtype = CounterType(loop);
  MR_ASSIGN_OR_RETURN(const Output start, CounterStart(loop, dtype));
  MR_ASSIGN_OR_RETURN(
      Node * enter,
      emit_.Add("f_count/Enter", "Enter", {start}, EnterAttrs(loop->name, loop->parallel_iterations, false)));
  MR_ASSIGN_OR_RETURN(Node * merge, emit_.Add("f_count/Merge", "Merge", {enter->output(0), enter->output(0)}));
  MR_ASSIGN_OR_RETURN(
      Node * gate, emit_.Add("f_count/Switch", "Switch", {merge->output(0), loop->condition->output(0)}));
  Counter c;
  MR_ASSIGN_OR_RETURN(c.pivot, emit_.Add("f_count/Identity", "Identity", {gate->output(1)}));
  const Tensor one = dtype == DType::kInt32 ? Tensor::Scalar<int32_t>(1) : Tensor::Scalar<int64_t>(1);
  MR_ASSIGN_OR_RETURN(Node * by, emit_.Add("f_count/one", "Const", {}, {{"value", one}, {"dtype", dtype}}, {c.pivot}));
  MR_ASSIGN_OR_RETURN(c.step, emit_.Add("f_count/Add", "AddV2", {c.pivot->output(0), by->output(0)}));
  MR_ASSIGN_OR_RETURN(Node * next, emit_.Add("f_count/NextIteration", "NextIteration", {c.step->output(0)}));
  MR_RETURN_IF_ERROR(emit_.graph().SetInput(merge, 1, next->output(0)));
  MR_ASSIGN_OR_RETURN(Node * exit, emit_.Add("f_count/Exit", "Exit", {gate->output(0)}));
  if (loop->parent == root_) emit_.Surface(exit);
  c.trips = exit->output(0);
  return &(counters_[loop] = c);
}

StatusOr<Output> ForwardTape::NewStack(DType dtype, absl::string_view name, const std::string& device) {
  if (!unbounded_) {
    MR_ASSIGN_OR_RETURN(
        Node * node,
        emit_.AddAround("stack_size", "Const", {}, {{"value", Tensor::Scalar<int32_t>(-1)}, {"dtype", DType::kInt32}},
                        RootControls()));
    unbounded_ = node->output(0);
  }
  MR_ASSIGN_OR_RETURN(
      Node * stack, emit_.AddAround(name, "StackV2", {unbounded_}, {{"elem_type", dtype}}, RootControls()));
  stack->set_device(device);
  return stack->output(0);
}

StatusOr<Output> ForwardTape::HandleInside(Loop* loop, Output handle) {
  if (loop == root_) return handle;
  if (const auto it = handles_.find({loop, handle}); it != handles_.end()) return it->second;
  if (loop == nullptr) return Internal("a stack of another loop is wanted");
  MR_ASSIGN_OR_RETURN(const Output outside, HandleInside(loop->parent, handle));
  MR_ASSIGN_OR_RETURN(Node * anchor, LoopAnchor(loop));
  MR_ASSIGN_OR_RETURN(
      Node * enter, emit_.Add("handle", "Enter", {outside}, EnterAttrs(loop->name, loop->parallel_iterations, true),
                              anchor == nullptr ? std::vector<Node*>() : std::vector<Node*>{anchor}));
  return handles_[{loop, handle}] = enter->output(0);
}

StatusOr<Output> ForwardTape::Push(Loop* loop, Output value) {
  MR_ASSIGN_OR_RETURN(Counter * counter, OwnCounter(loop));
  const int in_body = structure_.NumberOf({loop->condition->output(0), 1});
  MR_ASSIGN_OR_RETURN(Liveness when, structure_.LivenessOf(value));
  const bool guarded = std::binary_search(when.begin(), when.end(), in_body);
  std::erase(when, in_body);
  const DType dtype = BaseType(value.dtype());
  MR_ASSIGN_OR_RETURN(const Output handle, NewStack(dtype, "acc", value.node->device()));
  MR_ASSIGN_OR_RETURN(const Output inside, HandleInside(loop, handle));
  if (!guarded) {  // computed with the condition, once more than the body runs
    MR_ASSIGN_OR_RETURN(Node * gate, emit_.Add("in_body", "Switch", {value, loop->condition->output(0)}));
    value = gate->output(1);
  }
  MR_ASSIGN_OR_RETURN(
      Node * push,
      emit_.Add("push", "StackPushV2", {inside, value}, {{"swap_memory", loop->swap_memory}}, {counter->pivot}));
  push->set_device(handle.node->device());
  if (when.empty()) {
    emit_.graph().AddControlEdge(push, counter->step);
    return handle;
  }
  if (counter->trigger == nullptr) {
    MR_ASSIGN_OR_RETURN(counter->trigger, emit_.Add("f_sync", "ControlTrigger", {}, {}, {counter->pivot}));
    emit_.graph().AddControlEdge(counter->trigger, counter->step);
  }
  emit_.graph().AddControlEdge(push, counter->trigger);
  return handle;
}

}  // namespace millrace
