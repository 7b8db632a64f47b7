// SPDX-License-Identifier: Apache-2.0
// Runs of numbers combined element by element.
#pragma once

#include "kernels/cpu/engine/index_arithmetic.h"

namespace millrace {

template <RowOp op, int kCount, typename D, typename T>
inline void CombineSome(D* __restrict d, const T* __restrict s) {
  for (int k = 0; k < kCount; ++k) CombineInto<op>(d[k], s[k]);
}

// d[i] = d[i] op s[i]. Blocks of fixed length become vector code at any optimisation level.
template <RowOp op, typename D, typename T>
inline void CombineRun(D* d, const T* s, int64_t n) {
  for (; n >= 16; n -= 16, d += 16, s += 16) CombineSome<op, 16>(d, s);
  if (n & 8) CombineSome<op, 8>(d, s), d += 8, s += 8;
  if (n & 4) CombineSome<op, 4>(d, s), d += 4, s += 4;
  for (n &= 3; n > 0; --n) CombineInto<op>(*d++, *s++);
}

}  // namespace millrace
