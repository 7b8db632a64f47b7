// SPDX-License-Identifier: Apache-2.0
// Each destination element belongs to one task, which applies its updates in index order, so the result is the same on
// any number of threads. Destination rows are cut into ranges, each with the list of its updates (RowRanges), so that
// no task reads an index that is not its own. Few updates of wide rows, and updates that nearly all go to one range,
// are split by columns.
#include "kernels/cpu/engine/index_scatter.h"

#include <algorithm>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/index_runs.h"
#include "kernels/cpu/engine/row_ranges.h"

namespace millrace {
namespace {

// Some of the updates, columns [col_begin, col_end).
struct Part {
  RangeEntries entries;
  int64_t col_begin, col_end;
};

// Asks for what an update that comes soon reads and writes: its rows may lie anywhere. Updates that are taken one after
// another need no such help.
class Prefetcher {
 public:
  Prefetcher(const RowScatter& s, const Part& p, size_t dst_size, size_t size)
      : s_(s),
        entries_(p.entries),
        dst_size_(static_cast<int64_t>(dst_size)),
        size_(static_cast<int64_t>(size)),
        col_begin_(p.col_begin),
        count_(p.col_end - p.col_begin),
        scattered_((p.entries.order || s.sources) && !s.one_update) {}
  // `dst` is s.dst, or what stands for it. Inline by force: a function that does no more than ask is one without
  // effect, calls of which are left out.
  [[gnu::always_inline]] void operator()(int64_t i, const void* dst) const {
    if (i + kAhead >= entries_.n) return;
    const int64_t u = entries_.at(i + kAhead), row = s_.rows[u];
    if (row < 0) return;
    const char* const to = static_cast<const char*>(dst) + (row * s_.width + col_begin_) * dst_size_;
    for (int64_t k = 0; k < std::min(count_ * dst_size_, kMost); k += kLine) __builtin_prefetch(to + k, 1);
    if (!scattered_) return;
    const int64_t source = s_.sources ? s_.sources[u] : u;
    const char* const from = static_cast<const char*>(s_.updates) + (source * s_.width + col_begin_) * size_;
    for (int64_t k = 0; k < std::min(count_ * size_, kMost); k += kLine) __builtin_prefetch(from + k);
  }

 private:
  static constexpr int64_t kAhead = 8, kLine = 64, kMost = 8 * kLine;
  const RowScatter& s_;
  const RangeEntries& entries_;
  int64_t dst_size_, size_, col_begin_, count_;
  bool scattered_;
};

template <RowOp op, typename D, typename T>
void ScatterPart(D* dst, const RowScatter& s, const Part& p) {
  const T* updates = static_cast<const T*>(s.updates);
  const int64_t width = s.width, count = p.col_end - p.col_begin;
  StopNowAndThen pause;
  if (width == 1 && !s.one_update && !s.sources) {
    constexpr int64_t kBlock = 256;
    for (int64_t begin = 0; begin < p.entries.n; begin += kBlock) {
      pause();
      const int64_t end = std::min(p.entries.n, begin + kBlock);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t u = p.entries.at(i), row = s.rows[u];
        if (row >= 0) CombineInto<op>(dst[row], updates[u]);
      }
    }
    return;
  }
  const Prefetcher prefetch(s, p, sizeof(D), sizeof(T));
  for (int64_t i = 0; i < p.entries.n; ++i) {
    pause();
    prefetch(i, dst);
    const int64_t u = p.entries.at(i), row = s.rows[u];
    if (row < 0) continue;
    D* to = dst + row * width + p.col_begin;
    if (s.one_update) {
      const T value = *updates;
      for (int64_t k = 0; k < count; ++k) CombineInto<op>(to[k], value);
    } else {
      CombineRun<op>(to, updates + (s.sources ? s.sources[u] : u) * width + p.col_begin, count);
    }
  }
}

// Calls run with each part of the work, perhaps several at once.
template <typename F>
Status ForParts(KernelContext& ctx, const RowScatter& s, const F& run) {
  const RangeEntries all{nullptr, 0, s.n};
  const int64_t threads = std::min<int64_t>(ThreadsOf(ctx), s.n * s.width / 16384);
  const auto serially = [&] {
    run(Part{all, 0, s.width});
    return absl::OkStatus();
  };
  if (threads <= 1) return serially();
  constexpr int64_t kColumns = 64;  // elements: at least a cache line for every type
  const int64_t blocks = (s.width + kColumns - 1) / kColumns;
  const auto by_columns = [&] {
    const double cost = static_cast<double>(s.n) * kColumns * 0.4;
    ctx.ParallelFor(blocks, cost, [&](int64_t begin, int64_t end) {
      run(Part{all, begin * kColumns, std::min(s.width, end * kColumns)});
    });
    return absl::OkStatus();
  };
  constexpr int64_t kLongBytes = 1024;  // of a row that is worth being read in parts
  const int64_t row_bytes = s.width * static_cast<int64_t>(DTypeSize(s.dtype));
  const bool divisible = blocks > 1 && row_bytes >= kLongBytes;
  if (s.n < 16 * threads || s.n > RowRanges::kMostEntries) return divisible ? by_columns() : serially();
  MR_ASSIGN_OR_RETURN(const RowRanges ranges, RowRanges::Make(ctx, s.rows, 1, s.n, s.dst_rows, row_bytes));
  if (ranges.largest() > s.n / 2 && divisible) return by_columns();
  const double per_range = static_cast<double>(s.n) / static_cast<double>(ranges.size());
  ctx.ParallelFor(ranges.size(), per_range * (2 + 0.2 * static_cast<double>(s.width)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) run(Part{ranges[r], 0, s.width});
  });
  return absl::OkStatus();
}

