// SPDX-License-Identifier: Apache-2.0
// Ops: gather and segment reduction in one step.
#include "ops/index/index_ops.h"

namespace millrace {
namespace {

Status CheckIds(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  MR_ASSIGN_OR_RETURN(PartialShape indices, c.WithRank(1, 1));
  return c.Merge(c.input(2), indices, "the number of segment ids").status();
}

Status SparseSegmentShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckIds(c));
  const PartialShape& data = c.input(0);
  if (data.has_rank()) c.set_output(0, JoinDims({{-1}, DimRange(data, 1, data.rank())}));
  return absl::OkStatus();
}

Status SparseSegmentNumShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckIds(c));
  MR_RETURN_IF_ERROR(c.RequireScalar(3));
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> count, c.ConstantInt(3));
  if (count && *count < 0) return InvalidArgument("Cannot specify a negative value for num_segments: ", *count);
  const PartialShape& data = c.input(0);
  if (data.has_rank()) c.set_output(0, JoinDims({{count ? *count : -1}, DimRange(data, 1, data.rank())}));
  return absl::OkStatus();
}

Status SparseSegmentGradShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckIds(c));
  MR_RETURN_IF_ERROR(c.RequireScalar(3));
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> rows, c.ConstantInt(3));
  if (rows && *rows < 0) return InvalidArgument("output_dim0 must not be negative, got ", *rows);
  const PartialShape& g = c.input(0);
  if (g.has_rank()) c.set_output(0, JoinDims({{rows ? *rows : -1}, DimRange(g, 1, g.rank())}));
  return absl::OkStatus();
}

Output RowCount(GradContext& g) {
  const GraphBuilder& b = g.b();
  return b.Reshape(VectorSlice(b, b.Shape(g.x(0)), 0, 1), b.Const(Tensor::Vector<int32_t>({})));
}

Status SparseSegmentSumGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  g.set_dx(0, b.Op("UnsortedSegmentSum", {TakeRows(b, g.dy(), g.x(2)), g.x(1), RowCount(g)}));
  return g.status();
}
Status SparseSegmentMeanGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("SparseSegmentMeanGrad", {g.dy(), g.x(1), g.x(2), RowCount(g)}));
  return g.status();
}
Status SparseSegmentSqrtNGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("SparseSegmentSqrtNGrad", {g.dy(), g.x(1), g.x(2), RowCount(g)}));
  return g.status();
}

struct SparseSegmentOp {
  const char* name;
  const char* what;
  const char* types;
  GradientFn gradient;
};
constexpr SparseSegmentOp kReductions[] = {
    {"Sum", "SegmentSum of the rows data[indices], without making these rows first.", "REAL", SparseSegmentSumGrad},
    {"Mean", "SegmentMean of the rows data[indices], without making these rows first.", "FLT", SparseSegmentMeanGrad},
    {"SqrtN", "SegmentSum of the rows data[indices], each sum divided by the square root of its number of rows.", "FLT",
     SparseSegmentSqrtNGrad},
};

}  // namespace

void RegisterSparseSegmentOps(OpRegistry& registry) {
  constexpr char kIds[] = "Tidx in IDX=i32; Tsegmentids in IDX=i32";
  for (const SparseSegmentOp& op : kReductions) {
    registry
        .Add(absl::StrCat(
            "SparseSegment", op.name, "(data:T, indices:Tidx, segment_ids:Tsegmentids) -> (output:T) | T in ", op.types,
            "; ", kIds))
        .Doc(absl::StrCat(op.what, " Segment ids are sorted and not negative; ids that do not occur give zeros."))
        .Shape(SparseSegmentShape)
        .Gradient(op.gradient)
        .Example("f32[4,3]~, i32[3]{3 0 3}, i32[3]{0 0 2}");
    registry
        .Add(absl::StrCat(
            "SparseSegment", op.name,
            "WithNumSegments(data:T, indices:Tidx, segment_ids:Tsegmentids, num_segments:Tnumsegments) -> "
            "(output:T) | T in ",
            op.types, "; Tidx in IDX=i32; Tnumsegments in IDX=i32; Tsegmentids in IDX=i32"))
        .Doc(absl::StrCat(op.what, " The output has `num_segments` rows, zeros where no id names them."))
        .Shape(SparseSegmentNumShape)
        .Gradient(op.gradient)
        .Example("f32[4,3]~, i32[3]{3 0 3}, i32[3]{0 0 2}, i32[]{4}");
    registry
        .Add(absl::StrCat("SparseSegment", op.name,
                          "Grad(grad:T, indices:Tidx, segment_ids:Tsegmentids, output_dim0:i32) -> (output:T) | "
                          "T in FLT; ",
                          kIds))
        .Doc(absl::StrCat("Gradient of SparseSegment", op.name, " by its data, which has `output_dim0` rows."))
        .Shape(SparseSegmentGradShape)
        .NoGradient("second derivatives through it are not defined")
        .Example("f32[2,3]~, i32[3]{3 0 3}, i32[3]{0 0 1}, i32[]{5}");
  }
}

}  // namespace millrace
