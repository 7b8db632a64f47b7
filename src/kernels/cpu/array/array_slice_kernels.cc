// SPDX-License-Identifier: Apache-2.0
// CPU kernels: parts of tensors. A part that is one run in memory shares the input's buffer where alignment allows.
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {

StatusOr<StridedSliceMasks> ReadStridedSliceMasks(const KernelInit& init) {
  StridedSliceMasks m;
  MR_ASSIGN_OR_RETURN(m.begin, init.Attr<int64_t>("begin_mask"));
  MR_ASSIGN_OR_RETURN(m.end, init.Attr<int64_t>("end_mask"));
  MR_ASSIGN_OR_RETURN(m.ellipsis, init.Attr<int64_t>("ellipsis_mask"));
  MR_ASSIGN_OR_RETURN(m.new_axis, init.Attr<int64_t>("new_axis_mask"));
  MR_ASSIGN_OR_RETURN(m.shrink_axis, init.Attr<int64_t>("shrink_axis_mask"));
  return m;
}

StatusOr<StridedSlice> ReadStridedSlice(const KernelContext& ctx, int first, const StridedSliceMasks& masks,
                                        const Shape& of) {
  MR_ASSIGN_OR_RETURN(Ints begin, IntVectorOf(ctx.input(first), "begin"));
  MR_ASSIGN_OR_RETURN(Ints end, IntVectorOf(ctx.input(first + 1), "end"));
  MR_ASSIGN_OR_RETURN(Ints strides, IntVectorOf(ctx.input(first + 2), "strides"));
  return ResolveStridedSlice(of.dims(), absl::MakeConstSpan(begin), absl::MakeConstSpan(end), strides, masks);
}

namespace {

// Where a slice lies within a tensor of shape `of`: element number of its first element, and per dimension the size and
// the distance between elements.
struct Placement {
  int64_t first = 0;
  absl::InlinedVector<CopyDim, 8> dims;  // dst_stride: within the slice, src_stride: within the tensor
  bool one_run = true;
};

Placement Place(const StridedSlice& slice, const Shape& of) {
  Placement p;
  const auto strides = RowMajorStrides(of);
  p.dims.resize(slice.dims.size());
  int64_t dense = 1;  // stride that a contiguous slice would have here
  for (size_t i = slice.dims.size(); i-- > 0;) {
    const StridedSlice::Dim& d = slice.dims[i];
    p.first += d.begin * strides[i];
    p.dims[i] = {d.size, dense, d.stride * strides[i]};
    if (d.size != 1 && p.dims[i].src_stride != dense) p.one_run = false;
    dense *= d.size;
  }
  return p;
}

Status TakeSlice(KernelContext& ctx, const StridedSlice& slice, const Shape& shape) {
  const Tensor& in = ctx.input(0);
  if (slice.identity) return ctx.ForwardReshaped(0, 0, shape);
  if (shape.num_elements() == 0) return ctx.AllocateOutput(0, shape).status();
  const Placement p = Place(slice, in.shape());
  if (p.one_run) {
    MR_ASSIGN_OR_RETURN(Tensor part, ContiguousPart(ctx, in, p.first, shape));
    ctx.set_output(0, std::move(part));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  StridedCopy(&ctx, in.dtype(), out->mutable_raw(), ElementAt(in.raw(), in.dtype(), p.first), p.dims);
  return absl::OkStatus();
}

Status Slice(KernelContext& ctx) {
  const Shape& in = ctx.input(0).shape();
  if (ctx.input(1).rank() != 1 || ctx.input(2).rank() != 1) {
    return InvalidArgument(
        "Expected begin and size arguments to be 1-D tensors of size ", in.rank(), ", but got shapes ",
        ctx.input(1).shape().ToString(), " and ", ctx.input(2).shape().ToString(), " instead.");
  }
  MR_ASSIGN_OR_RETURN(Ints begin, IntVectorOf(ctx.input(1), "begin"));
  MR_ASSIGN_OR_RETURN(Ints size, IntVectorOf(ctx.input(2), "size"));
  if (begin.size() != static_cast<size_t>(in.rank()) || size.size() != begin.size()) {
    return InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ", in.rank(), ", but got ",
                           begin.size(), " and ", size.size(), " instead.");
  }
  StridedSlice slice;
  slice.identity = true;
  for (int i = 0; i < in.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    if (begin[k] < 0 || begin[k] > in.dim(i)) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", in.dim(i), "], but got ", begin[k]);
    }
    const int64_t most = in.dim(i) - begin[k];
    if (size[k] == -1) size[k] = most;
    if (size[k] < 0 || size[k] > most) {
      return InvalidArgument("Expected size[", i, "] in [0, ", most, "], but got ", size[k]);
    }
    slice.dims.push_back({.begin = begin[k], .stride = 1, .size = size[k]});
    slice.identity = slice.identity && size[k] == in.dim(i);
  }
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(absl::MakeConstSpan(size)));
  return TakeSlice(ctx, slice, shape);
}

class MaskedKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(masks_, ReadStridedSliceMasks(init));
    return absl::OkStatus();
  }

 protected:
  StridedSliceMasks masks_;
};

