// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterReaderKernels(KernelRegistry& registry);  // all of them
void RegisterRecordInputKernel(KernelRegistry& registry);

}  // namespace millrace
