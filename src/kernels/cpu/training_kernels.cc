// SPDX-License-Identifier: Apache-2.0
// CPU kernels: optimizer updates.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterTrainingKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
