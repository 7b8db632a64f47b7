// SPDX-License-Identifier: Apache-2.0
// The loops of reducers over a policy P:
//   T elements, A accumulators; A Identity(); A Of(T); A Combine(A, A); T Finish(A, int64_t count).
// Included once per instruction set. Loops are plain, for the compiler to make vector code of, but those over short
// runs.
// clang-format off
#if defined(MILLRACE_MATH_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_MATH_REDUCE_INL_H_
#undef MILLRACE_MATH_REDUCE_INL_H_
#else
#define MILLRACE_MATH_REDUCE_INL_H_
#endif
// clang-format on

#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/cpu/engine/math_reducer.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// Combines kN (a power of two) values as a tree.
template <class P, int kN, typename B>
HWY_INLINE B CombineTree(const B* v) {
  if constexpr (kN == 1) {
    return v[0];
  } else {
    B half[kN / 2];
    for (int i = 0; i < kN / 2; ++i) half[i] = P::Combine(v[i], v[i + kN / 2]);
    return CombineTree<P, kN / 2>(half);
  }
}

// All elements of one run. `B` is the type that lanes accumulate in for a stretch.
template <class P, typename B, int kBytes>
inline B ReduceRun(const typename P::T* in, int64_t n) {
  constexpr int kLanes = static_cast<int>(kBytes / sizeof(B)), kFew = kLanes < 16 ? kLanes : 16;
  B lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = B(P::Identity());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = P::Combine(lanes[l], B(P::Of(in[i + l])));
  }
  for (; i + kFew <= n; i += kFew) {
    for (int l = 0; l < kFew; ++l) lanes[l] = P::Combine(lanes[l], B(P::Of(in[i + l])));
  }
  if (i < n) {  // in an array of their own, so that the lanes can stay in registers
    B rest[kFew];
    for (int l = 0; l < kFew; ++l) rest[l] = B(P::Identity());
    for (int l = 0; i < n; ++i, ++l) rest[l] = B(P::Of(in[i]));
    for (int l = 0; l < kFew; ++l) lanes[l] = P::Combine(lanes[l], rest[l]);
  }
  return CombineTree<P, kLanes>(lanes);
}

// The largest or smallest of a run of at least 16, with explicit vectors: of a few lanes the compiler makes scalars.
template <class P>
inline typename P::T ExtremeOfRun(const typename P::T* in, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<typename P::T, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto best = hn::LoadU(d, in), nan = best;
  const auto take = [&](const typename P::T* p) HWY_ATTR {
    const auto v = hn::LoadU(d, p);
    best = P::kIsLargest ? hn::Max(best, v) : hn::Min(best, v);
    nan = hn::IfThenElse(hn::IsNaN(v), v, nan);
  };
  for (int64_t i = lanes; i + lanes <= n; i += lanes) take(in + i);
  take(in + n - lanes);  // some of them once more
  if (!hn::AllFalse(d, hn::IsNaN(nan))) return std::numeric_limits<typename P::T>::quiet_NaN();
  return hn::GetLane(P::kIsLargest ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best));
}

// Whether a sum has as many lanes by SumOfRun as by ReduceRun: with fewer it would lose more digits.
template <class P>
constexpr bool kSumsByVectors =
    HWY_LANES(uint8_t) == 64 && std::is_floating_point_v<typename P::T> && requires { requires P::kIsSum; };

// The sum of a run of at least 16, with explicit vectors.
template <class P>
inline typename P::T SumOfRun(const typename P::T* in, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<typename P::T, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, in + i));
    b = hn::Add(b, hn::LoadU(d, in + i + lanes));
    c = hn::Add(c, hn::LoadU(d, in + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, in + i + 3 * lanes));
  }
  if (i + 2 * lanes <= n) {
    a = hn::Add(a, hn::LoadU(d, in + i));
    b = hn::Add(b, hn::LoadU(d, in + i + lanes));
    i += 2 * lanes;
  }
  if (i + lanes <= n) {
    c = hn::Add(c, hn::LoadU(d, in + i));
    i += lanes;
  }
  if (i < n) {  // of the last vector, what has not been added
    const auto seen = hn::FirstN(d, static_cast<size_t>(i - (n - lanes)));
    e = hn::Add(e, hn::IfThenZeroElse(seen, hn::LoadU(d, in + n - lanes)));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, c), hn::Add(b, e))));
}

