// SPDX-License-Identifier: Apache-2.0
// Conv2D of an image that is resized, and padded by mirroring, on the way.
#include <algorithm>

#include "kernels/cpu/nn/nn_conv_kernel.h"

namespace millrace {
namespace {

// Where each place of an axis that was resized and then mirrored at its ends
// takes its value: between two cells.
struct MirroredPlace {
  int64_t below, above;
  float part;  // of the one above
};

// Conv2D of an image that is resized (bilinearly) and padded on the way.
class PaddedConvKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string mode, init.Attr<std::string>("mode"));
    skip_ = mode == "REFLECT" ? 1 : 0;
    resizes_ = init.HasAttr("resize_align_corners");
    if (resizes_) {
      MR_ASSIGN_OR_RETURN(align_corners_, init.Attr<bool>("resize_align_corners"));
    }
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, init.Attr<std::vector<int64_t>>("strides"));
    if (strides.size() != 4)
      return InvalidArgument("Sliding window strides field must specify 4 dimensions, got ", strides.size());
    node_.signature.input_types = {init.output_type(0), init.output_type(0)};
    node_.signature.output_types = {init.output_type(0)};
    node_.name = init.node_name;
    node_.op = &init.op;
    node_.device = &init.device;
    return conv_.Init(init);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 4) return InvalidArgument("input must be 4-dimensional, got ", in.shape().ToString());
    int64_t size[2] = {in.dim(1), in.dim(2)};
    if (resizes_) MR_RETURN_IF_ERROR(ReadSize(ctx.input(1), in, size));
    std::vector<MirroredPlace> axes[2];
    MR_RETURN_IF_ERROR(ReadPaddings(ctx.input(resizes_ ? 2 : 1), in, size, axes));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({in.dim(0), static_cast<int64_t>(axes[0].size()),
                                                        static_cast<int64_t>(axes[1].size()), in.dim(3)}));
    Slot padded, filter, result;
    MR_ASSIGN_OR_RETURN(padded.tensor, ctx.AllocateTemp(in.dtype(), shape));
    if (shape.num_elements() > 0) {
      switch (in.dtype()) {
        case DType::kHalf: Fill<Half, float>(ctx, axes, padded.tensor); break;
        case DType::kBFloat16: Fill<BFloat16, float>(ctx, axes, padded.tensor); break;
        case DType::kFloat: Fill<float, float>(ctx, axes, padded.tensor); break;
        case DType::kDouble: Fill<double, double>(ctx, axes, padded.tensor); break;
        default: return Unimplemented("no images of ", DTypeName(in.dtype()));
      }
    }
    filter.tensor = ctx.input(resizes_ ? 3 : 2);
    Slot* const inputs[] = {&padded, &filter};
    KernelContext inner(node_, inputs, &result, 0, ctx.step());
    MR_RETURN_IF_ERROR(conv_.Compute(inner));
    ctx.set_output(0, std::move(result.tensor));
    return absl::OkStatus();
  }

 private:
  static Status ReadSize(const Tensor& t, const Tensor& in, int64_t* size) {
    if (t.rank() != 1 || t.dim(0) != 2)
      return InvalidArgument("size must be two numbers, got shape ", t.shape().ToString());
    for (int k : {0, 1}) {
      size[k] = t.data<int32_t>()[k];
      if (size[k] < 1 || in.dim(k + 1) < 1) {
        return InvalidArgument("cannot resize ", in.shape().ToString(), " to ", size[k], " pixels");
      }
    }
    return absl::OkStatus();
  }

  Status ReadPaddings(const Tensor& t, const Tensor& in, const int64_t* size, std::vector<MirroredPlace>* axes) const {
    if (t.rank() != 2 || t.dim(0) != 4 || t.dim(1) != 2) {
      return InvalidArgument(
          "paddings must be a matrix with 2 columns and a "
          "row a dimension, got ",
          t.shape().ToString());
    }
    const int32_t* p = t.data<int32_t>();
    if (p[0] != 0 || p[1] != 0 || p[6] != 0 || p[7] != 0) {
      return Unimplemented("Fused mirror padding only supports spatial padding");
    }
    for (int k : {0, 1}) {
      const int64_t before = p[2 * k + 2], after = p[2 * k + 3], most = size[k] - skip_;
      if (before < 0 || after < 0 || before > most || after > most) {
        return InvalidArgument(
            "paddings ", before, " and ", after, " of ", size[k], " pixels must be in [0, ", most, "]");
      }
      const int64_t cells = in.dim(k + 1);
      const bool corners = align_corners_ && size[k] > 1;
      const float scale = corners ? static_cast<float>(cells - 1) / static_cast<float>(size[k] - 1)
                                  : static_cast<float>(cells) / static_cast<float>(size[k]);
      for (int64_t i = -before; i < size[k] + after; ++i) {
        const int64_t at = i < 0 ? -i - 1 + skip_ : i < size[k] ? i : 2 * size[k] - 1 - skip_ - i;
        if (!resizes_) {
          axes[k].push_back({at, at, 0});
          continue;
        }
        const float place = static_cast<float>(at) * scale;
        const int64_t below = std::min(static_cast<int64_t>(place), cells - 1);
        axes[k].push_back({below, std::min(below + 1, cells - 1), place - static_cast<float>(below)});
      }
    }
    return absl::OkStatus();
  }

  template <typename T, typename Wide>
  static void Fill(const KernelContext& ctx, const std::vector<MirroredPlace>* axes, Tensor& to) {
    const Tensor& in = ctx.input(0);
    const int64_t channels = in.dim(3), line = in.dim(2) * channels, rows = to.dim(1);
    ctx.ParallelFor(in.dim(0) * rows, 4 * static_cast<double>(to.dim(2) * channels), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const MirroredPlace& y = axes[0][static_cast<size_t>(r % rows)];
        const T* image = in.data<T>() + r / rows * in.dim(1) * line;
        T* out = to.mutable_data<T>() + r * to.dim(2) * channels;
        for (const MirroredPlace& x : axes[1]) {
          for (int64_t c = 0; c < channels; ++c) {
            const auto cell = [&](int64_t row, int64_t column) {
              return static_cast<Wide>(image[row * line + column * channels + c]);
            };
            const Wide part = static_cast<Wide>(x.part);
            const Wide top = cell(y.below, x.below) + (cell(y.below, x.above) - cell(y.below, x.below)) * part;
            const Wide bottom = cell(y.above, x.below) + (cell(y.above, x.above) - cell(y.above, x.below)) * part;
            *out++ = static_cast<T>(top + (bottom - top) * static_cast<Wide>(y.part));
          }
        }
      }
    });
  }

  ConvKernel conv_{ConvPass::kForward, false};
  NodeInfo node_;  // of the convolution
  int64_t skip_ = 0;
  bool resizes_ = false, align_corners_ = false;
};

}  // namespace

void RegisterPaddedConvKernels(KernelRegistry& r) {
  r.Add<PaddedConvKernel>({.op = "FusedPadConv2D"});
  r.Add<PaddedConvKernel>({.op = "FusedResizeAndPadConv2D"});
}

}  // namespace millrace
