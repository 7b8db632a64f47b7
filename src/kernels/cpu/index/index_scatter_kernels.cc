// SPDX-License-Identifier: Apache-2.0
// ScatterNd and TensorScatter*: scattering into fresh tensors.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/index_scatter.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

Status ScatterInto(KernelContext& ctx, RowOp op, Tensor* out, const SliceUpdates& at, const Tensor& updates) {
  return ScatterRows(
      ctx,
      {.op = op,
       .dtype = out->dtype(),
       .dst = out->mutable_raw(),
       .dst_rows = at.slices,
       .rows = at.numbers.data<int64_t>(),
       .n = at.numbers.num_elements(),
       .updates = updates.raw(),
       .width = at.width,
       .keep_wide = true});
}

Status ScatterNd(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& updates = ctx.input(1);
  MR_RETURN_IF_ERROR(RequireVector("shape", ctx.input(2)));
  MR_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ctx.input(2).IntValues());
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  MR_ASSIGN_OR_RETURN(SliceUpdates at, CheckSliceUpdates(ctx, indices, updates, shape));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
  if (out->dtype() != DType::kString) return ScatterInto(ctx, RowOp::kAdd, out, at, updates);
  const int64_t* rows = at.numbers.data<int64_t>();
  std::vector<std::string> sums(static_cast<size_t>(out->num_elements()));
  for (int64_t i = 0; i < at.numbers.num_elements(); ++i) {
    for (int64_t k = 0; k < at.width; ++k) {
      absl::StrAppend(
          &sums[static_cast<size_t>(rows[i] * at.width + k)], updates.data<TString>()[i * at.width + k].view());
    }
  }
  std::copy(sums.begin(), sums.end(), out->mutable_data<TString>());
  return absl::OkStatus();
}

template <RowOp op>
Status TensorScatter(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("tensor must have at least one dimension, got a scalar");
  // A vector of indices is a column elsewhere, and one place of the tensor here.
  const Tensor& indices = ctx.input(1);
  if (indices.rank() == 1 && ctx.input(2).rank() != in.rank() - indices.dim(0)) {
    return InvalidArgument("updates have rank ", ctx.input(2).rank(), ", but one index of depth ", indices.dim(0),
                           " addresses part of a tensor of shape ", in.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(SliceUpdates at, CheckSliceUpdates(ctx, ctx.input(1), ctx.input(2), in.shape()));
  Tensor out = ctx.TakeInput(0);
  if (!out.IsInitialized()) {
    MR_ASSIGN_OR_RETURN(out, ctx.input(0).Clone(ctx.device().allocator()));
  }
  MR_RETURN_IF_ERROR(ScatterInto(ctx, op, &out, at, ctx.input(2)));
  ctx.set_output(0, std::move(out));
  return absl::OkStatus();
}

// Rows named by input 1; their numbers wrap round.
template <RowOp op>
Status Inplace(KernelContext& ctx) {
  const Shape x = ctx.input(0).shape();
  const Tensor& rows = ctx.input(1);
  const Shape& v = ctx.input(2).shape();
  if (rows.rank() != 1) return InvalidArgument("i must be a vector. ", rows.shape().ToString());
  if (x.rank() != v.rank() || x.rank() < 1) {
    return InvalidArgument("x and v shape doesn't match (ranks differ): ", x.ToString(), " vs. ", v.ToString());
  }
  for (int d = 1; d < x.rank(); ++d) {
    if (x.dim(d) == v.dim(d)) continue;
    return InvalidArgument("x and v shape doesn't match at index ", d, " : ", x.ToString(), " vs. ", v.ToString());
  }
  const int64_t n = rows.num_elements();
  if (n != v.dim(0)) {
    return InvalidArgument("i and x shape doesn't match at index 0: ", rows.shape().ToString(), " vs. ", v.ToString());
  }
  if (x.dim(0) == 0 && n > 0) return InvalidArgument("x has no rows, i names ", n);
  Tensor out = ctx.TakeInput(0);
  if (!out.IsInitialized()) {
    MR_ASSIGN_OR_RETURN(out, ctx.input(0).Clone(ctx.device().allocator()));
  }
  MR_ASSIGN_OR_RETURN(Tensor numbers, ctx.AllocateTemp(DType::kInt64, rows.shape()));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t r = rows.data<int32_t>()[i] % x.dim(0);
    numbers.mutable_data<int64_t>()[i] = r < 0 ? r + x.dim(0) : r;
  }
  SliceUpdates at;
  at.numbers = std::move(numbers);
  at.slices = x.dim(0);
  at.width = DimProduct(x, 1, x.rank());
  MR_RETURN_IF_ERROR(ScatterInto(ctx, op, &out, at, ctx.input(2)));
  ctx.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status InplaceOfOthers(KernelContext& ctx) {
  return InvalidArgument("Unsupported data type: ", DTypeName(ctx.input_dtype(0)));
}

}  // namespace

void RegisterScatterKernels(KernelRegistry& r) {
  r.AddFn({.op = "ScatterNd", .types = {{"T", Types("NUM|bool|str")}}}, ScatterNd);
  r.AddFn({.op = "TensorScatterAdd", .types = {{"T", Types("REAL|CPX")}}}, TensorScatter<RowOp::kAdd>);
  r.AddFn({.op = "TensorScatterSub", .types = {{"T", Types("REAL|CPX")}}}, TensorScatter<RowOp::kSub>);
  r.AddFn({.op = "TensorScatterMax", .types = {{"T", Types("REAL")}}}, TensorScatter<RowOp::kMax>);
  r.AddFn({.op = "TensorScatterMin", .types = {{"T", Types("REAL")}}}, TensorScatter<RowOp::kMin>);
  r.AddFn({.op = "TensorScatterUpdate"}, TensorScatter<RowOp::kAssign>);
  r.AddFn({.op = "ScatterNdNonAliasingAdd", .types = {{"T", Types("REAL|CPX|bool")}}}, TensorScatter<RowOp::kAdd>);
  r.AddFn({.op = "InplaceUpdate"}, Inplace<RowOp::kAssign>);
  r.AddFn({.op = "InplaceAdd", .types = {{"T", Types("REAL|CPX")}}}, Inplace<RowOp::kAdd>);
  r.AddFn({.op = "InplaceSub", .types = {{"T", Types("REAL|CPX")}}}, Inplace<RowOp::kSub>);
  for (const char* op : {"InplaceAdd", "InplaceSub"}) {
    r.AddFn({.op = op, .types = {{"T", Types("bool|str|res|var|qi8|qu8|qi16|qu16|qi32")}}}, InplaceOfOthers);
  }
}

}  // namespace millrace
