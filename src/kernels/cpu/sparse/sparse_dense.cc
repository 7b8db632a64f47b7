// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sparse tensors with dense ones, element by element; softmax.
#include <algorithm>
#include <cmath>
#include <complex>

#include "absl/strings/str_join.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/index_scatter.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

// For each element of the sparse tensor, the position of what stands at its place in a dense one that is broadcast.
StatusOr<std::vector<int64_t>> PlacesIn(const Tensor& dense, const SparseArg& s) {
  const int64_t offset = s.rank - dense.rank();
  const auto incompatible = [&] {
    return InvalidArgument("SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [",
                           absl::StrJoin(s.dims(), s.dims() + s.rank, ","), "] vs. ", dense.shape().ToString());
  };
  if (offset < 0) return incompatible();
  std::vector<int64_t> strides(static_cast<size_t>(s.rank), 0);
  int64_t stride = 1;
  for (int d = dense.rank() - 1; d >= 0; --d) {
    const int64_t size = dense.dim(d), wanted = s.dims()[offset + d];
    if (size != wanted && size != 1) return incompatible();
    strides[static_cast<size_t>(offset + d)] = size == 1 ? 0 : stride;
    stride *= size;
  }
  MR_RETURN_IF_ERROR(CheckInside(s, "sp_indices"));
  std::vector<int64_t> places(static_cast<size_t>(s.n), 0);
  for (int64_t i = 0; i < s.n; ++i) {
    for (int64_t d = offset; d < s.rank; ++d) {
      places[static_cast<size_t>(i)] += s.at(i)[d] * strides[static_cast<size_t>(d)];
    }
  }
  return places;
}

template <RowOp op, typename T>
Status CwiseOf(KernelContext& ctx, const SparseArg& s, const std::vector<int64_t>& places) {
  const T* dense = ctx.input(3).data<T>();
  if constexpr (op == RowOp::kDiv && std::is_integral_v<T>) {
    for (const int64_t at : places) {
      if (dense[at] == 0) return InvalidArgument("Integer division by zero");
    }
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(s.n)));
  const T* from = s.values->data<T>();
  T* to = out->mutable_data<T>();
  for (int64_t i = 0; i < s.n; ++i) {
    to[i] = from[i];
    CombineInto<op>(to[i], dense[places[static_cast<size_t>(i)]]);
  }
  return absl::OkStatus();
}

template <RowOp op>
Status Cwise(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, 0, "the sparse operand"));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> places, PlacesIn(ctx.input(3), s));
  Status status;
  const bool known =
      VisitNumberTypes(s.values->dtype(), [&]<typename T>() { status = CwiseOf<op, T>(ctx, s, places); });
  return known ? status : Unimplemented("no arithmetic of ", DTypeName(s.values->dtype()));
}

Status DenseAdd(KernelContext& ctx) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2), &b = ctx.input(3);
  if (indices.rank() != 2 || values.rank() != 1 || shape.rank() != 1 || indices.dim(0) != values.dim(0) ||
      indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("a needs indices [n, rank], values [n] and a shape [rank], got ", indices.shape().ToString(),
                           ", ", values.shape().ToString(), " and ", shape.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, shape.IntValues());
  if (!std::equal(dims.begin(), dims.end(), b.shape().dims().begin(), b.shape().dims().end())) {
    return InvalidArgument(
        "the sparse operand is not broadcast and must have the dense one's shape ", b.shape().ToString());
  }
  if (dims.empty()) return InvalidArgument("a sparse tensor to add must have a dimension");
  auto numbers = SliceNumbers(ctx, indices, b.shape());
  if (!numbers.ok()) return Annotate(numbers.status(), "Sparse tensor has an invalid index: ");
  const Tensor places = std::move(*numbers);
  Tensor sum = ctx.TakeInput(3);
  if (!sum.IsInitialized()) {
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(3).shape()));
    RunCopier(out->dtype(), out->num_elements()).CopyOne(out->mutable_raw(), 0, ctx.input(3).raw(), 0);
    sum = *out;
  }
  RowScatter scatter{
      .op = RowOp::kAdd,
      .dtype = sum.dtype(),
      .dst = sum.mutable_raw(),
      .dst_rows = sum.num_elements(),
      .rows = places.data<int64_t>(),
      .n = values.num_elements(),
      .updates = values.raw(),
      .width = 1};
  MR_RETURN_IF_ERROR(ScatterRows(ctx, scatter));
  ctx.set_output(0, std::move(sum));
  return absl::OkStatus();
}

template <typename T>
void SoftmaxOf(const SparseArg& s, const std::vector<int64_t>& order, Tensor& out) {
  using Sum = Accumulator<T>;
  const T* x = s.values->data<T>();
  T* y = out.mutable_data<T>();
  std::vector<Sum> powers;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    Sum top = static_cast<Sum>(x[order[begin]]);
    for (end = begin; end < order.size() && CompareIndices(s.at(order[begin]), s.at(order[end]), s.rank - 1) == 0;
         ++end) {
      top = std::max(top, static_cast<Sum>(x[order[end]]));
    }
    powers.clear();
    Sum sum = 0;
    for (size_t k = begin; k < end; ++k) {
      powers.push_back(std::exp(static_cast<Sum>(x[order[k]]) - top));
      sum += powers.back();
    }
    for (size_t k = begin; k < end; ++k) y[order[k]] = static_cast<T>(powers[k - begin] / sum);
  }
}

Status Softmax(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, 0, "the input"));
  if (s.rank < 2) return InvalidArgument("a sparse softmax needs rank 2 at least, got ", s.rank);
  MR_RETURN_IF_ERROR(DenseShapeOf(s).status());
  MR_RETURN_IF_ERROR(CheckInside(s, "sp_indices"));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(s.n)));
  const std::vector<int64_t> order = RowMajorOrder(s, s.rank - 1);
  const bool known = VisitTypes<float, double, Half>(out->dtype(), [&]<typename T>() { SoftmaxOf<T>(s, order, *out); });
  return known ? absl::OkStatus() : Unimplemented("no softmax of ", DTypeName(out->dtype()));
}

}  // namespace

void RegisterSparseDenseKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "SparseDenseCwiseAdd", .types = {{"T", Types("REAL|c64|c128")}}}, Cwise<RowOp::kAdd>);
  registry.AddFn({.op = "SparseDenseCwiseDiv", .types = {{"T", Types("REAL|c64|c128")}}}, Cwise<RowOp::kDiv>);
  registry.AddFn({.op = "SparseDenseCwiseMul", .types = {{"T", Types("REAL|c64|c128")}}}, Cwise<RowOp::kMul>);
  registry.AddFn({.op = "SparseTensorDenseAdd", .types = {{"T", Types("REAL|c64|c128")}}}, DenseAdd);
  registry.AddFn({.op = "SparseSoftmax", .types = {{"T", Types("f16|f32|f64")}}}, Softmax);
}

}  // namespace millrace