class StridedSliceKernel : public MaskedKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(StridedSlice slice, ReadStridedSlice(ctx, 1, masks_, ctx.input(0).shape()));
    MR_ASSIGN_OR_RETURN(Shape shape, slice.KnownOutputShape());
    return TakeSlice(ctx, slice, shape);
  }
};

class StridedSliceGradKernel : public MaskedKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Shape shape, ShapeOf(ctx.input(0), "shape"));
    MR_ASSIGN_OR_RETURN(StridedSlice slice, ReadStridedSlice(ctx, 1, masks_, shape));
    MR_ASSIGN_OR_RETURN(Shape part, slice.KnownOutputShape());
    const Tensor& dy = ctx.input(4);
    if (!(dy.shape() == part)) {
      return InvalidArgument("shape of dy was ", dy.shape().ToString(), " instead of ", part.ToString());
    }
    if (slice.identity) return ctx.ForwardReshaped(4, 0, shape);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (IsPlain(out->dtype())) {
      FillElements(&ctx, DType::kUInt8, out->mutable_raw(), "", static_cast<int64_t>(out->TotalBytes()));
    }
    return WriteStridedSlice(ctx, slice, dy, out);
  }
};

class StridedSliceAssignKernel : public MaskedKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(ctx.ref_input(0).Update([&](Tensor* target) -> Status {
      MR_ASSIGN_OR_RETURN(StridedSlice slice, ReadStridedSlice(ctx, 1, masks_, target->shape()));
      return WriteStridedSlice(ctx, slice, ctx.input(4), target);
    }));
    ctx.ForwardRef(0, 0);
    return absl::OkStatus();
  }
};

class ResourceStridedSliceAssignKernel : public MaskedKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<Variable> variable, ResourceFromInput<Variable>(ctx, 0));
    if (variable->dtype() != ctx.input(4).dtype()) {
      return InvalidArgument("l-value dtype ", DTypeName(variable->dtype()), " does not match r-value dtype ",
                             DTypeName(ctx.input(4).dtype()));
    }
    return variable->Update([&](Tensor* target) -> Status {
      MR_ASSIGN_OR_RETURN(StridedSlice slice, ReadStridedSlice(ctx, 1, masks_, target->shape()));
      return WriteStridedSlice(ctx, slice, ctx.input(4), target);
    });
  }
};

class TensorStridedSliceUpdateKernel : public MaskedKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(StridedSlice slice, ReadStridedSlice(ctx, 1, masks_, ctx.input(0).shape()));
    Tensor out = ctx.TakeInput(0);
    if (!out.IsInitialized()) {
      MR_ASSIGN_OR_RETURN(out, ctx.input(0).Clone(ctx.device().allocator()));
    }
    MR_RETURN_IF_ERROR(WriteStridedSlice(ctx, slice, ctx.input(4), &out));
    ctx.set_output(0, std::move(out));
    return absl::OkStatus();
  }
};

// Reads `value` as if it were broadcast to `part`: the steps within it become 0 where its size is 1. Dimensions of size
// 1 on either side, such as those that the masks add and remove, have no part in this.
Status Repeat(const Shape& value, const Shape& part, Placement* p) {
  const int missing = part.rank() - value.rank();
  for (int i = 0; i < value.rank(); ++i) {
    const int64_t want = i + missing < 0 ? 1 : part.dim(i + missing);
    if (value.dim(i) != 1 && value.dim(i) != want) {
      return InvalidArgument(
          "a value of shape ", value.ToString(), " does not broadcast to the slice's shape ", part.ToString());
    }
  }
  int64_t dense = 1;
  int at = part.rank() - 1;
  for (size_t i = p->dims.size(); i-- > 0;) {
    CopyDim& d = p->dims[i];
    d.src_stride = 0;
    if (d.size == 1) continue;
    while (part.dim(at) == 1) --at;
    const int source = at-- - missing;
    if (source < 0 || value.dim(source) == 1) continue;
    d.src_stride = dense;
    dense *= d.size;
  }
  return absl::OkStatus();
}

}  // namespace

Status WriteStridedSlice(const KernelContext& ctx, const StridedSlice& slice, const Tensor& value, Tensor* target) {
  MR_ASSIGN_OR_RETURN(Shape part, slice.KnownOutputShape());
  if (part.num_elements() == 0) return absl::OkStatus();
  Placement p = Place(slice, target->shape());
  for (CopyDim& d : p.dims) std::swap(d.dst_stride, d.src_stride);
  if (!(value.shape() == part)) MR_RETURN_IF_ERROR(Repeat(value.shape(), part, &p));
  StridedCopy(&ctx, target->dtype(), ElementAt(target->mutable_raw(), target->dtype(), p.first), value.raw(), p.dims);
  return absl::OkStatus();
}

void RegisterArraySliceKernels(KernelRegistry& r) {
  r.AddFn({.op = "Slice", .cost = TakeCost}, Slice);
  r.Add<StridedSliceKernel>({.op = "StridedSlice", .cost = TakeCost});
  r.Add<StridedSliceGradKernel>({.op = "StridedSliceGrad"});
  r.Add<StridedSliceAssignKernel>({.op = "StridedSliceAssign"});
  r.Add<ResourceStridedSliceAssignKernel>({.op = "ResourceStridedSliceAssign"});
  r.Add<TensorStridedSliceUpdateKernel>({.op = "TensorStridedSliceUpdate"});
}

}  // namespace millrace
