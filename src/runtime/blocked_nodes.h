// SPDX-License-Identifier: Apache-2.0
// Steps that cannot go on, or have not gone on for long.
#pragma once

#include <string>
#include <vector>

#include "runtime/loop_state.h"

namespace millrace {

// OK when every node of a step by readiness has run, once nothing in it runs any more; else Internal, with the first
// few nodes that have not, and what each waits for.
Status CheckComplete(const Plan& plan, const LoopRun& root);

// The first few nodes that are under way or about to be, and the first few that wait for others.
void DescribeWaiting(const Plan& plan, const LoopRun& root, std::vector<std::string>* lines);

}  // namespace millrace
