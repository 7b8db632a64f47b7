// SPDX-License-Identifier: Apache-2.0
// Part of the table of CPU kernel families (kernels/cpu/kernel_list.h).
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterSparseMapKernels(KernelRegistry& registry);

}  // namespace millrace
