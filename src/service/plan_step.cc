// SPDX-License-Identifier: Apache-2.0
#include "service/plan_step.h"

#include "runtime/executor.h"

namespace millrace {

Status FillArgs(const Plan& plan, absl::Span<const Tensor> args, Frame& frame) {
  if (static_cast<int>(args.size()) != plan.num_args()) {
    return InvalidArgument("step got ", args.size(), " arguments, wants ", plan.num_args());
  }
  for (int i = 0; i < plan.num_args(); ++i) {
    const Tensor& value = args[static_cast<size_t>(i)];
    if (value.dtype() != plan.arg_type(i)) {
      return InvalidArgument("argument ", i, " is ", DTypeName(value.dtype()), ", wants ", DTypeName(plan.arg_type(i)));
    }
    frame.slots[static_cast<size_t>(plan.arg_slot(i))].tensor = value;
  }
  return absl::OkStatus();
}

Status TakeRetvals(const Plan& plan, const Frame& frame, std::vector<Tensor>* retvals) {
  retvals->resize(static_cast<size_t>(plan.num_retvals()));
  for (int i = 0; i < plan.num_retvals(); ++i) {
    MR_ASSIGN_OR_RETURN((*retvals)[static_cast<size_t>(i)], RetvalOf(plan, frame, i));
  }
  return absl::OkStatus();
}

}  // namespace millrace
