// SPDX-License-Identifier: Apache-2.0
// Work is split so that each destination element belongs to one task: by columns where rows are wide, else by ranges of
// destination rows, each task walking all indices. Both keep the order of the updates to one element, so the result is
// the same on any number of threads.
#include "kernels/cpu/engine/index_scatter.h"

#include <algorithm>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_rows.h"

namespace millrace {
namespace {

// Destination rows [row_begin, row_end), columns [col_begin, col_end).
struct Part {
  int64_t row_begin, row_end, col_begin, col_end;
};

template <RowOp op, typename D, typename T>
void ScatterPart(D* dst, const RowScatter& s, const Part& p) {
  const T* updates = static_cast<const T*>(s.updates);
  const int64_t width = s.width, count = p.col_end - p.col_begin;
  StopNowAndThen pause;
  if (width == 1 && !s.one_update && !s.sources) {
    for (int64_t i = 0; i < s.n; ++i) {
      pause();
      const int64_t row = s.rows[i];
      if (row >= p.row_begin && row < p.row_end) CombineInto<op>(dst[row], updates[i]);
    }
    return;
  }
  constexpr int64_t kAhead = 8;
  for (int64_t i = 0; i < s.n; ++i) {
    pause();
    if (i + kAhead < s.n && s.rows[i + kAhead] >= 0)
      __builtin_prefetch(dst + s.rows[i + kAhead] * width + p.col_begin, 1);
    const int64_t row = s.rows[i];
    if (row < p.row_begin || row >= p.row_end) continue;
    D* to = dst + row * width + p.col_begin;
    if (s.one_update) {
      const T value = *updates;
      for (int64_t k = 0; k < count; ++k) CombineInto<op>(to[k], value);
    } else {
      CombineRow<op>(to, updates + (s.sources ? s.sources[i] : i) * width + p.col_begin, count);
    }
  }
}

template <typename F>
void ForParts(KernelContext& ctx, const RowScatter& s, const F& run) {
  const int64_t work = s.n * s.width;
  const int64_t threads = ctx.device().thread_pool().parallelism();
  constexpr int64_t kColumns = 64;  // elements: at least a cache line for every type
  int64_t tasks = std::min<int64_t>(threads, work / 16384);
  if (tasks <= 1) return run(Part{0, s.dst_rows, 0, s.width});
  if (s.width >= 2 * kColumns) {
    const int64_t blocks = (s.width + kColumns - 1) / kColumns;
    tasks = std::min(tasks, blocks);
    ctx.ParallelFor(tasks, 1e6, [&](int64_t begin, int64_t end) {
      run(Part{0, s.dst_rows, std::min(s.width, blocks * begin / tasks * kColumns),
               std::min(s.width, blocks * end / tasks * kColumns)});
    });
    return;
  }
  // Every task reads all indices and guesses which are its own: on narrow rows that costs more than it gains.
  tasks = s.width < 16 ? 1 : std::min(tasks, s.dst_rows);
  if (tasks <= 1) return run(Part{0, s.dst_rows, 0, s.width});
  ctx.ParallelFor(tasks, 1e6, [&](int64_t begin, int64_t end) {
    const auto bound = [&](int64_t t) { return s.dst_rows / tasks * t + std::min(t, s.dst_rows % tasks); };
    run(Part{bound(begin), bound(end), 0, s.width});
  });
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
      ForParts(ctx, s, [&](const Part& p) { ScatterPart<op, float, T>(sums, s, p); });
      ctx.ParallelFor(n, 1, [&](int64_t a, int64_t b) {
        for (int64_t i = a; i < b; ++i) dst[i] = static_cast<T>(sums[i]);
      });
      return absl::OkStatus();
    }
  }
  ForParts(ctx, s, [&](const Part& p) { ScatterPart<op, T, T>(static_cast<T*>(s.dst), s, p); });
  return absl::OkStatus();
}

// Overwriting needs no arithmetic, only the size of a row.
void AssignRows(KernelContext& ctx, const RowScatter& s) {
  ForParts(ctx, s, [&](const Part& p) {
    const RunCopier part(s.dtype, p.col_end - p.col_begin);
    StopNowAndThen pause;
    for (int64_t i = 0; i < s.n; ++i) {
      pause();
      const int64_t row = s.rows[i];
      if (row < p.row_begin || row >= p.row_end) continue;
      if (s.one_update) {
        FillElements(s.dtype, s.dst, row * s.width + p.col_begin, p.col_end - p.col_begin, s.updates);
      } else {
        const int64_t from = s.sources ? s.sources[i] : i;
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
    case RowOp::kAssign: AssignRows(ctx, s); return absl::OkStatus();
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
