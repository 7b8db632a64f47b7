// SPDX-License-Identifier: Apache-2.0
// Ops: quantized numbers. Each comes with the floats that its lowest and its highest integer stand for.
#include "op/shape_context.h"
#include "ops/quantize/quantize_ops.h"
#include "tensor/window.h"

namespace millrace {
namespace {

constexpr char kIntegers[] = "quantized numbers are integers";

// The last `n` outputs are scalars.
Status RangeOutputs(ShapeContext& c, int n = 2) {
  for (int i = c.num_outputs() - n; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::Scalar());
  return absl::OkStatus();
}
Status RequireScalars(ShapeContext& c, int first) {
  for (int i = first; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return absl::OkStatus();
}

// Output 0 like input 0, all else scalars.
Status SameShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireScalars(c, 1));
  c.set_output(0, c.input(0));
  return c.num_outputs() > 1 ? RangeOutputs(c) : absl::OkStatus();
}
Status RangeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireScalars(c, 1));
  return RangeOutputs(c);
}
Status ChannelsShape(ShapeContext& c) {
  for (int i = 1; i < 3; ++i) MR_RETURN_IF_ERROR(c.WithRankAtMost(i, 1).status());
  MR_RETURN_IF_ERROR(RequireScalars(c, 3));
  if (c.num_outputs() > 2) c.set_output(0, c.input(0));
  return RangeOutputs(c);
}
Status BinaryShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireScalars(c, 2));
  MR_RETURN_IF_ERROR(BroadcastShape(c));
  return RangeOutputs(c);
}

Status MatMulShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  MR_ASSIGN_OR_RETURN(const bool ta, c.Attr<bool>("transpose_a"));
  MR_ASSIGN_OR_RETURN(const bool tb, c.Attr<bool>("transpose_b"));
  MR_RETURN_IF_ERROR(RequireScalars(c, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(a.dim(ta ? 0 : 1), b.dim(tb ? 1 : 0), "the inner dimension").status());
  c.set_output(0, PartialShape::Of({a.dim(ta ? 1 : 0), b.dim(tb ? 0 : 1)}));
  return RangeOutputs(c);
}

Status BiasShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape bias, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(RequireScalars(c, 2));
  if (in.has_rank()) {
    std::vector<int64_t> dims = in.dims();
    MR_ASSIGN_OR_RETURN(dims.back(), c.MergeDim(dims.back(), bias.dim(0), "the biases"));
    in = PartialShape::Of(std::move(dims));
  }
  c.set_output(0, std::move(in));
  return RangeOutputs(c);
}

Status BatchNormShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
  int64_t depth = in.dim(3);
  for (int i = 0; i < 5; ++i) {
    if (i > 0) {
      MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRank(3 * i, 1));
      MR_ASSIGN_OR_RETURN(depth, c.MergeDim(depth, s.dim(0), "the number of channels"));
    }
    MR_RETURN_IF_ERROR(c.RequireScalar(3 * i + 1));
    MR_RETURN_IF_ERROR(c.RequireScalar(3 * i + 2));
  }
  c.set_output(0, PartialShape::Of({in.dim(0), in.dim(1), in.dim(2), depth}));
  return RangeOutputs(c);
}

Status ConcatShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  const int n = (c.num_inputs() - 1) / 3;
  MR_RETURN_IF_ERROR(RequireScalars(c, 1 + n));
  MR_RETURN_IF_ERROR(RangeOutputs(c));
  MR_ASSIGN_OR_RETURN(const auto given, c.ConstantInt(0));
  PartialShape out = c.input(1);
  for (int i = 2; i <= n && !out.has_rank(); ++i) out = c.input(i);
  if (!out.has_rank()) return absl::OkStatus();
  if (!given) {
    c.set_output(0, PartialShape::UnknownOfRank(out.rank()));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const int axis, c.Axis(*given, out.rank()));
  std::vector<int64_t> dims = out.dims();
  const auto at = static_cast<size_t>(axis);
  dims[at] = 0;
  for (int i = 1; i <= n; ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRank(i, out.rank()));
    for (int d = 0; d < out.rank(); ++d) {
      int64_t& dim = dims[static_cast<size_t>(d)];
      if (d != axis) {
        MR_ASSIGN_OR_RETURN(dim, c.MergeDim(dim, s.dim(d), "the other dimensions"));
      } else {
        dim = dim < 0 || s.dim(d) < 0 ? -1 : dim + s.dim(d);
      }
    }
  }
  MR_ASSIGN_OR_RETURN(PartialShape made, PartialShape::Make(dims));
  c.set_output(0, std::move(made));
  return absl::OkStatus();
}

