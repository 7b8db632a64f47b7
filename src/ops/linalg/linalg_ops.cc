// SPDX-License-Identifier: Apache-2.0
// Ops: matrix products and factorisations.
#include "ops/linalg/linalg_ops.h"

namespace millrace {

void RegisterLinalgOps(OpRegistry& registry) {
  RegisterMatMulOps(registry);
  RegisterFactorizationOps(registry);
  RegisterSpectralOps(registry);
  RegisterLeastSquaresOps(registry);
  RegisterEinsumOps(registry);
  RegisterMatrixFunctionOps(registry);
  RegisterClusteringOps(registry);
  RegisterWalsOps(registry);
}

}  // namespace millrace
