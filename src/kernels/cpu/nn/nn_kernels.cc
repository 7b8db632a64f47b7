// SPDX-License-Identifier: Apache-2.0
// CPU kernels: convolution, pooling, normalisation.
#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/nn/nn_conv.h"
#include "kernels/cpu/nn/nn_norm.h"
#include "kernels/cpu/nn/nn_pool.h"

namespace millrace {

void RegisterNnKernels(KernelRegistry& registry) {
  RegisterConvKernels(registry);
  RegisterPoolKernels(registry);
  RegisterBiasKernels(registry);
  RegisterBatchNormKernels(registry);
  RegisterOlderNormKernels(registry);
  RegisterDilationKernels(registry);
  RegisterFractionalPoolKernels(registry);
  RegisterFormatKernels(registry);
}

}  // namespace millrace
