// SPDX-License-Identifier: Apache-2.0
// Ops: grey-scale dilation, pooling over windows drawn at random, orders of dimensions, the n-th smallest element.
#include <cmath>

#include "ops/nn/nn_ops.h"

namespace millrace {
namespace {

Status DilationShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 3));
  MR_ASSIGN_OR_RETURN(const auto strides, c.Attr<std::vector<int64_t>>("strides"));
  MR_ASSIGN_OR_RETURN(const auto rates, c.Attr<std::vector<int64_t>>("rates"));
  MR_ASSIGN_OR_RETURN(const std::string text, c.Attr<std::string>("padding"));
  MR_ASSIGN_OR_RETURN(const Padding padding, ParsePadding(text));
  if (strides.size() != 4 || rates.size() != 4) return InvalidArgument("strides and rates must have 4 entries");
  MR_ASSIGN_OR_RETURN(const int64_t depth, c.MergeDim(input.dim(3), filter.dim(2), "depths of input and filter"));
  std::vector<int64_t> out = {input.dim(0), -1, -1, depth};
  for (int i = 1; i < 3; ++i) {
    const auto k = static_cast<size_t>(i);
    if (input.dim(i) < 0 || filter.dim(i - 1) < 0) continue;
    MR_ASSIGN_OR_RETURN(
        const WindowExtent w, ComputeWindow(input.dim(i), filter.dim(i - 1), strides[k], rates[k], padding));
    out[k] = w.output;
  }
  const std::string& op = c.op().name;
  c.set_output(0, op == "Dilation2D" ? PartialShape::Of(out) : op == "Dilation2DBackpropInput" ? input : filter);
  return absl::OkStatus();
}

Status DilationGrad(GradContext& g) {
  const AttrMap attrs = CopyAttrs(g.node(), {"strides", "rates", "padding"});
  for (int i : {0, 1}) {
    Node* n = g.b().OpNode(i == 0 ? "Dilation2DBackpropInput" : "Dilation2DBackpropFilter",
                           std::vector<Arg>{g.x(0), g.x(1), g.dy()}, attrs);
    if (n) g.set_dx(i, n->output(0));
  }
  return g.status();
}

Status FractionalPoolShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const auto ratio, c.Attr<std::vector<float>>("pooling_ratio"));
  if (ratio.size() != 4) return InvalidArgument("pooling_ratio field must specify 4 dimensions, got ", ratio.size());
  std::vector<int64_t> dims(4, -1);
  for (int i = 0; i < 4; ++i) {
    const float r = ratio[static_cast<size_t>(i)];
    if (!(r >= 1)) return InvalidArgument("pooling_ratio cannot be smaller than 1, got: ", r);
    if (input.dim(i) < 0) continue;
    const float size = std::floor(static_cast<float>(input.dim(i)) / r);
    dims[static_cast<size_t>(i)] = r == 1 ? input.dim(i) : static_cast<int64_t>(size);
  }
  c.set_output(0, PartialShape::Of(dims));
  for (int i : {1, 2}) c.set_output(i, PartialShape::Of({-1}));
  return absl::OkStatus();
}

Status FractionalGradShape(ShapeContext& c) {
  if (c.op().inputs[0].type_attr.empty()) {  // a shape
    MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
    MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(0));
    c.set_output(0, shape.has_rank() ? shape : PartialShape::UnknownOfRank(4));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, 4));
  c.set_output(0, input);
  return absl::OkStatus();
}

Status FractionalMaxGrad(GradContext& g) {
  Node* n = g.b().OpNode("FractionalMaxPoolGrad", std::vector<Arg>{g.x(0), g.y(0), g.dy(0), g.y(1), g.y(2)},
                         CopyAttrs(g.node(), {"overlapping"}));
  if (n) g.set_dx(0, n->output(0));
  return g.status();
}

Status FractionalAvgGrad(GradContext& g) {
  Node* n = g.b().OpNode(
      "FractionalAvgPoolGrad", std::vector<Arg>{g.b().Shape(g.x(0), DType::kInt64), g.dy(0), g.y(1), g.y(2)},
      CopyAttrs(g.node(), {"overlapping"}));
  if (n) g.set_dx(0, n->output(0));
  return g.status();
}

Status CheckFormats(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRankAtMost(0, 2));
  c.set_output(0, x);
  return absl::OkStatus();
}

Status NthShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRankAtLeast(0, 1));
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> n, c.ConstantInt(1));
  if (n && *n < 0) return InvalidArgument("Input n must be non-negative but is ", *n);
  if (!x.has_rank()) return absl::OkStatus();
  const int64_t columns = x.dim(x.rank() - 1);
  if (n && columns >= 0 && columns <= *n)
    return InvalidArgument("Input must have last dimension > n = ", *n, " but is ", columns);
  std::vector<int64_t> dims = x.dims();
  dims.pop_back();
  c.set_output(0, PartialShape::Of(dims));
  return absl::OkStatus();
}

// The gradient is shared by all elements that are equal to the n-th.
Status NthGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  auto last = [&](Output t) { return b.Op("ExpandDims", {t, b.Scalar<int32_t>(-1)}); };
  Output equal = b.Op("Cast", {b.Op("Equal", {last(g.y()), g.x(0)})}, {{"DstT", BaseType(g.x(0).dtype())}});
  Output count = b.Op("Sum", {equal, b.Vector<int32_t>({-1})}, {{"keep_dims", true}});
  g.set_dx(0, b.Mul(b.Div(equal, count), last(g.dy())));
  return g.status();
}

