// SPDX-License-Identifier: Apache-2.0
// Ops that order elements along an axis.
#include "base/checked.h"
#include "graph/gradient.h"
#include "ops/math/math_ops.h"

namespace millrace {
namespace {

Status ArgShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const auto axis, c.ConstantInt(1));
  if (!axis) {
    if (in.rank() > 0) c.set_output(0, PartialShape::UnknownOfRank(in.rank() - 1));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const int i, c.Axis(*axis, in.rank()));
  std::vector<int64_t> dims = in.dims();
  dims.erase(dims.begin() + i);
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status TopKShapeOf(ShapeContext& c, int64_t k) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, 1));
  if (!in.has_rank()) return absl::OkStatus();
  std::vector<int64_t> dims = in.dims();
  if (k >= 0 && dims.back() >= 0 && dims.back() < k) {
    return InvalidArgument("input must have last dimension >= k = ", k, " but is ", dims.back());
  }
  dims.back() = k;
  c.set_output(0, PartialShape::Of(dims));
  c.set_output(1, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status TopKShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t k, c.Attr<int64_t>("k"));
  if (k < 0) return InvalidArgument("k must not be negative, got ", k);
  return TopKShapeOf(c, k);
}

Status IsotonicShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, 1));
  c.set_output(0, in);
  c.set_output(1, in);
  return absl::OkStatus();
}

Status ApproxTopKShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("reduction_dimension"));
  MR_ASSIGN_OR_RETURN(const bool is_max, c.Attr<bool>("is_max_k"));
  const PartialShape& in = c.input(0);
  if (!is_max || (axis != -1 && !(in.has_rank() && axis == in.rank() - 1))) {
    return Unimplemented(
        "ApproxTopK takes the largest elements of the last axis, got is_max_k=", is_max ? "true" : "false",
        " and reduction_dimension=", axis, " of ", in.ToString());
  }
  return TopKShape(c);
}

Status TopKV2Shape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const auto k, c.ConstantInt(1));
  if (k && *k < 0) return InvalidArgument("k must not be negative, got ", *k);
  return TopKShapeOf(c, k.value_or(-1));
}

// Rows of the gradient scattered into zeros at the positions that were chosen.
Status TopKGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const DType i64 = DType::kInt64;
  Output zero = b.Scalar<int32_t>(0), last = b.Vector<int64_t>({-1});
  Output in_shape = b.Shape(c.x(0), i64);
  Output columns, k;
  const PartialShape& in = c.x(0).shape();
  const PartialShape& out = c.y(1).shape();
  auto last_dim = [&](const PartialShape& s, Output shape) {
    if (s.has_rank() && s.rank() > 0 && s.dim(s.rank() - 1) >= 0) return b.Vector<int64_t>({s.dim(s.rank() - 1)});
    Output end = b.Op("Sub", {b.Op("Size", {shape}), b.Scalar<int32_t>(1)});
    return b.Reshape(b.Op("GatherV2", {shape, end, zero}), b.Vector<int64_t>({1}));
  };
  columns = last_dim(in, in_shape);
  k = last_dim(out, b.Shape(c.y(1), i64));
  // Row numbers come from the sizes, so that no dimension has to be guessed where another is 0.
  Output scalar_shape = b.Const(*Tensor::Make(DType::kInt32, *Shape::Make({0})));
  Output total = b.Op("Size", {c.x(0)}, {{"out_type", i64}});
  Output width = b.Op("Maximum", {b.Reshape(columns, scalar_shape), b.Scalar<int64_t>(1)});
  Output starts = b.Op("Range", {b.Scalar<int64_t>(0), total, width});
  Output rows = b.Op("Size", {starts}, {{"out_type", i64}});
  Output per_row = b.Op("ConcatV2", {std::vector<Output>{b.Reshape(rows, b.Vector<int64_t>({1})), k}, zero});
  Output indices = b.Reshape(b.Cast(c.y(1), i64), per_row);
  Output flat = b.Add(indices, b.Op("ExpandDims", {starts, b.Scalar<int32_t>(1)}));
  Output scattered = b.Op("ScatterNd", {b.Op("ExpandDims", {b.Reshape(flat, last), b.Scalar<int32_t>(1)}),
                                        b.Reshape(c.dy(), last), b.Reshape(total, b.Vector<int64_t>({1}))});
  c.set_dx(0, b.Reshape(scattered, in_shape));
  return c.status();
}

