// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_conv_tiles.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_conv_tiles.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
HWY_INLINE V Fma(V a, V b, V c) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::MulAdd(a, b, c);
  } else {
    return hn::Add(hn::Mul(a, b), c);
  }
}

// kVecs vectors of columns from m on, all pixels: the accumulators stay in registers over every tap.
template <size_t kVecs, class D, typename T = hn::TFromD<D>>
HWY_INLINE void ConvColumns(D d, const ConvTap<T>* taps, size_t num_taps, size_t depth, size_t m, size_t stride,
                            T* const* out) {
  const size_t lanes = hn::Lanes(d);
  using V = hn::Vec<D>;
  V acc[kTilePixels][2];
  for (size_t p = 0; p < kTilePixels; ++p) acc[p][0] = acc[p][1] = hn::Zero(d);
  for (size_t t = 0; t < num_taps; ++t) {
    const ConvTap<T>& tap = taps[t];
    const T* w = tap.weights + m;
    for (size_t k = 0; k < depth; ++k, w += stride) {
      const V w0 = hn::LoadU(d, w);
      const V w1 = kVecs > 1 ? hn::LoadU(d, w + lanes) : w0;
      for (size_t p = 0; p < kTilePixels; ++p) {
        const V x = hn::Set(d, tap.src[p][k]);
        acc[p][0] = Fma(x, w0, acc[p][0]);
        if constexpr (kVecs > 1) acc[p][1] = Fma(x, w1, acc[p][1]);
      }
    }
  }
  for (size_t p = 0; p < kTilePixels; ++p) {
    hn::StoreU(acc[p][0], d, out[p] + m);
    if constexpr (kVecs > 1) hn::StoreU(acc[p][1], d, out[p] + m + lanes);
  }
}

template <typename T>
void ConvTileT(const ConvTap<T>* taps, size_t num_taps, size_t depth, size_t width, size_t stride, T* const* out) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t m = 0;
  for (; m + 2 * lanes <= width; m += 2 * lanes) ConvColumns<2>(d, taps, num_taps, depth, m, stride, out);
  for (; m + lanes <= width; m += lanes) ConvColumns<1>(d, taps, num_taps, depth, m, stride, out);
  const hn::CappedTag<T, 1> d1;
  for (; m < width; ++m) ConvColumns<1>(d1, taps, num_taps, depth, m, stride, out);
}

template <typename T>
void DepthwiseTileT(const ConvTap<T>* taps, size_t num_taps, size_t channels, T* out) {
  const auto run = [&](auto d, size_t c) {
    auto acc = hn::Zero(d);
    for (size_t t = 0; t < num_taps; ++t) {
      acc = Fma(hn::LoadU(d, taps[t].src[0] + c), hn::LoadU(d, taps[t].weights + c), acc);
    }
    hn::StoreU(acc, d, out + c);
  };
  const hn::ScalableTag<T> d;
  size_t c = 0;
  for (; c + hn::Lanes(d) <= channels; c += hn::Lanes(d)) run(d, c);
  for (; c < channels; ++c) run(hn::CappedTag<T, 1>(), c);
}

template <size_t kVecs, class D, typename T = hn::TFromD<D>>
HWY_INLINE void FilterColumns(D d, size_t count, const T* x, size_t x_step, size_t rows, const T* dy, size_t dy_step,
                              T* dw, size_t stride) {
  const size_t lanes = hn::Lanes(d);
  using V = hn::Vec<D>;
  V acc[4][2];
  for (size_t i = 0; i < 4; ++i) acc[i][0] = acc[i][1] = hn::Zero(d);
  const size_t at[4] = {0, rows > 1 ? size_t{1} : 0, rows > 2 ? size_t{2} : 0, rows > 3 ? size_t{3} : 0};
  for (size_t n = 0; n < count; ++n, x += x_step, dy += dy_step) {
    const V g0 = hn::LoadU(d, dy);
    const V g1 = kVecs > 1 ? hn::LoadU(d, dy + lanes) : g0;
    for (size_t i = 0; i < 4; ++i) {
      const V v = hn::Set(d, x[at[i]]);
      acc[i][0] = Fma(v, g0, acc[i][0]);
      if constexpr (kVecs > 1) acc[i][1] = Fma(v, g1, acc[i][1]);
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    T* to = dw + i * stride;
    hn::StoreU(hn::Add(acc[i][0], hn::LoadU(d, to)), d, to);
    if constexpr (kVecs > 1) hn::StoreU(hn::Add(acc[i][1], hn::LoadU(d, to + lanes)), d, to + lanes);
  }
}

template <typename T>
void FilterTileT(size_t count, const T* x, size_t x_step, size_t rows, const T* dy, size_t dy_step, size_t width, T* dw,
                 size_t stride) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t m = 0;
  for (; m + 2 * lanes <= width; m += 2 * lanes) {
    FilterColumns<2>(d, count, x, x_step, rows, dy + m, dy_step, dw + m, stride);
  }
  for (; m + lanes <= width; m += lanes) FilterColumns<1>(d, count, x, x_step, rows, dy + m, dy_step, dw + m, stride);
  const hn::CappedTag<T, 1> d1;
  for (; m < width; ++m) FilterColumns<1>(d1, count, x, x_step, rows, dy + m, dy_step, dw + m, stride);
}

