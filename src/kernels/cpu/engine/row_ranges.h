// SPDX-License-Identifier: Apache-2.0
// Entries that each go to a row, grouped by ranges of rows: what lets threads work on rows of their own without reading
// what belongs to others.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kernel/kernel.h"

namespace millrace {

// How many threads the step may have: what rows are grouped for is not worth it on one.
inline int ThreadsOf(const KernelContext& ctx) {
  const int pool = ctx.device().thread_pool().parallelism(), most = ctx.step().max_threads;
  return most > 0 && most < pool ? most : pool;
}

// The entries of one range, ascending: at(0) .. at(n - 1).
struct RangeEntries {
  const uint32_t* order = nullptr;  // null: from `first` on, one after another
  int64_t first = 0, n = 0;
  int64_t at(int64_t k) const { return order ? static_cast<int64_t>(order[k]) : first + k; }
};

class RowRanges {
 public:
  static constexpr int64_t kMostEntries = std::numeric_limits<uint32_t>::max();

  // Entry i in [0, n) goes to rows[i * stride], which is in [0, row_count), or negative: then it may be left out.
  // Ranges are of equally many rows, a few for each thread. Entries whose rows ascend stay where they are; others are
  // sorted by a stable counting sort, in parallel. Or there is one range, with the entries as they are: who picks its
  // own out of all reads memory several times slower than in order, the more so the fewer bytes belong to an entry, and
  // too few threads do not make up for that. n <= kMostEntries, row_count > 0.
  static StatusOr<RowRanges> Make(KernelContext& ctx, const int64_t* rows, int64_t stride, int64_t n, int64_t row_count,
                                  int64_t entry_bytes);

  int64_t size() const { return static_cast<int64_t>(begin_.size()) - 1; }
  RangeEntries operator[](int64_t range) const {
    const size_t r = static_cast<size_t>(range);
    return {sorted_ ? nullptr : order_.data<uint32_t>() + begin_[r], begin_[r], begin_[r + 1] - begin_[r]};
  }
  int64_t largest() const;  // the most entries of a range

 private:
  bool sorted_ = false;
  std::vector<int64_t> begin_;
  Tensor order_;
};

}  // namespace millrace
