// SPDX-License-Identifier: Apache-2.0
// The kernels of lookup tables.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterLookupKernels(KernelRegistry& registry);

}  // namespace millrace
