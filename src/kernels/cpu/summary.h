// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterMessageKernels(KernelRegistry& registry);       // Assert, Print, PrintV2
void RegisterImageSummaryKernels(KernelRegistry& registry);

// The first `limit` elements (all when negative), nested by dimension: "[1 2][3 4]...".
std::string SummarizeTensor(const Tensor& t, int64_t limit);

}  // namespace millrace
