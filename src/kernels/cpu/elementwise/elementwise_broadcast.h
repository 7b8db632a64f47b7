// SPDX-License-Identifier: Apache-2.0
// NumPy broadcasting as loops. Dimensions of the result that behave alike in all operands are merged, those of size 1
// dropped; what stays is an inner run, along which each operand either moves with stride 1 or stands still, and rows of
// such runs. The result is contiguous: row r covers its elements [r * inner, (r + 1) * inner).
#pragma once

#include <cstdint>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "tensor/shape.h"

namespace millrace {

class BroadcastPlan {
 public:
  static constexpr int kMaxOperands = 3;

  // Every operand must broadcast to `out`.
  BroadcastPlan(std::initializer_list<const Shape*> operands, const Shape& out);

  int64_t inner() const { return dims_.empty() ? 1 : dims_[0].size; }
  // Whether operand i moves along the inner run (a plan of one element: everything moves).
  bool Moves(int i) const { return dims_.empty() || dims_[0].stride[i] != 0; }
  int64_t rows() const { return rows_; }

  // Rows come in blocks, in which each operand's runs are `block_stride` elements apart: 0 where they are one and the
  // same.
  int64_t block() const { return dims_.size() > 1 ? dims_[1].size : 1; }
  int64_t BlockStride(int i) const { return dims_.size() > 1 ? dims_[1].stride[i] : 0; }

  // Walks over rows, or blocks of them; offset(i) is where operand i's (first) run begins, in elements.
  class Cursor {
   public:
    Cursor(const BroadcastPlan& plan, int64_t row) : Cursor(plan, row, 1) {}
    static Cursor OverBlocks(const BroadcastPlan& plan, int64_t block) { return Cursor(plan, block, 2); }
    int64_t offset(int i) const { return offset_[i]; }
    void Next();

   private:
    Cursor(const BroadcastPlan& plan, int64_t position, size_t first);
    const BroadcastPlan& plan_;
    size_t first_;                           // dimension that a step moves along
    absl::InlinedVector<int64_t, 8> index_;  // of it and those outside
    int64_t offset_[kMaxOperands] = {0, 0, 0};
  };

 private:
  struct Dim {
    int64_t size;
    int64_t stride[kMaxOperands];
  };
  absl::InlinedVector<Dim, 8> dims_;  // innermost first
  int64_t rows_ = 1;
};

}  // namespace millrace
