// SPDX-License-Identifier: Apache-2.0
// A convolution with the cheap ops that follow it, as the stage `fuse` puts them together.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/nn/nn_conv_epilogue.h"
#include "kernels/cpu/nn/nn_conv_kernel.h"

namespace millrace {
namespace {

// `t` repeated to the larger shape.
StatusOr<Tensor> Broadcast(KernelContext& ctx, const Tensor& t, const Shape& to) {
  if (t.shape() == to) return t;
  MR_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(t.dtype(), to));
  const auto in_strides = RowMajorStrides(t.shape()), out_strides = RowMajorStrides(to);
  const int shift = to.rank() - t.rank();
  CopyDims dims;
  for (int d = 0; d < to.rank(); ++d) {
    const bool repeats = d < shift || t.dim(d - shift) == 1;
    const int64_t from = repeats ? 0 : in_strides[static_cast<size_t>(d - shift)];
    dims.push_back({to.dim(d), out_strides[static_cast<size_t>(d)], from});
  }
  StridedCopy(&ctx, t.dtype(), out.mutable_raw(), t.raw(), dims);
  return out;
}

class FusedConvKernel final : public ConvKernel {
 public:
  explicit FusedConvKernel(bool depthwise) : ConvKernel(ConvPass::kForward, depthwise) {}

  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(ConvKernel::Init(init));
    if (attrs().layout.channels_first()) return Unimplemented("fused convolution of images with their channels first");
    MR_ASSIGN_OR_RETURN(const auto ops, init.Attr<std::vector<std::string>>("fused_ops"));
    MR_ASSIGN_OR_RETURN(const float epsilon, init.Attr<float>("epsilon"));
    epsilon_ = static_cast<double>(epsilon);
    MR_ASSIGN_OR_RETURN(const auto names, init.Attr<std::vector<std::string>>("fused_names"));
    names_ = absl::StrJoin(names, ", ");
    size_t at = 0;
    int next = 2;
    const auto takes = [&](absl::string_view op, int args, int* where) {
      if (at == ops.size() || ops[at] != op) return false;
      if (where != nullptr) *where = next;
      next += args;
      ++at;
      return true;
    };
    takes("BiasAdd", 1, &bias_);
    takes("FusedBatchNorm", 4, &norm_);
    takes("Add", 1, &residual_);
    if (takes("Relu", 0, nullptr)) {
      activation_ = ConvActivation::kRelu;
    } else if (takes("Relu6", 0, nullptr)) {
      activation_ = ConvActivation::kRelu6;
    }
    if (at != ops.size()) return Unimplemented("fused_ops ", absl::StrJoin(ops, ", "));
    if (next != init.num_inputs()) {
      return InvalidArgument(
          "fused_ops ", absl::StrJoin(ops, ", "), " want ", next, " inputs, got ", init.num_inputs());
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Status s = ComputeAll(ctx);
    if (s.ok() || names_.empty()) return s;
    return Status(s.code(), absl::StrCat(s.message(), " (this node stands for ", names_, ")"));
  }

 private:
  Status ComputeAll(KernelContext& ctx) const {
    ConvShapes shapes;
    ConvGeometry g;
    MR_RETURN_IF_ERROR(ReadShapes(ctx, &shapes, &g));
    ConvEpilogue epilogue{.activation = activation_, .channels = g.out_channels};
    std::vector<float> factor;
    MR_RETURN_IF_ERROR(ReadVectors(ctx, &epilogue, &factor));
    if (residual_ > 0 && !(ctx.input(residual_).shape() == shapes.output)) {
      return AddBroadcast(ctx, shapes, g, epilogue);
    }
    Tensor* out = nullptr;
    if (residual_ > 0) {
      MR_ASSIGN_OR_RETURN(out, ctx.ForwardOrAllocate({residual_}, 0, shapes.output));
      epilogue.residual = ctx.input(residual_).data<float>();
    } else {
      MR_ASSIGN_OR_RETURN(out, ctx.AllocateOutput(0, shapes.output));
    }
    return RunAll(ctx, shapes, g, epilogue, out);
  }

