// SPDX-License-Identifier: Apache-2.0
// The convolution kernels: check shapes, bring operands into channels-last
// float32 (or double, int32), run.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "kernels/cpu/engine/linalg_gemm.h"
#include "kernels/cpu/nn/nn_conv.h"
#include "kernels/cpu/nn/nn_layout.h"

namespace millrace {
namespace {

struct ConvShapes {
  Shape input;  // in the op's own layout
  Shape filter;
  Shape output;
};

// The sizes in a vector; of the older ops, which are given the tensor itself,
// its shape.
StatusOr<Shape> ShapeFromTensor(const Tensor& t, absl::string_view what) {
  if (IsFloating(t.dtype())) return t.shape();
  if (t.rank() != 1) return InvalidArgument(what, " must be a vector, got shape ", t.shape().ToString());
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, t.IntValues());
  return Shape::Make(absl::MakeConstSpan(dims));
}

// The geometry of the forward convolution of `input` by `filter`, and the shape
// that it gives.
Status MakeGeometry(const WindowAttrs& attrs, bool depthwise, ConvShapes* shapes, ConvGeometry* g) {
  const ImageLayout& layout = attrs.layout;
  const Shape& in = shapes->input;
  const Shape& filter = shapes->filter;
  if (in.rank() != layout.rank) return InvalidArgument("input must have rank ", layout.rank, ", got ", in.ToString());
  if (filter.rank() != layout.rank) {
    return InvalidArgument("filter must have rank ", layout.rank, ", got ", filter.ToString());
  }
  const int spatial = layout.num_spatial();
  g->volumetric = spatial == 3;
  g->batch = in.dim(0);
  g->in_channels = in.dim(layout.channel);
  const int64_t filter_in = filter.dim(spatial);
  if (filter_in < 1 && !depthwise) return InvalidArgument("filter depth must be positive, got ", filter.ToString());
  if (depthwise) {
    if (filter_in != g->in_channels) {
      return InvalidArgument("input depth ", g->in_channels, " differs from the filter's ", filter_in);
    }
    g->groups = g->in_channels;
    if (!CheckedMul(g->in_channels, filter.dim(spatial + 1), &g->out_channels)) {
      return InvalidArgument("filter ", filter.ToString(), " has too many outputs");
    }
  } else {
    if (g->in_channels % filter_in != 0) {
      return InvalidArgument("input depth ", g->in_channels, " is not a multiple of the filter's depth ", filter_in);
    }
    g->groups = std::max<int64_t>(1, g->in_channels / filter_in);
    g->out_channels = filter.dim(spatial + 1);
    if (g->out_channels % g->groups != 0) {
      return InvalidArgument("output depth ", g->out_channels, " is not a multiple of ", g->groups, " groups");
    }
  }
  std::vector<int64_t> out(in.dims().begin(), in.dims().end());
  out[static_cast<size_t>(layout.channel)] = g->out_channels;
  for (int i = 0; i < spatial; ++i) {
    const size_t axis = static_cast<size_t>(3 - spatial + i);
    const int64_t cells = in.dim(layout.first_spatial + i);
    MR_ASSIGN_OR_RETURN(const WindowExtent w, attrs.Spatial(i, cells, filter.dim(i)));
    g->in[axis] = cells;
    g->kernel[axis] = filter.dim(i);
    g->out[axis] = w.output;
    g->stride[axis] = attrs.stride(i);
    g->dilation[axis] = attrs.dilation(i);
    g->pad_before[axis] = w.pad_before;
    g->pad_after[axis] = w.pad_after;
    out[static_cast<size_t>(layout.first_spatial + i)] = w.output;
  }
  MR_ASSIGN_OR_RETURN(shapes->output, Shape::Make(absl::MakeConstSpan(out)));
  return absl::OkStatus();
}

// Where the filter covers a whole axis (the words of a sentence, the last
// layers of a classifier) that axis can be seen as channels: the memory is the
// same, and the code for many channels is the fast one.
ConvGeometry FoldCoveredAxes(ConvGeometry g) {
  for (size_t axis = 3; axis-- > 0 && g.groups == 1;) {
    if (g.kernel[axis] != g.in[axis] || g.dilation[axis] != 1 || g.pad_before[axis] != 0 || g.pad_after[axis] != 0)
      break;
    g.in_channels *= g.in[axis];
    g.in[axis] = g.kernel[axis] = g.stride[axis] = 1;
  }
  return g;
}

// One pixel and one tap: a matrix product.
void RunProduct(KernelContext& ctx, DType type, ConvPass pass, const ConvGeometry& g, const ConvOperands& v) {
  const int64_t n = g.batch, in = g.in_channels, out = g.out_channels;
  switch (pass) {
    case ConvPass::kForward:
      return Gemm(
          &ctx, type,
          {n, out, in, v.input, in, false, v.filter, out, false, v.output, out, GemmMode::kSet, v.filter_value});
    case ConvPass::kBackwardInput:
      return Gemm(&ctx, type, {n, in, out, v.output, out, false, v.filter, out, true, v.input, in});
    case ConvPass::kBackwardFilter:
      return Gemm(&ctx, type, {in, out, n, v.input, in, true, v.output, out, false, v.filter, out});
  }
}

bool IsPointwise(const ConvGeometry& g) {
  constexpr std::array<int64_t, 3> kOnes{1, 1, 1}, kZeros{0, 0, 0};
  return g.taps() == 1 && g.groups == 1 && g.in == g.out && g.stride == kOnes && g.pad_before == kZeros;
}

// Channels first and one tap: each image is a matrix with a row a channel, and
// nothing needs to be turned around.
void RunPlanes(KernelContext& ctx, DType type, ConvPass pass, const ConvGeometry& g, const void* filter,
               const void* planes, void* result) {
  const bool forward = pass == ConvPass::kForward;
  GemmBatch b;
  b.count = g.batch;
  b.args.m = forward ? g.out_channels : g.in_channels;
  b.args.k = forward ? g.in_channels : g.out_channels;
  b.args.n = b.args.ldb = b.args.ldc = g.in_pixels();
  b.args.a = filter;
  b.args.lda = g.out_channels;
  b.args.transpose_a = forward;
  b.args.b = planes;
  b.args.c = result;
  b.b_size = b.args.k * b.args.n;
  BatchGemm(&ctx, type, b);
}

Status RunPass(KernelContext& ctx, DType type, ConvPass pass, const ConvGeometry& given, const ConvOperands& v) {
  const ConvGeometry g = FoldCoveredAxes(given);
  if (g.in_pixels() == 1 && g.taps() == 1 && g.out_pixels() == 1 && g.groups == 1 && type != DType::kBFloat16) {
    RunProduct(ctx, type, pass, g, v);
    return absl::OkStatus();
  }
  if (type == DType::kDouble) return DirectConv<double>(ctx, pass, g, v);
  if (type == DType::kInt32) return DirectConv<int32_t>(ctx, pass, g, v);
  const Status s = OneDnnConv(ctx, pass, g, v, type == DType::kBFloat16);
  if (type == DType::kBFloat16 || !absl::IsUnimplemented(s)) return s;
  return DirectConv<float>(ctx, pass, g, v);
}

// ---- depthwise convolution with a multiplier m > 1 is one with multiplier 1
// on an input whose channels are repeated
// ----

template <typename T>
void RepeatChannels(KernelContext& ctx, int64_t values, int64_t m, const T* from, T* to) {
  ctx.ParallelFor(values, static_cast<double>(m), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::fill_n(to + i * m, m, from[i]);
  });
}
template <typename T>
void SumRepeated(KernelContext& ctx, int64_t values, int64_t m, const T* from, T* to) {
  ctx.ParallelFor(values, static_cast<double>(m), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T sum = from[i * m];
      for (int64_t k = 1; k < m; ++k) sum += from[i * m + k];
      to[i] = sum;
    }
  });
}

