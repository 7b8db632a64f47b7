// SPDX-License-Identifier: Apache-2.0
// CPU kernels: random numbers.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterRandomKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
