// SPDX-License-Identifier: Apache-2.0
// Ops: biases, batch normalisation, local response normalisation, the L2 loss.
#include "ops/nn/nn_ops.h"

namespace millrace {
namespace {

StatusOr<ImageLayout> BatchNormLayout(const ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const std::string format, c.Attr<std::string>("data_format"));
  return ParseImageLayout(format);
}

// ---- bias ----

// The channel dimension of a value of this rank: the last one, or dimension 1 for NCHW (any rank).
StatusOr<int> BiasChannel(const ShapeContext& c, int rank) {
  std::string format = "NHWC";
  if (c.attrs().find("data_format") != c.attrs().end()) {
    MR_ASSIGN_OR_RETURN(format, c.Attr<std::string>("data_format"));
  }
  return format == "NCHW" ? 1 : rank - 1;
}

Status BiasAddShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape value, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape bias, c.WithRank(1, 1));
  if (!value.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const int channel, BiasChannel(c, value.rank()));
  std::vector<int64_t> dims = value.dims();
  MR_ASSIGN_OR_RETURN(dims[static_cast<size_t>(channel)], c.MergeDim(value.dim(channel), bias.dim(0), "channels"));
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status BiasAddGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape value, c.WithRankAtLeast(0, 2));
  int64_t channels = -1;
  if (value.has_rank()) {
    MR_ASSIGN_OR_RETURN(const int channel, BiasChannel(c, value.rank()));
    channels = value.dim(channel);
  }
  c.set_output(0, PartialShape::Of({channels}));
  return absl::OkStatus();
}

Output WithFormat(const GradContext& g, const char* op, std::vector<Arg> inputs) {
  Node* n = g.b().OpNode(op, std::move(inputs), CopyAttrs(g.node(), {"data_format"}));
  return n ? n->output(0) : Output{};
}
Status BiasAddGradient(GradContext& g) {
  g.set_dx(0, g.dy());
  g.set_dx(1, WithFormat(g, "BiasAddGrad", {g.dy()}));
  return g.status();
}
// The sum's gradient is the vector repeated: a bias on zeros.
Status BiasAddGradGradient(GradContext& g) {
  g.set_dx(0, WithFormat(g, "BiasAdd", {g.b().ZerosLike(g.x(0)), g.dy()}));
  return g.status();
}

void RegisterBias(OpRegistry& r) {
  r.Add("BiasAdd(value:T, bias:T) -> (output:T) | T in NUM; data_format in {NHWC,NCHW}=\"NHWC\"")
      .Doc("Adds a vector along the channel dimension: the last one, or dimension 1 for NCHW.")
      .Shape(BiasAddShape)
      .Gradient(BiasAddGradient)
      .Example("f32[2,3,4]~, f32[4]~")
      .Example("f64[2,3,2,2]~, f64[3]~ | data_format=\"NCHW\"");
  r.Add("BiasAddV1(value:T, bias:T) -> (output:T) | T in NUM")
      .Doc("BiasAdd along the last dimension, as graphs before data formats have it.")
      .Shape(BiasAddShape)
      .Gradient(BiasAddGradient)
      .Example("f32[2,3,4]~, f32[4]~");
  r.Add("BiasAddGrad(out_backprop:T) -> (output:T) | T in NUM; data_format in {NHWC,NCHW}=\"NHWC\"")
      .Doc("Gradient of BiasAdd with respect to the bias: the sum over all dimensions but the channels.")
      .Shape(BiasAddGradShape)
      .Gradient(BiasAddGradGradient)
      .Example("f32[2,3,4]~")
      .Example("f64[2,3,2,2]~ | data_format=\"NCHW\"");
}

// ---- fused batch normalisation ----

Status FusedBatchNormShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const ImageLayout layout, BatchNormLayout(c));
  MR_ASSIGN_OR_RETURN(const bool training, c.Attr<bool>("is_training"));
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, layout.rank));
  int64_t channels = x.dim(layout.channel);
  // In training mean and variance may be empty.
  for (int i = 1; i < (training ? 3 : 5); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape v, c.WithRank(i, 1));
    MR_ASSIGN_OR_RETURN(channels, c.MergeDim(channels, v.dim(0), "channels"));
  }
  std::vector<int64_t> dims = x.dims();
  dims[static_cast<size_t>(layout.channel)] = channels;
  c.set_output(0, PartialShape::Of(std::move(dims)));
  for (int i = 1; i < 5; ++i) c.set_output(i, PartialShape::Of({channels}));
  return absl::OkStatus();
}

