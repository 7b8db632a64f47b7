// SPDX-License-Identifier: Apache-2.0
// What compilation asks of the kernels of this process.
#pragma once

#include "kernel/kernel_registry.h"
#include "passes/pipeline.h"

namespace millrace {

// Sets has_kernel and evaluate. Constants are folded on `host`; both must outlive `env`.
void AskKernels(const KernelRegistry& kernels, Device& host, PassEnvironment* env);

}  // namespace millrace
