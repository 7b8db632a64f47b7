// SPDX-License-Identifier: Apache-2.0
// Rows by vectors, columns by loops that the compiler makes vectors of; once per instruction set.
#include "kernels/cpu/math/math_ranking_simd.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/math/math_ranking_simd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, bool kMax>
struct Extreme {
  static HWY_INLINE bool Better(T a, T b) { return kMax ? a > b : a < b; }
  static constexpr T Worst() {
    if constexpr (std::numeric_limits<T>::has_infinity) {
      return kMax ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    } else {
      return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
    }
  }
};

// The best of all lanes.
template <typename T, bool kMax, class D, class V>
HWY_INLINE T BestLane(D d, V v) {
  if constexpr (sizeof(T) > 1) {
    return hn::GetLane(kMax ? hn::MaxOfLanes(d, v) : hn::MinOfLanes(d, v));
  } else {
#if HWY_TARGET != HWY_SCALAR
    using Wide = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
    const hn::Repartition<Wide, D> wide;
    const hn::Half<D> half;
    const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, v)), high = hn::PromoteTo(wide, hn::UpperHalf(half, v));
    return static_cast<T>(
        hn::GetLane(kMax ? hn::MaxOfLanes(wide, hn::Max(low, high)) : hn::MinOfLanes(wide, hn::Min(low, high))));
#else
    return hn::GetLane(v);
#endif
  }
}

// n numbers as vectors, the last one filled up with `filling`.
template <typename T>
class Row {
 public:
  Row(const T* x, int64_t n, T filling) : x_(x), whole_(n / lanes() * lanes()) {
    std::fill(last_, last_ + 64 / sizeof(T), filling);
    std::copy(x + whole_, x + n, last_);
  }
  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())); }
  HWY_INLINE auto At(int64_t i) const { return hn::LoadU(hn::ScalableTag<T>(), i < whole_ ? x_ + i : last_); }

 private:
  const T* x_;
  int64_t whole_;
  T last_[64 / sizeof(T)];
};

// Blocks first: only one that beats the best so far is searched for the position.
template <typename T, bool kMax>
int64_t OfRow(const void* x, int64_t n) {
  using E = Extreme<T, kMax>;
  constexpr int64_t kBlock = 256;
  const hn::ScalableTag<T> d;
  const Row<T> row(static_cast<const T*>(x), n, E::Worst());
  const int64_t lanes = row.lanes();
  T best = E::Worst();
  int64_t index = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t end = std::min(n, i + kBlock);
    auto top = hn::Set(d, E::Worst());
    for (int64_t j = i; j < end; j += lanes) {
      const auto v = row.At(j);
      top = hn::IfThenElse(kMax ? hn::Gt(v, top) : hn::Lt(v, top), v, top);
    }
    const T here = BestLane<T, kMax>(d, top);
    if (!E::Better(here, best)) continue;
    best = here;
    const auto wanted = hn::Set(d, best);
    for (int64_t j = i;; j += lanes) {
      const intptr_t at = hn::FindFirstTrue(d, hn::Eq(row.At(j), wanted));
      if (at < 0) continue;
      index = j + at;
      break;
    }
  }
  return index;
}

template <typename T, bool kMax>
int64_t OfOrdered(const void* row, int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    const T* const x = static_cast<const T*>(row);
    int nan = 0;
    for (int64_t i = 0; i < n; ++i) nan |= x[i] != x[i] ? 1 : 0;
    if (nan != 0) return std::find_if(x, x + n, [](T v) { return v != v; }) - x;
  }
  return OfRow<T, kMax>(row, n);
}

// The extreme of each column, and the first row that has it; Worst and 0 where there is none.
template <typename T, bool kMax, typename I>
void BestOfColumns(const T* x, int64_t axis, int64_t stride, int64_t n, T* best, I* index) {
  using E = Extreme<T, kMax>;
  std::fill(best, best + n, E::Worst());
  std::fill(index, index + n, I{0});
  for (int64_t i = 0; i < axis; ++i, x += stride) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const bool better = E::Better(x[j], best[j]);
      best[j] = better ? x[j] : best[j];
      index[j] = better ? static_cast<I>(i) : index[j];
    }
  }
}

constexpr int64_t kFewColumns = 32, kGrouped = 128;

// Rows of few numbers: a group of them is one row, in which each column has some of the rows of its own.
template <typename T, bool kMax>
void OfFewColumns(const T* x, int64_t axis, int64_t n, int64_t* index) {
  using E = Extreme<T, kMax>;
  const int64_t group = kGrouped / n, groups = axis / group;
  T best[kGrouped];
  int64_t places[kGrouped];
  BestOfColumns<T, kMax>(x, groups, group * n, group * n, best, places);
  for (int64_t j = 0; j < n; ++j) {
    T top = E::Worst();
    index[j] = 0;
    for (int64_t r = 0; r < group; ++r) {
      const T v = best[r * n + j];
      const int64_t place = places[r * n + j] * group + r;
      if (E::Better(v, top) || (v == top && E::Better(v, E::Worst()) && place < index[j])) {
        top = v;
        index[j] = place;
      }
    }
    for (int64_t i = groups * group; i < axis; ++i) {
      if (!E::Better(x[i * n + j], top)) continue;
      top = x[i * n + j];
      index[j] = i;
    }
  }
}

template <typename T, bool kMax>
void OfColumns(const void* columns, int64_t axis, int64_t stride, int64_t n, int64_t* index) {
  const T* const x = static_cast<const T*>(columns);
  if (n == stride && n <= kFewColumns && axis >= kGrouped) return OfFewColumns<T, kMax>(x, axis, n, index);
  T best[kRankingTile];
  if (axis > std::numeric_limits<int32_t>::max()) return BestOfColumns<T, kMax>(x, axis, stride, n, best, index);
  int32_t narrow[kRankingTile];
  BestOfColumns<T, kMax>(x, axis, stride, n, best, narrow);
  std::copy(narrow, narrow + n, index);
}

template <typename T>
ArgFns FunctionsOf(bool greatest) {
  return greatest ? ArgFns{&OfRow<T, true>, &OfOrdered<T, true>, &OfColumns<T, true>}
                  : ArgFns{&OfRow<T, false>, &OfOrdered<T, false>, &OfColumns<T, false>};
}
ArgFns Functions(DType dtype, bool greatest) {
  switch (dtype) {
    case DType::kFloat: return FunctionsOf<float>(greatest);
    case DType::kDouble: return FunctionsOf<double>(greatest);
    case DType::kInt8: return FunctionsOf<int8_t>(greatest);
    case DType::kInt16: return FunctionsOf<int16_t>(greatest);
    case DType::kInt32: return FunctionsOf<int32_t>(greatest);
    case DType::kInt64: return FunctionsOf<int64_t>(greatest);
    case DType::kBool:
    case DType::kUInt8: return FunctionsOf<uint8_t>(greatest);
    case DType::kUInt16: return FunctionsOf<uint16_t>(greatest);
    case DType::kUInt32: return FunctionsOf<uint32_t>(greatest);
    case DType::kUInt64: return FunctionsOf<uint64_t>(greatest);
    default: return {nullptr, nullptr, nullptr};
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
HWY_EXPORT(Functions);
ArgFns ArgFunctions(DType dtype, bool greatest) { return HWY_DYNAMIC_DISPATCH(Functions)(dtype, greatest); }
}  // namespace millrace
#endif  // HWY_ONCE
