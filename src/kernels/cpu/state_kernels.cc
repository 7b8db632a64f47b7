// SPDX-License-Identifier: Apache-2.0
// CPU kernels: variables and their updates.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterStateKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
