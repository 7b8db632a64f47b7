// SPDX-License-Identifier: Apache-2.0
// Ops: convolution, pooling, normalisation.
#include "ops/op_list.h"

namespace millrace {

void RegisterNnOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
