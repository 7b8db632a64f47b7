// SPDX-License-Identifier: Apache-2.0
// Each segment is reduced by one task, in row order, so the result does not depend on the number of threads. Where rows
// are wide, tasks are blocks of columns instead. Half types are summed in float.
#include "kernels/cpu/engine/index_segment.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "kernels/cpu/engine/index_runs.h"
#include "kernels/cpu/engine/math_reducer.h"

namespace millrace {
namespace {

template <typename T>
void FinishRow(SegmentFinish finish, int64_t count, T* acc, int64_t n) {
  if (finish == SegmentFinish::kNone || count <= 1) return;
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    for (int64_t k = 0; k < n; ++k) acc[k] = static_cast<T>(static_cast<Wide>(acc[k]) / static_cast<Wide>(count));
  } else if constexpr (kIsComplexType<T>) {
    using R = typename T::value_type;
    for (int64_t k = 0; k < n; ++k) acc[k] /= static_cast<R>(count);
  } else {
    const T divisor = static_cast<T>(
        finish == SegmentFinish::kMean ? static_cast<double>(count) : std::sqrt(static_cast<double>(count)));
    for (int64_t k = 0; k < n; ++k) acc[k] /= divisor;
  }
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
      : s_(s), data_(static_cast<const T*>(s.data)), out_(static_cast<T*>(s.out)) {}

  // Segments that begin in members [begin, end), columns [c0, c1).
  void Run(int64_t begin, int64_t end, int64_t c0, int64_t c1) const {
    std::vector<A> wide(std::is_same_v<A, T> ? 0 : static_cast<size_t>(c1 - c0));
    if (begin > 0 && s_.ids[begin] == s_.ids[begin - 1]) begin = EndOfSegment(begin);
    for (int64_t i = begin; i < end;) {
      const int64_t id = s_.ids[i];
      const int64_t stop = EndOfSegment(i);
      FillGap(i == 0 ? 0 : s_.ids[i - 1] + 1, id, c0, c1);
      T* out = out_ + id * s_.width + c0;
      if constexpr (std::is_same_v<A, T>) {
        Reduce(i, stop, c0, c1 - c0, out);
      } else {
        Reduce(i, stop, c0, c1 - c0, wide.data());
        for (int64_t k = 0; k < c1 - c0; ++k) out[k] = static_cast<T>(wide[static_cast<size_t>(k)]);
      }
      i = stop;
    }
  }

 private:
  // Ids are sorted: doubling steps, then halving.
  int64_t EndOfSegment(int64_t i) const {
    const int64_t id = s_.ids[i];
    int64_t step = 1;
    while (i + step < s_.ids.size() && s_.ids[i + step] == id) step *= 2;
    int64_t inside = i + step / 2, outside = std::min(i + step, s_.ids.size());
    while (outside - inside > 1) {
      const int64_t middle = inside + (outside - inside) / 2;
      (s_.ids[middle] == id ? inside : outside) = middle;
    }
    return outside;
  }

  const T* Row(int64_t i, int64_t c0) const { return data_ + (s_.rows ? s_.rows[i] : i) * s_.width + c0; }

  void FillGap(int64_t from, int64_t to, int64_t c0, int64_t c1) const {
    const T value = op == RowOp::kMul ? static_cast<T>(1.0f) : T{};
    for (int64_t row = from; row < to; ++row) std::fill(out_ + row * s_.width + c0, out_ + row * s_.width + c1, value);
  }

  void Reduce(int64_t i, int64_t stop, int64_t c0, int64_t count, A* acc) const {
    if constexpr (op == RowOp::kAdd && std::is_floating_point_v<T>) {
      if (s_.width == 1 && !s_.rows && stop - i >= 32) {
        *acc = SumColumn<T>(data_ + i, stop - i);
        return FinishRow(s_.finish, stop - i, acc, 1);
      }
    }
    int64_t r = i;
    if (!s_.rows && s_.width <= kNarrow) r += ReduceNarrow(Row(i, 0), stop - i, acc);
    if (r == i) CombineRun<RowOp::kAssign>(acc, Row(r++, c0), count);
    for (; r < stop; ++r) {
      if (s_.rows && r + 4 < stop) __builtin_prefetch(Row(r + 4, c0));
      CombineRun<op>(acc, Row(r, c0), count);
    }
    FinishRow(s_.finish, stop - i, acc, count);
  }

