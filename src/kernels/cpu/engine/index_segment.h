// SPDX-License-Identifier: Apache-2.0
// Reduction of rows that share a sorted segment id.
#pragma once

#include "kernel/kernel.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"

namespace millrace {

// Segment ids, int32 or int64, of a tensor that outlives this.
class SegmentIds {
 public:
  explicit SegmentIds(const Tensor& ids)
      : narrow_(ids.dtype() == DType::kInt32 ? ids.data<int32_t>() : nullptr),
        wide_(ids.dtype() == DType::kInt64 ? ids.data<int64_t>() : nullptr),
        size_(ids.num_elements()) {}
  int64_t size() const { return size_; }
  const int32_t* narrow() const { return narrow_; }  // one of the two is null
  const int64_t* wide() const { return wide_; }
  int64_t operator[](int64_t i) const { return narrow_ ? narrow_[i] : wide_[i]; }

 private:
  const int32_t* narrow_;
  const int64_t* wide_;
  int64_t size_;
};

enum class SegmentFinish : uint8_t { kNone, kMean, kSqrtN };

struct SegmentReduction {
  RowOp op = RowOp::kAdd;
  SegmentFinish finish = SegmentFinish::kNone;
  DType dtype = DType::kInvalid;
  const void* data = nullptr;
  const int64_t* rows = nullptr;  // member i is this row of data; null: row i
  SegmentIds ids;                 // sorted, not negative
  int64_t width = 0;
  void* out = nullptr;  // the last id + 1 rows, those of absent ids zero (one for products)
};

// InvalidArgument unless ids are sorted and not negative; gives the number of segments.
StatusOr<int64_t> SegmentCount(const SegmentIds& ids);
Status ReduceSegments(KernelContext& ctx, const SegmentReduction& s);

}  // namespace millrace
