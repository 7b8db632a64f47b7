// SPDX-License-Identifier: Apache-2.0
// The parts of the index family of CPU kernels.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterGatherKernels(KernelRegistry& registry);
void RegisterGatherTree(KernelRegistry& registry);
void RegisterScatterKernels(KernelRegistry& registry);       // fresh tensors
void RegisterStateScatterKernels(KernelRegistry& registry);  // variables
void RegisterSegmentKernels(KernelRegistry& registry);
void RegisterSparseSegmentKernels(KernelRegistry& registry);
void RegisterBlockKernels(KernelRegistry& registry);
void RegisterPeriodicKernels(KernelRegistry& registry);
void RegisterDiagonalKernels(KernelRegistry& registry);
void RegisterUniqueKernels(KernelRegistry& registry);
void RegisterPartitionKernels(KernelRegistry& registry);
void RegisterIndexSelectionKernels(KernelRegistry& registry);
void RegisterRangeKernels(KernelRegistry& registry);
void RegisterCountingKernels(KernelRegistry& registry);
void RegisterRaggedKernels(KernelRegistry& registry);
void RegisterRaggedRowKernels(KernelRegistry& registry);
void RegisterRaggedVariantKernels(KernelRegistry& registry);
void RegisterBandKernels(KernelRegistry& registry);
void RegisterSearchKernels(KernelRegistry& registry);
void RegisterHistogramKernels(KernelRegistry& registry);
void RegisterVolumePatchesKernels(KernelRegistry& registry);

}  // namespace millrace