Status ReshapeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireScalars(c, 2));
  MR_ASSIGN_OR_RETURN(PartialShape to, c.InputAsShape(1));
  const int64_t n = c.input(0).num_elements();
  if (to.has_rank() && n >= 0) {
    std::vector<int64_t> dims = to.dims();
    int64_t known = 1, open = -1, unknown = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] >= 0) {
        known *= dims[i];
      } else {
        open = static_cast<int64_t>(i);
        ++unknown;
      }
    }
    if (unknown == 1 && known > 0 && n % known == 0) {
      dims[static_cast<size_t>(open)] = n / known;
      to = PartialShape::Of(std::move(dims));
    }
  }
  c.set_output(0, std::move(to));
  return RangeOutputs(c);
}

Status SlideShape(ShapeContext& c, int64_t window_rows, int64_t window_cols, int64_t depth) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, c.Attr<std::vector<int64_t>>("strides"));
  MR_ASSIGN_OR_RETURN(const std::string text, c.Attr<std::string>("padding"));
  MR_ASSIGN_OR_RETURN(const Padding padding, ParsePadding(text));
  if (strides.size() != 4) return InvalidArgument("strides must have 4 elements, got ", strides.size());
  const auto slide = [&](int d, int64_t window) -> StatusOr<int64_t> {
    if (in.dim(d) < 0 || window < 0) return -1;
    MR_ASSIGN_OR_RETURN(
        const WindowExtent e, ComputeWindow(in.dim(d), window, strides[static_cast<size_t>(d)], 1, padding));
    return e.output;
  };
  MR_ASSIGN_OR_RETURN(const int64_t rows, slide(1, window_rows));
  MR_ASSIGN_OR_RETURN(const int64_t cols, slide(2, window_cols));
  c.set_output(0, PartialShape::Of({in.dim(0), rows, cols, depth}));
  return RangeOutputs(c);
}
Status ConvShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 4));
  MR_RETURN_IF_ERROR(RequireScalars(c, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(in.dim(3), filter.dim(2), "the depth of input and filter").status());
  return SlideShape(c, filter.dim(0), filter.dim(1), filter.dim(3));
}
Status PoolShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireScalars(c, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> ksize, c.Attr<std::vector<int64_t>>("ksize"));
  if (ksize.size() != 4) return InvalidArgument("ksize must have 4 elements, got ", ksize.size());
  return SlideShape(c, ksize[1], ksize[2], in.dim(3));
}
Status ResizeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape size, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(size.dim(0), 2, "the length of size").status());
  MR_RETURN_IF_ERROR(RequireScalars(c, 2));
  MR_ASSIGN_OR_RETURN(const auto to, c.ConstantInts(1));
  if (to && ((*to)[0] < 0 || (*to)[1] < 0)) return InvalidArgument("size must not be negative");
  c.set_output(0, PartialShape::Of({in.dim(0), to ? (*to)[0] : -1, to ? (*to)[1] : -1, in.dim(3)}));
  return RangeOutputs(c);
}
Status NormShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 4).status());
  return SameShape(c);
}

// Examples come from ops that quantize; `reason` where the op's own inputs cannot be spelt.
constexpr char kNotSpelt[] = "quantized numbers cannot be spelt in examples";

