// SPDX-License-Identifier: Apache-2.0
// In scratch, places lie one after another with `radius` zeros before each and behind the last, so that vectors run
// over many places of few channels, and windows that reach beyond a place's channels see zeros.
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

size_t Stride(const LrnParameters& p) { return p.channels + p.radius; }
struct Scratch {
  Scratch(const LrnParameters& p, size_t places, float* scratch)
      : padded(scratch), norm(padded + p.radius + places * Stride(p)), power(norm + places * Stride(p)) {}
  float* padded;  // channel c of place i at radius + i * stride + c
  float* norm;    // at i * stride + c, as the next
  float* power;
};

// fn(how, offset in tensors, offset in norm) for all channels of all places.
template <class Fn>
HWY_INLINE void ForPlaces(const LrnParameters& p, size_t places, Fn fn) {
  for (size_t i = 0; i < places; ++i) {
    const auto at = static_cast<int64_t>(i * p.channels), in_scratch = static_cast<int64_t>(i * Stride(p));
    ForVectors<float>(
        static_cast<int64_t>(p.channels), [&](auto how, int64_t c) HWY_ATTR { fn(how, at + c, in_scratch + c); });
  }
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

// n[c] and n[c]^-beta; what they have between places means nothing.
HWY_INLINE void Norms(const LrnParameters& p, const float* x, size_t places, const Scratch& s) {
  Clear(s.padded, p.radius);
  for (size_t i = 1; i <= places; ++i) Clear(s.padded + i * Stride(p), p.radius);
  ForPlaces(p, places, [&](auto how, int64_t at, int64_t to) HWY_ATTR {
    const auto v = how.Load(x + at);
    how.Store(hn::Mul(v, v), s.padded + p.radius + to);
  });
  ForVectors<float>(static_cast<int64_t>(places * Stride(p) - p.radius), [&](auto how, int64_t i) HWY_ATTR {
    const auto alpha = hn::Set(how.d, p.alpha), bias = hn::Set(how.d, p.bias);
    const auto norm = hn::MulAdd(Around(how, s.padded, i, p.radius), alpha, bias);
    how.Store(norm, s.norm + i);
    how.Store(InversePower(how.d, norm, p.beta), s.power + i);
  });
}

void ForwardT(const LrnParameters& p, const float* x, size_t places, float* scratch, float* y) {
  const Scratch s(p, places, scratch);
  Norms(p, x, places, s);
  ForPlaces(p, places, [&](auto how, int64_t at, int64_t from) HWY_ATTR {
    how.Store(hn::Mul(how.Load(x + at), how.Load(s.power + from)), y + at);
  });
}

void BackwardT(const LrnParameters& p, const float* g, const float* x, const float* y, size_t places, float* scratch,
               float* dx) {
  const Scratch s(p, places, scratch);
  Norms(p, x, places, s);
  ForPlaces(p, places, [&](auto how, int64_t at, int64_t to) HWY_ATTR {
    const auto gy = hn::Mul(how.Load(g + at), how.Load(y + at));
    how.Store(hn::Div(gy, how.Load(s.norm + to)), s.padded + p.radius + to);
  });
  ForPlaces(p, places, [&](auto how, int64_t at, int64_t from) HWY_ATTR {
    const auto own = hn::Mul(how.Load(g + at), how.Load(s.power + from));
    const auto factor = hn::Mul(how.Load(x + at), hn::Set(how.d, -2.0f * p.alpha * p.beta));
    how.Store(hn::MulAdd(factor, Around(how, s.padded, from, p.radius), own), dx + at);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
HWY_EXPORT(ForwardT);
HWY_EXPORT(BackwardT);
size_t LrnScratch(const LrnParameters& p, size_t places) { return p.radius + 3 * places * (p.channels + p.radius); }
void LrnForward(const LrnParameters& p, const float* x, size_t places, float* scratch, float* y) {
  HWY_DYNAMIC_DISPATCH(ForwardT)(p, x, places, scratch, y);
}
void LrnBackward(const LrnParameters& p, const float* g, const float* x, const float* y, size_t places, float* scratch,
                 float* dx) {
  HWY_DYNAMIC_DISPATCH(BackwardT)(p, g, x, y, places, scratch, dx);
}
}  // namespace millrace
#endif
