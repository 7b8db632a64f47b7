// SPDX-License-Identifier: Apache-2.0
// The parts of the math family.
#pragma once

#include "ops/op_list.h"

namespace millrace {

void RegisterReductionOps(OpRegistry& registry);
void RegisterScanOps(OpRegistry& registry);
void RegisterRankingOps(OpRegistry& registry);
void RegisterSoftmaxOps(OpRegistry& registry);

}  // namespace millrace
