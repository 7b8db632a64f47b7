// SPDX-License-Identifier: Apache-2.0
// CPU kernels: convolution, pooling, normalisation.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterNnKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
