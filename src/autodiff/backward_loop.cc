// SPDX-License-Identifier: Apache-2.0
// The skeleton of a backward loop: a counter that starts at the forward loop's trip count and goes down to 0, and one
// variable per gradient.
#include "autodiff/backward_context.h"
#include "graph/control_flow.h"

namespace millrace {

Status BackwardContext::Begin() {
  const NodeEmitter& emit = tape_.emit();
  // Within a loop the count is recorded, and should be so only once.
  MR_ASSIGN_OR_RETURN(trips_, tape_.TripCount(forward_, /*own=*/!parent_->is_root()));
  MR_ASSIGN_OR_RETURN(const Output trips, parent_->Resolve(trips_));
  frame_ = emit.graph().UniqueName(absl::StrCat(forward_->name, "/backward"));
  const DType dtype = trips.dtype();
  const auto constant = [dtype](int v) {
    return AttrMap{
        {"value", dtype == DType::kInt32 ? Tensor::Scalar<int32_t>(v) : Tensor::Scalar<int64_t>(v)}, {"dtype", dtype}};
  };
  MR_ASSIGN_OR_RETURN(
      count_enter_,
      emit.Add("b_count/Enter", "Enter", {trips}, EnterAttrs(frame_, forward_->parallel_iterations, false)));
  MR_ASSIGN_OR_RETURN(loop_, tape_.structure().LoopOf(count_enter_));
  MR_ASSIGN_OR_RETURN(
      Node * merge, emit.Add("b_count/Merge", "Merge", {count_enter_->output(0), count_enter_->output(0)}));
  MR_ASSIGN_OR_RETURN(Node * zero, emit.Add("b_count/zero", "Const", {}, constant(0), {merge}));
  MR_ASSIGN_OR_RETURN(Node * more, emit.Add("b_count/Greater", "Greater", {merge->output(0), zero->output(0)}));
  MR_ASSIGN_OR_RETURN(
      condition_, emit.Add("b_count/LoopCond", "LoopCond", {more->output(0)}, SwapAttrs(kSwapMemoryAttr)));
  MR_ASSIGN_OR_RETURN(count_gate_, emit.Add("b_count/Switch", "Switch", {merge->output(0), condition_->output(0)}));
  MR_ASSIGN_OR_RETURN(pivot_, emit.Add("b_count/Identity", "Identity", {count_gate_->output(1)}));
  MR_ASSIGN_OR_RETURN(Node * one, emit.Add("b_count/one", "Const", {}, constant(1), {pivot_}));
  MR_ASSIGN_OR_RETURN(step_, emit.Add("b_count/Sub", "Sub", {pivot_->output(0), one->output(0)}));
  MR_ASSIGN_OR_RETURN(Node * next, emit.Add("b_count/NextIteration", "NextIteration", {step_->output(0)}));
  return emit.graph().SetInput(merge, 1, next->output(0));
}

StatusOr<BackwardContext::Variable> BackwardContext::AddVariable(Output initial, const PartialShape& shape) {
  const NodeEmitter& emit = tape_.emit();
  Variable v;
  MR_ASSIGN_OR_RETURN(
      v.enter, emit.Add("Enter", "Enter", {initial}, EnterAttrs(frame_, forward_->parallel_iterations, false)));
  MR_ASSIGN_OR_RETURN(v.merge, emit.Add("Merge", "Merge", {v.enter->output(0), v.enter->output(0)}));
  v.merge->set_shape(0, shape);
  MR_ASSIGN_OR_RETURN(v.gate, emit.Add("Switch", "Switch", {v.merge->output(0), condition_->output(0)}));
  return v;
}

Status BackwardContext::CloseVariable(const Variable& v, Output next) {
  MR_ASSIGN_OR_RETURN(Node * n, tape_.emit().Add("NextIteration", "NextIteration", {next}));
  return tape_.emit().graph().SetInput(v.merge, 1, n->output(0));
}

StatusOr<Output> BackwardContext::Exit(const Variable& v) {
  MR_ASSIGN_OR_RETURN(Node * exit, tape_.emit().Add("Exit", "Exit", {v.gate->output(0)}));
  if (parent_->is_root()) tape_.emit().Surface(exit);
  return exit->output(0);
}

StatusOr<Node*> BackwardContext::Done() {
  if (done_ == nullptr) {
    MR_ASSIGN_OR_RETURN(done_, tape_.emit().Add("b_count/Exit", "Exit", {count_gate_->output(0)}));
    if (parent_->is_root()) tape_.emit().Surface(done_);
  }
  return done_;
}

Status BackwardContext::End(const std::vector<Node*>& after) {
  const NodeEmitter& emit = tape_.emit();
  Output trips = trips_;
  if (tape_.has_own_counter(forward_)) {
    MR_ASSIGN_OR_RETURN(trips, tape_.TripCount(forward_, /*own=*/true));
  }
  if (!after.empty()) {
    MR_ASSIGN_OR_RETURN(const Output here, parent_->Resolve(trips));
    MR_ASSIGN_OR_RETURN(Node * late, parent_->AddHere("b_count/start", "Identity", {here}, {}, after));
    MR_RETURN_IF_ERROR(emit.graph().SetInput(count_enter_, 0, late->output(0)));
  } else if (!(trips == trips_)) {
    MR_ASSIGN_OR_RETURN(const Output here, parent_->Resolve(trips));
    MR_RETURN_IF_ERROR(emit.graph().SetInput(count_enter_, 0, here));
  }
  if (parent_->is_root()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(Node * done, Done());
  MR_ASSIGN_OR_RETURN(Liveness when, tape_.structure().LivenessOf(forward_));
  std::erase(when, tape_.structure().NumberOf({parent_->forward_->condition->output(0), 1}));
  return parent_->Sync(done, !when.empty());
}

}  // namespace millrace
