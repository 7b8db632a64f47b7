// SPDX-License-Identifier: Apache-2.0
// The arithmetic of sliding windows (convolution, pooling), shared by shape functions and kernels, and the data formats
// and paddings that say how an op slides them. Pure functions; every product and sum is checked.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace millrace {

enum class Padding : uint8_t { kValid, kSame, kExplicit };
StatusOr<Padding> ParsePadding(absl::string_view text);  // "VALID", "SAME", "EXPLICIT"

// Which dimension of an image tensor is what. Batch is always dimension 0.
struct ImageLayout {
  int rank = 4;
  int channel = 3;
  int first_spatial = 1;  // the spatial dimensions follow each other
  bool channels_first() const { return channel == 1; }
  int num_spatial() const { return rank - 2; }
};
// "NHWC", "NCHW" (rank 4), "NDHWC", "NCDHW" (rank 5).
StatusOr<ImageLayout> ParseImageLayout(absl::string_view format);

// One dimension of a window that slides over `input` cells. Padding counts cells before and after them.
struct WindowExtent {
  int64_t output = 0;
  int64_t pad_before = 0;
  int64_t pad_after = 0;
};

// Padding of one side above this is refused.
inline constexpr int64_t kMaxExplicitPadding = 1 << 24;

// 1 + (kernel - 1) * dilation; InvalidArgument unless kernel, dilation >= 1 and it fits.
StatusOr<int64_t> EffectiveWindow(int64_t kernel, int64_t dilation);

// SAME:  output = ceil(input / stride), the padding that this needs split evenly, the odd cell after.
// Other: output = (input + padding - window + stride) / stride, where window is the effective one.
// InvalidArgument: kernel, stride or dilation < 1, input < 0, padding outside [0, kMaxExplicitPadding], a negative
// output or an overflow. The explicit paddings are used with kExplicit only.
StatusOr<WindowExtent> ComputeWindow(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, Padding padding,
                                     int64_t explicit_before = 0, int64_t explicit_after = 0);
// The same for a shape that is known before the step: a window larger than the padded input is refused too, even where
// the stride would hide it.
StatusOr<WindowExtent> ComputeWindowStrict(int64_t input, int64_t kernel, int64_t stride, int64_t dilation,
                                           Padding padding, int64_t explicit_before = 0, int64_t explicit_after = 0);

// An op's window attributes, checked against its layout: strides (and dilations, ksize) have one entry per dimension,
// all >= 1. Lists not given are taken as all ones.
struct WindowAttrs {
  ImageLayout layout;
  Padding padding = Padding::kValid;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> ksize;              // pooling only
  std::vector<int64_t> explicit_paddings;  // before, after for every dimension; with kExplicit

  // The window of spatial dimension `i` of num_spatial() over `input` cells with `kernel` taps.
  StatusOr<WindowExtent> Spatial(int i, int64_t input, int64_t kernel, bool strict = false) const;
  int64_t stride(int i) const { return strides[static_cast<size_t>(layout.first_spatial + i)]; }
  int64_t dilation(int i) const { return dilations[static_cast<size_t>(layout.first_spatial + i)]; }
};
// InvalidArgument: an entry < 1, a list of the wrong length, explicit paddings without EXPLICIT or the reverse,
// strides, dilations or padding on batch or channel where `spatial_only`.
Status CheckWindowAttrs(WindowAttrs* attrs, bool spatial_only);

}  // namespace millrace
