// SPDX-License-Identifier: Apache-2.0
// Ops: convolutions and their two gradients. Each trio is closed under differentiation: the gradients of one member are
// the two others.
#include <algorithm>

#include "absl/strings/match.h"
#include "ops/array/array_ops.h"
#include "ops/nn/nn_ops.h"

namespace millrace {
namespace {

// Filters are [spatial..., in / groups, out], depthwise ones [rows, columns, in, multiplier].
// Strides over batch and channels are for the kernels to refuse, with codes of their own.
struct ConvShape {
  WindowAttrs attrs;
  PartialShape input;
  PartialShape filter;
  bool depthwise = false;
  int64_t input_dim(int i) const { return input.dim(attrs.layout.first_spatial + i); }
  int64_t in_channels() const { return input.dim(attrs.layout.channel); }
  int64_t filter_in() const { return filter.dim(attrs.layout.num_spatial()); }
  int64_t filter_out() const { return filter.dim(attrs.layout.num_spatial() + 1); }
  int64_t out_channels() const {
    if (!depthwise) return filter_out();
    const int64_t in = in_channels() >= 0 ? in_channels() : filter_in();
    int64_t product = -1;
    if (in < 0 || filter_out() < 0 || __builtin_mul_overflow(in, filter_out(), &product)) return -1;
    return product;
  }
};

bool IsDepthwise(const ShapeContext& c) { return absl::StrContains(c.op().name, "Depthwise"); }

PartialShape WithRankOr(const PartialShape& s, int rank) {
  return s.has_rank() ? s : PartialShape::UnknownOfRank(rank);
}

Status CheckChannels(const ConvShape& s) {
  const int64_t in = s.in_channels();
  const int64_t filter_in = s.filter_in();
  if (in < 0 || filter_in < 0) return absl::OkStatus();
  if (s.depthwise) {
    if (in != filter_in) return InvalidArgument("input depth ", in, " differs from the filter's ", filter_in);
    return absl::OkStatus();
  }
  if (in != 0 && filter_in == 0) return InvalidArgument("filter depth must be positive, got 0");
  if (filter_in == 0) return absl::OkStatus();
  if (in % filter_in != 0) {
    return InvalidArgument("input depth ", in, " is not a multiple of the filter's depth ", filter_in);
  }
  const int64_t groups = in / filter_in;
  if (groups > 1 && s.filter_out() > 0 && s.filter_out() % groups != 0) {
    return InvalidArgument(
        "input depth ", in, " does not match the filter's input depth ", filter_in, " (as ", groups,
        " groups they would need an output depth that is a multiple of ", groups, ", got ", s.filter_out(), ")");
  }
  return absl::OkStatus();
}

// What the convolution of `input` by `filter` gives; both ranks must be known.
StatusOr<PartialShape> ConvOutput(const ConvShape& s) {
  MR_RETURN_IF_ERROR(CheckChannels(s));
  const ImageLayout& layout = s.attrs.layout;
  std::vector<int64_t> out(static_cast<size_t>(layout.rank), -1);
  out[0] = s.input.dim(0);
  out[static_cast<size_t>(layout.channel)] = s.out_channels();
  for (int i = 0; i < layout.num_spatial(); ++i) {
    MR_ASSIGN_OR_RETURN(
        out[static_cast<size_t>(layout.first_spatial + i)], SpatialOutput(s.attrs, i, s.input_dim(i), s.filter.dim(i)));
  }
  return PartialShape::Make(out);
}

Status ConvShapeFn(ShapeContext& c) {
  ConvShape s;
  s.depthwise = IsDepthwise(c);
  MR_ASSIGN_OR_RETURN(s.attrs, WindowAttrsOf(c, /*spatial_only=*/false));
  MR_ASSIGN_OR_RETURN(s.input, c.WithRank(0, s.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(s.filter, c.WithRank(1, s.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(PartialShape out, ConvOutput(s));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// A sum that follows may still broadcast what the convolution gives.
Status FusedShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(ConvShapeFn(c));
  MR_ASSIGN_OR_RETURN(const auto ops, c.Attr<std::vector<std::string>>("fused_ops"));
  if (std::find(ops.begin(), ops.end(), "Add") != ops.end()) c.set_output(0, PartialShape());
  return absl::OkStatus();
}

StatusOr<PartialShape> ShapeInput(ShapeContext& c, int i, int rank) {
  MR_ASSIGN_OR_RETURN(const PartialShape vector, c.WithRank(i, 1));
  if (vector.has_dim(0) && vector.dim(0) != rank && !(rank == 4 && vector.dim(0) == 2)) {
    return InvalidArgument("expected ", rank, " sizes, got ", vector.dim(0));
  }
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.InputAsShape(i));
  if (shape.has_rank() && shape.rank() != rank) return PartialShape::UnknownOfRank(rank);
  return WithRankOr(shape, rank);
}

// Of the gradients. As in TensorFlow, whether the sizes fit the gradient of the output is for the kernel to say:
// programs build what they never run.
Status BackpropInputShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const WindowAttrs attrs, WindowAttrsOf(c, /*spatial_only=*/false));
  const ImageLayout& layout = attrs.layout;
  MR_ASSIGN_OR_RETURN(const PartialShape input, ShapeInput(c, 0, layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape backprop, c.WithRank(2, layout.rank));
  std::vector<int64_t> dims = input.dims();
  if (dims[0] < 0) dims[0] = backprop.dim(0);
  // Two sizes are the spatial ones; the rest follows.
  MR_ASSIGN_OR_RETURN(const PartialShape vector, c.WithRank(0, 1));
  if (vector.dim(0) == 2) {
    MR_ASSIGN_OR_RETURN(const auto sizes, c.ConstantInts(0));
    if (sizes && sizes->size() == 2) {
      dims[static_cast<size_t>(layout.first_spatial)] = (*sizes)[0];
      dims[static_cast<size_t>(layout.first_spatial + 1)] = (*sizes)[1];
    }
    dims[static_cast<size_t>(layout.channel)] = filter.dim(layout.num_spatial());
  }
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status BackpropFilterShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const WindowAttrs attrs, WindowAttrsOf(c, /*spatial_only=*/false));
  const int rank = attrs.layout.rank;
  MR_RETURN_IF_ERROR(c.WithRank(0, rank).status());
  const PartialShape& sizes = c.input(1);
  if (sizes.has_rank() && sizes.rank() == 1 && sizes.has_dim(0) && sizes.dim(0) != rank) {
    return InvalidArgument("expected ", rank, " filter sizes, got ", sizes.dim(0));
  }
  MR_RETURN_IF_ERROR(c.WithRank(2, rank).status());
  MR_ASSIGN_OR_RETURN(PartialShape filter, ShapeInput(c, 1, rank));
  c.set_output(0, std::move(filter));
  return absl::OkStatus();
}

// The older ops are given the tensor whose shape the gradient has.
template <int kLike>
Status OlderBackpropShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const WindowAttrs attrs, WindowAttrsOf(c, /*spatial_only=*/false));
  for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(c.WithRank(i, attrs.layout.rank).status());
  MR_ASSIGN_OR_RETURN(PartialShape like, c.WithRank(kLike, attrs.layout.rank));
  c.set_output(0, std::move(like));
  return absl::OkStatus();
}

// Paddings of the four dimensions, of an input that may be resized before.
Status FusedConvShape(ShapeContext& c) {
  const bool resizes = c.op().FindAttr("resize_align_corners") != nullptr;
  ConvShape s;
  MR_ASSIGN_OR_RETURN(s.attrs, WindowAttrsOf(c, /*spatial_only=*/false));
  MR_ASSIGN_OR_RETURN(s.input, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape paddings, c.WithRank(resizes ? 2 : 1, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(paddings.dim(0), 4, "a row of paddings a dimension").status());
  MR_RETURN_IF_ERROR(c.MergeDim(paddings.dim(1), 2, "paddings before and after").status());
  MR_ASSIGN_OR_RETURN(s.filter, c.WithRank(resizes ? 3 : 2, 4));
  std::vector<int64_t> dims = WithRankOr(s.input, 4).dims();
  if (resizes) {
    MR_ASSIGN_OR_RETURN(const PartialShape two, c.WithRank(1, 1));
    MR_RETURN_IF_ERROR(c.MergeDim(two.dim(0), 2, "rows and columns").status());
    const Tensor* size = c.constant(1);
    for (size_t k : {0U, 1U}) {
      const bool usable = size != nullptr && size->num_elements() == 2 && size->dtype() == DType::kInt32;
      dims[k + 1] = usable && size->data<int32_t>()[k] > 0 ? size->data<int32_t>()[k] : -1;
    }
  }
  const Tensor* known = c.constant(resizes ? 2 : 1);
  for (size_t d = 1; d < 3; ++d) {
    if (known == nullptr || known->num_elements() != 8 || known->dtype() != DType::kInt32) {
      dims[d] = -1;
    } else if (dims[d] >= 0) {
      const int32_t before = known->data<int32_t>()[2 * d], after = known->data<int32_t>()[2 * d + 1];
      if (before < 0 || after < 0) return InvalidArgument("Paddings must be non-negative: ", before, " ", after);
      dims[d] += int64_t{before} + after;
    }
  }
  MR_ASSIGN_OR_RETURN(s.input, PartialShape::Make(dims));
  MR_ASSIGN_OR_RETURN(PartialShape out, ConvOutput(s));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

struct ConvTrio {
  const char* forward;
  const char* input;
  const char* filter;
};
constexpr ConvTrio kConv2D{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
constexpr ConvTrio kConv3D{"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"};
constexpr ConvTrio kDepthwise{
    "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"};

AttrMap ConvAttrs(const GradContext& g) {
  return CopyAttrs(
      g.node(), {"strides", "padding", "use_cudnn_on_gpu", "explicit_paddings", "data_format", "dilations"});
}
Output Build(const GradContext& g, const char* op, Output a, Output b, Output c) {
  Node* n = g.b().OpNode(op, std::vector<Arg>{a, b, c}, ConvAttrs(g));
  return n ? n->output(0) : Output{};
}
Output Forward(const GradContext& g, const ConvTrio& trio, Output x, Output f) {
  Node* n = g.b().OpNode(trio.forward, std::vector<Arg>{x, f}, ConvAttrs(g));
  return n ? n->output(0) : Output{};
}

template <const ConvTrio& trio>
Status ConvGrad(GradContext& g) {
  g.set_dx(0, Build(g, trio.input, ShapeOf(g.b(), g.x(0)), g.x(1), g.dy()));
  g.set_dx(1, Build(g, trio.filter, g.x(0), ShapeOf(g.b(), g.x(1)), g.dy()));
  return g.status();
}
template <const ConvTrio& trio>
Status BackpropInputGrad(GradContext& g) {
  g.set_dx(1, Build(g, trio.filter, g.dy(), ShapeOf(g.b(), g.x(1)), g.x(2)));
  g.set_dx(2, Forward(g, trio, g.dy(), g.x(1)));
  return g.status();
}
template <const ConvTrio& trio>
Status BackpropFilterGrad(GradContext& g) {
  g.set_dx(0, Build(g, trio.input, ShapeOf(g.b(), g.x(0)), g.dy(), g.x(2)));
  g.set_dx(2, Forward(g, trio, g.x(0), g.dy()));
  return g.status();
}

// Attribute lists of the schemas.
#define MR_CONV2D_ATTRS                                                                                               \
  "strides:list(int); use_cudnn_on_gpu:bool=true; padding in {SAME,VALID,EXPLICIT}; explicit_paddings:list(int)=[]; " \
  "data_format in {NHWC,NCHW}=\"NHWC\"; dilations:list(int)=[1,1,1,1]"
#define MR_CONV3D_ATTRS                                                                     \
  "strides:list(int)>=5; padding in {SAME,VALID}; data_format in {NDHWC,NCDHW}=\"NDHWC\"; " \
  "dilations:list(int)=[1,1,1,1,1]"
#define MR_DEPTHWISE_ATTRS \
  "strides:list(int); padding in {SAME,VALID}; data_format in {NHWC,NCHW}=\"NHWC\"; dilations:list(int)=[1,1,1,1]"

void RegisterConv2D(OpRegistry& r) {
  r.Add("Conv2D(input:T, filter:T) -> (output:T) | T in FLT|i32; " MR_CONV2D_ATTRS)
      .Doc(
          "Two-dimensional cross-correlation of a batch of images with a filter [rows, columns, in, out]. An input "
          "depth that is a multiple of the filter's depth makes a grouped convolution.")
      .Shape(ConvShapeFn)
      .Gradient(ConvGrad<kConv2D>)
      .Example("f32[2,5,4,2]~, f32[3,3,2,3]~ | strides=[1,1,1,1]; padding=\"SAME\"")
      .Example("f32[1,6,5,4]~, f32[2,3,2,4]~ | strides=[1,2,1,1]; padding=\"VALID\"")
      .Example(
          "f64[1,2,5,5]~, f64[2,2,2,3]~ | strides=[1,1,1,1]; padding=\"EXPLICIT\"; "
          "explicit_paddings=[0,0,0,0,1,0,2,1]; data_format=\"NCHW\"; dilations=[1,1,2,1]");
  r.Add("Conv2DBackpropInput(input_sizes:i32, filter:T, out_backprop:T) -> (output:T) | T in FLT|i32; " MR_CONV2D_ATTRS)
      .Doc("Gradient of Conv2D with respect to its input, whose shape is input_sizes; also the transposed convolution.")
      .Shape(BackpropInputShape)
      .Gradient(BackpropInputGrad<kConv2D>)
      .Example("i32[4]{2 5 4 2}, f32[3,3,2,3]~, f32[2,5,4,3]~ | strides=[1,1,1,1]; padding=\"SAME\"")
      .Example("i32[4]{1 6 5 2}, f64[3,2,2,2]~, f64[1,2,4,2]~ | strides=[1,2,1,1]; padding=\"VALID\"");
  r.Add("Conv2DBackpropFilter(input:T, filter_sizes:i32, out_backprop:T) -> (output:T) | T in FLT; " MR_CONV2D_ATTRS)
      .Doc("Gradient of Conv2D with respect to its filter, whose shape is filter_sizes.")
      .Shape(BackpropFilterShape)
      .Gradient(BackpropFilterGrad<kConv2D>)
      .Example("f32[2,5,4,2]~, i32[4]{3 3 2 3}, f32[2,5,4,3]~ | strides=[1,1,1,1]; padding=\"SAME\"")
      .Example("f64[1,6,5,2]~, i32[4]{3 2 2 2}, f64[1,2,4,2]~ | strides=[1,2,1,1]; padding=\"VALID\"");
}

void RegisterConv3D(OpRegistry& r) {
  r.Add("Conv3D(input:T, filter:T) -> (output:T) | T in FLT; " MR_CONV3D_ATTRS)
      .Doc("Three-dimensional cross-correlation of a batch of volumes with a filter [planes, rows, columns, in, out].")
      .Shape(ConvShapeFn)
      .Gradient(ConvGrad<kConv3D>)
      .Example("f32[1,3,4,3,2]~, f32[2,2,3,2,3]~ | strides=[1,1,1,1,1]; padding=\"SAME\"")
      .Example("f64[1,2,4,5,3]~, f64[2,2,2,2,2]~ | strides=[1,1,1,2,1]; padding=\"VALID\"; data_format=\"NCDHW\"");
  r.Add("Conv3DBackpropInputV2(input_sizes:Tshape, filter:T, out_backprop:T) -> (output:T) | T in FLT; " MR_CONV3D_ATTRS
        "; Tshape in IDX=i32")
      .Doc("Gradient of Conv3D with respect to its input, whose shape is input_sizes.")
      .Shape(BackpropInputShape)
      .Gradient(BackpropInputGrad<kConv3D>)
      .Example("i32[5]{1 3 4 3 2}, f32[2,2,3,2,3]~, f32[1,3,4,3,3]~ | strides=[1,1,1,1,1]; padding=\"SAME\"");
  r.Add("Conv3DBackpropFilterV2(input:T, filter_sizes:i32, out_backprop:T) -> (output:T) | T in FLT; " MR_CONV3D_ATTRS)
      .Doc("Gradient of Conv3D with respect to its filter, whose shape is filter_sizes.")
      .Shape(BackpropFilterShape)
      .Gradient(BackpropFilterGrad<kConv3D>)
      .Example("f32[1,3,4,3,2]~, i32[5]{2 2 3 2 3}, f32[1,3,4,3,3]~ | strides=[1,1,1,1,1]; padding=\"SAME\"");
  constexpr char kOlder[] =
      "T in HFD; strides:list(int)>=5; padding in {SAME,VALID}; dilations:list(int)=[1,1,1,1,1] | D10";
  constexpr char kOlderExample[] =
      "f32[1,3,4,3,2]~, f32[2,2,3,2,3]~, f32[1,3,4,3,3]~ | strides=[1,1,1,1,1]; padding=\"SAME\"";
  r.Add(absl::StrCat("Conv3DBackpropInput(input:T, filter:T, out_backprop:T) -> (output:T) | ", kOlder))
      .Deprecated("use Conv3DBackpropInputV2 instead")
      .Doc("Gradient of Conv3D with respect to its input, of which only the shape is read.")
      .Shape(OlderBackpropShape<0>)
      .NoGradient("use Conv3DBackpropInputV2; TensorFlow has none")
      .Example(kOlderExample);
  r.Add(absl::StrCat("Conv3DBackpropFilter(input:T, filter:T, out_backprop:T) -> (output:T) | ", kOlder))
      .Deprecated("use Conv3DBackpropFilterV2 instead")
      .Doc("Gradient of Conv3D with respect to its filter, of which only the shape is read.")
      .Shape(OlderBackpropShape<1>)
      .NoGradient("use Conv3DBackpropFilterV2; TensorFlow has none")
      .Example(kOlderExample);
}

void RegisterFusedConv2D(OpRegistry& r) {
  constexpr char kWhere[] = "mode in {REFLECT,SYMMETRIC}; strides:list(int); padding in {SAME,VALID}";
  r.Add(absl::StrCat("FusedPadConv2D(input:T, paddings:i32, filter:T) -> (output:T) | T in FLT; ", kWhere))
      .Doc("Conv2D of MirrorPad of the input, whose rows and columns alone may be padded.")
      .Shape(FusedConvShape)
      .NoGradient("it is for inference; TensorFlow has none")
      .Example(
          "f32[1,3,4,2]~, i32[4,2]{0 0 1 1 2 0 0 0}, f32[2,2,2,3]~ | mode=\"REFLECT\"; strides=[1,1,1,1]; "
          "padding=\"VALID\"");
  r.Add(absl::StrCat("FusedResizeAndPadConv2D(input:T, size:i32, paddings:i32, filter:T) -> (output:T) | T in HFD; "
                     "resize_align_corners:bool=false; ",
                     kWhere))
      .Doc("Conv2D of MirrorPad of ResizeBilinear of the input, in one walk.")
      .Shape(FusedConvShape)
      .NoGradient("it is for inference; TensorFlow has none")
      .Example(
          "f32[1,3,4,2]~, i32[2]{4 5}, i32[4,2]{0 0 1 1 2 0 0 0}, f32[2,2,2,3]~ | mode=\"SYMMETRIC\"; "
          "strides=[1,1,1,1]; padding=\"SAME\"");
}

void RegisterDepthwise(OpRegistry& r) {
  r.Add("DepthwiseConv2dNative(input:T, filter:T) -> (output:T) | T in FLT; " MR_DEPTHWISE_ATTRS)
      .Doc("Convolves each channel by itself with filter[:, :, channel, :]; output channel channel * multiplier + m.")
      .Shape(ConvShapeFn)
      .Gradient(ConvGrad<kDepthwise>)
      .Example("f32[2,5,4,3]~, f32[3,3,3,1]~ | strides=[1,1,1,1]; padding=\"SAME\"")
      .Example("f64[1,5,5,2]~, f64[2,3,2,2]~ | strides=[1,2,2,1]; padding=\"VALID\"");
  r.Add(
       "DepthwiseConv2dNativeBackpropInput(input_sizes:i32, filter:T, out_backprop:T) -> (output:T) | T in "
       "FLT; " MR_DEPTHWISE_ATTRS)
      .Doc("Gradient of DepthwiseConv2dNative with respect to its input, whose shape is input_sizes.")
      .Shape(BackpropInputShape)
      .Gradient(BackpropInputGrad<kDepthwise>)
      .Example("i32[4]{2 5 4 3}, f32[3,3,3,2]~, f32[2,5,4,6]~ | strides=[1,1,1,1]; padding=\"SAME\"");
  r.Add(
       "DepthwiseConv2dNativeBackpropFilter(input:T, filter_sizes:i32, out_backprop:T) -> (output:T) | T in "
       "FLT; " MR_DEPTHWISE_ATTRS)
      .Doc("Gradient of DepthwiseConv2dNative with respect to its filter, whose shape is filter_sizes.")
      .Shape(BackpropFilterShape)
      .Gradient(BackpropFilterGrad<kDepthwise>)
      .Example("f32[2,5,4,3]~, i32[4]{3 3 3 2}, f32[2,5,4,6]~ | strides=[1,1,1,1]; padding=\"SAME\"");
}

// What the stage `fuse` makes. The attributes are TensorFlow's, but for the names of the nodes that it stands for.
void RegisterFused(OpRegistry& r) {
  constexpr char kFused[] =
      "; num_args:int>=0; fused_ops:list(string)=[]; epsilon:float=0.0001; fused_names:list(string)=[]";
  const auto add = [&](const char* op, const char* attrs) {
    r.Add(absl::StrCat(op, "(input:T, filter:T, args:num_args*T) -> (output:T) | T in f32; ", attrs, kFused))
        .Doc(
            "A convolution and, in this order, some of BiasAdd, FusedBatchNorm by given moments (args scale, offset, "
            "mean, variance), Add, and Relu or Relu6: `fused_ops`, whose other inputs are args.")
        .Shape(FusedShape)
        .NoGradient("gradients are taken of the ops that it stands for")
        .NoExample("graphs of clients do not have it");
  };
  add("_FusedConv2D", MR_CONV2D_ATTRS);
  add("_FusedDepthwiseConv2dNative", MR_DEPTHWISE_ATTRS);
}

}  // namespace

void RegisterConvOps(OpRegistry& registry) {
  RegisterConv2D(registry);
  RegisterConv3D(registry);
  RegisterFusedConv2D(registry);
  RegisterDepthwise(registry);
  RegisterFused(registry);
}

}  // namespace millrace
