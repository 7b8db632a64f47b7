// SPDX-License-Identifier: Apache-2.0
// Loops of quantization over runs of memory, compiled once per instruction set. Multiplication and addition are never
// fused in them: results are those of the formulas as they stand.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace millrace {

// out = T(clamp(round((clamp(x, in_low, in_high) - minus) * scale + plus) - offset, lowest, highest)); of NaN 0, where
// T can hold it.
enum class Rounding : uint8_t { kHalfAway, kHalfEven, kDown };
struct QuantizeLine {
  float in_low, in_high, minus = 0, scale = 1, plus = 0, offset = 0;
  double lowest, highest;
};
using QuantizeTile = void (*)(const QuantizeLine& line, const float* x, void* out, int64_t n);
// For qint8, quint8, qint16, quint16 and qint32. Unless `bounded`, in_low and in_high are infinite.
QuantizeTile FindQuantize(DType to, Rounding rounding, bool bounded);

// out = (x + half) * scale + first.
struct DequantizeLine {
  float half = 0, scale = 1, first = 0;
};
using DequantizeTile = void (*)(const DequantizeLine& line, const void* x, float* out, int64_t n);
DequantizeTile FindDequantize(DType from);

// out = round(clamp(x, low, high) * scale) * inverse.
template <typename T>
struct RoundTripLine {
  T low, high, scale, inverse;
  bool half_up;  // else half to even
};
void RoundTrip(const RoundTripLine<float>& line, const float* x, float* out, int64_t n);
void RoundTrip(const RoundTripLine<double>& line, const double* x, double* out, int64_t n);

// Moves *low down and *high up to the n numbers; a NaN moves neither.
void WidenEnds(const float* x, int64_t n, float* low, float* high);
void WidenEnds(const double* x, int64_t n, double* low, double* high);

// The range of a fake quantization: of one channel, or arrays over channels. Where `live` is 0, all results are.
struct FakeQuantRange {
  float low = 0, high = 0, scale = 1, inverse = 1, zero = 0;
  int32_t live = 0;
};
struct FakeQuantRanges {
  const float *low, *high, *scale, *inverse, *zero;
  const int32_t* live;
};
void FakeQuant(const FakeQuantRange& range, const float* x, float* y, int64_t n);
// Rows of `channels` elements.
void FakeQuant(const FakeQuantRanges& ranges, int64_t channels, const float* x, float* y, int64_t rows);

// Gradients: y = g where x lies in the range; below += g where x is less, above += g where it is greater. below and
// above may be null. One range has one sum of each, ranges have one per channel.
void FakeQuantGrad(const FakeQuantRange& range, const float* g, const float* x, float* y, int64_t n, double* below,
                   double* above);
void FakeQuantGrad(const FakeQuantRanges& ranges, int64_t channels, const float* g, const float* x, float* y,
                   int64_t rows, double* below, double* above);

}  // namespace millrace
