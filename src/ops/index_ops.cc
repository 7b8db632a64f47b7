// SPDX-License-Identifier: Apache-2.0
// Ops: gather, scatter, segments, blocks.
#include "ops/op_list.h"

namespace millrace {

void RegisterIndexOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
