// SPDX-License-Identifier: Apache-2.0
// Segments are often of few rows, and rows of few numbers: their ends are looked for by vectors of ids, and rows that
// fit into a vector several times are taken as many at once, whose sums are added up in the end. A row's numbers that
// are wider are kept in registers while the rows go by. Half types are summed in float.
#include "kernels/cpu/engine/index_segment_simd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "kernels/cpu/engine/index_runs.h"
#include "kernels/cpu/engine/math_reducer.h"
#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/index_segment_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/engine/narrow_floats-inl.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <RowOp op, typename T>
constexpr bool kInVectors =
    HWY_TARGET != HWY_SCALAR &&
    (std::is_floating_point_v<T> || kIsHalf<T> || std::is_same_v<T, int32_t> ||
     (std::is_same_v<T, int64_t> && op != RowOp::kMul));

template <RowOp op, class V>
HWY_INLINE V CombineVectors(V a, V b) {
  if constexpr (op == RowOp::kAdd) {
    return hn::Add(a, b);
  } else if constexpr (op == RowOp::kMul) {
    return hn::Mul(a, b);
  } else if constexpr (!std::is_floating_point_v<hn::TFromV<V>>) {
    return op == RowOp::kMax ? hn::Max(a, b) : hn::Min(a, b);
  } else {  // NaN stays
    const auto replaced = op == RowOp::kMax ? hn::Lt(a, b) : hn::Lt(b, a);
    return hn::IfThenElse(hn::Or(replaced, hn::IsNaN(b)), b, a);
  }
}

// What changes nothing when it is combined with a number: -0 for sums, which leaves the sign of another -0.
template <RowOp op, typename A>
constexpr A Neutral() {
  using Limits = std::numeric_limits<A>;
  if constexpr (op == RowOp::kMul) return A{1};
  if constexpr (op == RowOp::kMax) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if constexpr (op == RowOp::kMin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return std::is_floating_point_v<A> ? static_cast<A>(-0.0) : A{0};
}

template <typename Index>
bool AnyDescends(const Index* ids, int64_t n) {
  const hn::ScalableTag<Index> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 1;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    auto descends = hn::FirstN(d, 0);
#pragma GCC unroll 4
    for (int64_t k = i; k < i + 4 * lanes; k += lanes) {
      descends = hn::Or(descends, hn::Lt(hn::LoadU(d, ids + k), hn::LoadU(d, ids + k - 1)));
    }
    if (!hn::AllFalse(d, descends)) return true;
  }
  bool descends = false;
  for (; i < n; ++i) descends |= ids[i] < ids[i - 1];
  return descends;
}

bool Descend(const SegmentIds& ids) {
  return ids.narrow() ? AnyDescends(ids.narrow(), ids.size()) : AnyDescends(ids.wide(), ids.size());
}

// The first of ids [i, size) that is not ids[i], or size.
template <typename Index>
int64_t EndOfSegment(const Index* ids, int64_t i, int64_t size) {
  const hn::ScalableTag<Index> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Index id = ids[i];
  constexpr int64_t kBlocks = 4;
  int64_t at = i + 1;
  for (int64_t k = 0; k < kBlocks && at + lanes <= size; ++k, at += lanes) {
    const auto same = hn::Eq(hn::LoadU(d, ids + at), hn::Set(d, id));
    if (const auto other = hn::FindFirstTrue(d, hn::Not(same)); other >= 0) return at + static_cast<int64_t>(other);
  }
  // Ids are sorted: doubling steps, then halving.
  int64_t inside = at - 1, step = 1;
  while (inside + step < size && ids[inside + step] == id) inside += step, step *= 2;
  int64_t outside = std::min(inside + step, size);
  while (outside - inside > 1) {
    const int64_t middle = inside + (outside - inside) / 2;
    (ids[middle] == id ? inside : outside) = middle;
  }
  return outside;
}

// Long columns of numbers, by the lanes of a reduction.
template <typename T>
T SumColumn(const T* p, int64_t n) {
  static const std::shared_ptr<const Reducer> sum = FindReducer(ReduceKind::kSum, DTypeOf<T>::value);
  alignas(16) char acc[kReduceAccumulatorBytes];
  T result;
  sum->Init(acc, 1);
  sum->Inner(p, 1, n, acc);
  sum->Finish(acc, 1, n, &result);
  return result;
}

