// SPDX-License-Identifier: Apache-2.0
// Ops: shape and movement of data.
#include "ops/op_list.h"

namespace millrace {

void RegisterArrayOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
