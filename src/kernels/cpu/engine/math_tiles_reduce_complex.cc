// SPDX-License-Identifier: Apache-2.0
// Reducers of complex numbers.
#include <cmath>
#include <complex>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/math_tiles_reduce_complex.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/engine/math_reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
struct ComplexNumbers {
  using A = complex128;
  using B = complex128;
  using Squares = double;
  static A Mean(A a, int64_t count) { return a / static_cast<double>(count); }
  static double Square(T v) { return std::norm(complex128(v)); }
  static T Root(double a) { return T(static_cast<typename T::value_type>(std::sqrt(a))); }
  static constexpr bool kOrdered = false;
};
template <>
struct Numbers<complex64> : ComplexNumbers<complex64> {};
template <>
struct Numbers<complex128> : ComplexNumbers<complex128> {};

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
