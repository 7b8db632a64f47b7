// SPDX-License-Identifier: Apache-2.0
// The parts of the family of ops on quantized numbers.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterQuantizeKernels(KernelRegistry& registry);  // all of it
void RegisterFakeQuantKernels(KernelRegistry& registry);
void RegisterQuantizeAndDequantizeKernels(KernelRegistry& registry);
void RegisterQuantizedRangeKernels(KernelRegistry& registry);
void RegisterQuantizedArithmeticKernels(KernelRegistry& registry);
void RegisterQuantizedArrayKernels(KernelRegistry& registry);
void RegisterQuantizedNnKernels(KernelRegistry& registry);

}  // namespace millrace
