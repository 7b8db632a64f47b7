// SPDX-License-Identifier: Apache-2.0
// The kernels of Fourier transforms.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterSignalKernels(KernelRegistry& registry);

}  // namespace millrace
