// SPDX-License-Identifier: Apache-2.0
// A partition that runs on its caller's thread, as one line or as wide as it pays.
#pragma once

#include "runtime/plan.h"
#include "service/inline_steps.h"
#include "service/worker_interface.h"

namespace millrace {

// REQUIRES: the plan is one line, on a device that works on host memory. It runs as one of `steps`.
std::shared_ptr<InlinePartition> NewInlinePlan(std::shared_ptr<const Plan> plan, std::shared_ptr<InlineSteps> steps);

}  // namespace millrace
