// SPDX-License-Identifier: Apache-2.0
// ScatterNd and TensorScatter*: scattering into fresh tensors.
#include <cstring>

#include "kernels/cpu/index_kernels.h"
#include "kernels/cpu/index_rows.h"
#include "kernels/cpu/index_scatter.h"

namespace millrace {
namespace {

// updates must be indices.shape[:-1] + target.shape[depth:].
Status CheckUpdates(const Tensor& indices, const Tensor& updates, const Shape& target) {
  if (indices.rank() < 1) return InvalidArgument("indices must have at least one dimension, got a scalar");
  const int lead = indices.rank() - 1;
  const int64_t depth = indices.dim(lead);
  if (depth < 1 || depth > target.rank()) {
    return InvalidArgument("indices of depth ", depth, " cannot address a tensor of shape ", target.ToString());
  }
  std::vector<int64_t> want = DimsOf(indices.shape(), 0, lead);
  for (int i = static_cast<int>(depth); i < target.rank(); ++i) want.push_back(target.dim(i));
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(want));
  if (updates.shape() == shape) return absl::OkStatus();
  return InvalidArgument("updates have shape ", updates.shape().ToString(), ", but indices of shape ",
                         indices.shape().ToString(), " into ", target.ToString(), " want ", shape.ToString());
}

Status ScatterInto(KernelContext& ctx, RowOp op, Tensor* out, const Tensor& indices, const Tensor& updates) {
  const int depth = static_cast<int>(indices.dim(indices.rank() - 1));
  MR_ASSIGN_OR_RETURN(Tensor numbers, SliceNumbers(ctx, indices, out->shape()));
  return ScatterRows(ctx, {.op = op,
                           .dtype = out->dtype(),
                           .dst = out->mutable_raw(),
                           .dst_rows = DimProduct(out->shape(), 0, depth),
                           .rows = numbers.data<int64_t>(),
                           .n = numbers.num_elements(),
                           .updates = updates.raw(),
                           .width = DimProduct(out->shape(), depth, out->rank()),
                           .keep_wide = true});
}

Status ScatterNd(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& updates = ctx.input(1);
  MR_RETURN_IF_ERROR(RequireVector("shape", ctx.input(2)));
  MR_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ctx.input(2).IntValues());
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  MR_RETURN_IF_ERROR(CheckUpdates(indices, updates, shape));
  if (shape.num_elements() == 0 && updates.num_elements() > 0) {
    return InvalidArgument("updates of shape ", updates.shape().ToString(), " do not fit into the empty shape ",
                           shape.ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
  // Strings cannot add up; the last one stays.
  const bool adds = IsPlain(out->dtype());
  return ScatterInto(ctx, adds ? RowOp::kAdd : RowOp::kAssign, out, indices, updates);
}

template <RowOp op>
Status TensorScatter(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("tensor must have at least one dimension, got a scalar");
  MR_RETURN_IF_ERROR(CheckUpdates(ctx.input(1), ctx.input(2), in.shape()));
  const Tensor indices = ctx.input(1), updates = ctx.input(2);
  Tensor out = ctx.TakeInput(0);
  if (!out.IsInitialized()) {
    MR_ASSIGN_OR_RETURN(out, ctx.input(0).Clone(ctx.device().allocator()));
  }
  MR_RETURN_IF_ERROR(ScatterInto(ctx, op, &out, indices, updates));
  ctx.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

void RegisterScatterKernels(KernelRegistry& r) {
  r.AddFn({.op = "ScatterNd", .types = {{"T", Types("NUM|bool|str")}}}, ScatterNd);
  r.AddFn({.op = "TensorScatterAdd", .types = {{"T", Types("REAL|CPX")}}}, TensorScatter<RowOp::kAdd>);
  r.AddFn({.op = "TensorScatterSub", .types = {{"T", Types("REAL|CPX")}}}, TensorScatter<RowOp::kSub>);
  r.AddFn({.op = "TensorScatterUpdate"}, TensorScatter<RowOp::kAssign>);
}

}  // namespace millrace
