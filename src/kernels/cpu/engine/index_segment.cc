// SPDX-License-Identifier: Apache-2.0
// Each segment is reduced by one task, in row order, so the result does not depend on the number of threads. Where rows
// are wide, tasks are blocks of columns instead.
#include "kernels/cpu/engine/index_segment.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/cpu/engine/index_segment_simd.h"

namespace millrace {
namespace {

// What is wrong with ids that are negative or not sorted, as TensorFlow finds it: it takes the last id for the largest.
Status BadSegments(const SegmentIds& ids) {
  const int64_t n = ids.size();
  if (ids[n - 1] < 0) return InvalidArgument("segment ids must be >= 0, but segment_ids[", n - 1, "] = ", ids[n - 1]);
  for (int64_t i = 1; i <= n; ++i) {
    const int64_t id = ids[i - 1];
    if (i < n && ids[i] == id) continue;
    if (i < n && ids[i] < id) {
      return InvalidArgument("segment ids are not increasing: segment_ids[", i, "] = ", ids[i], " follows ", id);
    }
    if (id < 0 || id > ids[n - 1]) {
      return InvalidArgument("Segment id ", id, " out of range [0, ", ids[n - 1] + 1,
                             "), possibly because 'segment_ids' input is not sorted.");
    }
  }
  return InvalidArgument("segment_ids are not sorted");
}

}  // namespace

StatusOr<int64_t> SegmentCount(const SegmentIds& ids) {
  if (ids.size() == 0) return 0;
  if (ids[0] < 0 || IdsDescend(ids)) return BadSegments(ids);
  int64_t count;
  if (!CheckedAdd(ids[ids.size() - 1], int64_t{1}, &count)) {
    return InvalidArgument("segment id ", ids[ids.size() - 1], " is too large");
  }
  return count;
}

Status ReduceSegments(KernelContext& ctx, const SegmentReduction& s) {
  if (s.ids.size() == 0 || s.width == 0) return absl::OkStatus();
  const SegmentRun run = FindSegmentRun(s.op, s.dtype);
  if (run == nullptr) return Unimplemented("this reduction is not defined for ", DTypeName(s.dtype));
  if (s.width >= 512) {
    constexpr int64_t kColumns = 256;
    const int64_t blocks = (s.width + kColumns - 1) / kColumns;
    ctx.ParallelFor(blocks, static_cast<double>(s.ids.size()) * 60, [&](int64_t begin, int64_t end) {
      run(s, 0, s.ids.size(), begin * kColumns, std::min(s.width, end * kColumns));
    });
    return absl::OkStatus();
  }
  ctx.ParallelFor(s.ids.size(), 1.5 + 0.2 * static_cast<double>(s.width), [&](int64_t begin, int64_t end) {
    run(s, begin, end, 0, s.width);
  });
  return absl::OkStatus();
}

}  // namespace millrace
