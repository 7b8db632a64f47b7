// SPDX-License-Identifier: Apache-2.0
// Ops: variables and their updates.
#include "ops/op_list.h"

namespace millrace {

void RegisterStateOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
