// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/image/image_simd.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/image_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// to = (first ? 0 : to) + weight * from
void AddWeighted(const float* from, float weight, size_t n, bool first, float* to) {
  const hn::ScalableTag<float> d;
  const auto w = hn::Set(d, weight);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, from + i);
    hn::StoreU(first ? hn::Mul(w, v) : hn::MulAdd(w, v, hn::LoadU(d, to + i)), d, to + i);
  }
  for (; i < n; ++i) to[i] = first ? weight * from[i] : to[i] + weight * from[i];
}

void MixLinesT(const float* const* lines, const Tap* taps, size_t num_taps, size_t n, float* to) {
  if (num_taps == 0) return std::fill_n(to, n, 0.0f), void();
  size_t at = 0;
  if (num_taps == 2) {
    const hn::ScalableTag<float> d;
    const auto a = hn::Set(d, taps[0].weight), b = hn::Set(d, taps[1].weight);
    for (const size_t lanes = hn::Lanes(d); at + lanes <= n; at += lanes) {
      hn::StoreU(hn::MulAdd(b, hn::LoadU(d, lines[1] + at), hn::Mul(a, hn::LoadU(d, lines[0] + at))), d, to + at);
    }
  }
  for (size_t t = 0; at < n && t < num_taps; ++t) AddWeighted(lines[t] + at, taps[t].weight, n - at, t == 0, to + at);
}

// Up to four channels: a pixel is one vector of four values, whose last ones the next pixel overwrites, if there is
// one.
void MixFewChannels(const float* line, const Tap* taps, const size_t* first, size_t pixels, size_t channels,
                    float* to) {
  const hn::CappedTag<float, 4> d;
  const size_t n = pixels * channels;
  for (size_t x = 0; x < pixels; ++x) {
    auto sum = hn::Zero(d);
    for (size_t t = first[x]; t < first[x + 1]; ++t) {
      sum =
          hn::MulAdd(hn::Set(d, taps[t].weight), hn::LoadU(d, line + static_cast<size_t>(taps[t].at) * channels), sum);
    }
    if (const size_t at = x * channels; at + 4 <= n) {
      hn::StoreU(sum, d, to + at);
    } else {
      alignas(16) float last[4];
      hn::Store(sum, d, last);
      std::copy_n(last, channels, to + at);
    }
  }
}

// to = a * from_a + b * from_b
template <bool kStreams>
HWY_INLINE void MixTwo(const float* from_a, float a, const float* from_b, float b, size_t n, float* to) {
  const hn::ScalableTag<float> d;
  const auto wa = hn::Set(d, a), wb = hn::Set(d, b);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto sum = hn::MulAdd(wb, hn::LoadU(d, from_b + i), hn::Mul(wa, hn::LoadU(d, from_a + i)));
    if (kStreams) {
      hn::Stream(sum, d, to + i);
    } else {
      hn::StoreU(sum, d, to + i);
    }
  }
  for (; i < n; ++i) to[i] = a * from_a[i] + b * from_b[i];
}

void MixPixelsT(const float* line, const Tap* taps, const size_t* first, size_t pixels, size_t channels, bool streams,
                float* to) {
  if (hn::Lanes(hn::CappedTag<float, 4>()) == 4 && channels <= 4) {
    return MixFewChannels(line, taps, first, pixels, channels, to);
  }
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  streams = streams && channels % lanes == 0 && reinterpret_cast<uintptr_t>(to) % (lanes * sizeof(float)) == 0;
  for (size_t x = 0; x < pixels; ++x) {
    float* pixel = to + x * channels;
    if (first[x] == first[x + 1]) std::fill_n(pixel, channels, 0.0f);
    if (first[x] + 2 == first[x + 1]) {
      const Tap* two = taps + first[x];
      (streams ? MixTwo<true>
               : MixTwo<false>)(line + static_cast<size_t>(two[0].at) * channels, two[0].weight,
                                line + static_cast<size_t>(two[1].at) * channels, two[1].weight, channels, pixel);
      continue;
    }
    for (size_t t = first[x]; t < first[x + 1]; ++t) {
      AddWeighted(line + static_cast<size_t>(taps[t].at) * channels, taps[t].weight, channels, t == first[x], pixel);
    }
  }
}

