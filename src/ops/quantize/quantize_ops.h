// SPDX-License-Identifier: Apache-2.0
// Ops on quantized numbers, and those that imitate them.
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterQuantizeOps(OpRegistry& registry);  // all of it
void RegisterFakeQuantOps(OpRegistry& registry);
void RegisterQuantizedOps(OpRegistry& registry);

}  // namespace millrace