template <RowOp op, typename T>
class SegmentReducer {
 public:
  using A = Accumulator<T>;
  explicit SegmentReducer(const SegmentReduction& s)
      : s_(s), data_(static_cast<const T*>(s.data)), out_(static_cast<T*>(s.out)) {
    if constexpr (kInVectors<op, T>) Prepare();
  }

  void Run(int64_t begin, int64_t end, int64_t c0, int64_t c1) const {
    const auto room = static_cast<size_t>(c1 - c0) + kMostLanes;
    const auto sums = std::make_unique_for_overwrite<A[]>(room);
    if (begin > 0 && s_.ids[begin] == s_.ids[begin - 1]) begin = EndOf(begin);
    for (int64_t i = begin; i < end;) {
      const int64_t id = s_.ids[i], stop = EndOf(i);
      FillGap(i == 0 ? 0 : s_.ids[i - 1] + 1, id, c0, c1);
      Reduce(i, stop, c0, c1 - c0, sums.get());
      FinishRow(stop - i, sums.get(), c1 - c0);
      Put(sums.get(), c1 - c0, out_ + id * s_.width + c0);
      i = stop;
    }
  }

 private:
  using D = hn::ScalableTag<std::conditional_t<kInVectors<op, T>, A, float>>;
  using V = hn::Vec<D>;
  using Index = hwy::MakeSigned<hn::TFromD<D>>;
  static constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(hn::TFromD<D>);

  static int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  int64_t EndOf(int64_t i) const {
    const SegmentIds& ids = s_.ids;
    return ids.narrow() ? EndOfSegment(ids.narrow(), i, ids.size()) : EndOfSegment(ids.wide(), i, ids.size());
  }

  const T* Row(int64_t i, int64_t c0) const { return data_ + (s_.rows ? s_.rows[i] : i) * s_.width + c0; }

  void FillGap(int64_t from, int64_t to, int64_t c0, int64_t c1) const {
    const T value = op == RowOp::kMul ? static_cast<T>(1.0f) : T{};
    for (int64_t row = from; row < to; ++row) std::fill(out_ + row * s_.width + c0, out_ + row * s_.width + c1, value);
  }

  // How many rows are taken at once, and by which lanes their sums are added up.
  void Prepare() {
    together_ = 1;
    while (!s_.rows && 2 * together_ * s_.width <= Lanes()) together_ *= 2;
    int step = 0;
    for (int64_t half = together_ / 2; half > 0; half /= 2, ++step) {
      for (int64_t k = 0; k < Lanes(); ++k) {
        fold_[step][k] = static_cast<Index>((k + half * s_.width) % Lanes());
      }
    }
    if (!s_.rows) data_end_ = data_ + s_.ids.size() * s_.width;
  }

  static HWY_INLINE V LoadAll(const T* p) {
    const D d;
    if constexpr (std::is_same_v<A, T>) {
      return hn::LoadU(d, p);
    } else if constexpr (kConvertsInVectors<T>) {
      return LoadWide(d, p);
    } else {
      HWY_ALIGN A wide[kMostLanes];
      WidenRun<T>(p, wide, Lanes());
      return hn::Load(d, wide);
    }
  }

  // The first n lanes, the others may be anything. Nothing is read from behind the data.
  HWY_INLINE V LoadFirst(const T* p, int64_t n) const {
    if (n == Lanes() || (data_end_ != nullptr && data_end_ - p >= Lanes())) return LoadAll(p);
#if MILLRACE_HAS_PARTS
    if constexpr (std::is_same_v<A, T>) return Part(D(), n).Load(p);
#endif
    T some[kMostLanes] = {};
    std::memcpy(some, p, static_cast<size_t>(n) * sizeof(T));
    return LoadAll(some);
  }

  void Reduce(int64_t i, int64_t stop, int64_t c0, int64_t count, A* sums) const {
    if constexpr (op == RowOp::kAdd && std::is_floating_point_v<T>) {
      constexpr int64_t kLong = 128;
      if (s_.width == 1 && !s_.rows && stop - i >= kLong) {
        *sums = SumColumn<T>(data_ + i, stop - i);
        return;
      }
    }
    if constexpr (kInVectors<op, T>) {
      if (together_ > 1) {
        const V sum = ReduceTogether(Row(i, 0), (stop - i) * s_.width);
        hn::StoreU(sum, D(), sums);
      } else {
        ReduceRows(i, stop, c0, count, sums);
      }
    } else {
      int64_t r = i;
      if (!s_.rows && s_.width <= kNarrow) r += ReduceNarrow(Row(i, 0), stop - i, sums);
      if (r == i) CombineRun<RowOp::kAssign>(sums, Row(r++, c0), count);
      for (; r < stop; ++r) {
        if (s_.rows && r + kAhead < stop) __builtin_prefetch(Row(r + kAhead, c0));
        CombineRun<op>(sums, Row(r, c0), count);
      }
    }
  }

