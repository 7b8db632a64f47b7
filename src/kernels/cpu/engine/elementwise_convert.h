// SPDX-License-Identifier: Apache-2.0
// Conversions between element types, as tiles. Every pair of number types is reached in at most three steps over the
// wide types f32, f64, i32, i64 and u64; the steps are chosen so that the result equals the direct conversion.
// Integers wrap. A float outside int32 or int64 (or NaN) gives that type's minimum, as the processor does; narrower
// types take the low bits of the int32, u32 those of the int64. Complex to real keeps the real part.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace millrace {

// `out` and `in` must not overlap.
using ConvertTile = void (*)(const void* in, void* out, int64_t n);

inline constexpr int64_t kConvertTile = 512;  // elements per step on the stack

struct ConvertRoute {
  int steps = 0;  // 0: same type
  ConvertTile fn[3] = {};
  uint32_t size[4] = {};  // bytes per element before step 0, 1, 2 and at the end
  bool found = false;

  // Any n; `in` and `out` must not overlap.
  void Run(const void* in, void* out, int64_t n) const;
};

// found is false when there is no conversion (strings, handles, ...).
ConvertRoute FindConvert(DType from, DType to);

// kHalf or kBFloat16 <-> float; to narrow: round to nearest, ties to even.
void WidenToFloat(DType from, const void* src, float* dst, int64_t n);
void NarrowFromFloat(DType to, const float* src, void* dst, int64_t n);

// Clears the low `bits` of each element's mantissa, for casts that truncate instead of round. A NaN stays one.
void TruncateFloats(const float* in, float* out, int64_t n, int bits);
void TruncateDoubles(const double* in, double* out, int64_t n, int bits);

}  // namespace millrace
