// SPDX-License-Identifier: Apache-2.0
// Scatter* and ScatterNd* on reference and resource variables. All checks come before the first write; the update runs
// under the variable's lock on a buffer that no reader holds.
#include <algorithm>

#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/index_scatter.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

// Rows of dimension 0: updates are indices.shape + value.shape[1:], or a scalar.
Status UpdateRows(KernelContext& ctx, RowOp op, Tensor* value) {
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  if (value->rank() < 1) return InvalidArgument("the variable must have at least one dimension, it is a scalar");
  const bool one = updates.rank() == 0;
  if (!one) {
    std::vector<int64_t> want = DimsOf(indices.shape(), 0, indices.rank());
    for (int i = 1; i < value->rank(); ++i) want.push_back(value->dim(i));
    MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(want));
    if (!(updates.shape() == shape)) {
      return InvalidArgument(
          "updates have shape ", updates.shape().ToString(), ", but indices of shape ", indices.shape().ToString(),
          " into a variable of shape ", value->shape().ToString(), " want ", shape.ToString(), " or a scalar");
    }
  }
  MR_RETURN_IF_ERROR(CheckIndices("indices", indices, value->dim(0)));
  MR_ASSIGN_OR_RETURN(WideIndices rows, WideIndices::Make(ctx, indices));
  return ScatterRows(
      ctx,
      {.op = op,
       .dtype = value->dtype(),
       .dst = value->mutable_raw(),
       .dst_rows = value->dim(0),
       .rows = rows.data(),
       .n = rows.size(),
       .updates = updates.raw(),
       .one_update = one,
       .width = DimProduct(value->shape(), 1, value->rank())});
}

Status UpdateSlices(KernelContext& ctx, RowOp op, Tensor* value) {
  MR_ASSIGN_OR_RETURN(SliceUpdates at, CheckSliceUpdates(ctx, ctx.input(1), ctx.input(2), value->shape()));
  return ScatterRows(
      ctx,
      {.op = op,
       .dtype = value->dtype(),
       .dst = value->mutable_raw(),
       .dst_rows = at.slices,
       .rows = at.numbers.data<int64_t>(),
       .n = at.numbers.num_elements(),
       .updates = ctx.input(2).raw(),
       .width = at.width});
}

// By reference a quotient of floats by 0 is infinite; by handle TensorFlow refuses it.
Status RefuseZeros(const Tensor& divisors) {
  bool zero = false;
  VisitTypes<float, double, Half, BFloat16, complex64, complex128>(divisors.dtype(), [&]<typename T>() {
    const auto values = divisors.flat<T>();
    zero = std::any_of(
        values.begin(), values.end(), [](T v) { return static_cast<Accumulator<T>>(v) == Accumulator<T>(0); });
  });
  return zero ? InvalidArgument("updates must not contain 0") : absl::OkStatus();
}

Status Apply(KernelContext& ctx, Variable& variable, RowOp op, bool slices) {
  return variable.Update([&](Tensor* value) -> Status {
    if (value->dtype() != ctx.input(2).dtype()) {
      return InvalidArgument(
          "the variable holds ", DTypeName(value->dtype()), ", the updates are ", DTypeName(ctx.input(2).dtype()));
    }
    return slices ? UpdateSlices(ctx, op, value) : UpdateRows(ctx, op, value);
  });
}

template <RowOp op, bool kSlices>
Status RefScatter(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(Apply(ctx, ctx.ref_input(0), op, kSlices));
  ctx.ForwardRef(0, 0);
  return absl::OkStatus();
}

template <RowOp op, bool kSlices>
Status ResourceScatter(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(RefPtr<Variable> variable, ResourceFromInput<Variable>(ctx, 0));
  if (!variable->IsInitialized()) return NotFound("the variable of node '", ctx.node_name(), "' has no value yet");
  if (op == RowOp::kDiv) MR_RETURN_IF_ERROR(RefuseZeros(ctx.input(2)));
  return Apply(ctx, *variable, op, kSlices);
}

template <RowOp op>
void AddRows(KernelRegistry& r, const char* name, const char* types) {
  r.AddFn({.op = absl::StrCat("Scatter", name), .types = {{"T", Types(types)}}}, RefScatter<op, false>);
  r.AddFn(
      {.op = absl::StrCat("ResourceScatter", name), .types = {{"dtype", Types(types)}}}, ResourceScatter<op, false>);
}
template <RowOp op>
void AddSlices(KernelRegistry& r, const char* name, const char* types) {
  r.AddFn({.op = absl::StrCat("ScatterNd", name), .types = {{"T", Types(types)}}}, RefScatter<op, true>);
  r.AddFn({.op = absl::StrCat("ResourceScatterNd", name), .types = {{"T", Types(types)}}}, ResourceScatter<op, true>);
}

}  // namespace

void RegisterStateScatterKernels(KernelRegistry& r) {
  AddRows<RowOp::kAssign>(r, "Update", "NUM|QNT|bool|str|res|var");
  AddRows<RowOp::kAdd>(r, "Add", "REAL|CPX");
  AddRows<RowOp::kSub>(r, "Sub", "REAL|CPX");
  AddRows<RowOp::kMul>(r, "Mul", "REAL|CPX");
  AddRows<RowOp::kDiv>(r, "Div", "REAL|CPX");
  AddRows<RowOp::kMin>(r, "Min", "REAL");
  AddRows<RowOp::kMax>(r, "Max", "REAL");
  AddSlices<RowOp::kAssign>(r, "Update", "NUM|QNT|bool|str|res|var");
  AddSlices<RowOp::kAdd>(r, "Add", "REAL|CPX|bool");
  AddSlices<RowOp::kSub>(r, "Sub", "REAL|CPX|bool");
  AddSlices<RowOp::kMax>(r, "Max", "REAL");
  AddSlices<RowOp::kMin>(r, "Min", "REAL");
}

}  // namespace millrace
