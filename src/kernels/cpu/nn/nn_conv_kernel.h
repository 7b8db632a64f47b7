// SPDX-License-Identifier: Apache-2.0
// The convolution kernel, for those that build on it.
#pragma once

#include <string>

#include "kernels/cpu/nn/nn_conv.h"
#include "kernels/cpu/nn/nn_layout.h"

namespace millrace {

struct ConvShapes {
  Shape input;  // in the op's own layout
  Shape filter;
  Shape output;
};

// Convolution and its two gradients: inputs as Conv2D and its kin have them.
class ConvKernel : public Kernel {
 public:
  ConvKernel(ConvPass pass, bool depthwise) : pass_(pass), depthwise_(depthwise) {}
  Status Init(const KernelInit& init) override;
  Status Compute(KernelContext& ctx) override;

 protected:
  Status ReadShapes(KernelContext& ctx, ConvShapes* shapes, ConvGeometry* g) const;
  // The pass, into `out`, which is not empty; of a forward pass over float32 images with their channels last, all that
  // `epilogue` (null: nothing) does too.
  Status Run(KernelContext& ctx, const ConvGeometry& g, const Epilogue* epilogue, Tensor* out) const;
  const WindowAttrs& attrs() const { return attrs_; }

 private:
  StatusOr<Shape> InputSizes(const Tensor& sizes, const Shape& filter, const Shape& backprop) const;
  Status RunAs(KernelContext& ctx, const ConvGeometry& g, DType type, bool multiplied, const Epilogue* epilogue,
               Tensor* out) const;
  StatusOr<Tensor> Operand(KernelContext& ctx, int i, bool image, bool widen) const;
  Status Deliver(KernelContext& ctx, Tensor result, bool turned, bool narrow, Tensor* out) const;

  const ConvPass pass_;
  const bool depthwise_;
  WindowAttrs attrs_;
};

}  // namespace millrace
