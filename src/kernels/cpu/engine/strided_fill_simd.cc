// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/strided_fill_simd.h"

#include <cstring>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/strided_fill_simd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void Fill(char* dst, const char* pattern, int64_t n) {
  char twice[32];  // from k on it has the pattern that belongs k bytes behind dst
  std::memcpy(twice, pattern, 16);
  std::memcpy(twice + 16, pattern, 16);
  int64_t at = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint8_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n >= 5 * lanes) {  // stores that lie in two cache lines take twice the time
    const auto to = reinterpret_cast<uint8_t*>(dst);
    hn::StoreU(hn::LoadDup128(d, reinterpret_cast<const uint8_t*>(twice)), d, to);
    at = lanes - static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % static_cast<uintptr_t>(lanes));
    const auto v = hn::LoadDup128(d, reinterpret_cast<const uint8_t*>(twice) + at % 16);
    for (; at + 4 * lanes <= n; at += 4 * lanes) {
      for (int64_t k = 0; k < 4; ++k) hn::StoreU(v, d, to + at + k * lanes);
    }
  }
#endif
  for (; at + 16 <= n; at += 16) std::memcpy(dst + at, twice + at % 16, 16);
  std::memcpy(dst + n - 16, twice + n % 16, 16);
}

void Ramp(float start, float step, int32_t first, float* to, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto v0 = hn::Set(d, start), v1 = hn::Set(d, step);
  auto at = hn::Add(hn::Iota(di, 0), hn::Set(di, first));
  const auto next = hn::Set(di, static_cast<int32_t>(lanes));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(v0, hn::Mul(v1, hn::ConvertTo(d, at))), d, to + i);
    at = hn::Add(at, next);
  }
  for (; i < n; ++i) to[i] = start + step * static_cast<float>(first + static_cast<int32_t>(i));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(Fill);
void FillPattern(char* dst, const char* pattern, int64_t n) { HWY_DYNAMIC_DISPATCH(Fill)(dst, pattern, n); }

HWY_EXPORT(Ramp);
void FillRamp(float start, float step, int32_t first, float* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Ramp)(start, step, first, to, n);
}

}  // namespace millrace
#endif
