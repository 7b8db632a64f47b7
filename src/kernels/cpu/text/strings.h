// SPDX-License-Identifier: Apache-2.0
// The parts of the string family.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterStringKernels(KernelRegistry& registry);  // all of it
void RegisterBase64Kernels(KernelRegistry& registry);
void RegisterStringNumberKernels(KernelRegistry& registry);  // between strings and numbers
void RegisterStringHashKernels(KernelRegistry& registry);    // strings as numbers of buckets

}  // namespace millrace