#if HWY_TARGET != HWY_SCALAR

// Sums and extremes of bytes and of 16 bits take all lanes of a vector: of 16 lanes, combining would be most of the
// work.
template <class P>
constexpr bool kByNarrowVectors =
    std::is_integral_v<typename P::T> && sizeof(typename P::T) <= 2 &&
    (requires { requires P::kIsSum; } || requires { P::kIsLargest; });

template <class P, class D>
HWY_INLINE typename P::T ExtremeOfLanes(D d, hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (hn::MaxLanes(D()) * sizeof(typename P::T) > 16) {
    const hn::Half<D> half;
    const auto a = hn::LowerHalf(half, v), b = hn::UpperHalf(half, v);
    return ExtremeOfLanes<P>(half, P::kIsLargest ? hn::Max(a, b) : hn::Min(a, b));
  } else {
    return hn::GetLane(P::kIsLargest ? hn::MaxOfLanes(d, v) : hn::MinOfLanes(d, v));
  }
}
// Of a run of at least a vector.
template <class P>
inline typename P::T NarrowExtremeOfRun(const typename P::T* in, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<typename P::T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::LoadU(d, in + n - lanes), b = a;  // some of them once more
  const auto take = [&](auto& v, int64_t i) HWY_ATTR {
    v = P::kIsLargest ? hn::Max(v, hn::LoadU(d, in + i)) : hn::Min(v, hn::LoadU(d, in + i));
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    take(a, i);
    take(b, i + lanes);
  }
  if (i + lanes <= n) take(a, i);
  return ExtremeOfLanes<P>(d, P::kIsLargest ? hn::Max(a, b) : hn::Min(a, b));
}
template <class P>
inline typename P::A NarrowSumOfRun(const typename P::T* in, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<typename P::T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, hn::LoadU(d, in + i));
    b = hn::Add(b, hn::LoadU(d, in + i + lanes));
  }
  if (i + lanes <= n) {
    a = hn::Add(a, hn::LoadU(d, in + i));
    i += lanes;
  }
  if (i < n) {  // of the last vector, what has not been added
    const auto seen = hn::FirstN(d, static_cast<size_t>(i - (n - lanes)));
    b = hn::Add(b, hn::IfThenZeroElse(seen, hn::LoadU(d, in + n - lanes)));
  }
  const auto sum = hn::Add(a, b);
  using A = typename P::A;
  if constexpr (sizeof(A) == 1) {
    const auto eights = hn::SumsOf8(hn::BitCast(hn::Repartition<uint8_t, decltype(d)>(), sum));
    return static_cast<A>(hn::GetLane(hn::SumOfLanes(hn::Repartition<uint64_t, decltype(d)>(), eights)));
  } else {
    return static_cast<A>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
}

#endif

template <class P>
class ReducerOf : public Reducer {
 public:
  using T = typename P::T;
  using A = typename P::A;
  using B = typename P::B;

