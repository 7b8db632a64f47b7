// SPDX-License-Identifier: Apache-2.0
// The kernels that look at strings as text: regular expressions, encodings, words.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterTextKernels(KernelRegistry& registry);  // all of them
void RegisterRegexKernels(KernelRegistry& registry);
void RegisterUnicodeKernels(KernelRegistry& registry);
void RegisterWordKernels(KernelRegistry& registry);
void RegisterCaseKernels(KernelRegistry& registry);
void RegisterStringFormatKernels(KernelRegistry& registry);

}  // namespace millrace
