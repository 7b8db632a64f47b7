// SPDX-License-Identifier: Apache-2.0
// Ops: random numbers.
#include "ops/op_list.h"

namespace millrace {

void RegisterRandomOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
