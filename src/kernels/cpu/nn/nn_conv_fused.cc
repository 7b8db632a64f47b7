// SPDX-License-Identifier: Apache-2.0
// A convolution with the cheap ops that follow it, as the stage `fuse` puts them together.
#include "absl/strings/match.h"
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/engine/fused_ops.h"
#include "kernels/cpu/nn/nn_conv_kernel.h"

namespace millrace {
namespace {

class FusedConvKernel final : public ConvKernel {
 public:
  explicit FusedConvKernel(bool depthwise) : ConvKernel(ConvPass::kForward, depthwise) {}

  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(ConvKernel::Init(init));
    if (attrs().layout.channels_first()) return Unimplemented("fused convolution of images with their channels first");
    return fused_.Init(init);
  }

  Status Compute(KernelContext& ctx) override {
    ConvShapes shapes;
    ConvGeometry g;
    MR_RETURN_IF_ERROR(ReadShapes(ctx, &shapes, &g));
    return fused_.Run(ctx, shapes.output, [&](const Epilogue& e, Tensor* out) -> Status {
      if (out->num_elements() == 0) return absl::OkStatus();
      if (shapes.input.num_elements() > 0 && shapes.filter.num_elements() > 0) return Run(ctx, g, &e, out);
      const std::vector<float> zeros(static_cast<size_t>(e.channels));
      const int64_t pixels = out->num_elements() / e.channels;
      ApplyEpilogue(e, {zeros.data(), 0, 0, pixels, 0, e.channels}, out->mutable_data<float>());
      return absl::OkStatus();
    });
  }

 private:
  FusedOps fused_;
};

}  // namespace

void RegisterFusedConvKernels(KernelRegistry& r) {
  for (const char* op : {"_FusedConv2D", "_FusedDepthwiseConv2dNative"}) {
    r.AddFactory(
        {.op = op, .types = {{"T", Types("f32")}}, .cost = FusedConvolutionCost},
        [depthwise = absl::StrContains(op, "Depthwise")] { return std::make_unique<FusedConvKernel>(depthwise); });
  }
}

}  // namespace millrace