  int64_t element_bytes() const override { return sizeof(T); }
  int64_t accumulator_bytes() const override { return sizeof(A); }
  void Init(void* acc, int64_t n) const override {
    A* a = static_cast<A*>(acc);
    for (int64_t i = 0; i < n; ++i) a[i] = P::Identity();
  }
  void Inner(const void* in_raw, int64_t rows, int64_t n, void* acc) const override {
    const T* in = static_cast<const T*>(in_raw);
    A* a = static_cast<A*>(acc);
    if (n < 16) {
      for (int64_t r = 0; r < rows; ++r) {
        A v = a[r];
        for (int64_t i = 0; i < n; ++i) v = P::Combine(v, A(P::Of(in[r * n + i])));
        a[r] = v;
      }
      return;
    }
    if constexpr (std::is_floating_point_v<T> && requires { P::kIsLargest; }) {
      if (n <= 2048) {
        for (int64_t r = 0; r < rows; ++r) a[r] = P::Combine(a[r], ExtremeOfRun<P>(in + r * n, n));
        return;
      }
    }
    if constexpr (kSumsByVectors<P>) {
      if (n > 16 && n <= 2048) {
        for (int64_t r = 0; r < rows; ++r) a[r] = P::Combine(a[r], A(SumOfRun<P>(in + r * n, n)));
        return;
      }
    }
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kByNarrowVectors<P>) {
      if (n >= static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<T>()))) {
        for (int64_t r = 0; r < rows; ++r) {
          if constexpr (requires { P::kIsLargest; }) {
            a[r] = P::Combine(a[r], NarrowExtremeOfRun<P>(in + r * n, n));
          } else {
            a[r] = P::Combine(a[r], NarrowSumOfRun<P>(in + r * n, n));
          }
        }
        return;
      }
    }
#endif
    // As many lanes as keep a processor's adders busy; bytes take fewer, as combining the lanes takes its time.
    constexpr int kBytes = sizeof(B) == 1 ? 64 : 256;
    // What lanes gather in a narrower type is short.
    constexpr int64_t kStretch = std::is_same_v<A, B> ? std::numeric_limits<int64_t>::max() : 2048;
    if (n < 128) {
      for (int64_t r = 0; r < rows; ++r) a[r] = P::Combine(a[r], A(ReduceRun<P, B, 32>(in + r * n, n)));
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < n;) {
        const int64_t run = n - i < kStretch ? n - i : kStretch;
        a[r] = P::Combine(a[r], A(ReduceRun<P, B, kBytes>(in + r * n + i, run)));
        i += run;
      }
    }
  }
  void Outer(const void* in_raw, int64_t rows, int64_t stride, int64_t columns, void* acc) const override {
    const T* in = static_cast<const T*>(in_raw);
    A* a = static_cast<A*>(acc);
    int64_t r = 0;
    if constexpr (!std::is_same_v<A, B>) {
      constexpr int64_t kStretch = 256;
      B part[kReduceTile];
      for (; rows - r >= 16; r += rows - r < kStretch ? (rows - r) / 8 * 8 : kStretch) {
        const int64_t n = rows - r < kStretch ? (rows - r) / 8 * 8 : kStretch;
        Eights<true>(in + r * stride, 8, stride, columns, part);
        Eights<false>(in + (r + 8) * stride, n - 8, stride, columns, part);
        for (int64_t j = 0; j < columns; ++j) a[j] = P::Combine(a[j], A(part[j]));
      }
    } else {
      Eights<false>(in, rows / 8 * 8, stride, columns, a);
      r = rows / 8 * 8;
    }
    for (; r < rows; ++r) {
      const T* row = in + r * stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j) a[j] = P::Combine(a[j], A(P::Of(row[j])));
    }
  }
  void Merge(void* acc, const void* other, int64_t n) const override {
    A* a = static_cast<A*>(acc);
    const A* b = static_cast<const A*>(other);
    for (int64_t i = 0; i < n; ++i) a[i] = P::Combine(a[i], b[i]);
  }
  void Finish(const void* acc, int64_t n, int64_t count, void* out_raw) const override {
    const A* a = static_cast<const A*>(acc);
    T* out = static_cast<T*>(out_raw);
    for (int64_t i = 0; i < n; ++i) out[i] = P::Finish(a[i], count);
  }

 private:
  // Eight rows at a time into part, which they replace when kFirst.
  template <bool kFirst>
  static void Eights(const T* in, int64_t rows, int64_t stride, int64_t columns, B* part) {
    for (int64_t r = 0; r < rows; r += 8) {
      const T* p = in + r * stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j) {
        auto at = [&](int64_t k) { return B(P::Of(p[k * stride + j])); };
        const B low = P::Combine(P::Combine(at(0), at(1)), P::Combine(at(2), at(3)));
        const B high = P::Combine(P::Combine(at(4), at(5)), P::Combine(at(6), at(7)));
        const B all = P::Combine(low, high);
        part[j] = kFirst ? all : P::Combine(part[j], all);
      }
    }
  }
};

