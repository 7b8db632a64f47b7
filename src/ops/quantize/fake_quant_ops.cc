// SPDX-License-Identifier: Apache-2.0
// Ops: floats rounded to what integers of some bits could hold.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/quantize/quantize_ops.h"

namespace millrace {
namespace {

constexpr char kBits[] = "num_bits:int=8; narrow_range:bool=false";
constexpr char kNudged[] = " The range is moved so that zero is one of its steps.";
constexpr char kOnlyFirst[] = "rounded values have no second derivative";

Status RangeShape(ShapeContext& c, int first, bool per_channel) {
  const int in = first == 1 ? 0 : 1;
  PartialShape channels = PartialShape::Scalar();
  if (per_channel) {
    MR_ASSIGN_OR_RETURN(const PartialShape inputs, c.WithRankAtLeast(in, 1));
    channels = PartialShape::Of({inputs.has_rank() ? inputs.dim(inputs.rank() - 1) : -1});
  }
  for (int i = first; i < first + 2; ++i) {
    MR_ASSIGN_OR_RETURN(channels, c.Merge(c.input(i), channels, "the ends of the range"));
  }
  if (first == 1) {
    c.set_output(0, c.input(0));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(PartialShape whole, c.Merge(c.input(0), c.input(1), "gradients and inputs"));
  c.set_output(0, std::move(whole));
  c.set_output(1, channels);
  c.set_output(2, channels);
  return absl::OkStatus();
}
Status VarsShape(ShapeContext& c) { return RangeShape(c, 1, false); }
Status ChannelShape(ShapeContext& c) { return RangeShape(c, 1, true); }
Status VarsGradientShape(ShapeContext& c) { return RangeShape(c, 2, false); }
Status ChannelGradientShape(ShapeContext& c) { return RangeShape(c, 2, true); }

StatusOr<AttrMap> BitsOf(const GradContext& c, bool ends) {
  AttrMap attrs;
  MR_ASSIGN_OR_RETURN(attrs["num_bits"], c.Attr<int64_t>("num_bits"));
  MR_ASSIGN_OR_RETURN(attrs["narrow_range"], c.Attr<bool>("narrow_range"));
  if (ends) {
    MR_ASSIGN_OR_RETURN(attrs["min"], c.Attr<float>("min"));
    MR_ASSIGN_OR_RETURN(attrs["max"], c.Attr<float>("max"));
  }
  return attrs;
}
Status ArgsGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(AttrMap attrs, BitsOf(c, true));
  Node* g = c.b().OpNode("FakeQuantWithMinMaxArgsGradient", std::vector<Arg>{c.dy(), c.x(0)}, std::move(attrs));
  if (g != nullptr) c.set_dx(0, g->output(0));
  return c.status();
}
Status VarsGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(AttrMap attrs, BitsOf(c, false));
  Node* g = c.b().OpNode(absl::StrCat(c.node()->op_name(), "Gradient"),
                         std::vector<Arg>{c.dy(), c.x(0), c.x(1), c.x(2)}, std::move(attrs));
  for (int i = 0; g != nullptr && i < 3; ++i) c.set_dx(i, g->output(i));
  return c.status();
}

// Nothing of the gradient where the input was outside of the range.
Status WithinRangeGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const bool given, c.Attr<bool>("range_given"));
  MR_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  if (!given) {
    c.set_dx(0, c.b().Identity(c.dy()));
    return c.status();
  }
  Node* g = c.b().OpNode(
      "QuantizeAndDequantizeV4Grad", std::vector<Arg>{c.dy(), c.x(0), c.x(1), c.x(2)}, {{"axis", AttrValue(axis)}});
  for (int i = 0; g != nullptr && i < 3; ++i) c.set_dx(i, g->output(i));
  return c.status();
}

