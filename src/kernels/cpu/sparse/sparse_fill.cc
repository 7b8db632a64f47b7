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
  for (int64_t i = 0; i < s.n; ++i) {
    if (!InRange(s.at(i)[0], rows)) {
      return IndexOutOfRange("indices", s.indices->shape(), i * s.rank, s.at(i)[0], rows);
    }
  }
  return absl::OkStatus();
}

Status FillRows(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, 0, "the input"));
  MR_RETURN_IF_ERROR(RequireScalar("default_value", ctx.input(3)));
  if (s.rank == 0) return InvalidArgument("Dense shape cannot be empty");
  MR_RETURN_IF_ERROR(CheckRows(s));
  const int64_t rows = s.dims()[0];
  const std::vector<int64_t> order = RowMajorOrder(s, 1);
  int64_t full = 0;  // rows that have elements
  for (int64_t i = 0; i < s.n; ++i) {
    full += i == 0 || s.at(order[static_cast<size_t>(i)])[0] != s.at(order[static_cast<size_t>(i - 1)])[0] ? 1 : 0;
  }
  int64_t n = 0;
  if (!CheckedAdd(s.n, rows - full, &n)) return InvalidArgument("the number of elements overflows");
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, s.rank}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(n)));
  MR_ASSIGN_OR_RETURN(Tensor * empty, ctx.AllocateOutput(2, Shape::Vector(rows)));
  MR_ASSIGN_OR_RETURN(Tensor * moved, ctx.AllocateOutput(3, Shape::Vector(s.n)));
  const RunCopier copier(values->dtype(), 1);
  int64_t* to = indices->mutable_data<int64_t>();
  int64_t at = 0;
  size_t next = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const size_t first = next;
    for (; next < order.size() && s.at(order[next])[0] == row; ++next, ++at) {
      to = std::copy(s.at(order[next]), s.at(order[next]) + s.rank, to);
      copier.CopyOne(values->mutable_raw(), at, s.values->raw(), order[next]);
      moved->mutable_data<int64_t>()[order[next]] = at;
    }
    empty->mutable_data<bool>()[row] = next == first;
    if (next > first) continue;
    *to = row;
    std::fill(to + 1, to + s.rank, int64_t{0});
    to += s.rank;
    copier.CopyOne(values->mutable_raw(), at++, ctx.input(3).raw(), 0);
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
