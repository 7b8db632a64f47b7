// SPDX-License-Identifier: Apache-2.0
// Reducers of float and double. Float sums run in float over short stretches and in double beyond.
#include <cmath>
#include <limits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/math_tiles_reduce_float.cc"
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
  using A = double;
  using B = Element;
  static A Identity() { return 0; }
  static T Of(T v) { return v; }
  template <typename V>
  static V Combine(V a, V b) {
    return a + b;
  }
  static T Finish(A a, int64_t) { return static_cast<T>(a); }
};
template <typename Element>
struct Mean : Sum<Element> {
  static Element Finish(double a, int64_t count) { return static_cast<Element>(a / static_cast<double>(count)); }
};
template <typename Element>
struct Norm : Sum<Element> {
  static Element Of(Element v) { return v * v; }
  static Element Finish(double a, int64_t) { return static_cast<Element>(std::sqrt(a)); }
};
template <typename Element>
struct Prod : Sum<Element> {
  using B = double;
  static double Identity() { return 1; }
  static double Of(Element v) { return static_cast<double>(v); }
  static double Combine(double a, double b) { return a * b; }
};
// NaN in either operand gives NaN.
template <typename Element>
struct Max {
  using T = Element;
  using A = Element;
  using B = Element;
  static A Identity() { return -std::numeric_limits<T>::infinity(); }
  static T Of(T v) { return v; }
  static T Combine(T a, T b) { return a > b || a != a ? a : b; }
  static T Finish(A a, int64_t) { return a; }
};
template <typename Element>
struct Min : Max<Element> {
  static Element Identity() { return std::numeric_limits<Element>::infinity(); }
  static Element Combine(Element a, Element b) { return a < b || a != a ? a : b; }
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
    case ReduceKind::kMax:
      return TheReducer<Max<T>>();
    case ReduceKind::kMin:
      return TheReducer<Min<T>>();
    case ReduceKind::kNorm:
      return TheReducer<Norm<T>>();
    default:
      return nullptr;
  }
}

const Reducer* Find(ReduceKind kind, DType dtype) {
  if (dtype == DType::kFloat) return FindOf<float>(kind);
  if (dtype == DType::kDouble) return FindOf<double>(kind);
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