// The ends of the range: scalars, or with an axis one for each of its places.
Status ChannelEndsShape(ShapeContext& c, int first) {
  MR_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  const PartialShape& in = c.input(first - 1);
  if (axis < -1 || (in.has_rank() && axis >= in.rank())) {
    return InvalidArgument("axis must be -1 or one of the input ", in.ToString(), ", got ", axis);
  }
  for (int i = first; i < first + 2; ++i) {
    if (axis == -1 || (c.input(i).has_rank() && c.input(i).rank() == 0)) {
      MR_RETURN_IF_ERROR(c.RequireScalar(i));
      continue;
    }
    MR_ASSIGN_OR_RETURN(const PartialShape ends, c.WithRank(i, 1));
    if (in.has_rank()) {
      MR_RETURN_IF_ERROR(c.MergeDim(ends.dim(0), in.dim(static_cast<int>(axis)), "an end for each channel").status());
    }
  }
  return absl::OkStatus();
}
Status ChannelEndsForward(ShapeContext& c) {
  MR_RETURN_IF_ERROR(ChannelEndsShape(c, 1));
  return UnchangedShape(c);
}
Status ChannelEndsGradient(ShapeContext& c) {
  MR_RETURN_IF_ERROR(ChannelEndsShape(c, 2));
  MR_ASSIGN_OR_RETURN(PartialShape whole, c.Merge(c.input(0), c.input(1), "gradients and inputs"));
  c.set_output(0, std::move(whole));
  for (int i = 1; i < 3; ++i) c.set_output(i, c.input(i + 1));
  return absl::OkStatus();
}

// As if nothing were rounded.
Status StraightThrough(GradContext& c) {
  c.set_dx(0, c.b().Identity(c.dy()));
  return c.status();
}

Status EndsShape(ShapeContext& c) {
  for (int i = 1; i < 3; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  if (c.num_inputs() > 3) MR_RETURN_IF_ERROR(c.RequireScalar(3));
  return UnchangedShape(c);
}

}  // namespace