Status RunMultiplied(KernelContext& ctx, DType type, ConvPass pass, ConvGeometry g, ConvOperands v) {
  const int64_t m = g.out_channels / g.in_channels;
  const int64_t values = g.batch * g.in_pixels() * g.in_channels;
  int64_t wide = 0;
  if (!CheckedMul(values, m, &wide)) return InvalidArgument("depthwise convolution is too large");
  MR_ASSIGN_OR_RETURN(Tensor repeated, ctx.AllocateTemp(type, Shape::Vector(wide)));
  g.in_channels = g.groups = g.out_channels;
  void* const input = v.input;
  v.input = repeated.mutable_raw();
  const bool f64 = type == DType::kDouble;
  if (pass != ConvPass::kBackwardInput) {
    if (f64) {
      RepeatChannels(ctx, values, m, static_cast<const double*>(input), repeated.mutable_data<double>());
    } else {
      RepeatChannels(ctx, values, m, static_cast<const float*>(input), repeated.mutable_data<float>());
    }
    return RunPass(ctx, type, pass, g, v);
  }
  MR_RETURN_IF_ERROR(RunPass(ctx, type, pass, g, v));
  if (f64) {
    SumRepeated(ctx, values, m, repeated.data<double>(), static_cast<double*>(input));
  } else {
    SumRepeated(ctx, values, m, repeated.data<float>(), static_cast<float*>(input));
  }
  return absl::OkStatus();
}

