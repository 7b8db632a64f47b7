// SPDX-License-Identifier: Apache-2.0
// Half and bfloat16 in vectors: a vector of them as floats, and floats rounded to them (to nearest, ties to even; a NaN
// stays one and is quiet). Included once per instruction set.
// clang-format off
#if defined(MILLRACE_NARROW_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_NARROW_FLOATS_INL_H_
#undef MILLRACE_NARROW_FLOATS_INL_H_
#else
#define MILLRACE_NARROW_FLOATS_INL_H_
#endif
// clang-format on

#include "hwy/highway.h"
#include "tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

using WideTag = hwy::HWY_NAMESPACE::ScalableTag<float>;

// Whether vectors of T convert; else Load and Store below are not to be used.
template <typename T>
constexpr bool kConvertsInVectors = std::is_same_v<T, BFloat16>;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // processors with F16C
template <>
inline constexpr bool kConvertsInVectors<Half> = true;
#endif

inline float WidenOne(Half v) { return HalfBitsToFloat(v.bits); }
inline float WidenOne(BFloat16 v) { return static_cast<float>(v); }

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> LoadWide(D d, const BFloat16* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<uint32_t, D> du;
  const hn::Rebind<uint16_t, D> dh;
  const auto bits = hn::LoadU(dh, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}
template <class D>
HWY_INLINE void StoreNarrow(hwy::HWY_NAMESPACE::Vec<D> v, D d, BFloat16* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<uint32_t, D> du;
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<uint16_t, D> dh;
  static_cast<void>(d);
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000u));
  const auto result = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, hn::ShiftRight<16>(result))), dh, reinterpret_cast<uint16_t*>(to));
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> LoadWide(D d, const Half* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
}
template <class D>
HWY_INLINE void StoreNarrow(hwy::HWY_NAMESPACE::Vec<D> v, D, Half* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<hwy::float16_t, D> dh;
  hn::StoreU(hn::DemoteTo(dh, v), dh, reinterpret_cast<hwy::float16_t*>(to));
}
#endif

template <typename T>
void WidenRun(const void* from_raw, void* to_raw, int64_t n) {
  const T* from = static_cast<const T*>(from_raw);
  float* to = static_cast<float*>(to_raw);
  int64_t i = 0;
  if constexpr (kConvertsInVectors<T>) {
    const WideTag d;
    const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
    for (; i + lanes <= n; i += lanes) hwy::HWY_NAMESPACE::StoreU(LoadWide(d, from + i), d, to + i);
  }
  for (; i < n; ++i) to[i] = WidenOne(from[i]);
}
template <typename T>
void NarrowRun(const void* from_raw, void* to_raw, int64_t n) {
  const float* from = static_cast<const float*>(from_raw);
  T* to = static_cast<T*>(to_raw);
  int64_t i = 0;
  if constexpr (kConvertsInVectors<T>) {
    const WideTag d;
    const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
    for (; i + lanes <= n; i += lanes) StoreNarrow(hwy::HWY_NAMESPACE::LoadU(d, from + i), d, to + i);
  }
  for (; i < n; ++i) to[i] = T(from[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif  // once per instruction set