Status InTopKShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape predictions, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape targets, c.WithRank(1, 1));
  if (c.num_inputs() > 2) MR_RETURN_IF_ERROR(c.RequireScalar(2));
  const int64_t p = predictions.has_rank() ? predictions.dim(0) : -1;
  const int64_t t = targets.has_rank() ? targets.dim(0) : -1;
  MR_ASSIGN_OR_RETURN(const int64_t batch, c.MergeDim(p, t, "batch size of predictions and targets"));
  c.set_output(0, PartialShape::Of({batch}));
  return absl::OkStatus();
}

constexpr char kIndices[] = "its values are indices";
constexpr char kArg[] = "(input:T, dimension:Tidx) -> (output:output_type) | T in NUM|bool; Tidx in IDX=i32; ";

}  // namespace

void RegisterRankingOps(OpRegistry& registry) {
  registry.Add(absl::StrCat("ArgMax", kArg, "output_type in i16|u16|IDX=i64"))
      .Doc(
          "Index of the largest element along one axis, the first one where several are equal. NaN is never chosen "
          "while there is a number.")
      .Shape(ArgShape)
      .NotDifferentiable(kIndices)
      .Example("f32[2,3]~, i32[]{1}")
      .Example("i32[3,2]{4 1 4 7 2 7}, i64[]{0} | output_type=i32");
  registry.Add(absl::StrCat("ArgMin", kArg, "output_type in IDX=i64"))
      .Doc(
          "Index of the smallest element along one axis, the first one where several are equal. NaN is never chosen "
          "while there is a number.")
      .Shape(ArgShape)
      .NotDifferentiable(kIndices)
      .Example("f32[2,3]~, i32[]{1}")
      .Example("i32[3,2]{4 1 4 7 2 7}, i64[]{0} | output_type=i32");
  registry.Add("TopK(input:T) -> (values:T, indices:i32) | k:int>=0; sorted:bool=true; T in REAL | D7")
      .Deprecated("use TopKV2 instead")
      .Doc(
          "The k largest elements of each row of the last axis and their indices; of equal ones those with lower "
          "indices.")
      .Shape(TopKShape)
      .Gradient(TopKGrad)
      .Example("f32[2,5]~ | k=2");
  registry
      .Add(
          "TopKV2(input:T, k:Tk) -> (values:T, indices:index_type) | sorted:bool=true; T in REAL; "
          "Tk in i16|IDX=i32; index_type in i16|IDX=i32")
      .Doc(
          "The k largest elements of each row of the last axis and their indices, in descending order when sorted; of "
          "equal ones those with lower indices come first. NaN counts as larger than every number.")
      .Shape(TopKV2Shape)
      .Gradient(TopKGrad)
      .Example("f32[2,5]~, i32[]{2}")
      .Example("f64[2,2,3]~, i32[]{3} | sorted=false");
  registry
      .Add(
          "ApproxTopK(input:T) -> (values:T, indices:i32) | k:int>=0; reduction_dimension:int=-1; "
          "recall_target:float=0.95; is_max_k:bool=true; reduction_input_size_override:int=-1; "
          "aggregate_to_topk:bool=true; T in FLT")
      .Doc(
          "TopK, exactly: what may leave some out is faster on other machines only. Of the last axis, and the largest "
          "elements.")
      .Shape(ApproxTopKShape)
      .Gradient(TopKGrad)
      .Example("f32[2,5]~ | k=2");
  registry
      .Add(
          "IsotonicRegression(input:T) -> (output:output_dtype, segments:i32) | T in f32|f64|i8|i16|i32|i64; "
          "output_dtype in f32|f64=f32")
      .Doc(
          "For each row the nearest one, by the sum of squares, that nowhere grows, and the number of the run of equal "
          "elements that each element is in.")
      .Shape(IsotonicShape)
      .NoGradient("the derivative of a fit is not provided")
      .Example("f32[2,5]~")
      .Example("i32[3]{3 1 2} | output_dtype=f64");
  registry.Add("InTopK(predictions:f32, targets:T) -> (precision:bool) | k:int; T in IDX=i32")
      .Doc(
          "Whether the prediction for the target class is among the k highest of its row; all classes that tie at the "
          "boundary count as in. False for targets that are no class, and where the answer hangs on a value that is "
          "not finite.")
      .Shape(InTopKShape)
      .NotDifferentiable("its values are booleans")
      .Example("f32[2,4]~, i32[2]{1 3} | k=2");
  registry.Add("InTopKV2(predictions:f32, targets:T, k:T) -> (precision:bool) | T in IDX=i32")
      .Doc(
          "Whether the prediction for the target class is among the k highest of its row; all classes that tie at the "
          "boundary count as in. False for targets that are no class, and where the answer hangs on a value that is "
          "not finite.")
      .Shape(InTopKShape)
      .NotDifferentiable("its values are booleans")
      .Example("f32[2,4]~, i64[2]{1 3}, i64[]{2}");
}

}  // namespace millrace
