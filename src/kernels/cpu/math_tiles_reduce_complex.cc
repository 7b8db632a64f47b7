// SPDX-License-Identifier: Apache-2.0
// Reducers of complex numbers.
#include <cmath>
#include <complex>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/math_tiles_reduce_complex.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/math_reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <typename Element>
struct Sum {
  using T = Element;
  using A = complex128;
  using B = complex128;
  static A Identity() { return 0; }
  static A Of(T v) { return A(v); }
  static A Combine(A a, A b) { return a + b; }
  static T Finish(A a, int64_t) { return T(a); }
};
template <typename Element>
struct Mean : Sum<Element> {
  static Element Finish(complex128 a, int64_t count) { return Element(a / static_cast<double>(count)); }
};
template <typename Element>
struct Prod : Sum<Element> {
  static complex128 Identity() { return 1; }
  static complex128 Combine(complex128 a, complex128 b) { return a * b; }
};
template <typename Element>
struct Norm : Sum<Element> {
  using A = double;
  using B = double;
  static A Identity() { return 0; }
  static A Of(Element v) { return std::norm(complex128(v)); }
  static A Combine(A a, A b) { return a + b; }
  static Element Finish(A a, int64_t) { return Element(static_cast<typename Element::value_type>(std::sqrt(a))); }
};

template <typename T>
const Reducer* FindOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return TheReducer<Sum<T>>();
    case ReduceKind::kMean:
      return TheReducer<Mean<T>>();
    case ReduceKind::kProd:
      return TheReducer<Prod<T>>();
    case ReduceKind::kNorm:
      return TheReducer<Norm<T>>();
    default:
      return nullptr;
  }
}

const Reducer* FindComplex(ReduceKind kind, DType dtype) {
  if (dtype == DType::kComplex64) return FindOf<complex64>(kind);
  if (dtype == DType::kComplex128) return FindOf<complex128>(kind);
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(FindComplex);
const Reducer* FindComplexReducer(ReduceKind kind, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindComplex)(kind, dtype);
}

}  // namespace millrace
#endif