void RegisterFakeQuantOps(OpRegistry& r) {
  r.Add(absl::StrCat("FakeQuantWithMinMaxArgs(inputs:f32) -> (outputs:f32) | min:float=-6; max:float=6; ", kBits))
      .Doc(absl::StrCat("Inputs kept in [min, max] and rounded to what `num_bits` bits can tell apart.", kNudged))
      .Shape(UnchangedShape)
      .Gradient(ArgsGrad)
      .Example("!f32[2,3]~ | min=-1; max=1; num_bits=4");
  r.Add(absl::StrCat("FakeQuantWithMinMaxArgsGradient(gradients:f32, inputs:f32) -> (backprops:f32) | min:float=-6; "
                     "max:float=6; ",
                     kBits))
      .Doc("The gradients where FakeQuantWithMinMaxArgs found its inputs in the range, else 0.")
      .Shape(MergedShape)
      .NoGradient(kOnlyFirst)
      .Example("f32[2,3]~, f32[2,3]~ | min=-1; max=1");
  r.Add(absl::StrCat("FakeQuantWithMinMaxVars(inputs:f32, min:f32, max:f32) -> (outputs:f32) | ", kBits))
      .Doc(absl::StrCat("FakeQuantWithMinMaxArgs with a range that can be learned.", kNudged))
      .Shape(VarsShape)
      .Gradient(VarsGrad)
      .Example("!f32[2,3]~, !f32[]{-1}, !f32[]{1}");
  r.Add(absl::StrCat("FakeQuantWithMinMaxVarsGradient(gradients:f32, inputs:f32, min:f32, max:f32) -> "
                     "(backprops_wrt_input:f32, backprop_wrt_min:f32, backprop_wrt_max:f32) | ",
                     kBits))
      .Doc(
          "The gradients where FakeQuantWithMinMaxVars found its inputs in the range, and the sums of those below and "
          "above it.")
      .Shape(VarsGradientShape)
      .NoGradient(kOnlyFirst)
      .Example("f32[2,3]~, f32[2,3]~, f32[]{-1}, f32[]{1}");
  r.Add(absl::StrCat("FakeQuantWithMinMaxVarsPerChannel(inputs:f32, min:f32, max:f32) -> (outputs:f32) | ", kBits))
      .Doc(absl::StrCat("FakeQuantWithMinMaxVars with a range for each channel (the last dimension).", kNudged))
      .Shape(ChannelShape)
      .Gradient(VarsGrad)
      .Example("!f32[2,3]~, !f32[3]{-1 -2 -0.5}, !f32[3]{1 1 2}");
  r.Add(absl::StrCat("FakeQuantWithMinMaxVarsPerChannelGradient(gradients:f32, inputs:f32, min:f32, max:f32) -> "
                     "(backprops_wrt_input:f32, backprop_wrt_min:f32, backprop_wrt_max:f32) | ",
                     kBits))
      .Doc("FakeQuantWithMinMaxVarsGradient with a range for each channel.")
      .Shape(ChannelGradientShape)
      .NoGradient(kOnlyFirst)
      .Example("f32[2,3]~, f32[2,3]~, f32[3]{-1 -2 -0.5}, f32[3]{1 1 2}");
  r.Add(
       "QuantizeAndDequantize(input:T) -> (output:T) | signed_input:bool=true; num_bits:int=8; range_given:bool=false; "
       "input_min:float=0; input_max:float=0; T in FLT | D22")
      .Doc(
          "Inputs rounded to what integers of `num_bits` bits can tell apart, in the range given or that of the "
          "inputs.")
      .Deprecated("Use QuantizeAndDequantizeV2")
      .Shape(UnchangedShape)
      .Gradient(StraightThrough)
      .Example("!f32[2,3]~ | num_bits=4");
  r.Add(
       "QuantizeAndDequantizeV2(input:T, input_min:T, input_max:T) -> (output:T) | signed_input:bool=true; "
       "num_bits:int=8; range_given:bool=false; T in FLT; round_mode in {HALF_TO_EVEN,HALF_UP}=\"HALF_TO_EVEN\"; "
       "narrow_range:bool=false")
      .Doc("QuantizeAndDequantize with a range that is an input.")
      .Shape(EndsShape)
      .Gradient(StraightThrough)
      .Example("!f32[2,3]~, !f32[]{-1}, !f32[]{1} | range_given=true; num_bits=4");
  r.Add(
       "QuantizeAndDequantizeV3(input:T, input_min:T, input_max:T, num_bits:i32) -> (output:T) | "
       "signed_input:bool=true; range_given:bool=true; T in FLT; narrow_range:bool=false")
      .Doc("QuantizeAndDequantizeV2 with a number of bits that is an input too.")
      .Shape(EndsShape)
      .Gradient(StraightThrough)
      .Example("!f32[2,3]~, !f32[]{-1}, !f32[]{1}, i32[]{6}");
  r.Add(
       "QuantizeAndDequantizeV4(input:T, input_min:T, input_max:T) -> (output:T) | signed_input:bool=true; "
       "num_bits:int=8; range_given:bool=false; T in FLT; round_mode in {HALF_TO_EVEN,HALF_UP}=\"HALF_TO_EVEN\"; "
       "narrow_range:bool=false; axis:int=-1")
      .Doc(
          "QuantizeAndDequantizeV2 whose gradient is zero outside of the range given. With an axis each of its places "
          "has a range of its own.")
      .Shape(ChannelEndsForward)
      .Gradient(WithinRangeGrad)
      .Example("!f32[2,3]~, !f32[]{-1}, !f32[]{1} | range_given=true; num_bits=4")
      .Example("!f32[2,3]~, !f32[3]{-1 -2 -1}, !f32[3]{1 1 2} | range_given=true; axis=1");
  r.Add(
       "QuantizeAndDequantizeV4Grad(gradients:T, input:T, input_min:T, input_max:T) -> (input_backprop:T, "
       "input_min_backprop:T, input_max_backprop:T) | T in FLT; axis:int=-1")
      .Doc("The gradients where QuantizeAndDequantizeV4 found its input in the range, else zero; zeros for its ends.")
      .Shape(ChannelEndsGradient)
      .NoGradient(kOnlyFirst)
      .Example("f32[2,3]~, f32[2,3]~, f32[]{-1}, f32[]{1}")
      .Example("f32[2,3]~, f32[2,3]~, f32[3]{-1 -2 -1}, f32[3]{1 1 2} | axis=1");
}

}  // namespace millrace
