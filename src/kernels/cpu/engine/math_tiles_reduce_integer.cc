// SPDX-License-Identifier: Apache-2.0
// Reducers of integers: sums and products wrap, means do not.
#include <concepts>
#include <limits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/math_tiles_reduce_integer.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/engine/math_reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <std::integral T>
struct Numbers<T> {
  using A = std::make_unsigned_t<T>;
  using B = A;
  using Squares = A;
  static T Mean(A a, int64_t count) {
    return count > 0 ? static_cast<T>(static_cast<T>(a) / static_cast<T>(count)) : T(0);
  }
  static A Square(T v) { return static_cast<A>(static_cast<A>(v) * static_cast<A>(v)); }
  static T Root(A a) { return static_cast<T>(a); }  // as TensorFlow: of integers the sum of squares
  static constexpr bool kOrdered = true;
  static T Lowest() { return std::numeric_limits<T>::min(); }
  static T Highest() { return std::numeric_limits<T>::max(); }
};

struct Any : Max<uint8_t> {
  static uint8_t Finish(uint8_t a, int64_t) { return a != 0; }
};
struct All : Min<uint8_t> {
  static uint8_t Finish(uint8_t a, int64_t) { return a != 0; }
};

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
