// SPDX-License-Identifier: Apache-2.0
// CPU kernels: element-wise arithmetic, comparison, activations.
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterElementwiseKernels(KernelRegistry& registry) { (void)registry; }

}  // namespace millrace
