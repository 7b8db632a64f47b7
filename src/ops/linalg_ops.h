// SPDX-License-Identifier: Apache-2.0
// The parts of the linear algebra family, and what their gradients share.
#pragma once

#include "graph/gradient.h"
#include "ops/op_list.h"

namespace millrace {

void RegisterMatMulOps(OpRegistry& registry);
void RegisterFactorizationOps(OpRegistry& registry);
void RegisterEinsumOps(OpRegistry& registry);

// BatchMatMulV2.
Output BatchMatMul(const GraphBuilder& b, Output x, Output y, bool adj_x, bool adj_y);
// Gradients of two stacks of matrices whose batch dimensions were broadcast against each other, summed back to the
// shapes of x and y.
std::pair<Output, Output> UnbroadcastBatches(const GraphBuilder& b, Output x, Output y, Output gx, Output gy);

}  // namespace millrace