  // What vectors are to the types that have them: rows of few numbers, some at a time as if they were one. Gives how
  // many of the rows are in sums: none when they are few.
  int64_t ReduceNarrow(const T* rows, int64_t n, A* sums) const {
    constexpr int64_t kLanes = 64;
    const int64_t width = s_.width;
    int64_t together = kLanes / kNarrow;
    while (2 * together * width <= kLanes) together *= 2;
    if (n < 2 * together) return 0;
    A lanes[kLanes];
    CombineRun<RowOp::kAssign>(lanes, rows, together * width);
    int64_t r = together;
    for (; r + together <= n; r += together) CombineRun<op>(lanes, rows + r * width, together * width);
    for (int64_t half = together / 2; half > 0; half /= 2) CombineRun<op>(lanes, lanes + half * width, half * width);
    std::copy(lanes, lanes + width, sums);
    return r;
  }

  // Rows one after another are n numbers from p on.
  HWY_INLINE V ReduceTogether(const T* p, int64_t n) const {
    const D d;
    const int64_t span = together_ * s_.width;
    V sum = hn::Set(d, Neutral<op, A>());
    if (n >= 8 * span) {
      V sums[4];
#pragma GCC unroll 4
      for (int64_t k = 0; k < 4; ++k) sums[k] = LoadFirst(p + k * span, span);
      for (p += 4 * span, n -= 4 * span; n >= 4 * span; p += 4 * span, n -= 4 * span) {
#pragma GCC unroll 4
        for (int64_t k = 0; k < 4; ++k) sums[k] = CombineVectors<op>(sums[k], LoadFirst(p + k * span, span));
      }
      sum = CombineVectors<op>(CombineVectors<op>(sums[0], sums[1]), CombineVectors<op>(sums[2], sums[3]));
    }
    for (; n >= span; p += span, n -= span) sum = CombineVectors<op>(sum, LoadFirst(p, span));
    if (n > 0) {
      const V last = CombineVectors<op>(sum, LoadFirst(p, n));
      sum = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n)), last, sum);
    }
    int step = 0;
    for (int64_t half = together_ / 2; half > 0; half /= 2, ++step) {
      sum = CombineVectors<op>(sum, hn::TableLookupLanes(sum, hn::SetTableIndices(d, fold_[step])));
    }
    return sum;
  }

  void ReduceRows(int64_t i, int64_t stop, int64_t c0, int64_t count, A* sums) const {
    constexpr int64_t kRows = 32;  // whose cache lines are there while the columns are gone through
    const int64_t lanes = Lanes();
    for (int64_t r = i; r < stop; r += kRows) {
      const int64_t last = std::min(stop, r + kRows);
      int64_t c = 0;
      for (; c + 4 * lanes <= count; c += 4 * lanes) AddColumns<4>(r, last, r == i, c0 + c, lanes, sums + c);
      for (; c + 2 * lanes <= count; c += 2 * lanes) AddColumns<2>(r, last, r == i, c0 + c, lanes, sums + c);
      for (; c + lanes <= count; c += lanes) AddColumns<1>(r, last, r == i, c0 + c, lanes, sums + c);
      if (c < count) AddColumns<1>(r, last, r == i, c0 + c, count - c, sums + c);
    }
  }

  // Rows [r, stop), kCount vectors from column c on, or the n lanes that there are of one.
  template <int kCount>
  HWY_INLINE void AddColumns(int64_t r, int64_t stop, bool first, int64_t c, int64_t n, A* sums) const {
    const D d;
    const int64_t lanes = Lanes();
    V v[kCount];
#pragma GCC unroll 4
    for (int k = 0; k < kCount; ++k)
      v[k] = first ? LoadFirst(Row(r, c) + k * lanes, n) : hn::LoadU(d, sums + k * lanes);
    for (r += first; r < stop; ++r) {
      if (s_.rows && r + kAhead < stop) __builtin_prefetch(Row(r + kAhead, c));
      const T* row = Row(r, c);
#pragma GCC unroll 4
      for (int k = 0; k < kCount; ++k) v[k] = CombineVectors<op>(v[k], LoadFirst(row + k * lanes, n));
    }
#pragma GCC unroll 4
    for (int k = 0; k < kCount; ++k) hn::StoreU(v[k], d, sums + k * lanes);
  }

  void FinishRow(int64_t members, A* sums, int64_t n) const {
    if (s_.finish == SegmentFinish::kNone || members <= 1) return;
    if constexpr (std::is_integral_v<T>) {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      for (int64_t k = 0; k < n; ++k) sums[k] = static_cast<T>(static_cast<Wide>(sums[k]) / static_cast<Wide>(members));
    } else if constexpr (kIsComplexType<T>) {
      for (int64_t k = 0; k < n; ++k) sums[k] /= static_cast<typename T::value_type>(members);
    } else {
      const auto count = static_cast<double>(members);
      const A divisor = static_cast<A>(s_.finish == SegmentFinish::kMean ? count : std::sqrt(count));
      ForVectors<A>(n, [&](auto how, int64_t k) HWY_ATTR {
        how.Store(hn::Div(how.Load(sums + k), hn::Set(how.d, divisor)), sums + k);
      });
    }
  }

  static void Put(const A* sums, int64_t n, T* out) {
    if constexpr (kIsHalf<T>) {
      NarrowRun<T>(sums, out, n);
    } else if constexpr (kInVectors<op, T>) {
      ForVectors<T>(n, [&](auto how, int64_t k) HWY_ATTR { how.Store(how.Load(sums + k), out + k); });
    } else {
      std::copy_n(sums, n, out);
    }
  }

  static constexpr int64_t kNarrow = 16;
  static constexpr int64_t kAhead = 4;  // rows that are fetched before they are read
  const SegmentReduction& s_;
  const T* data_;
  const T* data_end_ = nullptr;  // null: rows come in any order
  T* out_;
  int64_t together_ = 1;
  HWY_ALIGN Index fold_[5][kMostLanes];
};

