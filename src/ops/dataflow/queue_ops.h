// SPDX-License-Identifier: Apache-2.0
// What steps exchange through resources.
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterQueueOps(OpRegistry& registry);  // all of it
void RegisterBarrierOps(OpRegistry& registry);
void RegisterStagingOps(OpRegistry& registry);
void RegisterAccumulatorOps(OpRegistry& registry);
void RegisterMutexOps(OpRegistry& registry);
void RegisterCollectiveOps(OpRegistry& registry);

}  // namespace millrace