template <typename T>
void DepthwiseFilterTileT(size_t count, const T* x, size_t x_step, const T* dy, size_t dy_step, size_t channels,
                          T* dw) {
  const auto run = [&](auto d, size_t c) {
    auto acc = hn::Zero(d);
    for (size_t n = 0; n < count; ++n) {
      acc = Fma(hn::LoadU(d, x + n * x_step + c), hn::LoadU(d, dy + n * dy_step + c), acc);
    }
    hn::StoreU(hn::Add(acc, hn::LoadU(d, dw + c)), d, dw + c);
  };
  const hn::ScalableTag<T> d;
  size_t c = 0;
  for (; c + hn::Lanes(d) <= channels; c += hn::Lanes(d)) run(d, c);
  for (; c < channels; ++c) run(hn::CappedTag<T, 1>(), c);
}

#define MR_TILES(T, Name)                                                                                        \
  void Conv##Name(const ConvTap<T>* taps, size_t n, size_t depth, size_t width, size_t stride, T* const* out) {  \
    ConvTileT<T>(taps, n, depth, width, stride, out);                                                            \
  }                                                                                                              \
  void Depthwise##Name(const ConvTap<T>* taps, size_t n, size_t channels, T* out) {                              \
    DepthwiseTileT<T>(taps, n, channels, out);                                                                   \
  }                                                                                                              \
  void Filter##Name(size_t count, const T* x, size_t x_step, size_t rows, const T* dy, size_t dy_step, size_t w, \
                    T* dw, size_t stride) {                                                                      \
    FilterTileT<T>(count, x, x_step, rows, dy, dy_step, w, dw, stride);                                          \
  }                                                                                                              \
  void DepthwiseFilter##Name(                                                                                    \
      size_t count, const T* x, size_t x_step, const T* dy, size_t dy_step, size_t channels, T* dw) {            \
    DepthwiseFilterTileT<T>(count, x, x_step, dy, dy_step, channels, dw);                                        \
  }
MR_TILES(float, F32)
MR_TILES(double, F64)
MR_TILES(int32_t, I32)
#undef MR_TILES

}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

#define MR_DISPATCH(T, Name)                                                                                      \
  HWY_EXPORT(Conv##Name);                                                                                         \
  HWY_EXPORT(Depthwise##Name);                                                                                    \
  HWY_EXPORT(Filter##Name);                                                                                       \
  HWY_EXPORT(DepthwiseFilter##Name);                                                                              \
  template <>                                                                                                     \
  void ConvTile<T>(const ConvTap<T>* taps, size_t n, size_t depth, size_t width, size_t stride, T* const* out) {  \
    HWY_DYNAMIC_DISPATCH(Conv##Name)(taps, n, depth, width, stride, out);                                         \
  }                                                                                                               \
  template <>                                                                                                     \
  void DepthwiseTile<T>(const ConvTap<T>* taps, size_t n, size_t channels, T* out) {                              \
    HWY_DYNAMIC_DISPATCH(Depthwise##Name)(taps, n, channels, out);                                                \
  }                                                                                                               \
  template <>                                                                                                     \
  void FilterTile<T>(size_t count, const T* x, size_t x_step, size_t rows, const T* dy, size_t dy_step, size_t w, \
                     T* dw, size_t stride) {                                                                      \
    HWY_DYNAMIC_DISPATCH(Filter##Name)(count, x, x_step, rows, dy, dy_step, w, dw, stride);                       \
  }                                                                                                               \
  template <>                                                                                                     \
  void DepthwiseFilterTile<T>(                                                                                    \
      size_t count, const T* x, size_t x_step, const T* dy, size_t dy_step, size_t channels, T* dw) {             \
    HWY_DYNAMIC_DISPATCH(DepthwiseFilter##Name)(count, x, x_step, dy, dy_step, channels, dw);                     \
  }
MR_DISPATCH(float, F32)
MR_DISPATCH(double, F64)
MR_DISPATCH(int32_t, I32)
#undef MR_DISPATCH

}  // namespace millrace
#endif
