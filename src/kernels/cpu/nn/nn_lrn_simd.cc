// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_lrn_simd.h"

#include <cmath>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_lrn_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of the 2 * radius + 1 values around c; `padded` holds value c at c + radius.
template <class How>
HWY_INLINE typename How::V Around(const How& how, const float* padded, int64_t c, size_t radius) {
  auto sum = how.Load(padded + c);
  for (size_t k = 1; k <= 2 * radius; ++k) sum = hn::Add(sum, how.Load(padded + c + k));
  return sum;
}

void Clear(float* p, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i] = 0;
}

// n[c] into `norm`; `padded` is scratch of channels + 2 * radius.
void Norms(const LrnParameters& p, const float* x, size_t channels, float* padded, float* norm) {
  Clear(padded, p.radius);
  Clear(padded + p.radius + channels, p.radius);
  const auto n = static_cast<int64_t>(channels);
  ForVectors<float>(n, [&](auto how, int64_t c) HWY_ATTR {
    const auto v = how.Load(x + c);
    how.Store(hn::Mul(v, v), padded + p.radius + c);
  });
  ForVectors<float>(n, [&](auto how, int64_t c) HWY_ATTR {
    const auto alpha = hn::Set(how.d, p.alpha), bias = hn::Set(how.d, p.bias);
    how.Store(hn::MulAdd(Around(how, padded, c, p.radius), alpha, bias), norm + c);
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
  ForVectors<float>(static_cast<int64_t>(channels), [&](auto how, int64_t c) HWY_ATTR {
    how.Store(hn::Mul(how.Load(x + c), InversePower(how.d, how.Load(norm + c), p.beta)), y + c);
  });
}

void BackwardT(const LrnParameters& p, const float* g, const float* x, const float* y, size_t channels, float* scratch,
               float* dx) {
  float* norm = scratch + channels + 2 * p.radius;
  Norms(p, x, channels, scratch, norm);
  const auto n = static_cast<int64_t>(channels);
  ForVectors<float>(n, [&](auto how, int64_t c) HWY_ATTR {
    const auto gy = hn::Mul(how.Load(g + c), how.Load(y + c));
    how.Store(hn::Div(gy, how.Load(norm + c)), scratch + p.radius + c);
  });
  ForVectors<float>(n, [&](auto how, int64_t c) HWY_ATTR {
    const auto own = hn::Mul(how.Load(g + c), InversePower(how.d, how.Load(norm + c), p.beta));
    const auto factor = hn::Mul(how.Load(x + c), hn::Set(how.d, -2.0f * p.alpha * p.beta));
    how.Store(hn::MulAdd(factor, Around(how, scratch, c, p.radius), own), dx + c);
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
