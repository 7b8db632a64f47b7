// SPDX-License-Identifier: Apache-2.0
// What the kernels of tf.contrib.boosted_trees share. Their resources carry a stamp: what comes with another one is of
// an ensemble that has been replaced.
#pragma once

#include <limits>

#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {

// InvalidArgument unless who changes a resource of stamp `have` knows it.
Status CheckStamp(int64_t have, int64_t given);

// Counters may have come from outside.
template <typename T>
void CountUp(T* counter) {
  if (*counter < std::numeric_limits<T>::max()) ++*counter;
}

void RegisterGbdtStatsKernels(KernelRegistry& registry);
void RegisterGbdtQuantileKernels(KernelRegistry& registry);
void RegisterGbdtSplitKernels(KernelRegistry& registry);
void RegisterGbdtModelKernels(KernelRegistry& registry);
void RegisterGbdtGrowthKernels(KernelRegistry& registry);

}  // namespace millrace
