// SPDX-License-Identifier: Apache-2.0
// The table of CPU kernel families.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterElementwiseKernels(KernelRegistry& registry);
void RegisterArrayKernels(KernelRegistry& registry);
void RegisterIndexKernels(KernelRegistry& registry);
void RegisterMathKernels(KernelRegistry& registry);
void RegisterLinalgKernels(KernelRegistry& registry);
void RegisterNnKernels(KernelRegistry& registry);
void RegisterRnnKernels(KernelRegistry& registry);
void RegisterStateKernels(KernelRegistry& registry);
void RegisterTrainingKernels(KernelRegistry& registry);
void RegisterSdcaKernels(KernelRegistry& registry);
void RegisterTreeKernels(KernelRegistry& registry);
void RegisterRandomKernels(KernelRegistry& registry);
void RegisterCandidateKernels(KernelRegistry& registry);
void RegisterSparseKernels(KernelRegistry& registry);
void RegisterCtcKernels(KernelRegistry& registry);
void RegisterIoKernels(KernelRegistry& registry);
void RegisterSummaryKernels(KernelRegistry& registry);
void RegisterControlFlowKernels(KernelRegistry& registry);
void RegisterFunctionalKernels(KernelRegistry& registry);
void RegisterRuntimeKernels(KernelRegistry& registry);
void RegisterStackKernels(KernelRegistry& registry);
void RegisterTensorArrayKernels(KernelRegistry& registry);
void RegisterTensorListKernels(KernelRegistry& registry);

void RegisterCpuKernels(KernelRegistry& registry);

}  // namespace millrace
