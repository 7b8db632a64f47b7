// SPDX-License-Identifier: Apache-2.0
// PeriodicResample and its gradient.
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/index_scatter.h"
#include "kernels/cpu/index/index_kernels.h"
#include "tensor/periodic.h"

namespace millrace {
namespace {

// Where each element of the result lies among the values.
StatusOr<Tensor> PlacesOfAll(KernelContext& ctx, const PeriodicSizes& sizes, const Shape& values) {
  MR_ASSIGN_OR_RETURN(Tensor all, ctx.AllocateTemp(DType::kInt64, sizes.shape));
  int64_t* const out = all.mutable_data<int64_t>();
  out[0] = 0;
  int64_t done = 1;  // of the last dimensions; the first copy of them is made, the others follow
  const std::vector<std::vector<int64_t>> places = sizes.PlacesIn(values);
  for (size_t d = places.size(); d-- > 0;) {
    const auto count = static_cast<int64_t>(places[d].size());
    for (int64_t s = count - 1; s >= 0; --s) {  // the first last: it is what the others are made of
      for (int64_t i = 0; i < done; ++i) out[s * done + i] = out[i] + places[d][static_cast<size_t>(s)];
    }
    done *= count;
  }
  MR_RETURN_IF_ERROR(CheckIndices("the place of", all, values.num_elements()));
  return all;
}

class PeriodicResampleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(wanted_, init.Attr<PartialShape>("shape"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(0);
    MR_ASSIGN_OR_RETURN(const PeriodicSizes sizes, PeriodicSizesOf(values.shape(), wanted_));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, sizes.shape));
    MR_ASSIGN_OR_RETURN(const Tensor places, PlacesOfAll(ctx, sizes, values.shape()));
    RunCopier(values.dtype(), 1).Gather(out->mutable_raw(), values.raw(), places.data<int64_t>(), out->num_elements());
    return absl::OkStatus();
  }

 private:
  PartialShape wanted_;
};

class PeriodicResampleGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const PartialShape original, init.Attr<PartialShape>("original_shape"));
    MR_ASSIGN_OR_RETURN(const PartialShape wanted, init.Attr<PartialShape>("desired_shape"));
    MR_ASSIGN_OR_RETURN(original_, original.ToShape());
    MR_ASSIGN_OR_RETURN(sizes_, PeriodicSizesOf(original_, wanted));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& grad = ctx.input(0);
    if (grad.shape() != sizes_.shape) {
      return InvalidArgument("the gradient has shape ", grad.shape().ToString(), ", want ", sizes_.shape.ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, original_));
    MR_ASSIGN_OR_RETURN(const Tensor places, PlacesOfAll(ctx, sizes_, original_));
    ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
    return ScatterRows(
        ctx,
        {.op = RowOp::kAdd,
         .dtype = grad.dtype(),
         .dst = out->mutable_raw(),
         .dst_rows = out->num_elements(),
         .rows = places.data<int64_t>(),
         .n = grad.num_elements(),
         .updates = grad.raw(),
         .width = 1,
         .keep_wide = true});
  }

 private:
  Shape original_;
  PeriodicSizes sizes_;
};

}  // namespace

void RegisterPeriodicKernels(KernelRegistry& r) {
  r.Add<PeriodicResampleKernel>({.op = "PeriodicResample", .types = {{"T", Types("REAL|CPX")}}});
  r.Add<PeriodicResampleGradKernel>({.op = "PeriodicResampleOpGrad", .types = {{"T", Types("REAL|CPX")}}});
}

}  // namespace millrace
