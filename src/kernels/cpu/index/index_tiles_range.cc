// SPDX-License-Identifier: Apache-2.0
// Nothing may be fused: results are the same everywhere.
#include "kernels/cpu/index/index_tiles_range.h"

#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/index/index_tiles_range.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <typename U>
void IntegerSteps(U first, U step, U* to, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<U> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN U some[HWY_MAX_BYTES / sizeof(U)];
  U next = first;
  for (int64_t k = 0; k < lanes; ++k, next += step) some[k] = next;
  auto v = hn::Load(d, some);
  const auto stride = hn::Set(d, static_cast<U>(lanes) * step);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(v, d, to + i);
    v = hn::Add(v, stride);
  }
  hn::Store(v, d, some);
  std::copy_n(some, n - i, to + i);
}

template <typename T>
void RealSteps(double start, double step, int64_t first, T* HWY_RESTRICT to, int64_t n) {
  constexpr int64_t kBlock = int64_t{1} << 30;  // counted in 32 bits: there are vector conversions from them
  for (int64_t i = 0; i < n; i += kBlock) {
    const double base = static_cast<double>(first + i);
    const auto count = static_cast<int32_t>(std::min(kBlock, n - i));
    T* const block = to + i;
    for (int32_t k = 0; k < count; ++k) block[k] = static_cast<T>(start + (base + static_cast<double>(k)) * step);
  }
}

void StepsOfUint32(uint32_t first, uint32_t step, uint32_t* to, int64_t n) { IntegerSteps(first, step, to, n); }
void StepsOfUint64(uint64_t first, uint64_t step, uint64_t* to, int64_t n) { IntegerSteps(first, step, to, n); }
void StepsOfFloat(double start, double step, int64_t first, float* to, int64_t n) {
  RealSteps(start, step, first, to, n);
}
void StepsOfDouble(double start, double step, int64_t first, double* to, int64_t n) {
  RealSteps(start, step, first, to, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(StepsOfUint32);
HWY_EXPORT(StepsOfUint64);
HWY_EXPORT(StepsOfFloat);
HWY_EXPORT(StepsOfDouble);

void FillSteps(uint32_t first, uint32_t step, uint32_t* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(StepsOfUint32)(first, step, to, n);
}
void FillSteps(uint64_t first, uint64_t step, uint64_t* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(StepsOfUint64)(first, step, to, n);
}
void FillSteps(double start, double step, int64_t first, float* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(StepsOfFloat)(start, step, first, to, n);
}
void FillSteps(double start, double step, int64_t first, double* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(StepsOfDouble)(start, step, first, to, n);
}

}  // namespace millrace
#endif
