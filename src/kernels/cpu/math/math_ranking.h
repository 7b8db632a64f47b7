// SPDX-License-Identifier: Apache-2.0
// The parts of ranking.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/kernel_list.h"

namespace millrace {

inline constexpr int64_t kRankingTile = 256;

template <typename T, bool kMax>
struct Extreme {
  static bool Better(T a, T b) { return kMax ? a > b : a < b; }
  static constexpr T Worst() {
    if constexpr (std::numeric_limits<T>::has_infinity) {
      return kMax ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    } else {
      return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
    }
  }
};

// The first position of the greatest (or least) number, or 0; NaN is neither. Blocks first: only one that beats the
// best so far is searched for the position.
template <typename T, bool kMax>
int64_t ArgOfRow(const T* x, int64_t n) {
  using E = Extreme<T, kMax>;
  constexpr int64_t kBlock = 256;
  constexpr int kLanes = static_cast<int>(64 / sizeof(T));
  T best = E::Worst();
  int64_t index = 0, i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    T lanes[kLanes];
    std::fill(lanes, lanes + kLanes, best);
    for (int64_t j = 0; j < kBlock; j += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] = E::Better(x[i + j + l], lanes[l]) ? x[i + j + l] : lanes[l];
    }
    T top = best;
    for (int l = 0; l < kLanes; ++l) top = E::Better(lanes[l], top) ? lanes[l] : top;
    if (!E::Better(top, best)) continue;
    best = top;
    index = std::find(x + i, x + i + kBlock, top) - x;
  }
  for (; i < n; ++i) {
    if (E::Better(x[i], best)) {
      best = x[i];
      index = i;
    }
  }
  return index;
}

void RegisterArgKernels(KernelRegistry& registry);
void RegisterTopKKernels(KernelRegistry& registry);
void RegisterInTopKKernels(KernelRegistry& registry);

}  // namespace millrace
