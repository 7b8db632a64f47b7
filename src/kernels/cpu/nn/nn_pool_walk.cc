// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_pool_walk.h"

namespace millrace::pooling {

Status CheckPoolAttrs(const WindowAttrs& attrs) {
  if (attrs.ksize[0] == 1 && attrs.strides[0] == 1) return absl::OkStatus();
  return Unimplemented("Pooling is not yet supported on the batch dimension.");
}

Status MakePoolGeometry(const WindowAttrs& attrs, const Shape& input, bool depth, PoolGeometry* g, Shape* pooled) {
  const ImageLayout& layout = attrs.layout;
  if (input.rank() != layout.rank) {
    return InvalidArgument("pooling wants a tensor of rank ", layout.rank, ", got shape ", input.ToString());
  }
  const size_t channel = Sz(layout.channel);
  MR_RETURN_IF_ERROR(CheckPoolAttrs(attrs));
  std::vector<int64_t> out(input.dims().begin(), input.dims().end());
  g->batch = input.dim(0);
  g->channels = input.dim(layout.channel);
  const int first = layout.first_spatial;
  if (attrs.ksize[channel] != 1 || attrs.strides[channel] != 1) {
    const int64_t k = attrs.ksize[channel];
    if (!depth || layout.rank != 4 || attrs.ksize[Sz(first)] != 1 || attrs.ksize[Sz(first + 1)] != 1 ||
        attrs.strides[Sz(first)] != 1 || attrs.strides[Sz(first + 1)] != 1) {
      return Unimplemented(
          "pooling works over rows and columns, or (MaxPool) over channels: "
          "exactly one of pooling across depth and pooling across width and height");
    }
    if (attrs.strides[channel] != k || g->channels % k != 0) {
      return Unimplemented(
          "Depthwise max pooling requires the depth window to equal the depth stride and to evenly divide the ",
          g->channels, " channels; the window is ", k, ", the stride ", attrs.strides[channel]);
    }
    out[channel] = g->channels / k;
  }
  for (int i = 0; i < layout.num_spatial(); ++i) {
    const int axis = 3 - layout.num_spatial() + i;
    g->in[axis] = input.dim(first + i);
    g->kernel[axis] = attrs.ksize[Sz(first + i)];
    g->stride[axis] = attrs.stride(i);
    MR_ASSIGN_OR_RETURN(const WindowExtent w, attrs.Spatial(i, g->in[axis], g->kernel[axis]));
    g->out[axis] = w.output;
    g->pad[axis] = w.pad_before;
    out[Sz(first + i)] = w.output;
  }
  MR_ASSIGN_OR_RETURN(*pooled, Shape::Make(absl::MakeConstSpan(out)));
  return absl::OkStatus();
}

}  // namespace millrace::pooling
