// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernel/kernel_registry.h"
#include "wire/event.h"

namespace millrace {

void RegisterMessageKernels(KernelRegistry& registry);  // Assert, Print, PrintV2
void RegisterImageSummaryKernels(KernelRegistry& registry);
void RegisterTensorSummaryKernels(KernelRegistry& registry);  // AudioSummary*, TensorSummary*

// The encoded summary as output 0.
Status EmitSummary(KernelContext& ctx, const wire::Summary& summary);

// The first `limit` elements (all when negative), nested by dimension: "[1 2][3 4]...".
std::string SummarizeTensor(const Tensor& t, int64_t limit);

}  // namespace millrace