void AddConversions(OpRegistry& r) {
  const auto add = [&](absl::string_view schema, absl::string_view doc, ShapeFn shape) {
    r.Add(schema).Doc(doc).Shape(shape).NotDifferentiable(kIntegers).NoExample(kNotSpelt);
  };
  r.Add(
       "QuantizeV2(input:f32, min_range:f32, max_range:f32) -> (output:T, output_min:f32, output_max:f32) | T in QNT; "
       "mode in {MIN_COMBINED,MIN_FIRST,SCALED}=\"MIN_COMBINED\"; round_mode in "
       "{HALF_AWAY_FROM_ZERO,HALF_TO_EVEN}=\"HALF_AWAY_FROM_ZERO\"")
      .Doc(
          "Floats as integers that lie evenly between the ends of a range, and the ends that were used: zero always "
          "lies "
          "between them. SCALED maps zero to the integer zero.")
      .Shape(SameShape)
      .NotDifferentiable(kIntegers)
      .Example("!f32[2,3]~, !f32[]{-1}, !f32[]{1} | T=qu8");
  r.Add(
       "Dequantize(input:T, min_range:f32, max_range:f32) -> (output:f32) | T in QNT; mode in "
       "{MIN_COMBINED,MIN_FIRST,SCALED}=\"MIN_COMBINED\"")
      .Doc("The floats that quantized numbers stand for.")
      .Shape(SameShape)
      .NoGradient(kIntegers)
      .NoExample(kNotSpelt);
  add("QuantizeDownAndShrinkRange(input:Tinput, input_min:f32, input_max:f32) -> (output:out_type, output_min:f32, "
      "output_max:f32) | Tinput in QNT; out_type in QNT",
      "Numbers of 32 bits as 8 bits, in the range that they really use.", SameShape);
  add("Requantize(input:Tinput, input_min:f32, input_max:f32, requested_output_min:f32, requested_output_max:f32) -> "
      "(output:out_type, output_min:f32, output_max:f32) | Tinput in QNT; out_type in QNT",
      "Numbers of 32 bits as 8 bits, in the range that is requested.", SameShape);
  add("RequantizationRange(input:Tinput, input_min:f32, input_max:f32) -> (output_min:f32, output_max:f32) | "
      "Tinput in QNT",
      "The range that numbers of 32 bits really use, with zero in it.", RangeShape);
  add("RequantizePerChannel(input:T, input_min:f32, input_max:f32, requested_output_min:f32, requested_output_max:f32) "
      "-> (output:out_type, output_min:f32, output_max:f32) | T in QNT=qi32; out_type in QNT=qu8",
      "Requantize of inputs with a range for each channel (the last dimension).", ChannelsShape);
  add("RequantizationRangePerChannel(input:T, input_min:f32, input_max:f32) -> (output_min:f32, output_max:f32) | "
      "T in QNT=qi32; clip_value_max:float",
      "RequantizationRange of inputs with a range for each channel, up to `clip_value_max`.", ChannelsShape);
}

void AddArithmetic(OpRegistry& r) {
  const auto add = [&](absl::string_view schema, absl::string_view doc, ShapeFn shape) {
    r.Add(schema).Doc(doc).Shape(shape).NotDifferentiable(kIntegers).NoExample(kNotSpelt);
  };
  const absl::string_view binary =
      "(x:T1, y:T2, min_x:f32, max_x:f32, min_y:f32, max_y:f32) -> (z:Toutput, min_z:f32, max_z:f32) | T1 in QNT; "
      "T2 in QNT; Toutput in QNT=qi32";
  add(absl::StrCat("QuantizedAdd", binary), "Sums of quantized numbers with broadcasting.", BinaryShape);
  add(absl::StrCat("QuantizedMul", binary), "Products of quantized numbers with broadcasting.", BinaryShape);
  add("QuantizedMatMul(a:T1, b:T2, min_a:f32, max_a:f32, min_b:f32, max_b:f32) -> (out:Toutput, min_out:f32, "
      "max_out:f32) | T1 in QNT; T2 in QNT; Toutput in QNT=qi32; transpose_a:bool=false; transpose_b:bool=false; "
      "Tactivation in QNT=qu8",
      "The product of two quantized matrices.", MatMulShape);
  add("QuantizedBiasAdd(input:T1, bias:T2, min_input:f32, max_input:f32, min_bias:f32, max_bias:f32) -> "
      "(output:out_type, min_out:f32, max_out:f32) | T1 in QNT; T2 in QNT; out_type in QNT",
      "A quantized bias added to the last dimension.", BiasShape);
  const absl::string_view relu =
      "(features:Tinput, min_features:f32, max_features:f32) -> (activations:out_type, min_activations:f32, "
      "max_activations:f32) | Tinput in QNT; out_type in QNT=qu8";
  add(absl::StrCat("QuantizedRelu", relu), "The larger of quantized numbers and zero.", SameShape);
  add(absl::StrCat("QuantizedRelu6", relu), "Quantized numbers kept between zero and six.", SameShape);
  add("QuantizedReluX(features:Tinput, max_value:f32, min_features:f32, max_features:f32) -> (activations:out_type, "
      "min_activations:f32, max_activations:f32) | Tinput in QNT; out_type in QNT=qu8",
      "Quantized numbers kept between zero and `max_value`.", SameShape);
  add("QuantizedBatchNormWithGlobalNormalization(t:Tinput, t_min:f32, t_max:f32, m:Tinput, m_min:f32, m_max:f32, "
      "v:Tinput, v_min:f32, v_max:f32, beta:Tinput, beta_min:f32, beta_max:f32, gamma:Tinput, gamma_min:f32, "
      "gamma_max:f32) -> (result:out_type, result_min:f32, result_max:f32) | Tinput in QNT; out_type in QNT; "
      "variance_epsilon:float; scale_after_normalization:bool",
      "Batch normalisation of quantized numbers by given means and variances.", BatchNormShape);
  add("QuantizedInstanceNorm(x:T, x_min:f32, x_max:f32) -> (y:T, y_min:f32, y_max:f32) | T in QNT; "
      "output_range_given:bool=false; given_y_min:float=0; given_y_max:float=0; variance_epsilon:float=1e-05; "
      "min_separation:float=0.001",
      "Each channel of each image by its own mean and variance.", NormShape);
}

