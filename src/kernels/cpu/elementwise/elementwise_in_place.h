// SPDX-License-Identifier: Apache-2.0
// An element-wise op of two operands as an update of memory, for kernels that collect sums: to[i] = from[i] op by[i],
// with the tile functions and so the arithmetic of the op itself.
#pragma once

#include "absl/strings/string_view.h"
#include "kernels/cpu/elementwise/elementwise_table.h"

namespace millrace {

class InPlaceOp {
 public:
  // Of numbers; empty for other types.
  InPlaceOp(absl::string_view op, DType dtype) {
    if (IsNumber(dtype)) tile_ = ResolveTile(op, dtype);
  }
  explicit operator bool() const { return static_cast<bool>(tile_); }
  void operator()(void* to, const void* by, int64_t n) const { (*this)(to, to, by, n); }
  void operator()(void* to, const void* from, const void* by, int64_t n) const {
    RunBinary(tile_, BinaryForm::kVV, from, by, to, n);
  }
  double cost() const { return static_cast<double>(tile_.fn->cost); }  // about nanoseconds per element

 private:
  static bool IsNumber(DType t) { return IsInteger(t) || IsFloating(t) || IsComplex(t); }
  TileOp tile_;
};

}  // namespace millrace
