// SPDX-License-Identifier: Apache-2.0
// CPU kernels: matrix products and factorisations.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterLinalgKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
