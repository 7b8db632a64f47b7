// SPDX-License-Identifier: Apache-2.0
#include "service/inline_plan.h"

#include "kernel/stop_node.h"
#include "runtime/plan_width.h"
#include "service/plan_step.h"

namespace millrace {
namespace {

class InlinePlan final : public InlinePartition {
 public:
  InlinePlan(std::shared_ptr<const Plan> plan, std::shared_ptr<InlineSteps> steps)
      : plan_(std::move(plan)), steps_(std::move(steps)), width_(*plan_) {}
  Status Run(StepContext& step, int inter_op_threads, absl::Span<const Tensor> args,
             std::vector<Tensor>* retvals) override {
    const InlineSteps::Running running(*steps_, *step.cancellation);
    if (running.is_refused()) return steps_->closed();
    Status s = width_.Run(
        step, {.trace = step.trace, .inter_op_threads = inter_op_threads},
        [&](const Plan& plan, Frame& frame) { return FillArgs(plan, args, frame); },
        [&](const Plan& plan, Frame& frame) { return TakeRetvals(plan, frame, retvals); });
    return s.ok() || !running.is_stopped() ? s : CausedBy(steps_->closed(), s);
  }
  Status closed() const override { return steps_->closed(); }

 private:
  const std::shared_ptr<const Plan> plan_;
  const std::shared_ptr<InlineSteps> steps_;
  PlanWidth width_;
};

}  // namespace

std::shared_ptr<InlinePartition> NewInlinePlan(std::shared_ptr<const Plan> plan, std::shared_ptr<InlineSteps> steps) {
  return std::make_shared<InlinePlan>(std::move(plan), std::move(steps));
}

}  // namespace millrace
