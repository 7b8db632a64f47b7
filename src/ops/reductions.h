// SPDX-License-Identifier: Apache-2.0
// The axes of reductions in composites: constants where the rank is known.
#pragma once

#include "graph/graph_builder.h"

namespace millrace {

Output AllAxes(const GraphBuilder& b, Output x);
// Those from number `first` on.
Output AxesFrom(const GraphBuilder& b, int first, Output x);

}  // namespace millrace
