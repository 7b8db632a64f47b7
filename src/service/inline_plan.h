// SPDX-License-Identifier: Apache-2.0
// A partition that runs on its caller's thread, as one line or as wide as it pays.
#pragma once

#include "service/worker_interface.h"
#include "service/worker_session.h"

namespace millrace {

// REQUIRES: the plan is one line, on a device that works on host memory. It runs as one of the session's inline steps.
std::shared_ptr<InlinePartition> NewInlinePlan(RegisteredPartition partition, const WorkerSession& session);

}  // namespace millrace
