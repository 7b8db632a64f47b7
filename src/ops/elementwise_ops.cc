// SPDX-License-Identifier: Apache-2.0
// Ops: element-wise arithmetic, comparison, activations.
#include "ops/op_list.h"

namespace millrace {

void RegisterElementwiseOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
