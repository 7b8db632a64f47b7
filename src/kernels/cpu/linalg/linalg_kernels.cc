// SPDX-License-Identifier: Apache-2.0
// CPU kernels: matrix products and factorisations.
#include "kernels/cpu/linalg/linalg.h"

namespace millrace {

void RegisterLinalgKernels(KernelRegistry& registry) {
  RegisterMatMulKernels(registry);
  RegisterFactorizationKernels(registry);
  RegisterSpectralKernels(registry);
  RegisterLeastSquaresKernels(registry);
  RegisterEinsumKernels(registry);
  RegisterMatrixFunctionKernels(registry);
  RegisterTridiagonalKernels(registry);
  RegisterWalsKernels(registry);
  RegisterClusteringKernels(registry);
}

}  // namespace millrace