template <RowOp op, typename T>
Status ScatterTyped(KernelContext& ctx, const RowScatter& s) {
  if constexpr (kIsHalf<T> && op != RowOp::kMax && op != RowOp::kMin) {
    if (s.keep_wide) {
      const int64_t n = s.dst_rows * s.width;
      MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, Shape::Vector(n)));
      float* sums = wide.mutable_data<float>();
      T* dst = static_cast<T*>(s.dst);
      ctx.ParallelFor(n, 1, [&](int64_t a, int64_t b) {
        for (int64_t i = a; i < b; ++i) sums[i] = static_cast<float>(dst[i]);
      });
      MR_RETURN_IF_ERROR(ForParts(ctx, s, [&](const Part& p) { ScatterPart<op, float, T>(sums, s, p); }));
      ctx.ParallelFor(n, 1, [&](int64_t a, int64_t b) {
        for (int64_t i = a; i < b; ++i) dst[i] = static_cast<T>(sums[i]);
      });
      return absl::OkStatus();
    }
  }
  return ForParts(ctx, s, [&](const Part& p) { ScatterPart<op, T, T>(static_cast<T*>(s.dst), s, p); });
}

// Overwriting needs no arithmetic, only the size of a row.
Status AssignRows(KernelContext& ctx, const RowScatter& s) {
  return ForParts(ctx, s, [&](const Part& p) {
    const RunCopier part(s.dtype, p.col_end - p.col_begin);
    StopNowAndThen pause;
    const Prefetcher prefetch(s, p, DTypeSize(s.dtype), DTypeSize(s.dtype));
    for (int64_t i = 0; i < p.entries.n; ++i) {
      pause();
      prefetch(i, s.dst);
      const int64_t u = p.entries.at(i), row = s.rows[u];
      if (row < 0) continue;
      if (s.one_update) {
        FillElements(s.dtype, s.dst, row * s.width + p.col_begin, p.col_end - p.col_begin, s.updates);
      } else {
        const int64_t from = s.sources ? s.sources[u] : u;
        part.CopyOne(s.dst, row * s.width + p.col_begin, s.updates, from * s.width + p.col_begin);
      }
    }
  });
}

template <RowOp op>
bool DispatchNumbers(KernelContext& ctx, const RowScatter& s, Status* status) {
  return VisitNumberTypes(s.dtype, [&]<typename T>() { *status = ScatterTyped<op, T>(ctx, s); });
}
template <RowOp op>
bool DispatchReals(KernelContext& ctx, const RowScatter& s, Status* status) {
  return VisitRealTypes(s.dtype, [&]<typename T>() { *status = ScatterTyped<op, T>(ctx, s); });
}
template <RowOp op>
bool DispatchBool(KernelContext& ctx, const RowScatter& s, Status* status) {
  return VisitTypes<bool>(s.dtype, [&]<typename T>() { *status = ScatterTyped<op, T>(ctx, s); });
}

Status RefuseZeroDivisors(const RowScatter& s) {
  bool zero = false;
  const int64_t n = s.one_update ? 1 : s.n * s.width;
  VisitTypes<int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t>(s.dtype, [&]<typename T>() {
    const T* u = static_cast<const T*>(s.updates);
    zero = std::find(u, u + n, T{0}) != u + n;
  });
  return zero ? InvalidArgument("integer division by zero: updates contain 0") : absl::OkStatus();
}

}  // namespace

Status ScatterRows(KernelContext& ctx, const RowScatter& s) {
  if (s.n == 0 || s.width == 0 || s.dst_rows == 0) return absl::OkStatus();
  Status status;
  bool known = false;
  switch (s.op) {
    case RowOp::kAssign: return AssignRows(ctx, s);
    case RowOp::kAdd:
      known = DispatchNumbers<RowOp::kAdd>(ctx, s, &status) || DispatchBool<RowOp::kAdd>(ctx, s, &status);
      break;
    case RowOp::kSub:
      known = DispatchNumbers<RowOp::kSub>(ctx, s, &status) || DispatchBool<RowOp::kSub>(ctx, s, &status);
      break;
    case RowOp::kMul: known = DispatchNumbers<RowOp::kMul>(ctx, s, &status); break;
    case RowOp::kDiv:
      MR_RETURN_IF_ERROR(RefuseZeroDivisors(s));
      known = DispatchNumbers<RowOp::kDiv>(ctx, s, &status);
      break;
    case RowOp::kMin: known = DispatchReals<RowOp::kMin>(ctx, s, &status); break;
    case RowOp::kMax: known = DispatchReals<RowOp::kMax>(ctx, s, &status); break;
  }
  return known ? status : Unimplemented("this update is not defined for ", DTypeName(s.dtype));
}

}  // namespace millrace