Status FusedBatchNormGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const ImageLayout layout, BatchNormLayout(c));
  MR_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(0, layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(1, layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape both, c.Merge(dy, x, "y_backprop and x"));
  int64_t channels = both.dim(layout.channel);
  for (int i = 2; i < 5; ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape v, c.WithRank(i, 1));
    MR_ASSIGN_OR_RETURN(channels, c.MergeDim(channels, v.dim(0), "channels"));
  }
  std::vector<int64_t> dims = both.dims();
  dims[static_cast<size_t>(layout.channel)] = channels;
  c.set_output(0, PartialShape::Of(std::move(dims)));
  c.set_output(1, PartialShape::Of({channels}));
  c.set_output(2, PartialShape::Of({channels}));
  c.set_output(3, PartialShape::Of({0}));
  c.set_output(4, PartialShape::Of({0}));
  return absl::OkStatus();
}

// Training differentiates through the batch's own statistics (saved in the reserve spaces); inference takes the given
// mean and variance as constants.
Status FusedBatchNormGradient(GradContext& g) {
  MR_ASSIGN_OR_RETURN(const bool training, g.Attr<bool>("is_training"));
  const bool v3 = g.num_outputs() == 6;
  std::vector<Arg> inputs = {g.dy(), g.x(0), g.x(1), training ? g.y(3) : g.x(3), training ? g.y(4) : g.x(4)};
  if (v3) inputs.push_back(g.y(5));
  const char* op = v3 ? "FusedBatchNormGradV3"
                      : (g.node()->op_name() == "FusedBatchNorm" ? "FusedBatchNormGrad" : "FusedBatchNormGradV2");
  Node* n = g.b().OpNode(op, std::move(inputs), CopyAttrs(g.node(), {"epsilon", "data_format", "is_training"}));
  if (n) {
    for (int i = 0; i < 3; ++i) g.set_dx(i, n->output(i));
  }
  return g.status();
}

// Arithmetic on per-channel vectors and images in float32.
struct ChannelMath {
  const GraphBuilder& b;
  ImageLayout layout;
  Output count;  // values per channel, float
  Output axes;
  Output Lift(Output v) const {  // [c] so that it broadcasts against the image
    if (!layout.channels_first()) return v;
    Tensor shape =
        layout.rank == 4 ? Tensor::Vector<int32_t>({1, -1, 1, 1}) : Tensor::Vector<int32_t>({1, -1, 1, 1, 1});
    return b.Reshape(v, b.Const(std::move(shape)));
  }
  Output Sum(Output t) const { return b.Sum(t, axes); }
  Output Mean(Output t) const { return b.Op("Mean", {t, axes}); }
  Output Scale(Output t, Output v) const { return b.Mul(t, Lift(v)); }
  // t - mean(t) - xh * mean(t * xh): the projection that a batch norm's backward pass applies.
  Output Project(Output t, Output xh) const {
    const Output centred = b.Sub(t, Lift(Mean(t)));
    return b.Sub(centred, Scale(xh, Mean(b.Mul(t, xh))));
  }
};

ChannelMath MakeChannelMath(const GraphBuilder& b, const ImageLayout& layout, Output like) {
  std::vector<int32_t> axes;
  for (int d = 0; d < layout.rank; ++d) {
    if (d != layout.channel) axes.push_back(d);
  }
  ChannelMath m{b, layout, {}, b.Const(Tensor::Vector<int32_t>(absl::MakeConstSpan(axes)))};
  m.count = m.Sum(b.OnesLike(like));
  return m;
}

