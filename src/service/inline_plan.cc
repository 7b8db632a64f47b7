// SPDX-License-Identifier: Apache-2.0
#include "service/inline_plan.h"

#include "kernel/step_threads.h"
#include "kernel/stop_node.h"
#include "service/plan_step.h"

namespace millrace {
namespace {

class InlinePlan final : public InlinePartition {
 public:
  InlinePlan(RegisteredPartition partition, const WorkerSession& session)
      : partition_(std::move(partition)),
        steps_(session.inline_steps()),
        session_(session.id()),
        session_threads_(session.settings().inter_op_threads) {}
  Status Run(StepContext& step, int inter_op_threads, absl::Span<const Tensor> args,
             std::vector<Tensor>* retvals) override {
    const InlineSteps::Running running(*steps_, *step.cancellation);
    if (running.is_refused()) return steps_->closed();
    if (partition_.uses_functions && inter_op_threads != session_threads_) {
      MR_RETURN_IF_ERROR(StepThreads::Attach(inter_op_threads, *step.step_resources));
    }
    Status s = partition_.width->Run(
        step, {.trace = step.trace, .inter_op_threads = inter_op_threads, .session = session_},
        [&](const Plan& plan, Frame& frame) { return FillArgs(plan, args, frame); },
        [&](const Plan& plan, Frame& frame) { return TakeRetvals(plan, frame, retvals); });
    return s.ok() || !running.is_stopped() ? s : CausedBy(steps_->closed(), s);
  }
  Status closed() const override { return steps_->closed(); }

 private:
  const RegisteredPartition partition_;
  const std::shared_ptr<InlineSteps> steps_;
  const uint64_t session_;
  const int session_threads_;
};

}  // namespace

std::shared_ptr<InlinePartition> NewInlinePlan(RegisteredPartition partition, const WorkerSession& session) {
  return std::make_shared<InlinePlan>(std::move(partition), session);
}

}  // namespace millrace
