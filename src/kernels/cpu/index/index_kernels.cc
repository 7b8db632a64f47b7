// SPDX-License-Identifier: Apache-2.0
// CPU kernels: gather, scatter, segments, blocks.
#include "kernels/cpu/index/index_kernels.h"

#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterIndexKernels(KernelRegistry& registry) {
  RegisterGatherKernels(registry);
  RegisterGatherTree(registry);
  RegisterScatterKernels(registry);
  RegisterStateScatterKernels(registry);
  RegisterSegmentKernels(registry);
  RegisterSparseSegmentKernels(registry);
  RegisterBlockKernels(registry);
  RegisterPeriodicKernels(registry);
  RegisterDiagonalKernels(registry);
  RegisterUniqueKernels(registry);
  RegisterPartitionKernels(registry);
  RegisterIndexSelectionKernels(registry);
  RegisterRangeKernels(registry);
  RegisterCountingKernels(registry);
  RegisterRaggedKernels(registry);
  RegisterRaggedRowKernels(registry);
  RegisterRaggedVariantKernels(registry);
  RegisterBandKernels(registry);
  RegisterSearchKernels(registry);
  RegisterHistogramKernels(registry);
  RegisterVolumePatchesKernels(registry);
}

}  // namespace millrace