// Second order. With u = y_backprop, xh the normalised x, r = 1/sqrt(var + eps), P the projection above:
//   dx = s r P(u), dscale = sum(u xh), doffset = sum(u).
// For incoming gradients A (of dx), B (of dscale), C (of doffset), with q = sum(A P(u)), a = mean(A xh), e = mean(u
// xh):
//   d/du = s r P(A) + B xh + C;  d/ds = r q;  d/dx = r P(B u - s r (e A + a u)) - r^2 xh s q / n.
// In inference mean and r are constants and P is the identity: s r A + B xh + C; r sum(A u); r B u.
Status FusedBatchNormGradGradient(GradContext& g) {
  MR_ASSIGN_OR_RETURN(const bool training, g.Attr<bool>("is_training"));
  MR_ASSIGN_OR_RETURN(const float epsilon, g.Attr<float>("epsilon"));
  MR_ASSIGN_OR_RETURN(const std::string format, g.Attr<std::string>("data_format"));
  MR_ASSIGN_OR_RETURN(const ImageLayout layout, ParseImageLayout(format));
  const GraphBuilder& b = g.b();
  const DType type = BaseType(g.x(0).dtype());
  const Output u = b.Cast(g.x(0), DType::kFloat);
  const Output x = b.Cast(g.x(1), DType::kFloat);
  const Output s = g.x(2);
  const Output A = b.Cast(g.dy(0), DType::kFloat);
  const Output B = g.dy(1);
  const Output C = g.dy(2);
  const ChannelMath m = MakeChannelMath(b, layout, x);
  const Output mean = training ? m.Mean(x) : g.x(3);
  const Output centred = b.Sub(x, m.Lift(mean));
  const Output variance = training ? m.Mean(b.Mul(centred, centred)) : g.x(4);
  const Output r = b.Op("Rsqrt", {b.Add(variance, b.Scalar<float>(epsilon))});
  const Output xh = m.Scale(centred, r);
  const Output sr = b.Mul(s, r);
  const Output pa = training ? m.Project(A, xh) : A;
  const Output du = b.Add(b.Add(m.Scale(pa, sr), m.Scale(xh, B)), m.Lift(C));
  const Output q = m.Sum(b.Mul(pa, u));
  Output dx = m.Scale(u, b.Mul(r, B));
  if (training) {
    const Output a = m.Mean(b.Mul(A, xh));
    const Output e = m.Mean(b.Mul(u, xh));
    const Output inner = b.Sub(m.Scale(u, b.Sub(B, b.Mul(sr, a))), m.Scale(A, b.Mul(sr, e)));
    const Output curve = b.Div(b.Mul(b.Mul(r, r), b.Mul(s, q)), m.count);
    dx = b.Sub(m.Scale(m.Project(inner, xh), r), m.Scale(xh, curve));
  }
  g.set_dx(0, b.Cast(du, type));
  g.set_dx(1, b.Cast(dx, type));
  g.set_dx(2, b.Mul(r, q));
  return g.status();
}

#define MR_BN_ATTRS "epsilon:float=0.0001; data_format in {NHWC,NCHW}=\"NHWC\"; is_training:bool=true"
#define MR_BN_ATTRS_V3 "epsilon:float=0.0001; data_format in {NHWC,NCHW,NDHWC,NCDHW}=\"NHWC\"; is_training:bool=true"
constexpr char kBatchNormDoc[] =
    "Normalises each channel over batch and space, then scales and shifts. In training the batch's own mean and "
    "variance "
    "serve, and are returned (the variance with n - 1 in the denominator); the reserve spaces hold what the gradient "
    "needs.";
constexpr char kBatchNormGradDoc[] =
    "Gradients of the fused batch normalisation with respect to x, scale and offset; the last two outputs are empty.";
constexpr char kTrain[] = "f32[2,3,2,3]~, f32[3]+, f32[3]~, !f32[0]{}, !f32[0]{}";
constexpr char kInfer[] =
    "f32[2,3,2,2]~, f32[3]+, f32[3]~, !f32[3]~, !f32[3]+ | data_format=\"NCHW\"; is_training=false";
constexpr char kGrad[] = "f32[2,3,2,3]~, f32[2,3,2,3]~, f32[3]+, !f32[3]{0 0 0}, !f32[3]{1 1 1}";

