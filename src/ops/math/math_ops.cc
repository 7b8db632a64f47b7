// SPDX-License-Identifier: Apache-2.0
// Ops: reductions, scans, ranking, softmax.
#include "ops/math/math_ops.h"

namespace millrace {

void RegisterMathOps(OpRegistry& registry) {
  RegisterReductionOps(registry);
  RegisterScanOps(registry);
  RegisterRankingOps(registry);
  RegisterSoftmaxOps(registry);
}

}  // namespace millrace
