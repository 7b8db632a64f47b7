// SPDX-License-Identifier: Apache-2.0
// CPU kernels: checkpoints and strings.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterIoKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