void BlendPixelsT(const float* top, const float* bottom, float part, const Place* places, size_t pixels,
                  size_t channels, float outside, float* to) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto y = hn::Set(d, part);
  for (size_t k = 0; k < pixels; ++k, to += channels) {
    const Place& p = places[k];
    if (!p.inside) {
      std::fill_n(to, channels, outside);
      continue;
    }
    const size_t below = static_cast<size_t>(p.below) * channels, above = static_cast<size_t>(p.above) * channels;
    const float *top_left = top + below, *top_right = top + above;
    const float *bottom_left = bottom + below, *bottom_right = bottom + above;
    const auto blend = [&](auto dd, auto vx, auto vy, size_t i) HWY_ATTR {
      const auto tl = hn::LoadU(dd, top_left + i), bl = hn::LoadU(dd, bottom_left + i);
      const auto upper = hn::MulAdd(hn::Sub(hn::LoadU(dd, top_right + i), tl), vx, tl);
      const auto lower = hn::MulAdd(hn::Sub(hn::LoadU(dd, bottom_right + i), bl), vx, bl);
      hn::StoreU(hn::MulAdd(hn::Sub(lower, upper), vy, upper), dd, to + i);
    };
    const auto x = hn::Set(d, p.part);
    size_t i = 0;
    for (; i + lanes <= channels; i += lanes) blend(d, x, y, i);
    const hn::CappedTag<float, 1> one;
    const auto one_x = hn::Set(one, p.part), one_y = hn::Set(one, part);
    for (; i < channels; ++i) blend(one, one_x, one_y, i);
  }
}

void SpreadPixelsT(const float* from, float weight, const Place* places, size_t pixels, size_t channels, bool bilinear,
                   float* row) {
  for (size_t k = 0; k < pixels; ++k, from += channels) {
    const Place& p = places[k];
    if (!p.inside) continue;
    if (!bilinear) {
      AddWeighted(from, weight, channels, /*first=*/false, row + static_cast<size_t>(p.nearest) * channels);
      continue;
    }
    AddWeighted(from, weight * (1 - p.part), channels, /*first=*/false, row + static_cast<size_t>(p.below) * channels);
    AddWeighted(from, weight * p.part, channels, /*first=*/false, row + static_cast<size_t>(p.above) * channels);
  }
}

// Three vectors of colours; fn gives three vectors.
template <typename T, class Fn>
HWY_INLINE void MapColours(const T* from, size_t colours, T* to, Fn fn) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const auto map = [&](const T* p, T* q) HWY_ATTR {
    V a, b, c;
    hn::LoadInterleaved3(d, p, a, b, c);
    fn(d, a, b, c);
    hn::StoreInterleaved3(a, b, c, d, q);
  };
  size_t i = 0;
  for (; i + lanes <= colours; i += lanes) map(from + 3 * i, to + 3 * i);
  if (i < colours) {
    HWY_ALIGN T last[3 * HWY_MAX_BYTES / sizeof(T)] = {};
    std::copy(from + 3 * i, from + 3 * colours, last);
    map(last, last);
    std::copy(last, last + 3 * (colours - i), to + 3 * i);
  }
}

template <class D, class V>
HWY_INLINE void ToRgb(D d, V& h, V& s, V& v) {
  using T = hn::TFromD<D>;
  const auto one = hn::Set(d, T(1)), two = hn::Set(d, T(2)), turn = hn::Mul(h, hn::Set(d, T(6)));
  const auto saturation = s, value = v;
  const auto channel = [&](V x) HWY_ATTR {
    const auto inside = hn::Min(hn::Max(x, hn::Zero(d)), one);
    return hn::Mul(hn::Add(hn::Sub(one, saturation), hn::Mul(saturation, inside)), value);
  };
  h = channel(hn::Sub(hn::Abs(hn::Sub(turn, hn::Set(d, T(3)))), one));
  s = channel(hn::Sub(two, hn::Abs(hn::Sub(turn, two))));
  v = channel(hn::Sub(two, hn::Abs(hn::Sub(turn, hn::Set(d, T(4))))));
}