  // Rows of few numbers, some at a time as if they were one: independent lanes are faster, and lose fewer digits, than
  // one running sum. Gives how many of the rows are in acc: none when they are few.
  int64_t ReduceNarrow(const T* rows, int64_t n, A* acc) const {
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
    std::copy(lanes, lanes + width, acc);
    return r;
  }

  static constexpr int64_t kNarrow = 16;
  const SegmentReduction& s_;
  const T* data_;
  T* out_;
};

template <RowOp op, typename T>
void ReduceTyped(KernelContext& ctx, const SegmentReduction& s) {
  const SegmentReducer<op, T> reducer(s);
  if (s.width >= 512) {
    constexpr int64_t kColumns = 256;
    const int64_t blocks = (s.width + kColumns - 1) / kColumns;
    ctx.ParallelFor(blocks, static_cast<double>(s.ids.size()) * 60, [&](int64_t begin, int64_t end) {
      reducer.Run(0, s.ids.size(), begin * kColumns, std::min(s.width, end * kColumns));
    });
    return;
  }
  ctx.ParallelFor(s.ids.size(), 2.0 + 0.4 * static_cast<double>(s.width), [&](int64_t begin, int64_t end) {
    reducer.Run(begin, end, 0, s.width);
  });
}

template <typename Index>
bool AnyDescends(const Index* ids, int64_t n) {
  constexpr int64_t kBlock = 64;
  unsigned found = 0;
  int64_t i = 1;
  for (; i + kBlock <= n && found == 0; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k) found |= static_cast<unsigned>(ids[i + k] < ids[i + k - 1]);
  }
  for (; i < n; ++i) found |= static_cast<unsigned>(ids[i] < ids[i - 1]);
  return found != 0;
}

// What is wrong with ids that are negative or not sorted, as TensorFlow finds it: it takes the last id for the largest.
Status BadSegments(const SegmentIds& ids) {
  const int64_t n = ids.size();
  if (ids[n - 1] < 0) return InvalidArgument("segment ids must be >= 0, but segment_ids[", n - 1, "] = ", ids[n - 1]);
  for (int64_t i = 1; i <= n; ++i) {
    const int64_t id = ids[i - 1];
    if (i < n && ids[i] == id) continue;
    if (i < n && ids[i] < id) {
      return InvalidArgument("segment ids are not increasing: segment_ids[", i, "] = ", ids[i], " follows ", id);
    }
    if (id < 0 || id > ids[n - 1]) {
      return InvalidArgument("Segment id ", id, " out of range [0, ", ids[n - 1] + 1,
                             "), possibly because 'segment_ids' input is not sorted.");
    }
  }
  return InvalidArgument("segment_ids are not sorted");
}

}  // namespace

bool SegmentIds::Descend() const { return narrow_ ? AnyDescends(narrow_, size_) : AnyDescends(wide_, size_); }

StatusOr<int64_t> SegmentCount(const SegmentIds& ids) {
  if (ids.size() == 0) return 0;
  if (ids[0] < 0 || ids.Descend()) return BadSegments(ids);
  int64_t count;
  if (!CheckedAdd(ids[ids.size() - 1], int64_t{1}, &count)) {
    return InvalidArgument("segment id ", ids[ids.size() - 1], " is too large");
  }
  return count;
}

Status ReduceSegments(KernelContext& ctx, const SegmentReduction& s) {
  if (s.ids.size() == 0 || s.width == 0) return absl::OkStatus();
  bool known = false;
  switch (s.op) {
    case RowOp::kAdd:
      known = VisitNumberTypes(s.dtype, [&]<typename T>() { ReduceTyped<RowOp::kAdd, T>(ctx, s); });
      break;
    case RowOp::kMul:
      known = VisitNumberTypes(s.dtype, [&]<typename T>() { ReduceTyped<RowOp::kMul, T>(ctx, s); });
      break;
    case RowOp::kMin:
      known = VisitRealTypes(s.dtype, [&]<typename T>() { ReduceTyped<RowOp::kMin, T>(ctx, s); });
      break;
    case RowOp::kMax:
      known = VisitRealTypes(s.dtype, [&]<typename T>() { ReduceTyped<RowOp::kMax, T>(ctx, s); });
      break;
    default: break;
  }
  return known ? absl::OkStatus() : Unimplemented("this reduction is not defined for ", DTypeName(s.dtype));
}

}  // namespace millrace