void RegisterFusedBatchNorm(OpRegistry& r) {
  r.Add(
       "FusedBatchNorm(x:T, scale:T, offset:T, mean:T, variance:T) -> (y:T, batch_mean:T, batch_variance:T, "
       "reserve_space_1:T, reserve_space_2:T) | T in f32; " MR_BN_ATTRS)
      .Doc(kBatchNormDoc)
      .Shape(FusedBatchNormShape)
      .Gradient(FusedBatchNormGradient)
      .Example(kTrain)
      .Example(kInfer);
  r.Add(
       "FusedBatchNormV2(x:T, scale:U, offset:U, mean:U, variance:U) -> (y:T, batch_mean:U, batch_variance:U, "
       "reserve_space_1:U, reserve_space_2:U) | T in f16|bf16|f32; U in f32; " MR_BN_ATTRS)
      .Doc(kBatchNormDoc)
      .Shape(FusedBatchNormShape)
      .Gradient(FusedBatchNormGradient)
      .Example(kTrain)
      .Example(kInfer);
  r.Add(
       "FusedBatchNormV3(x:T, scale:U, offset:U, mean:U, variance:U) -> (y:T, batch_mean:U, batch_variance:U, "
       "reserve_space_1:U, reserve_space_2:U, reserve_space_3:U) | T in f16|bf16|f32; U in f32; " MR_BN_ATTRS_V3)
      .Doc(kBatchNormDoc)
      .Shape(FusedBatchNormShape)
      .Gradient(FusedBatchNormGradient)
      .Example(kTrain)
      .Example(kInfer);
  const std::string grad(kGrad);
  const std::string infer = grad + " | is_training=false";
  r.Add(
       "FusedBatchNormGrad(y_backprop:T, x:T, scale:T, reserve_space_1:T, reserve_space_2:T) -> (x_backprop:T, "
       "scale_backprop:T, offset_backprop:T, reserve_space_3:T, reserve_space_4:T) | T in f32; " MR_BN_ATTRS)
      .Doc(kBatchNormGradDoc)
      .Shape(FusedBatchNormGradShape)
      .Gradient(FusedBatchNormGradGradient)
      .Example(infer);
  r.Add(
       "FusedBatchNormGradV2(y_backprop:T, x:T, scale:f32, reserve_space_1:U, reserve_space_2:U) -> (x_backprop:T, "
       "scale_backprop:U, offset_backprop:U, reserve_space_3:U, reserve_space_4:U) | T in f16|bf16|f32; U in "
       "f32; " MR_BN_ATTRS)
      .Doc(kBatchNormGradDoc)
      .Shape(FusedBatchNormGradShape)
      .Gradient(FusedBatchNormGradGradient)
      .Example(infer);
  r.Add(
       "FusedBatchNormGradV3(y_backprop:T, x:T, scale:f32, reserve_space_1:U, reserve_space_2:U, reserve_space_3:U) -> "
       "(x_backprop:T, scale_backprop:U, offset_backprop:U, reserve_space_4:U, reserve_space_5:U) | T in f16|bf16|f32; "
       "U in f32; " MR_BN_ATTRS_V3)
      .Doc(kBatchNormGradDoc)
      .Shape(FusedBatchNormGradShape)
      .Gradient(FusedBatchNormGradGradient)
      .Example(grad + ", !f32[0]{} | is_training=false");
}

// ---- the older normalisations ----

Status GlobalNormShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape t, c.WithRank(0, 4));
  int64_t channels = t.dim(3);
  const bool grad = c.num_outputs() == 5;
  for (int i = 1; i < (grad ? 4 : 5); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape v, c.WithRank(i, 1));
    MR_ASSIGN_OR_RETURN(channels, c.MergeDim(channels, v.dim(0), "channels"));
  }
  std::vector<int64_t> dims = t.dims();
  dims[3] = channels;
  PartialShape image = PartialShape::Of(std::move(dims));
  if (grad) {
    MR_ASSIGN_OR_RETURN(const PartialShape backprop, c.WithRank(4, 4));
    MR_ASSIGN_OR_RETURN(image, c.Merge(image, backprop, "t and backprop"));
    for (int i = 1; i < 5; ++i) c.set_output(i, PartialShape::Of({image.dim(3)}));
  }
  c.set_output(0, std::move(image));
  return absl::OkStatus();
}

Status GlobalNormGradient(GradContext& g) {
  AttrMap attrs = CopyAttrs(g.node(), {"variance_epsilon", "scale_after_normalization"});
  Node* n = g.b().OpNode("BatchNormWithGlobalNormalizationGrad",
                         std::vector<Arg>{g.x(0), g.x(1), g.x(2), g.x(4), g.dy()}, std::move(attrs));
  if (n) {
    for (int i = 0; i < 5; ++i) g.set_dx(i, n->output(i));
  }
  return g.status();
}

