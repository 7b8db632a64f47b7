// SPDX-License-Identifier: Apache-2.0
// Reductions over axes of a tensor, on the threads of a kernel.
#pragma once

#include "kernels/cpu/engine/math_reduce_plan.h"
#include "kernels/cpu/engine/math_reducer.h"

namespace millrace {

// `out`, of plan.result's shape, takes what the plan makes of `in`; over no element, the reducer's value of nothing.
Status Reduce(KernelContext& ctx, const Reducer& reducer, const ReducePlan& plan, const Tensor& in, Tensor* out);

}  // namespace millrace
