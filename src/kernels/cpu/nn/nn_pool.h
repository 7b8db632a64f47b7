// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterPoolKernels(KernelRegistry& registry);
void RegisterDilationKernels(KernelRegistry& registry);
void RegisterFractionalPoolKernels(KernelRegistry& registry);
void RegisterFormatKernels(KernelRegistry& registry);  // and NthElement

}  // namespace millrace