template <RowOp op, typename T>
void RunSegments(const SegmentReduction& s, int64_t begin, int64_t end, int64_t c0, int64_t c1) {
  SegmentReducer<op, T>(s).Run(begin, end, c0, c1);
}

template <RowOp op>
SegmentRun VectorRunOf(DType dtype) {
  SegmentRun run = nullptr;
  VisitTypes<float, double, Half, BFloat16, int32_t, int64_t>(dtype, [&]<typename T>() {
    if constexpr (kInVectors<op, T>) run = RunSegments<op, T>;
  });
  return run;
}

SegmentRun FindVectorRun(RowOp op, DType dtype) {
  switch (op) {
    case RowOp::kAdd: return VectorRunOf<RowOp::kAdd>(dtype);
    case RowOp::kMul: return VectorRunOf<RowOp::kMul>(dtype);
    case RowOp::kMin: return VectorRunOf<RowOp::kMin>(dtype);
    case RowOp::kMax: return VectorRunOf<RowOp::kMax>(dtype);
    default: return nullptr;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

// The processors without vectors of ours, and types that vectors gain little for.
template <RowOp op>
SegmentRun PlainRunOf(DType dtype) {
  SegmentRun run = nullptr;
  const auto visit = [&]<typename T>() { run = HWY_NAMESPACE::RunSegments<op, T>; };
  if constexpr (op == RowOp::kAdd || op == RowOp::kMul) {
    VisitNumberTypes(dtype, visit);
  } else {
    VisitRealTypes(dtype, visit);
  }
  return run;
}

}  // namespace

HWY_EXPORT(Descend);
bool IdsDescend(const SegmentIds& ids) { return HWY_DYNAMIC_DISPATCH(Descend)(ids); }

HWY_EXPORT(FindVectorRun);
SegmentRun FindSegmentRun(RowOp op, DType dtype) {
  if (const SegmentRun run = HWY_DYNAMIC_DISPATCH(FindVectorRun)(op, dtype)) return run;
  switch (op) {
    case RowOp::kAdd: return PlainRunOf<RowOp::kAdd>(dtype);
    case RowOp::kMul: return PlainRunOf<RowOp::kMul>(dtype);
    case RowOp::kMin: return PlainRunOf<RowOp::kMin>(dtype);
    case RowOp::kMax: return PlainRunOf<RowOp::kMax>(dtype);
    default: return nullptr;
  }
}

}  // namespace millrace
#endif
