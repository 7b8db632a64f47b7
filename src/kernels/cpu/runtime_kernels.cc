// SPDX-License-Identifier: Apache-2.0
// CPU kernels: what the runtime itself puts into graphs.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterRuntimeKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