template <class D, class V>
HWY_INLINE void ToHsv(D d, V& r, V& g, V& b) {
  using T = hn::TFromD<D>;
  const auto zero = hn::Zero(d), one = hn::Set(d, T(1));
  const auto value = hn::Max(r, hn::Max(g, b)), range = hn::Sub(value, hn::Min(r, hn::Min(g, b)));
  const auto coloured = hn::Gt(range, zero), lit = hn::Gt(value, zero);
  const auto saturation = hn::IfThenElseZero(lit, hn::Div(range, hn::IfThenElse(lit, value, one)));
  const auto unit = hn::Div(one, hn::Mul(hn::Set(d, T(6)), hn::IfThenElse(coloured, range, one)));
  const auto of_red = hn::Mul(unit, hn::Sub(g, b));
  const auto of_green = hn::MulAdd(unit, hn::Sub(b, r), hn::Set(d, T(2) / T(6)));
  const auto of_blue = hn::MulAdd(unit, hn::Sub(r, g), hn::Set(d, T(4) / T(6)));
  auto hue = hn::IfThenElse(hn::Eq(r, value), of_red, hn::IfThenElse(hn::Eq(g, value), of_green, of_blue));
  hue = hn::Add(hue, hn::IfThenElseZero(hn::Lt(hue, zero), one));
  r = hn::IfThenElseZero(coloured, hue);
  g = saturation;
  b = value;
}

void HsvToRgbT(const float* from, size_t colours, float* to) {
  MapColours(from, colours, to, [](auto d, auto& a, auto& b, auto& c) HWY_ATTR { ToRgb(d, a, b, c); });
}
void RgbToHsvT(const float* from, size_t colours, float* to) {
  MapColours(from, colours, to, [](auto d, auto& a, auto& b, auto& c) HWY_ATTR { ToHsv(d, a, b, c); });
}
void HsvToRgbDouble(const double* from, size_t colours, double* to) {
  MapColours(from, colours, to, [](auto d, auto& a, auto& b, auto& c) HWY_ATTR { ToRgb(d, a, b, c); });
}
void RgbToHsvDouble(const double* from, size_t colours, double* to) {
  MapColours(from, colours, to, [](auto d, auto& a, auto& b, auto& c) HWY_ATTR { ToHsv(d, a, b, c); });
}
void ShiftHueT(const float* from, size_t colours, float turn, float* to) {
  MapColours(from, colours, to, [turn](auto d, auto& a, auto& b, auto& c) HWY_ATTR {
    ToHsv(d, a, b, c);
    a = hn::Add(a, hn::Set(d, turn));
    a = hn::Sub(a, hn::Floor(a));
    ToRgb(d, a, b, c);
  });
}
void ScaleSaturationT(const float* from, size_t colours, float scale, float* to) {
  MapColours(from, colours, to, [scale](auto d, auto& a, auto& b, auto& c) HWY_ATTR {
    ToHsv(d, a, b, c);
    b = hn::Min(hn::Max(hn::Mul(b, hn::Set(d, scale)), hn::Zero(d)), hn::Set(d, 1.0f));
    ToRgb(d, a, b, c);
  });
}

// Lanes stand for the same channel every `channels` vectors; they are summed in float over short stretches.
void SumChannelsT(const float* from, size_t pixels, size_t channels, double* sums) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), period = lanes * channels, n = pixels * channels;
  HWY_ALIGN float part[kMostChannels * HWY_MAX_BYTES / sizeof(float)];
  std::fill_n(sums, channels, 0.0);
  size_t i = 0;
  while (i + period <= n) {
    std::fill_n(part, period, 0.0f);
    for (size_t k = 0; k < 64 && i + period <= n; ++k, i += period) {
      for (size_t v = 0; v < channels; ++v) {
        hn::Store(hn::Add(hn::Load(d, part + v * lanes), hn::LoadU(d, from + i + v * lanes)), d, part + v * lanes);
      }
    }
    for (size_t k = 0; k < period; ++k) sums[k % channels] += static_cast<double>(part[k]);
  }
  for (; i < n; ++i) sums[i % channels] += static_cast<double>(from[i]);
}

