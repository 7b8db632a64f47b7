// SPDX-License-Identifier: Apache-2.0
// The convolution kernels: check shapes, bring operands into channels-last
// float32 (or double, int32), run.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/engine/epilogue.h"
#include "kernels/cpu/engine/linalg_gemm.h"
#include "kernels/cpu/nn/nn_conv_kernel.h"

namespace millrace {
namespace {

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

Status RunPass(KernelContext& ctx, DType type, ConvPass pass, const ConvGeometry& given, const ConvOperands& v);

// All of the convolution, and then all of what follows it.
Status RunBefore(const Epilogue& epilogue, KernelContext& ctx, DType type, const ConvGeometry& g, ConvOperands v) {
  const int64_t pixels = g.batch * g.out_pixels();
  float* const result = static_cast<float*>(v.output);
  Tensor beside;
  if (epilogue.residual != nullptr) {  // may be where the result goes
    MR_ASSIGN_OR_RETURN(beside, ctx.AllocateTemp(type, Shape::Vector(pixels * g.out_channels)));
    v.output = beside.mutable_raw();
  }
  v.epilogue = nullptr;
  MR_RETURN_IF_ERROR(RunPass(ctx, type, ConvPass::kForward, g, v));
  ctx.ParallelFor(pixels, static_cast<double>(g.out_channels) * 0.3, [&](int64_t begin, int64_t end) {
    const float* from = static_cast<const float*>(v.output) + begin * g.out_channels;
    ApplyEpilogue(epilogue, {from, g.out_channels, begin, end - begin, 0, g.out_channels}, result);
  });
  return absl::OkStatus();
}

Status RunPass(KernelContext& ctx, DType type, ConvPass pass, const ConvGeometry& given, const ConvOperands& v) {
  const ConvGeometry g = FoldCoveredAxes(given);
  if (g.in_pixels() == 1 && g.taps() == 1 && g.out_pixels() == 1 && g.groups == 1 && type != DType::kBFloat16) {
    if (v.epilogue != nullptr) return RunBefore(*v.epilogue, ctx, type, g, v);
    RunProduct(ctx, type, pass, g, v);
    return absl::OkStatus();
  }
  if (type == DType::kDouble) {
    if (DepthwiseByRows<double>(pass, g, v)) return RunDepthwiseByRows<double>(ctx, pass, g, v);
    return DirectConv<double>(ctx, pass, g, v);
  }
  if (type == DType::kFloat && DepthwiseByRows<float>(pass, g, v)) return RunDepthwiseByRows<float>(ctx, pass, g, v);
  if (type == DType::kInt32) return DirectConv<int32_t>(ctx, pass, g, v);
  const Status s = OneDnnConv(ctx, pass, g, v, type == DType::kBFloat16);
  if (type == DType::kBFloat16 || !absl::IsUnimplemented(s)) return s;
  if (v.epilogue != nullptr) return RunBefore(*v.epilogue, ctx, type, g, v);
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

}  // namespace

Status ConvKernel::Init(const KernelInit& init) {
  const bool volumetric = init.op.name.rfind("Conv3D", 0) == 0;
  MR_ASSIGN_OR_RETURN(attrs_, ReadWindowAttrs(init, volumetric ? "NDHWC" : "NHWC",
                                              /*spatial_only=*/true));
  return absl::OkStatus();
}

Status ConvKernel::Compute(KernelContext& ctx) {
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
  return Run(ctx, g, nullptr, out);
}

Status ConvKernel::ReadShapes(KernelContext& ctx, ConvShapes* shapes, ConvGeometry* g) const {
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
StatusOr<Shape> ConvKernel::InputSizes(const Tensor& sizes, const Shape& filter, const Shape& backprop) const {
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
Status ConvKernel::Run(KernelContext& ctx, const ConvGeometry& g, const Epilogue* epilogue, Tensor* out) const {
  const bool multiplied = depthwise_ && g.in_channels > 1 && g.out_channels > g.in_channels;
  if (out->dtype() == DType::kBFloat16 && !multiplied) {
    const Status s = RunAs(ctx, g, DType::kBFloat16, false, nullptr, out);
    if (!absl::IsUnimplemented(s)) return s;
  }
  return RunAs(ctx, g, IsNarrowFloat(out->dtype()) ? DType::kFloat : out->dtype(), multiplied, epilogue, out);
}

Status ConvKernel::RunAs(KernelContext& ctx, const ConvGeometry& g, DType type, bool multiplied,
                         const Epilogue* epilogue, Tensor* out) const {
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
  v.epilogue = epilogue;
  MR_RETURN_IF_ERROR(multiplied ? RunMultiplied(ctx, type, pass_, g, v) : RunPass(ctx, type, pass_, g, v));
  return Deliver(ctx, std::move(result), turned, narrow, out);
}

StatusOr<Tensor> ConvKernel::Operand(KernelContext& ctx, int i, bool image, bool widen) const {
  Tensor t = ctx.input(i);
  if (image) {
    MR_ASSIGN_OR_RETURN(t, ToChannelsLast(ctx, t, attrs_.layout));
  }
  if (!widen) return t;
  return Widened(ctx, t);
}

Status ConvKernel::Deliver(KernelContext& ctx, Tensor result, bool turned, bool narrow, Tensor* out) const {
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

void RegisterConvKernels(KernelRegistry& r) {
  const auto add = [&r](const char* op, const char* types, ConvPass pass, bool depthwise = false) {
    r.AddFactory({.op = op, .types = {{"T", Types(types)}}, .cost = ConvolutionCost}, [pass, depthwise] {
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
  add("Conv3DBackpropFilterV2", "FLT", ConvPass::kBackwardFilter);
  add("DepthwiseConv2dNative", "FLT", ConvPass::kForward, true);
  add("DepthwiseConv2dNativeBackpropInput", "FLT", ConvPass::kBackwardInput, true);
  add("DepthwiseConv2dNativeBackpropFilter", "FLT", ConvPass::kBackwardFilter, true);
  RegisterPaddedConvKernels(r);
  RegisterFusedConvKernels(r);
}

}  // namespace millrace
