// SPDX-License-Identifier: Apache-2.0
// What goes into a plan's frame before it runs, and comes out of it.
#pragma once

#include "absl/types/span.h"
#include "runtime/plan.h"

namespace millrace {

Status FillArgs(const Plan& plan, absl::Span<const Tensor> args, Frame& frame);
Status TakeRetvals(const Plan& plan, const Frame& frame, std::vector<Tensor>* retvals);

}  // namespace millrace