void AddImages(OpRegistry& r) {
  const auto add = [&](absl::string_view schema, absl::string_view doc, ShapeFn shape) {
    r.Add(schema).Doc(doc).Shape(shape).NotDifferentiable(kIntegers).NoExample(kNotSpelt);
  };
  add("QuantizedConcat(concat_dim:i32, values:N*T, input_mins:N*f32, input_maxes:N*f32) -> (output:T, output_min:f32, "
      "output_max:f32) | N:int>=2; T:type",
      "Quantized tensors one after another along a dimension, in a range that holds all of theirs.", ConcatShape);
  add("QuantizedReshape(tensor:T, shape:Tshape, input_min:f32, input_max:f32) -> (output:T, output_min:f32, "
      "output_max:f32) | T:type; Tshape in IDX=i32",
      "Reshape of a quantized tensor; its range goes along.", ReshapeShape);
  add("QuantizedConv2D(input:Tinput, filter:Tfilter, min_input:f32, max_input:f32, min_filter:f32, max_filter:f32) -> "
      "(output:out_type, min_output:f32, max_output:f32) | Tinput in QNT; Tfilter in QNT; out_type in QNT=qi32; "
      "strides:list(int); padding in {SAME,VALID}; dilations:list(int)=[1,1,1,1]",
      "Conv2D of quantized images and filters.", ConvShape);
  const absl::string_view pool =
      "(input:T, min_input:f32, max_input:f32) -> (output:T, min_output:f32, max_output:f32) | T in QNT; "
      "ksize:list(int); strides:list(int); padding in {SAME,VALID}";
  add(absl::StrCat("QuantizedAvgPool", pool), "Means of windows of quantized images.", PoolShape);
  add(absl::StrCat("QuantizedMaxPool", pool), "Maxima of windows of quantized images.", PoolShape);
  r.Add(
       "QuantizedResizeBilinear(images:T, size:i32, min:f32, max:f32) -> (resized_images:T, out_min:f32, out_max:f32) "
       "| T in f32|qu8|qi32; align_corners:bool=false; half_pixel_centers:bool=false")
      .Doc("ResizeBilinear of quantized images; the range goes along.")
      .Shape(ResizeShape)
      .NotDifferentiable(kIntegers)
      .Example("!f32[1,2,3,2]~, i32[2]{4 5}, !f32[]{0}, !f32[]{1}");
}

}  // namespace

void RegisterQuantizedOps(OpRegistry& r) {
  AddConversions(r);
  AddArithmetic(r);
  AddImages(r);
}

void RegisterQuantizeOps(OpRegistry& r) {
  RegisterFakeQuantOps(r);
  RegisterQuantizedOps(r);
}

}  // namespace millrace
