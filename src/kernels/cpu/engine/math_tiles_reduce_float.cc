// SPDX-License-Identifier: Apache-2.0
// Reducers of float, double and bfloat16. Float sums run in float over short stretches and in double beyond.
#include <cmath>
#include <limits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/math_tiles_reduce_float.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/engine/math_reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
struct RealNumbers {
  using A = double;
  using B = T;
  using Squares = double;
  static double Mean(double a, int64_t count) { return a / static_cast<double>(count); }
  static T Square(T v) { return v * v; }
  static T Root(double a) { return static_cast<T>(std::sqrt(a)); }
  static constexpr bool kOrdered = true;
  static T Lowest() { return -std::numeric_limits<T>::infinity(); }
  static T Highest() { return std::numeric_limits<T>::infinity(); }
};
template <>
struct Numbers<float> : RealNumbers<float> {};
template <>
struct Numbers<double> : RealNumbers<double> {};

// Extremes and halves go the way of other narrow types.
template <>
struct Numbers<BFloat16> : RealNumbers<float> {
  static float Square(BFloat16 v) { return static_cast<float>(v) * static_cast<float>(v); }
  static BFloat16 Root(double a) { return BFloat16(static_cast<float>(std::sqrt(a))); }
  static constexpr bool kOrdered = false;
};

const Reducer* Find(ReduceKind kind, DType dtype) {
  if (dtype == DType::kFloat) return FindOf<float>(kind);
  if (dtype == DType::kDouble) return FindOf<double>(kind);
  if (dtype == DType::kBFloat16) return FindOf<BFloat16>(kind);
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(Find);
const Reducer* FindFloatReducer(ReduceKind kind, DType dtype) { return HWY_DYNAMIC_DISPATCH(Find)(kind, dtype); }

}  // namespace millrace
#endif
