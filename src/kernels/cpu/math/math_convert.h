// SPDX-License-Identifier: Apache-2.0
// Whole arrays from one type to another, on the threads of a kernel.
#pragma once

#include <algorithm>
#include <atomic>

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

// Rows of n > 0 narrow floats, block by block: fn(values, count) changes `count` rows in float; `out` may be `in`. Rows
// are cut at multiples of `together` only.
template <typename Fn>
Status ForWideRows(const KernelContext& ctx, DType dtype, const void* in, void* out, int64_t rows, int64_t n,
                   int64_t together, double cost, const Fn& fn) {
  constexpr int64_t kBlock = 4096;
  const ConvertRoute widen = FindConvert(dtype, DType::kFloat), narrow = FindConvert(DType::kFloat, dtype);
  const int64_t row_bytes = n * static_cast<int64_t>(DTypeSize(dtype)),
                at_once = std::max<int64_t>(1, kBlock / n / together) * together;
  std::atomic<bool> exhausted = false;
  const int64_t units = (rows + together - 1) / together;
  ctx.ParallelFor(units, cost * static_cast<double>(together), [&](int64_t first, int64_t last) {
    const int64_t begin = first * together, end = std::min(rows, last * together);
    auto memory = AllocateBuffer(
        HostAllocator(), static_cast<size_t>(std::min(at_once, end - begin)) * static_cast<size_t>(n) * sizeof(float));
    if (!memory.ok()) {
      exhausted = true;
      return;
    }
    float* wide = static_cast<float*>((*memory)->data());
    for (int64_t r = begin; r < end; r += at_once) {
      const int64_t count = std::min(at_once, end - r);
      widen.Run(static_cast<const char*>(in) + r * row_bytes, wide, count * n);
      fn(wide, count);
      narrow.Run(wide, static_cast<char*>(out) + r * row_bytes, count * n);
    }
  });
  return exhausted ? ResourceExhausted("no memory for rows of ", n, " floats") : absl::OkStatus();
}

}  // namespace millrace
