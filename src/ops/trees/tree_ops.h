// SPDX-License-Identifier: Apache-2.0
// The ops of boosted trees.
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterTreeStatsOps(OpRegistry& registry);
void RegisterTreeQuantileOps(OpRegistry& registry);
void RegisterForestOps(OpRegistry& registry);
void RegisterGbdtOps(OpRegistry& registry);

}  // namespace millrace
