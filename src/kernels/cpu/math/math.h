// SPDX-License-Identifier: Apache-2.0
// The parts of the math family.
#pragma once

#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterReductionKernels(KernelRegistry& registry);
void RegisterScanKernels(KernelRegistry& registry);
void RegisterRankingKernels(KernelRegistry& registry);
void RegisterSoftmaxKernels(KernelRegistry& registry);
void RegisterLogsumexpKernels(KernelRegistry& registry);

}  // namespace millrace
