// SPDX-License-Identifier: Apache-2.0
// Ops: matrix products and factorisations.
#include "ops/op_list.h"

namespace millrace {

void RegisterLinalgOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