constexpr char kSecond[] = "a further derivative is not provided";
constexpr char kNumbers[] = "it is about dimensions, whose numbers are whole";

void RegisterDilation(OpRegistry& r) {
  constexpr char kAttrs[] = "T in REAL; strides:list(int)>=4; rates:list(int)>=4; padding in {SAME,VALID}";
  constexpr char kWindow[] = " | strides=[1,1,1,1]; rates=[1,1,1,1]; padding=\"VALID\"";
  const std::string operands = "f32[1,3,3,2]~, f32[2,2,2]~";
  r.Add(absl::StrCat("Dilation2D(input:T, filter:T) -> (output:T) | ", kAttrs))
      .Doc(
          "Grey-scale dilation of each channel of [batch, rows, columns, depth] by filter [rows, columns, depth]: the "
          "largest sum of a cell of the window and the filter's there. Taps lie `rates` apart.")
      .Shape(DilationShape)
      .Gradient(DilationGrad)
      .Example(operands + kWindow);
  r.Add(absl::StrCat("Dilation2DBackpropInput(input:T, filter:T, out_backprop:T) -> (in_backprop:T) | ", kAttrs))
      .Doc("Gradient of Dilation2D with respect to its input.")
      .Shape(DilationShape)
      .NoGradient(kSecond)
      .Example(operands + ", f32[1,2,2,2]~" + kWindow);
  r.Add(absl::StrCat("Dilation2DBackpropFilter(input:T, filter:T, out_backprop:T) -> (filter_backprop:T) | ", kAttrs))
      .Doc("Gradient of Dilation2D with respect to its filter.")
      .Shape(DilationShape)
      .NoGradient(kSecond)
      .Example(operands + ", f32[1,2,2,2]~" + kWindow);
}

void RegisterFractionalPool(OpRegistry& r) {
  constexpr char kAttrs[] =
      "(value:T) -> (output:T, row_pooling_sequence:i64, col_pooling_sequence:i64) | pooling_ratio:list(float)>=4; "
      "pseudo_random:bool=false; overlapping:bool=false; deterministic:bool=false; seed:int=0; seed2:int=0; T in "
      "FD|IDX";
  constexpr char kText[] =
      " over windows of k and k + 1 rows and columns, in an order drawn at random (or as by one random phase, if "
      "pseudo_random), so that there are 1 / pooling_ratio as many (Graham 2014). The sequences are the bounds of "
      "windows; "
      "overlapping windows share the cell between them. With deterministic the first draw stays.";
  r.Add(absl::StrCat("FractionalMaxPool", kAttrs))
      .Doc(absl::StrCat("Maxima", kText))
      .Shape(FractionalPoolShape)
      .Gradient(FractionalMaxGrad)
      .Example("f32[1,4,4,2]~ | pooling_ratio=[1,2,2,1]");
  r.Add(absl::StrCat("FractionalAvgPool", kAttrs))
      .Doc(absl::StrCat("Means", kText))
      .Shape(FractionalPoolShape)
      .Gradient(FractionalAvgGrad)
      .Example("f32[1,4,4,2]~ | pooling_ratio=[1,2,2,1]");
  r.Add(
       "FractionalMaxPoolGrad(orig_input:T, orig_output:T, out_backprop:T, row_pooling_sequence:i64, "
       "col_pooling_sequence:i64) -> (output:T) | overlapping:bool=false; T in FD|IDX")
      .Doc("Gradient of FractionalMaxPool: each goes to the first cell of its window that holds the maximum.")
      .Shape(FractionalGradShape)
      .NoGradient(kSecond)
      .Example("f32[1,2,3,1]~, f32[1,1,2,1]~, f32[1,1,2,1]~, i64[2]{0 2}, i64[3]{0 1 3}");
  r.Add(
       "FractionalAvgPoolGrad(orig_input_tensor_shape:i64, out_backprop:T, row_pooling_sequence:i64, "
       "col_pooling_sequence:i64) -> (output:T) | overlapping:bool=false; T in FD|IDX")
      .Doc("Gradient of FractionalAvgPool: each is shared by the cells of its window.")
      .Shape(FractionalGradShape)
      .NoGradient(kSecond)
      .Example("i64[4]{1 2 3 1}, f32[1,1,2,1]~, i64[2]{0 2}, i64[3]{0 1 3}");
}

}  // namespace

void RegisterWindowOps(OpRegistry& r) {
  RegisterDilation(r);
  RegisterFractionalPool(r);
  constexpr char kFormats[] = "T in IDX=i32; src_format:string=\"NHWC\"; dst_format:string=\"NCHW\"";
  r.Add(absl::StrCat("DataFormatDimMap(x:T) -> (y:T) | ", kFormats))
      .Doc("Numbers of dimensions in src_format as those in dst_format; negative ones count from the last.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kNumbers)
      .Example("i32[4]{0 1 2 -1}");
  r.Add(absl::StrCat("DataFormatVecPermute(x:T) -> (y:T) | ", kFormats))
      .Doc("One row a dimension (or spatial dimension) of src_format in the order of dst_format.")
      .Shape(CheckFormats)
      .NotDifferentiable(kNumbers)
      .Example("i32[4]{7 8 9 10}");
  r.Add("NthElement(input:T, n:i32) -> (values:T) | reverse:bool=false; T in REAL")
      .Doc("The n-th smallest element of each row, from 0, or with reverse the n-th largest.")
      .Shape(NthShape)
      .Gradient(NthGrad)
      .Example("f32[2,5]~, i32[]{1}");
}

}  // namespace millrace
