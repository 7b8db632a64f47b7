// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// The 16 bytes of `pattern` over and over, over n >= 16 bytes; the last ones overlap those before, so n is a multiple
// of the pattern's own period.
void FillPattern(char* dst, const char* pattern, int64_t n);

// Rows of n elements of 1, 2, 4 or 8 bytes, one after another at `to`, each full of the element that it has at `from`,
// where the next one's is `step` bytes on. For rows of up to kFilledRow bytes.
inline constexpr int64_t kFilledRow = 1024;
void FillRows(int64_t element_bytes, const char* from, int64_t step, int64_t rows, int64_t n, char* to);

// to[i] = start + (first + i) * step, in float.
void FillRamp(float start, float step, int32_t first, float* to, int64_t n);

}  // namespace millrace
