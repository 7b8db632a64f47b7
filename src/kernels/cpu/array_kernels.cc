// SPDX-License-Identifier: Apache-2.0
// CPU kernels: shape and movement of data.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterArrayKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
