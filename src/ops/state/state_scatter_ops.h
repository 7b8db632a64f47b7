// SPDX-License-Identifier: Apache-2.0
// The rest of the state family. RegisterStateOps calls these.
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterStateScatterOps(OpRegistry& registry);  // parts of variables by index
void RegisterSessionTensorOps(OpRegistry& registry);

}  // namespace millrace
