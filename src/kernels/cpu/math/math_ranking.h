// SPDX-License-Identifier: Apache-2.0
// The parts of ranking.
#pragma once

#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterArgKernels(KernelRegistry& registry);
void RegisterTopKKernels(KernelRegistry& registry);
void RegisterIsotonicKernels(KernelRegistry& registry);
void RegisterInTopKKernels(KernelRegistry& registry);

}  // namespace millrace
