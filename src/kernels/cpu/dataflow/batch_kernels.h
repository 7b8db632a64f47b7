// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterBatchKernels(KernelRegistry& registry);
void RegisterUnbatchKernels(KernelRegistry& registry);  // Unbatch, UnbatchGrad

}  // namespace millrace
