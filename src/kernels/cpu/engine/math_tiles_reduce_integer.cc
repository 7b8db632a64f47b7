// SPDX-License-Identifier: Apache-2.0
// Reducers of integers: sums and products wrap, means do not.
#include <concepts>
#include <limits>
#include <type_traits>

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

// Their sum is exact. Lanes gather in Lane for a stretch.
template <typename Element, typename Lane>
struct ExactMean {
  using T = Element;
  using A = int64_t;
  using B = Lane;
  static int64_t Identity() { return 0; }
  static B Of(T v) { return v; }
  template <typename V>
  static V Combine(V a, V b) {
    return a + b;
  }
  static T Finish(int64_t a, int64_t count) { return count > 0 ? static_cast<T>(a / count) : T(0); }
};
// Of 16 bits too, where int could not hold what Prod makes of two.
template <typename Element>
struct NarrowProd : Prod<Element> {
  using A = typename Prod<Element>::A;
  static A Combine(A a, A b) { return static_cast<A>(uint32_t{a} * uint32_t{b}); }
};

struct Any : Max<uint8_t> {
  static uint8_t Finish(uint8_t a, int64_t) { return a != 0; }
};
struct All : Min<uint8_t> {
  static uint8_t Finish(uint8_t a, int64_t) { return a != 0; }
};

// Runs of booleans are searched, no further than to the block that decides.
template <class P>
class Search final : public ReducerOf<P> {
  void Inner(const void* in, int64_t rows, int64_t n, void* acc) const override {
    constexpr int64_t kBlock = 4096;
    if (n <= kBlock) return ReducerOf<P>::Inner(in, rows, n, acc);
    const auto* row = static_cast<const uint8_t*>(in);
    auto* a = static_cast<uint8_t*>(acc);
    for (int64_t r = 0; r < rows; ++r, row += n) {
      for (int64_t i = 0; i < n && (a[r] != 0) == (P::Identity() != 0); i += kBlock) {
        ReducerOf<P>::Inner(row + i, 1, n - i < kBlock ? n - i : kBlock, a + r);
      }
    }
  }
};
template <class P>
const Reducer* TheSearch() {
  static const Search<P> search;
  return &search;
}

template <typename T>
const Reducer* FindNarrow(ReduceKind kind) {
  if (kind == ReduceKind::kSum) return TheReducer<Sum<T>>();
  if (kind == ReduceKind::kProd) return TheReducer<NarrowProd<T>>();
  return kind == ReduceKind::kMean ? TheReducer<ExactMean<T, int32_t>>() : FindExtreme<T>(kind);
}

const Reducer* FindInteger(ReduceKind kind, DType dtype) {
  if (kind == ReduceKind::kAny) return TheSearch<Any>();
  if (kind == ReduceKind::kAll) return TheSearch<All>();
  if (dtype == DType::kInt64) return FindOf<int64_t>(kind);
  if (dtype == DType::kUInt64) return FindOf<uint64_t>(kind);
  if (dtype == DType::kInt32) {
    if (kind == ReduceKind::kSum) return TheReducer<Sum<int32_t>>();
    if (kind == ReduceKind::kProd) return TheReducer<Prod<int32_t>>();
    return kind == ReduceKind::kMean ? TheReducer<ExactMean<int32_t, int64_t>>() : FindExtreme<int32_t>(kind);
  }
  if (dtype == DType::kInt8) return FindNarrow<int8_t>(kind);
  if (dtype == DType::kUInt8) return FindNarrow<uint8_t>(kind);
  if (dtype == DType::kInt16) return FindNarrow<int16_t>(kind);
  if (dtype == DType::kUInt16) return FindNarrow<uint16_t>(kind);
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