class ConvKernel : public Kernel {
 public:
  ConvKernel(ConvPass pass, bool depthwise) : pass_(pass), depthwise_(depthwise) {}

  Status Init(const KernelInit& init) override {
    const bool volumetric = init.op.name.rfind("Conv3D", 0) == 0;
    MR_ASSIGN_OR_RETURN(attrs_, ReadWindowAttrs(init, volumetric ? "NDHWC" : "NHWC",
                                                /*spatial_only=*/true));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    ConvShapes shapes;
    ConvGeometry g;
    MR_RETURN_IF_ERROR(ReadShapes(ctx, &shapes, &g));
    const Shape& result =
        pass_ == ConvPass::kForward ? shapes.output
        : pass_ == ConvPass::kBackwardInput
            ? shapes.input
            : shapes.filter;
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, result));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (shapes.input.num_elements() == 0 || shapes.filter.num_elements() == 0 || shapes.output.num_elements() == 0) {
      std::memset(out->mutable_raw(), 0, out->TotalBytes());
      return absl::OkStatus();
    }
    return Run(ctx, g, out);
  }

 private:
  Status ReadShapes(KernelContext& ctx, ConvShapes* shapes, ConvGeometry* g) const {
    if (pass_ == ConvPass::kForward) {
      shapes->input = ctx.input(0).shape();
      shapes->filter = ctx.input(1).shape();
      return MakeGeometry(attrs_, depthwise_, shapes, g);
    }
    const Shape& backprop = ctx.input(2).shape();
    if (pass_ == ConvPass::kBackwardInput) {
      shapes->filter = ctx.input(1).shape();
      MR_ASSIGN_OR_RETURN(shapes->input, InputSizes(ctx.input(0), shapes->filter, backprop));
    } else {
      shapes->input = ctx.input(0).shape();
      MR_ASSIGN_OR_RETURN(shapes->filter, ShapeFromTensor(ctx.input(1), "filter_sizes"));
    }
    MR_RETURN_IF_ERROR(MakeGeometry(attrs_, depthwise_, shapes, g));
    if (!(shapes->output == backprop)) {
      return InvalidArgument(
          "out_backprop has shape ", backprop.ToString(), ", but the convolution of ", shapes->input.ToString(), " by ",
          shapes->filter.ToString(), " gives ", shapes->output.ToString());
    }
    return absl::OkStatus();
  }

  // input_sizes is the whole shape, or for images rows and columns alone.
  StatusOr<Shape> InputSizes(const Tensor& sizes, const Shape& filter, const Shape& backprop) const {
    const ImageLayout& layout = attrs_.layout;
    if (sizes.rank() != 1 || sizes.num_elements() != 2 || layout.rank != 4) {
      return ShapeFromTensor(sizes, "input_sizes");
    }
    if (filter.rank() != 4 || backprop.rank() != 4) return InvalidArgument("filter and out_backprop must have rank 4");
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> given, sizes.IntValues());
    std::vector<int64_t> dims(4, backprop.dim(0));
    dims[static_cast<size_t>(layout.first_spatial)] = given[0];
    dims[static_cast<size_t>(layout.first_spatial + 1)] = given[1];
    dims[static_cast<size_t>(layout.channel)] = filter.dim(2);
    return Shape::Make(absl::MakeConstSpan(dims));
  }

  // Half is computed in float32; bfloat16 too where oneDNN has no code for it.
  Status Run(KernelContext& ctx, const ConvGeometry& g, Tensor* out) const {
    const bool multiplied = depthwise_ && g.in_channels > 1 && g.out_channels > g.in_channels;
    if (out->dtype() == DType::kBFloat16 && !multiplied) {
      const Status s = RunAs(ctx, g, DType::kBFloat16, false, out);
      if (!absl::IsUnimplemented(s)) return s;
    }
    return RunAs(ctx, g, IsNarrowFloat(out->dtype()) ? DType::kFloat : out->dtype(), multiplied, out);
  }

  Status RunAs(KernelContext& ctx, const ConvGeometry& g, DType type, bool multiplied, Tensor* out) const {
    const bool narrow = type != out->dtype();
    if (!narrow && (type == DType::kFloat || type == DType::kDouble) && attrs_.layout.channels_first() &&
        pass_ != ConvPass::kBackwardFilter && IsPointwise(g) && g.in_pixels() > 1) {
      RunPlanes(ctx, type, pass_, g, ctx.input(1).raw(), ctx.input(pass_ == ConvPass::kForward ? 0 : 2).raw(),
                out->mutable_raw());
      return absl::OkStatus();
    }
    const bool turned = pass_ != ConvPass::kBackwardFilter && attrs_.layout.channels_first();
    // Where the result is computed: in place, or beside when it must be
    // transposed or narrowed.
    Tensor result = *out;
    if (narrow || turned) {
      Shape shape = out->shape();
      if (turned) {
        MR_ASSIGN_OR_RETURN(shape, ChannelsLastShape(shape, attrs_.layout));
      }
      MR_ASSIGN_OR_RETURN(result, ctx.AllocateTemp(type, shape));
    }
    Tensor input, filter, output;
    if (pass_ != ConvPass::kBackwardInput) {
      MR_ASSIGN_OR_RETURN(input, Operand(ctx, 0, true, narrow));
    }
    if (pass_ != ConvPass::kBackwardFilter) {
      MR_ASSIGN_OR_RETURN(filter, Operand(ctx, 1, false, narrow));
    }
    if (pass_ != ConvPass::kForward) {
      MR_ASSIGN_OR_RETURN(output, Operand(ctx, 2, true, narrow));
    }
    ConvOperands v;
    v.input = pass_ == ConvPass::kBackwardInput ? result.mutable_raw() : input.mutable_raw();
    v.filter = pass_ == ConvPass::kBackwardFilter ? result.mutable_raw() : filter.mutable_raw();
    v.output = pass_ == ConvPass::kForward ? result.mutable_raw() : output.mutable_raw();
    if (pass_ != ConvPass::kBackwardFilter && !narrow) v.filter_value = &filter;
    MR_RETURN_IF_ERROR(multiplied ? RunMultiplied(ctx, type, pass_, g, v) : RunPass(ctx, type, pass_, g, v));
    return Deliver(ctx, std::move(result), turned, narrow, out);
  }

  StatusOr<Tensor> Operand(KernelContext& ctx, int i, bool image, bool widen) const {
    Tensor t = ctx.input(i);
    if (image) {
      MR_ASSIGN_OR_RETURN(t, ToChannelsLast(ctx, t, attrs_.layout));
    }
    if (!widen) return t;
    return Widened(ctx, t);
  }

  Status Deliver(KernelContext& ctx, Tensor result, bool turned, bool narrow, Tensor* out) const {
    if (narrow && !turned) {
      NarrowInto(ctx, result, out);
      return absl::OkStatus();
    }
    if (narrow) {
      MR_ASSIGN_OR_RETURN(Tensor small, ctx.AllocateTemp(out->dtype(), result.shape()));
      NarrowInto(ctx, result, &small);
      result = std::move(small);
    }
    if (turned) FromChannelsLast(ctx, result, attrs_.layout, out);
    return absl::OkStatus();
  }

  const ConvPass pass_;
  const bool depthwise_;
  WindowAttrs attrs_;
};

