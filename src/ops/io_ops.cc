// SPDX-License-Identifier: Apache-2.0
// Ops: checkpoints and strings.
#include "ops/op_list.h"

namespace millrace {

void RegisterIoOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