  Status ReadVectors(KernelContext& ctx, ConvEpilogue* e, std::vector<float>* factor) const {
    const auto vector = [&](int i, absl::string_view name) -> StatusOr<const float*> {
      const Tensor& t = ctx.input(i);
      if (t.rank() == 1 && t.num_elements() == e->channels) return t.data<float>();
      return InvalidArgument(name, " must have shape [", e->channels, "], got ", t.shape().ToString());
    };
    if (bias_ > 0) {
      MR_ASSIGN_OR_RETURN(e->bias, vector(bias_, "bias"));
    }
    if (norm_ == 0) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const float* const scale, vector(norm_, "scale"));
    MR_ASSIGN_OR_RETURN(e->offset, vector(norm_ + 1, "offset"));
    MR_ASSIGN_OR_RETURN(e->mean, vector(norm_ + 2, "mean"));
    MR_ASSIGN_OR_RETURN(const float* const variance, vector(norm_ + 3, "variance"));
    factor->resize(static_cast<size_t>(e->channels));
    for (size_t c = 0; c < factor->size(); ++c) {
      (*factor)[c] =
          static_cast<float>(static_cast<double>(scale[c]) / std::sqrt(static_cast<double>(variance[c]) + epsilon_));
    }
    e->factor = factor->data();
    return absl::OkStatus();
  }

  Status RunAll(KernelContext& ctx, const ConvShapes& shapes, const ConvGeometry& g, const ConvEpilogue& e,
                Tensor* out) const {
    if (out->num_elements() == 0) return absl::OkStatus();
    if (shapes.input.num_elements() > 0 && shapes.filter.num_elements() > 0) return Run(ctx, g, &e, out);
    const std::vector<float> zeros(static_cast<size_t>(e.channels));
    FinishConv(e, {zeros.data(), 0, 0, out->num_elements() / e.channels, 0, e.channels}, out->mutable_data<float>());
    return absl::OkStatus();
  }

  // What is added has another shape, which only now is known: the sum comes after all the rest.
  Status AddBroadcast(KernelContext& ctx, const ConvShapes& shapes, const ConvGeometry& g, ConvEpilogue e) const {
    const Tensor& other = ctx.input(residual_);
    MR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(shapes.output, other.shape()));
    MR_ASSIGN_OR_RETURN(Tensor made, ctx.AllocateTemp(DType::kFloat, shapes.output));
    e.activation = ConvActivation::kNone;
    MR_RETURN_IF_ERROR(RunAll(ctx, shapes, g, e, &made));
    MR_ASSIGN_OR_RETURN(const Tensor left, Broadcast(ctx, made, shape));
    MR_ASSIGN_OR_RETURN(const Tensor right, Broadcast(ctx, other, shape));
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, shape));
    const int64_t n = shape.num_elements();
    const ConvEpilogue sum{.residual = right.data<float>(), .activation = activation_, .channels = n};
    if (n > 0) FinishConv(sum, {left.data<float>(), n, 0, 1, 0, n}, out->mutable_data<float>());
    return absl::OkStatus();
  }

  // The first input of each that follows; 0: it does not.
  int bias_ = 0, norm_ = 0, residual_ = 0;
  ConvActivation activation_ = ConvActivation::kNone;
  double epsilon_ = 0;
  std::string names_;  // of the nodes that it stands for
};

}  // namespace

void RegisterFusedConvKernels(KernelRegistry& r) {
  for (const char* op : {"_FusedConv2D", "_FusedDepthwiseConv2dNative"}) {
    r.AddFactory({.op = op, .types = {{"T", Types("f32")}}}, [depthwise = absl::StrContains(op, "Depthwise")] {
      return std::make_unique<FusedConvKernel>(depthwise);
    });
  }
}

}  // namespace millrace
