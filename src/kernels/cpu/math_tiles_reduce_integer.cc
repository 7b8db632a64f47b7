// SPDX-License-Identifier: Apache-2.0
// Reducers of integers: sums and products wrap, means do not.
#include <cmath>
#include <limits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/math_tiles_reduce_integer.cc"
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
  using A = std::make_unsigned_t<Element>;
  using B = A;
  static A Identity() { return 0; }
  static A Of(T v) { return static_cast<A>(v); }
  static A Combine(A a, A b) { return static_cast<A>(a + b); }
  static T Finish(A a, int64_t) { return static_cast<T>(a); }
};
template <typename Element>
struct Mean : Sum<Element> {
  static Element Finish(std::make_unsigned_t<Element> a, int64_t count) {
    return count > 0 ? static_cast<Element>(static_cast<Element>(a) / static_cast<Element>(count)) : Element(0);
  }
};
template <typename Element>
struct SumOfSquares : Sum<Element> {
  using A = std::make_unsigned_t<Element>;
  static A Of(Element v) { return static_cast<A>(v) * static_cast<A>(v); }
};
template <typename Element>
struct Prod : Sum<Element> {
  using A = std::make_unsigned_t<Element>;
  static A Identity() { return 1; }
  static A Combine(A a, A b) { return a * b; }
};
template <typename Element>
struct Max {
  using T = Element;
  using A = Element;
  using B = Element;
  static A Identity() { return std::numeric_limits<T>::min(); }
  static T Of(T v) { return v; }
  static T Combine(T a, T b) { return a > b ? a : b; }
  static T Finish(A a, int64_t) { return a; }
};
template <typename Element>
struct Min : Max<Element> {
  static Element Identity() { return std::numeric_limits<Element>::max(); }
  static Element Combine(Element a, Element b) { return a < b ? a : b; }
};
struct Any : Max<uint8_t> {
  static uint8_t Finish(uint8_t a, int64_t) { return a != 0; }
};
struct All : Min<uint8_t> {
  static uint8_t Finish(uint8_t a, int64_t) { return a != 0; }
};

template <typename T>
const Reducer* FindExtreme(ReduceKind kind) {
  if (kind == ReduceKind::kMax) return TheReducer<Max<T>>();
  return kind == ReduceKind::kMin ? TheReducer<Min<T>>() : nullptr;
}

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
      return TheReducer<SumOfSquares<T>>();
    default:
      return FindExtreme<T>(kind);
  }
}

const Reducer* FindInteger(ReduceKind kind, DType dtype) {
  if (kind == ReduceKind::kAny) return TheReducer<Any>();
  if (kind == ReduceKind::kAll) return TheReducer<All>();
  if (dtype == DType::kInt64) return FindOf<int64_t>(kind);
  if (dtype == DType::kUInt64) return FindOf<uint64_t>(kind);
  if (dtype == DType::kInt32) return kind == ReduceKind::kSum ? TheReducer<Sum<int32_t>>() : FindExtreme<int32_t>(kind);
  if (dtype == DType::kInt8) return FindExtreme<int8_t>(kind);
  if (dtype == DType::kUInt8) return FindExtreme<uint8_t>(kind);
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(FindInteger);
const Reducer* FindIntegerReducer(ReduceKind kind, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindInteger)(kind, dtype);
}

}  // namespace millrace
#endif
