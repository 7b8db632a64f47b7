// SPDX-License-Identifier: Apache-2.0
// Ops: what the runtime itself puts into graphs.
#include "ops/op_list.h"

namespace millrace {

void RegisterRuntimeOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
