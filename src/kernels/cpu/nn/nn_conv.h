// SPDX-License-Identifier: Apache-2.0
// Convolution on plain memory: images channels-last, filters [taps][in / groups][out]. Depthwise convolution is the
// grouped one with as many groups as input channels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernel/kernel_registry.h"
#include "tensor/window.h"

namespace millrace {

enum class ConvPass : uint8_t { kForward, kBackwardInput, kBackwardFilter };

// Sizes are those of the forward convolution, all positive. Entry 0 of the arrays is depth: ones for images.
struct ConvGeometry {
  bool volumetric = false;
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::array<int64_t, 3> in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> pad_before{0, 0, 0}, pad_after{0, 0, 0};

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }  // of one image
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  bool depthwise() const { return groups == in_channels && groups == out_channels && groups > 1; }
  int64_t window(size_t axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
  // Multiplications and additions of one pass; only an estimate of cost.
  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(out_pixels()) * static_cast<double>(taps()) *
           static_cast<double>(group_in()) * static_cast<double>(out_channels);
  }
};

struct Epilogue;

// The pass reads two of the three and writes the third: output, input or filter.
struct ConvOperands {
  void* input = nullptr;
  void* filter = nullptr;
  void* output = nullptr;
  // The input that `filter` is the value of, if it is one as it stands: packed forms of it may be kept.
  const Tensor* filter_value = nullptr;
  // Of a forward pass over float32: what is done to the output while it is near; null: nothing. With a residual, which
  // may be the memory of the output, the convolution itself goes elsewhere first.
  const Epilogue* epilogue = nullptr;
};

// Direct convolution by our own loops, for T = float, double, int32_t. Any geometry.
template <typename T>
Status DirectConv(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v);

// Depthwise convolutions by rows, of float and double, forward or back to the input; whether they are such.
template <typename T>
bool DepthwiseByRows(ConvPass pass, const ConvGeometry& g, const ConvOperands& v);
template <typename T>
Status RunDepthwiseByRows(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v);

// The forward pass over float32 where pixels are so few that packing the filter would take half as long as the
// arithmetic. OneDnnConv leaves it to this.
bool HasFewPixels(const ConvGeometry& g);
Status FewPixelsConv(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v);
std::vector<double> FewPixelsParts(const ConvGeometry& g);  // as OneDnnConvParts

// float32, or bfloat16 with float32 sums, by oneDNN; Unimplemented where it has no fast code (nothing was written
// then). Results depend on the geometry only, never on threads.
Status OneDnnConv(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v, bool bf16);

// What OneDnnConv gives to threads: the operations of each part, in the order in which they are taken. Of the filter's
// gradient without the sum of the parts.
std::vector<double> OneDnnConvParts(ConvPass pass, const ConvGeometry& g);

void RegisterConvKernels(KernelRegistry& registry);
void RegisterPaddedConvKernels(KernelRegistry& registry);  // nn_conv_padded.cc
void RegisterFusedConvKernels(KernelRegistry& registry);   // nn_conv_fused.cc

}  // namespace millrace
