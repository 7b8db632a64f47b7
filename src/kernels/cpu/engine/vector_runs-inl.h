// SPDX-License-Identifier: Apache-2.0
// Vectors over runs of numbers whose last one is a part. Included once per instruction set.
// clang-format off
#if defined(MILLRACE_VECTOR_RUNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_VECTOR_RUNS_INL_H_
#undef MILLRACE_VECTOR_RUNS_INL_H_
#else
#define MILLRACE_VECTOR_RUNS_INL_H_
#endif
// clang-format on

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// How a vector is loaded and stored: all of it,
template <class D>
struct Whole {
  using V = hwy::HWY_NAMESPACE::Vec<D>;
  using T = hwy::HWY_NAMESPACE::TFromD<D>;
  HWY_INLINE V Load(const T* p) const { return hwy::HWY_NAMESPACE::LoadU(d, p); }
  HWY_INLINE void Store(V v, T* p) const { hwy::HWY_NAMESPACE::StoreU(v, d, p); }
  D d;
};

// or its first lanes; the others are 0 and not touched in memory.
#define MILLRACE_HAS_PARTS (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)
#if MILLRACE_HAS_PARTS
template <class D>
struct Part {
  using V = hwy::HWY_NAMESPACE::Vec<D>;
  using T = hwy::HWY_NAMESPACE::TFromD<D>;
  HWY_INLINE Part(D tag, int64_t lanes) : d(tag), mask(hwy::HWY_NAMESPACE::FirstN(tag, static_cast<size_t>(lanes))) {}
  HWY_INLINE V Load(const T* p) const { return hwy::HWY_NAMESPACE::MaskedLoad(mask, d, p); }
  HWY_INLINE void Store(V v, T* p) const { hwy::HWY_NAMESPACE::BlendedStore(v, mask, d, p); }
  D d;
  hwy::HWY_NAMESPACE::Mask<D> mask;
};
#endif

// Calls fn(how, i) for the numbers 0 to n, a vector at a time. Where the processor cannot load parts, what is left goes
// one by one, in vectors of one lane.
template <typename T, class Fn>
HWY_INLINE void ForVectors(int64_t n, Fn fn) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) fn(Whole<decltype(d)>{d}, i);
#if MILLRACE_HAS_PARTS
  if (i < n) fn(Part(d, n - i), i);
#else
  const hwy::HWY_NAMESPACE::CappedTag<T, 1> one;
  for (; i < n; ++i) fn(Whole<decltype(one)>{one}, i);
#endif
}

#if MILLRACE_HAS_PARTS
// Functions of runs, for tables of tiles: Op::Do takes and gives vectors.
template <typename T, class Op>
void UnaryRun(const void* in_raw, void* out_raw, int64_t n) {
  const T* in = static_cast<const T*>(in_raw);
  T* out = static_cast<T*>(out_raw);
  ForVectors<T>(n, [&](auto how, int64_t i) HWY_ATTR { how.Store(Op::Do(how.Load(in + i)), out + i); });
}

// Steps are 1, or 0 for an operand that is one element.
template <typename T, class Op, int AStep, int BStep>
void BinaryRun(const void* a_raw, const void* b_raw, void* out_raw, int64_t n) {
  const T* a = static_cast<const T*>(a_raw);
  const T* b = static_cast<const T*>(b_raw);
  T* out = static_cast<T*>(out_raw);
  if (n == 0) return;
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  const auto one_a = hwy::HWY_NAMESPACE::Set(d, a[0]), one_b = hwy::HWY_NAMESPACE::Set(d, b[0]);
  ForVectors<T>(n, [&](auto how, int64_t i) HWY_ATTR {
    how.Store(Op::Do(AStep ? how.Load(a + i) : one_a, BStep ? how.Load(b + i) : one_b), out + i);
  });
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif  // once per instruction set
