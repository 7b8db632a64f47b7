// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/row_ranges.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

bool Ascends(const int64_t* rows, int64_t stride, int64_t n) {
  if (n > 0 && rows[0] < 0) return false;
  for (int64_t i = 1; i < n; ++i) {
    if (rows[i * stride] < rows[(i - 1) * stride]) return false;
  }
  return true;
}

}  // namespace

StatusOr<RowRanges> RowRanges::Make(KernelContext& ctx, const int64_t* rows, int64_t stride, int64_t n,
                                    int64_t row_count, int64_t entry_bytes) {
  // Measured: picked out, rows of 128 bytes take 5 to 7 times as long, of 256 bytes 3 times, of 1 KB 1.3 times.
  constexpr int64_t kBytesOfThreads = 1024, kPerThread = 8;
  const int64_t threads = ThreadsOf(ctx);
  RowRanges r;
  r.sorted_ = Ascends(rows, stride, n);
  if (!r.sorted_ && entry_bytes * threads < kBytesOfThreads) {
    r.sorted_ = true;
    r.begin_ = {0, n};
    return r;
  }
  int shift = 0;
  while (((row_count - 1) >> shift) >= kPerThread * threads) ++shift;
  const int64_t count = ((row_count - 1) >> shift) + 1;
  if (r.sorted_) {
    for (int64_t range = 0, at = 0; range <= count; ++range) {
      for (int64_t step = n - at; step > 0;) {  // the first entry whose row is not below the range
        const int64_t half = step / 2;
        const bool below = (rows[(at + half) * stride] >> shift) < range;
        at += below ? half + 1 : 0;
        step = below ? step - half - 1 : half;
      }
      r.begin_.push_back(at);
    }
    return r;
  }
  const int64_t chunks = threads, chunk = (n + chunks - 1) / chunks;
  MR_ASSIGN_OR_RETURN(r.order_, ctx.AllocateTemp(DType::kUInt32, Shape::Vector(n)));
  uint32_t* order = r.order_.mutable_data<uint32_t>();
  // place[c * count + range]: how many entries of chunk c belong to the range, then where its next one goes.
  std::vector<int64_t> place(static_cast<size_t>(chunks * count), 0);
  const auto in_chunks = [&](auto visit) {
    ctx.ParallelFor(chunks, 1.5 * static_cast<double>(chunk), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        int64_t* mine = place.data() + c * count;
        for (int64_t i = c * chunk; i < std::min(n, (c + 1) * chunk); ++i) {
          if (const int64_t row = rows[i * stride]; row >= 0) visit(mine[row >> shift], i);
        }
      }
    });
  };
  in_chunks([](int64_t& entries, int64_t) { ++entries; });
  int64_t total = 0;
  for (int64_t range = 0; range < count; ++range) {
    r.begin_.push_back(total);
    for (int64_t c = 0; c < chunks; ++c) {
      int64_t& entries = place[static_cast<size_t>(c * count + range)];
      total += std::exchange(entries, total);
    }
  }
  r.begin_.push_back(total);
  in_chunks([order](int64_t& next, int64_t i) { order[next++] = static_cast<uint32_t>(i); });
  return r;
}

int64_t RowRanges::largest() const {
  int64_t most = 0;
  for (size_t r = 1; r < begin_.size(); ++r) most = std::max(most, begin_[r] - begin_[r - 1]);
  return most;
}

}  // namespace millrace
