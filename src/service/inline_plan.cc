// SPDX-License-Identifier: Apache-2.0
#include "service/inline_plan.h"

#include "runtime/plan_width.h"
#include "service/plan_step.h"

namespace millrace {
namespace {

class InlinePlan final : public InlinePartition {
 public:
  InlinePlan(std::shared_ptr<const Plan> plan, std::shared_ptr<const std::atomic<bool>> closed)
      : plan_(std::move(plan)), closed_(std::move(closed)), width_(*plan_) {}
  Status Run(StepContext& step, int inter_op_threads, absl::Span<const Tensor> args,
             std::vector<Tensor>* retvals) override {
    if (closed_->load(std::memory_order_relaxed)) return Cancelled("the session was closed on its worker");
    return width_.Run(
        step, {.trace = step.trace, .inter_op_threads = inter_op_threads},
        [&](const Plan& plan, Frame& frame) { return FillArgs(plan, args, frame); },
        [&](const Plan& plan, Frame& frame) { return TakeRetvals(plan, frame, retvals); });
  }

 private:
  const std::shared_ptr<const Plan> plan_;
  const std::shared_ptr<const std::atomic<bool>> closed_;
  PlanWidth width_;
};

}  // namespace

std::shared_ptr<InlinePartition> NewInlinePlan(std::shared_ptr<const Plan> plan,
                                               std::shared_ptr<const std::atomic<bool>> closed) {
  return std::make_shared<InlinePlan>(std::move(plan), std::move(closed));
}

}  // namespace millrace
