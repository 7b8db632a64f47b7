// SPDX-License-Identifier: Apache-2.0
// The row is cut into vectors without regard to where a pixel ends. Some vectors at a time stay in registers over all
// taps.
#include "kernels/cpu/nn/nn_depthwise_simd.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_depthwise_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Numbers from `at` on, kCount vectors; their weights begin at `channel`.
template <int kCount, class How>
HWY_INLINE void Vectors(const How& how, const DepthwiseRow<typename How::T>& r, int64_t at, int64_t channel) {
  using V = typename How::V;
  const auto d = how.d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kCount];
#pragma GCC unroll 8
  for (int k = 0; k < kCount; ++k) sums[k] = hn::Zero(d);
  const auto* weights = r.weights + channel;
  for (int64_t y = 0; y < r.taps_y; ++y) {
    const auto* read = r.read + y * r.tap_row + at;
    for (int64_t x = 0; x < r.taps_x; ++x, read += r.tap_step, weights += r.tap_weights) {
#pragma GCC unroll 8
      for (int k = 0; k < kCount; ++k) {
        sums[k] = hn::MulAdd(how.Load(read + k * lanes), hn::LoadU(d, weights + k * lanes), sums[k]);
      }
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < kCount; ++k) how.Store(sums[k], r.result + at + k * lanes);
}

template <typename T>
void Run(const DepthwiseRow<T>& r) {
  constexpr int kCount = 4;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Whole<decltype(d)> whole{d};
  int64_t at = 0, channel = 0;
  const auto go_on = [&](int64_t n) {
    at += n;
    channel = (channel + n) % r.channels;
  };
  for (; at + kCount * lanes <= r.n; go_on(kCount * lanes)) Vectors<kCount>(whole, r, at, channel);
  for (; at + lanes <= r.n; go_on(lanes)) Vectors<1>(whole, r, at, channel);
#if MILLRACE_HAS_PARTS
  if (at < r.n) Vectors<1>(Part(d, r.n - at), r, at, channel);
#else
  const hn::CappedTag<T, 1> one;
  for (; at < r.n; go_on(1)) Vectors<1>(Whole<decltype(one)>{one}, r, at, channel);
#endif
}

void RunFloat(const DepthwiseRow<float>& r) { Run(r); }
void RunDouble(const DepthwiseRow<double>& r) { Run(r); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(RunFloat);
HWY_EXPORT(RunDouble);
void RunDepthwiseRow(const DepthwiseRow<float>& row) { HWY_DYNAMIC_DISPATCH(RunFloat)(row); }
void RunDepthwiseRow(const DepthwiseRow<double>& row) { HWY_DYNAMIC_DISPATCH(RunDouble)(row); }

}  // namespace millrace
#endif
