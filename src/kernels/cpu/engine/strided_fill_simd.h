// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// The 16 bytes of `pattern` over and over, over n >= 16 bytes; the last ones overlap those before, so n is a multiple
// of the pattern's own period.
void FillPattern(char* dst, const char* pattern, int64_t n);

// to[i] = start + (first + i) * step, in float.
void FillRamp(float start, float step, int32_t first, float* to, int64_t n);

}  // namespace millrace
