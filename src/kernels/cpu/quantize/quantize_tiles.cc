// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/quantize_tiles.h"

#include <cmath>
#include <type_traits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantize/quantize_tiles.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// NaN stays.
template <typename T>
inline T Clamp(T v, T low, T high) {
  const T below = v > high ? high : v;
  return below < low ? low : below;
}

// Half away from zero adds the number next to a half: from there on truncation does it.
template <Rounding kRounding>
inline float Round(float v) {
  if constexpr (kRounding == Rounding::kHalfAway) return std::trunc(v + std::copysign(0x1.fffffep-2f, v));
  if constexpr (kRounding == Rounding::kHalfEven) return std::nearbyint(v);
  return std::floor(v);
}

template <typename T, Rounding kRounding, bool kBounded>
void Quantize(const QuantizeLine& line, const float* x, void* out_raw, int64_t n) {
  // int32 has limits that float cannot hold.
  using Wide = std::conditional_t<sizeof(T) == 4, double, float>;
  const QuantizeLine l = line;
  const Wide lowest = static_cast<Wide>(l.lowest), highest = static_cast<Wide>(l.highest);
  T* out = static_cast<T*>(out_raw);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float v = ((kBounded ? Clamp(x[i], l.in_low, l.in_high) : x[i]) - l.minus) * l.scale + l.plus;
    const Wide q = static_cast<Wide>(Round<kRounding>(v) - l.offset);
    const Wide number = q != q ? Wide(0) : q;
    out[i] = static_cast<T>(static_cast<int32_t>(Clamp(number, lowest, highest)));
  }
}

template <typename T, Rounding kRounding>
QuantizeTile BoundedOrNot(bool bounded) {
  return bounded ? &Quantize<T, kRounding, true> : &Quantize<T, kRounding, false>;
}
template <typename T>
QuantizeTile RoundedBy(Rounding rounding, bool bounded) {
  switch (rounding) {
    case Rounding::kHalfAway: return BoundedOrNot<T, Rounding::kHalfAway>(bounded);
    case Rounding::kHalfEven: return BoundedOrNot<T, Rounding::kHalfEven>(bounded);
    case Rounding::kDown: return BoundedOrNot<T, Rounding::kDown>(bounded);
  }
  return nullptr;
}

QuantizeTile QuantizeFor(DType to, Rounding rounding, bool bounded) {
  switch (to) {
    case DType::kQInt8: return RoundedBy<int8_t>(rounding, bounded);
    case DType::kQUInt8: return RoundedBy<uint8_t>(rounding, bounded);
    case DType::kQInt16: return RoundedBy<int16_t>(rounding, bounded);
    case DType::kQUInt16: return RoundedBy<uint16_t>(rounding, bounded);
    case DType::kQInt32: return RoundedBy<int32_t>(rounding, bounded);
    default: return nullptr;
  }
}

template <typename T>
void Dequantize(const DequantizeLine& line, const void* x_raw, float* out, int64_t n) {
  const DequantizeLine l = line;
  const T* x = static_cast<const T*>(x_raw);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(x[i]) + l.half) * l.scale + l.first;
}

DequantizeTile DequantizeFor(DType from) {
  switch (from) {
    case DType::kQInt8: return &Dequantize<int8_t>;
    case DType::kQUInt8: return &Dequantize<uint8_t>;
    case DType::kQInt16: return &Dequantize<int16_t>;
    case DType::kQUInt16: return &Dequantize<uint16_t>;
    case DType::kQInt32: return &Dequantize<int32_t>;
    default: return nullptr;
  }
}

template <typename T>
void RoundTripOf(const RoundTripLine<T>& line, const T* x, T* out, int64_t n) {
  const RoundTripLine<T> l = line;
  if (l.half_up) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = std::floor(Clamp(x[i], l.low, l.high) * l.scale + T(0.5)) * l.inverse;
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = std::nearbyint(Clamp(x[i], l.low, l.high) * l.scale) * l.inverse;
  }
}
void RoundTripFloat(const RoundTripLine<float>& l, const float* x, float* out, int64_t n) { RoundTripOf(l, x, out, n); }
void RoundTripDouble(const RoundTripLine<double>& l, const double* x, double* out, int64_t n) {
  RoundTripOf(l, x, out, n);
}

// In lanes of their own, for the compiler to make vector code of it.
template <typename T>
void WidenTo(const T* x, int64_t n, T* low, T* high) {
  constexpr int kEnds = 256 / sizeof(T);
  T lows[kEnds], highs[kEnds];
  for (int l = 0; l < kEnds; ++l) {
    lows[l] = *low;
    highs[l] = *high;
  }
  int64_t i = 0;
  for (; i + kEnds <= n; i += kEnds) {
    for (int l = 0; l < kEnds; ++l) {
      const T v = x[i + l];
      lows[l] = v < lows[l] ? v : lows[l];
      highs[l] = v > highs[l] ? v : highs[l];
    }
  }
  for (int l = 0; l < kEnds; ++l) {
    *low = lows[l] < *low ? lows[l] : *low;
    *high = highs[l] > *high ? highs[l] : *high;
  }
  for (; i < n; ++i) {
    *low = x[i] < *low ? x[i] : *low;
    *high = x[i] > *high ? x[i] : *high;
  }
}
void WidenFloats(const float* x, int64_t n, float* low, float* high) { WidenTo(x, n, low, high); }
void WidenDoubles(const double* x, int64_t n, double* low, double* high) { WidenTo(x, n, low, high); }

inline float FakeQuantized(float x, float low, float high, float scale, float inverse, float zero) {
  return std::floor((Clamp(x, low, high) - low) * inverse - zero + 0.5f) * scale;
}

