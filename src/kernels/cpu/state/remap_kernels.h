// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterRemapKernels(KernelRegistry& registry);  // vocabularies and matrices with other rows

}  // namespace millrace
