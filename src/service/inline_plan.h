// SPDX-License-Identifier: Apache-2.0
// A partition that runs on its caller's thread, as one line or as wide as it pays.
#pragma once

#include <atomic>

#include "runtime/plan.h"
#include "service/worker_interface.h"

namespace millrace {

// REQUIRES: the plan is one line, on a device that works on host memory. Once `closed` is set it runs no more:
// Cancelled.
std::shared_ptr<InlinePartition> NewInlinePlan(std::shared_ptr<const Plan> plan,
                                               std::shared_ptr<const std::atomic<bool>> closed);

}  // namespace millrace
