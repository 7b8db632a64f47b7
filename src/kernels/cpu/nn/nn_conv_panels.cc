// SPDX-License-Identifier: Apache-2.0
// A block of a tap's rows and of some columns stays in the caches while all pixels go by, a few at a time: their sums
// over the block are kept in registers, and then added to the result.
#include "kernels/cpu/nn/nn_conv_panels.h"

#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_conv_panels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// What the registers hold beside a row's weights and a number.
constexpr size_t kPixels = 6, kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// Rows [0, depth) of kVecs vectors of columns, for kCount pixels.
template <size_t kCount, size_t kVecs, class D>
HWY_INLINE void AddPixels(D d, const float* weights, size_t stride, const float* const* from, const int32_t* results,
                          size_t row, size_t depth, size_t out_stride, float* out) {
  const size_t lanes = hn::Lanes(d);
  using V = hn::Vec<D>;
  V sums[kCount][kVecs];
  const float* x[kCount];
#pragma GCC unroll 8
  for (size_t p = 0; p < kCount; ++p) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs; ++v) sums[p][v] = hn::Zero(d);
    x[p] = from[p] + row;
  }
  for (size_t k = 0; k < depth; ++k, weights += stride) {
    V w[kVecs];
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs; ++v) w[v] = hn::LoadU(d, weights + v * lanes);
#pragma GCC unroll 8
    for (size_t p = 0; p < kCount; ++p) {
      const V number = hn::Set(d, x[p][k]);
#pragma GCC unroll 8
      for (size_t v = 0; v < kVecs; ++v) sums[p][v] = hn::MulAdd(number, w[v], sums[p][v]);
    }
  }
#pragma GCC unroll 8
  for (size_t p = 0; p < kCount; ++p) {
    float* const to = out + static_cast<size_t>(results[p]) * out_stride;
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs; ++v) {
      hn::StoreU(hn::Add(hn::LoadU(d, to + v * lanes), sums[p][v]), d, to + v * lanes);
    }
  }
}

template <size_t kVecs, class D>
HWY_INLINE void AddTap(D d, const PanelTap& tap, const float* weights, size_t stride, size_t row, size_t depth,
                       size_t out_stride, float* out) {
  const size_t n = tap.size;
  size_t p = 0;
  const auto add = [&]<size_t kCount>() HWY_ATTR {
    AddPixels<kCount, kVecs>(d, weights, stride, tap.from + p, tap.results + p, row, depth, out_stride, out);
    p += kCount;
  };
  while (p + kPixels <= n) add.template operator()<kPixels>();
  if (p + 4 <= n) add.template operator()<4>();
  if (p + 2 <= n) add.template operator()<2>();
  if (p < n) add.template operator()<1>();
}

void Panel(const std::vector<PanelTap>& taps, const PanelWeights& w, size_t columns, size_t out_stride, float* out) {
  constexpr size_t kRows = 128;
  const hn::CappedTag<float, 16> d;
  const size_t lanes = hn::Lanes(d), depth = static_cast<size_t>(w.depth), stride = static_cast<size_t>(w.stride);
  const float* weights = w.first;
  for (const PanelTap& tap : taps) {
    for (size_t row = 0; row < depth; row += kRows) {
      const size_t rows = std::min(kRows, depth - row);
      size_t m = 0;
      for (; m + kVectors * lanes <= columns; m += kVectors * lanes) {
        AddTap<kVectors>(d, tap, weights + m, stride, row, rows, out_stride, out + m);
      }
      for (; m < columns; m += lanes) AddTap<1>(d, tap, weights + m, stride, row, rows, out_stride, out + m);
      weights += rows * stride;
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
HWY_EXPORT(Panel);
}  // namespace

void AddPanel(const std::vector<PanelTap>& taps, const PanelWeights& weights, int64_t columns, int64_t out_stride,
              float* out) {
  HWY_DYNAMIC_DISPATCH(Panel)(taps, weights, static_cast<size_t>(columns), static_cast<size_t>(out_stride), out);
}

}  // namespace millrace
#endif
