// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterPoolKernels(KernelRegistry& registry);        // of windows
void RegisterArgmaxPoolKernels(KernelRegistry& registry);  // called by RegisterPoolKernels
void RegisterDilationKernels(KernelRegistry& registry);
void RegisterFractionalPoolKernels(KernelRegistry& registry);
void RegisterFormatKernels(KernelRegistry& registry);  // and NthElement

}  // namespace millrace
