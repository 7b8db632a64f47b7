// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_layout.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

// From [batch][rows][cols] to [batch][cols][rows].
void TransposeMatrices(KernelContext& ctx, DType dtype, int64_t batch, int64_t rows, int64_t cols, const void* from,
                       void* to) {
  const CopyDim dims[] = {{batch, rows * cols, rows * cols}, {cols, rows, 1}, {rows, 1, cols}};
  StridedCopy(&ctx, dtype, to, from, dims);
}

constexpr int64_t kConvertBlock = 16384;

}  // namespace

StatusOr<Shape> ChannelsLastShape(const Shape& shape, const ImageLayout& layout) {
  if (shape.rank() != layout.rank) {
    return InvalidArgument("expected a tensor of rank ", layout.rank, ", got shape ", shape.ToString());
  }
  if (!layout.channels_first()) return shape;
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return Shape::Make(absl::MakeConstSpan(dims));
}

StatusOr<Tensor> ToChannelsLast(KernelContext& ctx, const Tensor& t, const ImageLayout& layout) {
  if (!layout.channels_first()) return t;
  MR_ASSIGN_OR_RETURN(const Shape shape, ChannelsLastShape(t.shape(), layout));
  MR_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(t.dtype(), shape));
  if (t.num_elements() > 0) {
    const int64_t plane = t.num_elements() / (t.dim(0) * t.dim(1));
    TransposeMatrices(ctx, t.dtype(), t.dim(0), t.dim(1), plane, t.raw(), out.mutable_raw());
  }
  return out;
}

void FromChannelsLast(KernelContext& ctx, const Tensor& from, const ImageLayout& layout, Tensor* to) {
  if (from.num_elements() == 0) return;
  if (!layout.channels_first()) {
    std::memcpy(to->mutable_raw(), from.raw(), from.TotalBytes());
    return;
  }
  const int64_t channels = from.dim(from.rank() - 1);
  const int64_t plane = from.num_elements() / (from.dim(0) * channels);
  TransposeMatrices(ctx, from.dtype(), from.dim(0), plane, channels, from.raw(), to->mutable_raw());
}

StatusOr<Tensor> Widened(KernelContext& ctx, const Tensor& t) {
  if (!IsNarrowFloat(t.dtype())) return t;
  MR_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(DType::kFloat, t.shape()));
  const int64_t n = t.num_elements();
  const auto* from = t.data<uint16_t>();
  float* to = out.mutable_data<float>();
  ctx.ParallelFor((n + kConvertBlock - 1) / kConvertBlock, 4000, [&](int64_t begin, int64_t end) {
    const int64_t a = begin * kConvertBlock, b = std::min(n, end * kConvertBlock);
    WidenToFloat(t.dtype(), from + a, to + a, b - a);
  });
  return out;
}

void NarrowInto(KernelContext& ctx, const Tensor& from, Tensor* to) {
  const int64_t n = from.num_elements();
  const float* src = from.data<float>();
  auto* dst = to->mutable_data<uint16_t>();
  const DType type = to->dtype();
  ctx.ParallelFor((n + kConvertBlock - 1) / kConvertBlock, 4000, [&](int64_t begin, int64_t end) {
    const int64_t a = begin * kConvertBlock, b = std::min(n, end * kConvertBlock);
    NarrowFromFloat(type, src + a, dst + a, b - a);
  });
}

StatusOr<WindowAttrs> ReadWindowAttrs(const KernelInit& init, const char* default_format, bool spatial_only) {
  WindowAttrs a;
  std::string format = default_format;
  if (init.HasAttr("data_format")) {
    MR_ASSIGN_OR_RETURN(format, init.Attr<std::string>("data_format"));
  }
  MR_ASSIGN_OR_RETURN(a.layout, ParseImageLayout(format));
  MR_ASSIGN_OR_RETURN(const std::string padding, init.Attr<std::string>("padding"));
  MR_ASSIGN_OR_RETURN(a.padding, ParsePadding(padding));
  auto read = [&](const char* name, std::vector<int64_t>* list) -> Status {
    if (!init.HasAttr(name)) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(*list, init.Attr<std::vector<int64_t>>(name));
    if (list->empty() && list != &a.explicit_paddings) return InvalidArgument(name, " must not be empty");
    return absl::OkStatus();
  };
  MR_RETURN_IF_ERROR(read("strides", &a.strides));
  MR_RETURN_IF_ERROR(read("dilations", &a.dilations));
  MR_RETURN_IF_ERROR(read("ksize", &a.ksize));
  MR_RETURN_IF_ERROR(read("explicit_paddings", &a.explicit_paddings));
  const Status status = CheckWindowAttrs(&a, spatial_only);
  // TensorFlow's code for strides over batch and channels; those of the other convolutions are InvalidArgument.
  const bool with_code = init.op.name == "Conv2D" || init.op.name == "Conv2DBackpropInput";
  if (!status.ok() && with_code && CheckWindowAttrs(&a, /*spatial_only=*/false).ok()) {
    return Unimplemented(status.message());
  }
  MR_RETURN_IF_ERROR(status);
  return a;
}

}  // namespace millrace