// Where each place of an axis that was resized and then mirrored at its ends
// takes its value: between two cells.
struct MirroredPlace {
  int64_t below, above;
  float part;  // of the one above
};

// Conv2D of an image that is resized (bilinearly) and padded on the way.
class FusedConvKernel final : public Kernel {
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

void RegisterConvKernels(KernelRegistry& r) {
  const auto add = [&r](const char* op, const char* types, ConvPass pass, bool depthwise = false) {
    r.AddFactory({.op = op, .types = {{"T", Types(types)}}}, [pass, depthwise] {
      return std::make_unique<ConvKernel>(pass, depthwise);
    });
  };
  add("Conv2D", "FLT|i32", ConvPass::kForward);
  add("Conv2DBackpropInput", "FLT|i32", ConvPass::kBackwardInput);
  add("Conv2DBackpropFilter", "FLT", ConvPass::kBackwardFilter);
  add("Conv3D", "FLT", ConvPass::kForward);
  add("Conv3DBackpropInputV2", "FLT", ConvPass::kBackwardInput);
  add("Conv3DBackpropInput", "HFD", ConvPass::kBackwardInput);
  add("Conv3DBackpropFilter", "HFD", ConvPass::kBackwardFilter);
  r.Add<FusedConvKernel>({.op = "FusedPadConv2D"});
  r.Add<FusedConvKernel>({.op = "FusedResizeAndPadConv2D"});
  add("Conv3DBackpropFilterV2", "FLT", ConvPass::kBackwardFilter);
  add("DepthwiseConv2dNative", "FLT", ConvPass::kForward, true);
  add("DepthwiseConv2dNativeBackpropInput", "FLT", ConvPass::kBackwardInput, true);
  add("DepthwiseConv2dNativeBackpropFilter", "FLT", ConvPass::kBackwardFilter, true);
}

}  // namespace millrace
