// SPDX-License-Identifier: Apache-2.0
// Ops: reductions, scans, ranking, softmax.
#include "ops/op_list.h"

namespace millrace {

void RegisterMathOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
