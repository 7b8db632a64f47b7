// SPDX-License-Identifier: Apache-2.0
// Stacks of matrices (all axes but the last two) broadcast against each other.
#pragma once

#include <vector>

#include "tensor/shape.h"

namespace millrace {

class BatchBroadcast {
 public:
  // Both of rank 2 at least. InvalidArgument when the batch dimensions do not fit.
  Status Init(const Shape& x, const Shape& y);
  // Fills the indices below. To be called once memory for the results exists: there may be very many empty matrices.
  void MakeIndices();
  StatusOr<Shape> ResultShape(int64_t rows, int64_t columns) const;

  int64_t x_count() const { return x_count_; }
  int64_t y_count() const { return y_count_; }
  int64_t count() const { return batch_.num_elements(); }
  // Which matrix of x belongs to each result; null when it is the one of the same number.
  const int64_t* x_index() const { return x_index_.empty() ? nullptr : x_index_.data(); }
  const int64_t* y_index() const { return y_index_.empty() ? nullptr : y_index_.data(); }
  int64_t x_of(int64_t i) const { return x_index_.empty() ? i : x_index_[static_cast<size_t>(i)]; }
  int64_t y_of(int64_t i) const { return y_index_.empty() ? i : y_index_[static_cast<size_t>(i)]; }

 private:
  Shape x_batch_, y_batch_, batch_;
  int64_t x_count_ = 1, y_count_ = 1;
  std::vector<int64_t> x_index_, y_index_;
};

}  // namespace millrace
