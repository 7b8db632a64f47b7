// SPDX-License-Identifier: Apache-2.0
// Ops: optimizer updates.
#include "ops/op_list.h"

namespace millrace {

void RegisterTrainingOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