Status LrnShape(ShapeContext& c) {
  PartialShape all = PartialShape::UnknownOfRank(4);
  for (int i = 0; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRank(i, 4));
    MR_ASSIGN_OR_RETURN(all, c.Merge(all, s, "images"));
  }
  c.set_output(0, std::move(all));
  return absl::OkStatus();
}

Status LrnGradient(GradContext& g) {
  Node* n = g.b().OpNode("LRNGrad", std::vector<Arg>{g.dy(), g.x(0), g.y()},
                         CopyAttrs(g.node(), {"depth_radius", "bias", "alpha", "beta"}));
  if (n) g.set_dx(0, n->output(0));
  return g.status();
}

Status L2LossGradient(GradContext& g) {
  g.set_dx(0, g.b().Mul(g.x(0), g.dy()));
  return g.status();
}

void RegisterOlderNorms(OpRegistry& r) {
  r.Add(
       "BatchNormWithGlobalNormalization(t:T, m:T, v:T, beta:T, gamma:T) -> (result:T) | T in NUM; "
       "variance_epsilon:float; scale_after_normalization:bool | D9")
      .Doc("(t - m) / sqrt(v + epsilon) (times gamma) + beta, along the last dimension.")
      .Deprecated("Use tf.nn.batch_normalization()")
      .Shape(GlobalNormShape)
      .Gradient(GlobalNormGradient)
      .Example(
          "f32[2,2,2,3]~, f32[3]~, f32[3]+, f32[3]~, f32[3]+ | variance_epsilon=0.001; "
          "scale_after_normalization=true");
  r.Add(
       "BatchNormWithGlobalNormalizationGrad(t:T, m:T, v:T, gamma:T, backprop:T) -> (dx:T, dm:T, dv:T, db:T, dg:T) | "
       "T in NUM; variance_epsilon:float; scale_after_normalization:bool | D9")
      .Doc("Gradients of BatchNormWithGlobalNormalization with respect to its five inputs.")
      .Deprecated("Use tf.nn.batch_normalization()")
      .Shape(GlobalNormShape)
      .NoGradient("second derivatives of the deprecated batch normalisation are not offered; use FusedBatchNorm")
      .Example(
          "f32[2,2,2,3]~, f32[3]~, f32[3]+, f32[3]+, f32[2,2,2,3]~ | variance_epsilon=0.001; "
          "scale_after_normalization=true");
  r.Add(
       "LRN(input:T) -> (output:T) | depth_radius:int=5; bias:float=1; alpha:float=1; beta:float=0.5; "
       "T in f16|bf16|f32=f32")
      .Doc(
          "Local response normalisation: x / (bias + alpha * sum of squares of the depth_radius channels on each side "
          "and "
          "of its own) ^ beta.")
      .Shape(LrnShape)
      .Gradient(LrnGradient)
      .Example("f32[2,2,1,5]~ | depth_radius=2; bias=1.5; alpha=0.3; beta=0.75");
  r.Add(
       "LRNGrad(input_grads:T, input_image:T, output_image:T) -> (output:T) | depth_radius:int=5; bias:float=1; "
       "alpha:float=1; beta:float=0.5; T in f16|bf16|f32=f32")
      .Doc("Gradient of LRN with respect to its input.")
      .Shape(LrnShape)
      .NoGradient("second derivatives of local response normalisation are not offered")
      .Example("f32[1,2,1,5]~, f32[1,2,1,5]~, f32[1,2,1,5]~ | depth_radius=2");
  r.Add("L2Loss(t:T) -> (output:T) | T in FLT")
      .Doc("Half the sum of the squares of all elements.")
      .Shape(ScalarShape)
      .Gradient(L2LossGradient)
      .Example("f32[2,3]~")
      .Example("f64[0]{}");
}

}  // namespace

void RegisterNormOps(OpRegistry& registry) {
  RegisterBias(registry);
  RegisterFusedBatchNorm(registry);
  RegisterOlderNorms(registry);
}

}  // namespace millrace
