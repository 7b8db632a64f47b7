// SPDX-License-Identifier: Apache-2.0
// Whole arrays from one type to another, on the threads of a kernel.
#pragma once

#include <algorithm>

#include "kernel/kernel.h"
#include "kernels/cpu/engine/elementwise_convert.h"

namespace millrace {

inline void ConvertElements(const KernelContext& ctx, DType from, DType to, const void* in, void* out, int64_t n) {
  constexpr int64_t kBlock = 4096;
  const ConvertRoute route = FindConvert(from, to);
  const int64_t from_bytes = static_cast<int64_t>(DTypeSize(from)), to_bytes = static_cast<int64_t>(DTypeSize(to));
  ctx.ParallelFor((n + kBlock - 1) / kBlock, 0.2 * kBlock, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kBlock, last = std::min(end * kBlock, n);
    route.Run(
        static_cast<const char*>(in) + first * from_bytes, static_cast<char*>(out) + first * to_bytes, last - first);
  });
}

}  // namespace millrace
