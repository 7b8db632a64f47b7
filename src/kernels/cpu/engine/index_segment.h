// SPDX-License-Identifier: Apache-2.0
// Reduction of rows that share a sorted segment id.
#pragma once

#include "kernel/kernel.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"

namespace millrace {

enum class SegmentFinish : uint8_t { kNone, kMean, kSqrtN };

struct SegmentReduction {
  RowOp op = RowOp::kAdd;
  SegmentFinish finish = SegmentFinish::kNone;
  DType dtype = DType::kInvalid;
  const void* data = nullptr;
  const int64_t* rows = nullptr;  // member i is this row of data; null: row i
  const int64_t* ids = nullptr;   // sorted, not negative
  int64_t n = 0;
  int64_t width = 0;
  void* out = nullptr;  // ids[n-1] + 1 rows, those of absent ids zero (one for products)
};

// InvalidArgument unless ids are sorted and not negative; gives the number of segments.
StatusOr<int64_t> SegmentCount(const WideIndices& ids);
Status ReduceSegments(KernelContext& ctx, const SegmentReduction& s);

}  // namespace millrace
