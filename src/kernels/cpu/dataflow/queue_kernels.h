// SPDX-License-Identifier: Apache-2.0
// What steps exchange through resources.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterQueueKernels(KernelRegistry& registry);  // all of it
void RegisterBarrierKernels(KernelRegistry& registry);
void RegisterStagingKernels(KernelRegistry& registry);
void RegisterAccumulatorKernels(KernelRegistry& registry);
void RegisterMutexKernels(KernelRegistry& registry);
void RegisterCollectiveKernels(KernelRegistry& registry);

}  // namespace millrace
