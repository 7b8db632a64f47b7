// SPDX-License-Identifier: Apache-2.0
// One pass of a Fourier transform that sorts itself (Stockham's): real and imaginary parts lie apart, and `step`
// numbers that are treated alike lie side by side, so that every inner loop is a run of vectors. And how signals get
// there.
#pragma once

#include <cstdint>

namespace millrace {

// y[q + step (radix p + k)] = turns[p, k] * sum over j of w^(jk) x[q + step (p + count j)], w = exp(-2 pi i / radix),
// for p < count, q < step. `turns` has radix - 1 pairs for each p, from k = 1; `roots` the radix powers of w as pairs.
template <typename T>
struct FourierPass {
  const T* xr;
  const T* xi;
  T* yr;
  T* yi;
  const T* turns;
  const T* roots;
  int64_t radix;
  int64_t count;
  int64_t step;
};

void RunFourierPass(const FourierPass<float>& pass);
void RunFourierPass(const FourierPass<double>& pass);

// Signals to transform, and where their numbers go. Number k of signal l, a pair of parts, lies at values[at[l] +
// k * stride]; its parts lie at [k * lanes + l] of two arrays.
struct SignalLayout {
  const int64_t* at;
  int64_t stride, lanes, n;
};
void GatherNumbers(const SignalLayout& layout, const float* values, float* re, float* im);
void GatherNumbers(const SignalLayout& layout, const double* values, double* re, double* im);
// Back, times `scale`.
void ScatterNumbers(const SignalLayout& layout, const float* re, const float* im, float scale, float* values);
void ScatterNumbers(const SignalLayout& layout, const double* re, const double* im, double scale, double* values);

// Between the bins of a real signal of 2 half numbers, which are 0 to half, and the transform Z of half complex numbers
// that its even and its odd numbers make: in place, row k of `lanes` numbers being bin or number k. turns[k] is the
// pair w^k for w = exp(-2 pi i / (2 half)), k <= half / 2.
template <typename T>
struct RealBins {
  T* re;
  T* im;
  const T* turns;
  int64_t half, lanes;
};
void ToRealBins(const RealBins<float>& bins);
void ToRealBins(const RealBins<double>& bins);
void FromRealBins(const RealBins<float>& bins);  // twice Z
void FromRealBins(const RealBins<double>& bins);

// 4, and primes: 2 to 13 have butterflies of their own, the others do as many operations as they are large.
inline constexpr int64_t kMaxFourierRadix = 331;

}  // namespace millrace