void FakeQuantAll(const FakeQuantRange& range, const float* x, float* y, int64_t n) {
  const FakeQuantRange r = range;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float q = FakeQuantized(x[i], r.low, r.high, r.scale, r.inverse, r.zero);
    y[i] = r.live != 0 ? q : 0.0f;
  }
}

void FakeQuantChannels(const FakeQuantRanges& ranges, int64_t channels, const float* x, float* y, int64_t rows) {
  const FakeQuantRanges r = ranges;
  for (; rows > 0; --rows, x += channels, y += channels) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      const float q = FakeQuantized(x[c], r.low[c], r.high[c], r.scale[c], r.inverse[c], r.zero[c]);
      y[c] = r.live[c] != 0 ? q : 0.0f;
    }
  }
}

constexpr int64_t kLanes = 16, kGradBlock = 512;

// sums[l] += v[i] for i = l, l + kLanes, ...
inline void AddLanes(const float* v, int64_t n, double* sums) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) sums[l] += static_cast<double>(v[i + l]);
  }
  for (int64_t l = 0; i < n; ++i, ++l) sums[l] += static_cast<double>(v[i]);
}

void GradAll(const FakeQuantRange& range, const float* g, const float* x, float* y, int64_t n, double* below,
             double* above) {
  const FakeQuantRange r = range;
  const bool empty = r.live == 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = empty | ((x[i] >= r.low) & (x[i] <= r.high)) ? g[i] : 0.0f;
  if (below == nullptr || empty) return;
  float under[kGradBlock], over[kGradBlock];
  double low[kLanes] = {}, high[kLanes] = {};
  for (int64_t at = 0; at < n; at += kGradBlock) {
    const int64_t m = n - at < kGradBlock ? n - at : kGradBlock;
    for (int64_t i = 0; i < m; ++i) {
      under[i] = x[at + i] < r.low ? g[at + i] : 0.0f;
      over[i] = x[at + i] > r.high ? g[at + i] : 0.0f;
    }
    AddLanes(under, m, low);
    AddLanes(over, m, high);
  }
  for (int64_t l = 0; l < kLanes; ++l) {
    *below += low[l];
    *above += high[l];
  }
}

void GradChannels(const FakeQuantRanges& ranges, int64_t channels, const float* g, const float* x, float* y,
                  int64_t rows, double* below, double* above) {
  const FakeQuantRanges r = ranges;
  for (; rows > 0; --rows, g += channels, x += channels, y += channels) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      y[c] = (r.live[c] == 0) | ((x[c] >= r.low[c]) & (x[c] <= r.high[c])) ? g[c] : 0.0f;
    }
    if (below == nullptr) continue;
    for (int64_t at = 0; at < channels; at += kGradBlock) {
      const int64_t m = channels - at < kGradBlock ? channels - at : kGradBlock;
      float under[kGradBlock], over[kGradBlock];
      for (int64_t c = 0; c < m; ++c) {
        const bool live = r.live[at + c] != 0;
        under[c] = live & (x[at + c] < r.low[at + c]) ? g[at + c] : 0.0f;
        over[c] = live & (x[at + c] > r.high[at + c]) ? g[at + c] : 0.0f;
      }
#pragma GCC ivdep
      for (int64_t c = 0; c < m; ++c) below[at + c] += static_cast<double>(under[c]);
#pragma GCC ivdep
      for (int64_t c = 0; c < m; ++c) above[at + c] += static_cast<double>(over[c]);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {
HWY_EXPORT(QuantizeFor);
HWY_EXPORT(DequantizeFor);
HWY_EXPORT(RoundTripFloat);
HWY_EXPORT(RoundTripDouble);
HWY_EXPORT(WidenFloats);
HWY_EXPORT(WidenDoubles);
HWY_EXPORT(FakeQuantAll);
HWY_EXPORT(FakeQuantChannels);
HWY_EXPORT(GradAll);
HWY_EXPORT(GradChannels);
}  // namespace

QuantizeTile FindQuantize(DType to, Rounding rounding, bool bounded) {
  return HWY_DYNAMIC_DISPATCH(QuantizeFor)(to, rounding, bounded);
}
DequantizeTile FindDequantize(DType from) { return HWY_DYNAMIC_DISPATCH(DequantizeFor)(from); }
void RoundTrip(const RoundTripLine<float>& line, const float* x, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RoundTripFloat)(line, x, out, n);
}
void RoundTrip(const RoundTripLine<double>& line, const double* x, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RoundTripDouble)(line, x, out, n);
}
void WidenEnds(const float* x, int64_t n, float* low, float* high) {
  HWY_DYNAMIC_DISPATCH(WidenFloats)(x, n, low, high);
}
void WidenEnds(const double* x, int64_t n, double* low, double* high) {
  HWY_DYNAMIC_DISPATCH(WidenDoubles)(x, n, low, high);
}
void FakeQuant(const FakeQuantRange& range, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FakeQuantAll)(range, x, y, n);
}
void FakeQuant(const FakeQuantRanges& ranges, int64_t channels, const float* x, float* y, int64_t rows) {
  HWY_DYNAMIC_DISPATCH(FakeQuantChannels)(ranges, channels, x, y, rows);
}
void FakeQuantGrad(const FakeQuantRange& range, const float* g, const float* x, float* y, int64_t n, double* below,
                   double* above) {
  HWY_DYNAMIC_DISPATCH(GradAll)(range, g, x, y, n, below, above);
}
void FakeQuantGrad(const FakeQuantRanges& ranges, int64_t channels, const float* g, const float* x, float* y,
                   int64_t rows, double* below, double* above) {
  HWY_DYNAMIC_DISPATCH(GradChannels)(ranges, channels, g, x, y, rows, below, above);
}

}  // namespace millrace
#endif  // HWY_ONCE
