// SPDX-License-Identifier: Apache-2.0
// Steps that cannot go on.
#pragma once

#include "runtime/loop_state.h"

namespace millrace {

// OK when every node of a step by readiness has run, once nothing in it runs any more; else Internal, with the first
// few nodes that have not, and what each waits for.
Status CheckComplete(const Plan& plan, const LoopRun& root);

}  // namespace millrace
