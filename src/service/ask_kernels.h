// SPDX-License-Identifier: Apache-2.0
// What compilation asks of the kernels of this process.
#pragma once

#include "kernel/kernel_registry.h"
#include "passes/pipeline.h"

namespace millrace {

// Where the arguments of a node lie on a device of that type with memory of its own.
ArgMemory MemoryOf(const Node& node, absl::string_view device_type);

// Sets has_kernel, memory_of and evaluate. Constants are folded on `host`; both must outlive `env`.
void AskKernels(const KernelRegistry& kernels, Device& host, PassEnvironment* env);

}  // namespace millrace
