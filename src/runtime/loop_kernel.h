// SPDX-License-Identifier: Apache-2.0
// Loops as straight lines: the kernel of `_Loop` nodes.
#pragma once

#include "runtime/plan.h"

namespace millrace {

// Runs two plans in turn, for the predicate and for the body. `options`: those of the plan that holds the node.
StatusOr<std::shared_ptr<Kernel>> MakeLoopKernel(const CollapsedLoop& loop, const Plan::Options& options);

}  // namespace millrace
