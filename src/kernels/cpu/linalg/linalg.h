// SPDX-License-Identifier: Apache-2.0
// The parts of the linear algebra family.
#pragma once

#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterMatMulKernels(KernelRegistry& registry);
void RegisterFactorizationKernels(KernelRegistry& registry);
void RegisterSpectralKernels(KernelRegistry& registry);
void RegisterLeastSquaresKernels(KernelRegistry& registry);
void RegisterEinsumKernels(KernelRegistry& registry);
void RegisterMatrixFunctionKernels(KernelRegistry& registry);
void RegisterTridiagonalKernels(KernelRegistry& registry);
void RegisterWalsKernels(KernelRegistry& registry);
void RegisterClusteringKernels(KernelRegistry& registry);

}  // namespace millrace
