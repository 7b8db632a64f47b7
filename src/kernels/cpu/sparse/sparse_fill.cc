// SPDX-License-Identifier: Apache-2.0
// CPU kernels: SparseFillEmptyRows and its gradient.
#include <algorithm>
#include <complex>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

Status CheckRows(const SparseArg& s) {
  const int64_t rows = s.dims()[0];
  if (rows < 0) return InvalidArgument("the number of rows must not be negative, got ", rows);
  if (rows == 0 && s.n > 0) {
    return InvalidArgument(
        "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = ", s.n, ": there are no rows for them");
  }
  const int64_t* const indices = s.at(0);
  for (int64_t i = 0; i < s.n; ++i) {
    const int64_t row = indices[i * s.rank];
    if (!InRange(row, rows)) return IndexOutOfRange("indices", s.indices->shape(), i * s.rank, row, rows);
  }
  return absl::OkStatus();
}

// What FillRows writes.
struct FilledRows {
  int64_t* indices;
  void* values;
  bool* empty;
  int64_t* moved;
};

// With the elements in order of their rows: those of neighbouring rows are copied together.
void FillOrderedRows(const SparseArg& s, const void* filler, const FilledRows& out) {
  const RunCopier copier(s.values->dtype(), 1);
  const int64_t *const from = s.at(0), rank = s.rank, rows = s.dims()[0];
  int64_t at = 0, next = 0, pending = 0;  // elements from `pending` to `next` are yet to be written, to `at` on
  const auto flush = [&] {
    std::copy(from + pending * rank, from + next * rank, out.indices + at * rank);
    copier.Copy(out.values, at, 1, s.values->raw(), pending, 1, next - pending);
    for (; pending < next; ++pending) out.moved[pending] = at++;
  };
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = next;
    while (next < s.n && from[next * rank] == row) ++next;
    out.empty[row] = next == first;
    if (next > first) continue;
    flush();
    out.indices[at * rank] = row;
    std::fill_n(out.indices + at * rank + 1, rank - 1, int64_t{0});
    copier.CopyOne(out.values, at++, filler, 0);
  }
  flush();
}

void FillUnorderedRows(const SparseArg& s, const std::vector<int64_t>& order, const void* filler,
                       const FilledRows& out) {
  const RunCopier copier(s.values->dtype(), 1);
  const int64_t *const from = s.at(0), rank = s.rank, rows = s.dims()[0];
  int64_t at = 0;
  size_t next = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const size_t first = next;
    for (; next < order.size() && from[order[next] * rank] == row; ++next, ++at) {
      std::copy_n(from + order[next] * rank, rank, out.indices + at * rank);
      copier.CopyOne(out.values, at, s.values->raw(), order[next]);
      out.moved[order[next]] = at;
    }
    out.empty[row] = next == first;
    if (next > first) continue;
    out.indices[at * rank] = row;
    std::fill_n(out.indices + at * rank + 1, rank - 1, int64_t{0});
    copier.CopyOne(out.values, at++, filler, 0);
  }
}

Status FillRows(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, 0, "the input"));
  MR_RETURN_IF_ERROR(RequireScalar("default_value", ctx.input(3)));
  if (s.rank == 0) return InvalidArgument("Dense shape cannot be empty");
  MR_RETURN_IF_ERROR(CheckRows(s));
  const int64_t *const from = s.at(0), rank = s.rank, rows = s.dims()[0];
  bool ordered = true;
  int64_t full = s.n > 0 ? 1 : 0;  // rows that have elements
  for (int64_t i = 1; i < s.n; ++i) {
    ordered &= from[(i - 1) * rank] <= from[i * rank];
    full += from[(i - 1) * rank] != from[i * rank] ? 1 : 0;
  }
  std::vector<int64_t> order;
  if (!ordered) {
    order = RowMajorOrder(s, 1);
    full = 1;
    for (size_t i = 1; i < order.size(); ++i) full += from[order[i] * rank] != from[order[i - 1] * rank] ? 1 : 0;
  }
  int64_t n = 0;
  if (!CheckedAdd(s.n, rows - full, &n)) return InvalidArgument("the number of elements overflows");
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, rank}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(n)));
  MR_ASSIGN_OR_RETURN(Tensor * empty, ctx.AllocateOutput(2, Shape::Vector(rows)));
  MR_ASSIGN_OR_RETURN(Tensor * moved, ctx.AllocateOutput(3, Shape::Vector(s.n)));
  const FilledRows out{indices->mutable_data<int64_t>(), values->mutable_raw(), empty->mutable_data<bool>(),
                       moved->mutable_data<int64_t>()};
  if (ordered) {
    FillOrderedRows(s, ctx.input(3).raw(), out);
  } else {
    FillUnorderedRows(s, order, ctx.input(3).raw(), out);
  }
  return absl::OkStatus();
}

Status FillRowsGrad(KernelContext& ctx) {
  const Tensor &map = ctx.input(0), &grad = ctx.input(1);
  MR_RETURN_IF_ERROR(RequireVector("reverse_index_map", map));
  MR_RETURN_IF_ERROR(RequireVector("grad_values", grad));
  MR_RETURN_IF_ERROR(CheckIndices("reverse_index_map", map, grad.dim(0)));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, map.shape()));
  MR_ASSIGN_OR_RETURN(Tensor * rest, ctx.AllocateOutput(1, Shape()));
  std::vector<bool> seen(static_cast<size_t>(grad.dim(0)), false);
  const RunCopier copier(grad.dtype(), 1);
  for (int64_t i = 0; i < map.dim(0); ++i) {
    const int64_t from = map.data<int64_t>()[i];
    copier.CopyOne(values->mutable_raw(), i, grad.raw(), from);
    seen[static_cast<size_t>(from)] = true;
  }
  const bool known = VisitNumberTypes(grad.dtype(), [&]<typename T>() {
    Accumulator<T> sum{};
    for (size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i]) CombineInto<RowOp::kAdd>(sum, grad.data<T>()[i]);
    }
    *rest->mutable_data<T>() = static_cast<T>(sum);
  });
  return known ? absl::OkStatus() : Unimplemented("no sum of ", DTypeName(grad.dtype()));
}

}  // namespace

void RegisterSparseFillKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "SparseFillEmptyRows"}, FillRows);
  registry.AddFn({.op = "SparseFillEmptyRowsGrad", .types = {{"T", Types("REAL|c64|c128")}}}, FillRowsGrad);
}

}  // namespace millrace
