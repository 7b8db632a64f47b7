// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_lrn_simd.h"

#include <cmath>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_lrn_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Fn>
HWY_INLINE void ForEach(size_t n, Fn fn) {
  const hn::ScalableTag<float> d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) fn(d, i);
  for (; i < n; ++i) fn(hn::CappedTag<float, 1>(), i);
}

// The sum of the 2 * radius + 1 values around c; `padded` holds value c at c + radius.
template <class D>
HWY_INLINE hn::Vec<D> Around(D d, const float* padded, size_t c, size_t radius) {
  auto sum = hn::LoadU(d, padded + c);
  for (size_t k = 1; k <= 2 * radius; ++k) sum = hn::Add(sum, hn::LoadU(d, padded + c + k));
  return sum;
}

void Clear(float* p, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i] = 0;
}

// n[c] into `norm`; `padded` is scratch of channels + 2 * radius.
void Norms(const LrnParameters& p, const float* x, size_t channels, float* padded, float* norm) {
  Clear(padded, p.radius);
  Clear(padded + p.radius + channels, p.radius);
  ForEach(channels, [&](auto d, size_t c) {
    const auto v = hn::LoadU(d, x + c);
    hn::StoreU(hn::Mul(v, v), d, padded + p.radius + c);
  });
  ForEach(channels, [&](auto d, size_t c) {
    hn::StoreU(hn::MulAdd(Around(d, padded, c, p.radius), hn::Set(d, p.alpha), hn::Set(d, p.bias)), d, norm + c);
  });
}

// v^-beta
template <class D>
HWY_INLINE hn::Vec<D> InversePower(D d, hn::Vec<D> v, float beta) {
  const auto one = hn::Set(d, 1.0f);
  if (beta == 0.5f) return hn::Div(one, hn::Sqrt(v));
  if (beta == 1.0f) return hn::Div(one, v);
  if (beta == 0.75f) return hn::Div(one, hn::Mul(hn::Sqrt(v), hn::Sqrt(hn::Sqrt(v))));
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::pow(lanes[i], -beta);
  return hn::Load(d, lanes);
}

void ForwardT(const LrnParameters& p, const float* x, size_t channels, float* scratch, float* y) {
  float* norm = scratch + channels + 2 * p.radius;
  Norms(p, x, channels, scratch, norm);
  ForEach(channels, [&](auto d, size_t c) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + c), InversePower(d, hn::LoadU(d, norm + c), p.beta)), d, y + c);
  });
}

void BackwardT(const LrnParameters& p, const float* g, const float* x, const float* y, size_t channels, float* scratch,
               float* dx) {
  float* norm = scratch + channels + 2 * p.radius;
  Norms(p, x, channels, scratch, norm);
  ForEach(channels, [&](auto d, size_t c) {
    const auto gy = hn::Mul(hn::LoadU(d, g + c), hn::LoadU(d, y + c));
    hn::StoreU(hn::Div(gy, hn::LoadU(d, norm + c)), d, scratch + p.radius + c);
  });
  ForEach(channels, [&](auto d, size_t c) {
    const auto own = hn::Mul(hn::LoadU(d, g + c), InversePower(d, hn::LoadU(d, norm + c), p.beta));
    const auto factor = hn::Mul(hn::LoadU(d, x + c), hn::Set(d, -2.0f * p.alpha * p.beta));
    hn::StoreU(hn::MulAdd(factor, Around(d, scratch, c, p.radius), own), d, dx + c);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
HWY_EXPORT(ForwardT);
HWY_EXPORT(BackwardT);
void LrnForward(const LrnParameters& p, const float* x, size_t channels, float* scratch, float* y) {
  HWY_DYNAMIC_DISPATCH(ForwardT)(p, x, channels, scratch, y);
}
void LrnBackward(const LrnParameters& p, const float* g, const float* x, const float* y, size_t channels,
                 float* scratch, float* dx) {
  HWY_DYNAMIC_DISPATCH(BackwardT)(p, g, x, y, channels, scratch, dx);
}
}  // namespace millrace
#endif
