// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel_registry.h"
#include "wire/event.h"

namespace millrace {

void RegisterMessageKernels(KernelRegistry& registry);  // Assert, Print, PrintV2, Timestamp
void RegisterImageSummaryKernels(KernelRegistry& registry);
void RegisterTensorSummaryKernels(KernelRegistry& registry);  // AudioSummary*, TensorSummary*

// The encoded summary as output 0.
Status EmitSummary(KernelContext& ctx, const wire::Summary& summary);

}  // namespace millrace