template <class P>
const Reducer* TheReducer() {
  static const ReducerOf<P> reducer;
  return &reducer;
}

// ---- The policies, over Numbers<T>: what differs between kinds of numbers ----
//   A, B                  accumulators of sums
//   A Mean(A, int64_t)    of that many
//   Squares, A Square(T)  accumulator of squares; T Root(A)
//   kOrdered              has a least and a greatest element: T Lowest(), T Highest()
template <typename T>
struct Numbers;

// An accumulator as an element; those of bfloat16 pass through float.
template <typename T, typename A>
inline T Rounded(A a) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(a));
  } else {
    return T(a);
  }
}

template <typename Element>
struct Sum {
  using T = Element;
  using A = typename Numbers<T>::A;
  using B = typename Numbers<T>::B;
  static constexpr bool kIsSum = true;
  static A Identity() { return A(0); }
  static B Of(T v) { return B(v); }
  template <typename V>
  static V Combine(V a, V b) {
    return V(a + b);
  }
  static T Finish(A a, int64_t) { return Rounded<T>(a); }
};
template <typename Element>
struct Mean : Sum<Element> {
  static Element Finish(typename Sum<Element>::A a, int64_t count) {
    return Rounded<Element>(Numbers<Element>::Mean(a, count));
  }
};
template <typename Element>
struct Prod : Sum<Element> {
  static constexpr bool kIsSum = false;
  using A = typename Numbers<Element>::A;
  using B = A;
  static A Identity() { return A(1); }
  static A Of(Element v) { return A(typename Numbers<Element>::B(v)); }
  static A Combine(A a, A b) { return A(a * b); }
};
template <typename Element>
struct Norm {
  using T = Element;
  using A = typename Numbers<T>::Squares;
  using B = decltype(Numbers<T>::Square(T()));
  static A Identity() { return A(0); }
  static B Of(T v) { return Numbers<T>::Square(v); }
  template <typename V>
  static V Combine(V a, V b) {
    return V(a + b);
  }
  static T Finish(A a, int64_t) { return Numbers<T>::Root(a); }
};
// NaN in either operand gives NaN.
template <typename Element>
struct Max {
  using T = Element;
  using A = T;
  using B = T;
  static constexpr bool kIsLargest = true;
  static T Identity() { return Numbers<T>::Lowest(); }
  static T Of(T v) { return v; }
  static T Combine(T a, T b) {  // in this form the compiler makes vector code of it
    const T larger = b > a ? b : a;
    return b != b ? b : larger;
  }
  static T Finish(T a, int64_t) { return a; }
};
template <typename Element>
struct Min : Max<Element> {
  static constexpr bool kIsLargest = false;
  static Element Identity() { return Numbers<Element>::Highest(); }
  static Element Combine(Element a, Element b) {
    const Element smaller = b < a ? b : a;
    return b != b ? b : smaller;
  }
};

template <typename T>
const Reducer* FindExtreme(ReduceKind kind) {
  if (kind == ReduceKind::kMax) return TheReducer<Max<T>>();
  return kind == ReduceKind::kMin ? TheReducer<Min<T>>() : nullptr;
}

template <typename T>
const Reducer* FindOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return TheReducer<Sum<T>>();
    case ReduceKind::kMean: return TheReducer<Mean<T>>();
    case ReduceKind::kProd: return TheReducer<Prod<T>>();
    case ReduceKind::kNorm: return TheReducer<Norm<T>>();
    default:
      if constexpr (Numbers<T>::kOrdered) return FindExtreme<T>(kind);
      return nullptr;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif
