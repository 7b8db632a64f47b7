// SPDX-License-Identifier: Apache-2.0
// CPU kernels: gather, scatter, segments, blocks.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterIndexKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
