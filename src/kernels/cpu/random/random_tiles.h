// SPDX-License-Identifier: Apache-2.0
// Numbers of Philox streams, many blocks at a time, compiled once per instruction set.
#pragma once

#include <cstdint>

#include "kernels/shared/philox.h"

namespace millrace {

inline constexpr int64_t kRandomBatch = 64;  // most blocks in a call

// Of n <= kRandomBatch blocks, block i being the one that `start` would give after i * apart others: their words, or
// four floats each.
void RandomWords(const Philox& start, uint64_t apart, int64_t n, uint32_t* out);
// Multiples of 2^-bits in [0, 1), bits <= 23: the low bits of a word.
void RandomFractions(const Philox& start, int64_t n, int bits, float* out);
// By Box and Muller's method from pairs of words, as BoxMuller in philox.h, with sines, cosines and logarithms of which
// nearly all are rounded correctly: those of the C library differ by a last bit now and then.
void RandomNormals(const Philox& start, uint64_t apart, int64_t n, float* out);

// v[i] = the sum of exp(v[k] - the greatest) over k <= i; of what is infinite or NaN nothing is added.
void CumulateExps(double* v, int64_t n);

}  // namespace millrace
