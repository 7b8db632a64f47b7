// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/elementwise/elementwise_table.h"

namespace millrace {

// f64 atan, atan2, atanh, erf and erfc as vector code, instead of the C library's, where the processor has it.
void AddTwofoldTiles(TileTable& t);

// Of complex numbers whose squares are neither lost nor too large, and not 0; false where the processor has no vector
// code for it. Sizes are within 0.51 ulp. LogParts gives u and c such that the logarithm of the size is that of u, plus
// c, halved, with no error of its own near 1.
bool Sizes(const double* re, const double* im, int64_t n, double* sizes);
bool LogParts(const double* re, const double* im, int64_t n, double* u, double* c);

}  // namespace millrace
