// SPDX-License-Identifier: Apache-2.0
// Ops that read and update parts of variables by index. RegisterStateOps calls this.
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterStateScatterOps(OpRegistry& registry);

}  // namespace millrace
