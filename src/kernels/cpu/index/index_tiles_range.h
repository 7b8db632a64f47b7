// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// to[i] = first + i * step, wrapped.
void FillSteps(uint32_t first, uint32_t step, uint32_t* to, int64_t n);
void FillSteps(uint64_t first, uint64_t step, uint64_t* to, int64_t n);
// to[i] = start + (first + i) * step in double, |first| + n < 2^53; product and sum are both rounded.
void FillSteps(double start, double step, int64_t first, float* to, int64_t n);
void FillSteps(double start, double step, int64_t first, double* to, int64_t n);

}  // namespace millrace