void ScaleAroundT(const float* from, size_t pixels, size_t channels, const float* mean, float factor, float* to) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), period = lanes * channels, n = pixels * channels;
  HWY_ALIGN float repeated[kMostChannels * HWY_MAX_BYTES / sizeof(float)];
  for (size_t k = 0; k < period; ++k) repeated[k] = mean[k % channels];
  const auto f = hn::Set(d, factor);
  size_t i = 0;
  for (; i + period <= n; i += period) {
    for (size_t v = 0; v < period; v += lanes) {
      const auto m = hn::Load(d, repeated + v);
      hn::StoreU(hn::MulAdd(hn::Sub(hn::LoadU(d, from + i + v), m), f, m), d, to + i + v);
    }
  }
  for (; i < n; ++i) to[i] = (from[i] - mean[i % channels]) * factor + mean[i % channels];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(MixLinesT);
HWY_EXPORT(MixPixelsT);
HWY_EXPORT(BlendPixelsT);
HWY_EXPORT(SpreadPixelsT);
HWY_EXPORT(HsvToRgbT);
HWY_EXPORT(RgbToHsvT);
HWY_EXPORT(HsvToRgbDouble);
HWY_EXPORT(RgbToHsvDouble);
HWY_EXPORT(ShiftHueT);
HWY_EXPORT(ScaleSaturationT);
HWY_EXPORT(SumChannelsT);
HWY_EXPORT(ScaleAroundT);

void MixLines(const float* const* lines, const Tap* taps, size_t num_taps, size_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(MixLinesT)(lines, taps, num_taps, n, to);
}
void MixPixels(const float* line, const Tap* taps, const size_t* first, size_t pixels, size_t channels, bool streams,
               float* to) {
  HWY_DYNAMIC_DISPATCH(MixPixelsT)(line, taps, first, pixels, channels, streams, to);
}
void BlendPixels(const float* top, const float* bottom, float part, const Place* places, size_t pixels, size_t channels,
                 float outside, float* to) {
  HWY_DYNAMIC_DISPATCH(BlendPixelsT)(top, bottom, part, places, pixels, channels, outside, to);
}
void SpreadPixels(const float* from, float weight, const Place* places, size_t pixels, size_t channels, bool bilinear,
                  float* row) {
  HWY_DYNAMIC_DISPATCH(SpreadPixelsT)(from, weight, places, pixels, channels, bilinear, row);
}
void HsvToRgb(const float* from, size_t colours, float* to) { HWY_DYNAMIC_DISPATCH(HsvToRgbT)(from, colours, to); }
void RgbToHsv(const float* from, size_t colours, float* to) { HWY_DYNAMIC_DISPATCH(RgbToHsvT)(from, colours, to); }
void HsvToRgb(const double* from, size_t colours, double* to) {
  HWY_DYNAMIC_DISPATCH(HsvToRgbDouble)(from, colours, to);
}
void RgbToHsv(const double* from, size_t colours, double* to) {
  HWY_DYNAMIC_DISPATCH(RgbToHsvDouble)(from, colours, to);
}
void ShiftHue(const float* from, size_t colours, float turn, float* to) {
  HWY_DYNAMIC_DISPATCH(ShiftHueT)(from, colours, turn, to);
}
void ScaleSaturation(const float* from, size_t colours, float scale, float* to) {
  HWY_DYNAMIC_DISPATCH(ScaleSaturationT)(from, colours, scale, to);
}
void SumChannels(const float* from, size_t pixels, size_t channels, double* sums) {
  HWY_DYNAMIC_DISPATCH(SumChannelsT)(from, pixels, channels, sums);
}
void ScaleAround(const float* from, size_t pixels, size_t channels, const float* mean, float factor, float* to) {
  HWY_DYNAMIC_DISPATCH(ScaleAroundT)(from, pixels, channels, mean, factor, to);
}

}  // namespace millrace
#endif
