// SPDX-License-Identifier: Apache-2.0
// CPU kernels: reductions, scans, ranking, softmax.
#include "kernels/cpu/math/math.h"

namespace millrace {

void RegisterMathKernels(KernelRegistry& registry) {
  RegisterReductionKernels(registry);
  RegisterScanKernels(registry);
  RegisterRankingKernels(registry);
  RegisterSoftmaxKernels(registry);
  RegisterLogsumexpKernels(registry);
}

}  // namespace millrace
