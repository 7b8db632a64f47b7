// SPDX-License-Identifier: Apache-2.0
// Where the greatest or the least number is. NaN is neither; where there is nothing else the answer is 0.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace millrace {

inline constexpr int64_t kRankingTile = 256;  // columns at a time

struct ArgFns {
  // The first position in a row of n > 0 numbers; `of_ordered` takes NaN for greater than all.
  int64_t (*of_row)(const void* x, int64_t n);
  int64_t (*of_ordered)(const void* x, int64_t n);
  // The first of `axis` rows, `stride` numbers apart, in each of n <= kRankingTile columns.
  void (*of_columns)(const void* x, int64_t axis, int64_t stride, int64_t n, int64_t* index);
};
// Of numbers that are no wider than 8 bytes, no halves; others have no functions.
ArgFns ArgFunctions(DType dtype, bool greatest);

}  // namespace millrace
