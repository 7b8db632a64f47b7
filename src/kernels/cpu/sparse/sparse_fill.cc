// SPDX-License-Identifier: Apache-2.0
// CPU kernels: SparseFillEmptyRows and its gradient.
#include <algorithm>
#include <complex>
#include <numeric>

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

// Whether rows ascend and all have elements: each is that of the element before it or the next.
bool HasEveryRowInOrder(const SparseArg& s) {
  const int64_t *const indices = s.at(0), rows = s.dims()[0];
  if (s.n == 0 || rows <= 0 || indices[0] != 0 || indices[(s.n - 1) * s.rank] != rows - 1) return false;
  bool other = false;
  for (int64_t i = 1; i < s.n; ++i) {
    const auto step = static_cast<uint64_t>(indices[i * s.rank]) - static_cast<uint64_t>(indices[(i - 1) * s.rank]);
    other |= step > 1;
  }
  return !other;
}

// Elements are counted by row; then each goes behind those of its row that came before it. Where no row is empty and
// rows ascend, the input is the output.
Status FillRows(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, 0, "the input"));
  MR_RETURN_IF_ERROR(RequireScalar("default_value", ctx.input(3)));
  if (s.rank == 0) return InvalidArgument("Dense shape cannot be empty");
  const bool unchanged = HasEveryRowInOrder(s);
  if (!unchanged) MR_RETURN_IF_ERROR(CheckRows(s));
  const int64_t *const from = s.at(0), rank = s.rank, rows = s.dims()[0];
  MR_ASSIGN_OR_RETURN(Tensor * empty, ctx.AllocateOutput(2, Shape::Vector(rows)));
  MR_ASSIGN_OR_RETURN(Tensor * moved, ctx.AllocateOutput(3, Shape::Vector(s.n)));
  if (unchanged) {
    std::fill_n(empty->mutable_data<bool>(), rows, false);
    std::iota(moved->mutable_data<int64_t>(), moved->mutable_data<int64_t>() + s.n, int64_t{0});
    ctx.Forward(0, 0);
    ctx.Forward(1, 1);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Tensor counts, ctx.AllocateTemp(DType::kInt64, Shape::Vector(rows)));
  int64_t* const places = counts.mutable_data<int64_t>();
  std::fill_n(places, rows, int64_t{0});
  for (int64_t i = 0; i < s.n; ++i) ++places[from[i * rank]];
  int64_t n = 0;
  if (!CheckedAdd(s.n, std::count(places, places + rows, int64_t{0}), &n)) {
    return InvalidArgument("the number of elements overflows");
  }
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, rank}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(n)));
  const RunCopier copier(values->dtype(), 1);
  int64_t* const to = indices->mutable_data<int64_t>();
  int64_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t count = places[row];
    empty->mutable_data<bool>()[row] = count == 0;
    places[row] = at;
    if (count == 0) {
      to[at * rank] = row;
      std::fill_n(to + at * rank + 1, rank - 1, int64_t{0});
      copier.CopyOne(values->mutable_raw(), at, ctx.input(3).raw(), 0);
    }
    at += std::max<int64_t>(count, 1);
  }
  int64_t* const place = moved->mutable_data<int64_t>();
  for (int64_t i = 0; i < s.n; ++i) {
    place[i] = places[from[i * rank]]++;
    for (int64_t d = 0; d < rank; ++d) to[place[i] * rank + d] = from[i * rank + d];
  }
  copier.Scatter(values->mutable_raw(), place, s.values->raw(), 1, s.n);
  return absl::OkStatus();
}

Status FillRowsGrad(KernelContext& ctx) {
  const Tensor &map = ctx.input(0), &grad = ctx.input(1);
  MR_RETURN_IF_ERROR(RequireVector("reverse_index_map", map));
  MR_RETURN_IF_ERROR(RequireVector("grad_values", grad));
  MR_RETURN_IF_ERROR(CheckIndices("reverse_index_map", map, grad.dim(0)));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, map.shape()));
  MR_ASSIGN_OR_RETURN(Tensor * rest, ctx.AllocateOutput(1, Shape()));
  const int64_t* const from = map.data<int64_t>();
  RunCopier(grad.dtype(), 1).Gather(values->mutable_raw(), grad.raw(), from, map.dim(0));
  std::vector<uint8_t> seen(static_cast<size_t>(grad.dim(0)));
  for (int64_t i = 0; i < map.dim(0); ++i) seen[static_cast<size_t>(from[i])] = 1;
  const bool known = VisitNumberTypes(grad.dtype(), [&]<typename T>() {
    Accumulator<T> sum{};
    const T* const grads = grad.data<T>();
    for (auto at = seen.begin(); (at = std::find(at, seen.end(), 0)) != seen.end(); ++at) {
      CombineInto<RowOp::kAdd>(sum, grads[at - seen.begin()]);
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
