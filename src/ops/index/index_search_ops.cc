// SPDX-License-Identifier: Apache-2.0
// Ops: places of values among others, and of flat indices.
#include "ops/index/index_ops.h"

namespace millrace {
namespace {

constexpr char kPlaces[] = "places are integers";

Status BoundShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape sorted, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(PartialShape values, c.WithRank(1, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(sorted.dim(0), values.dim(0), "the first dimension").status());
  c.set_output(0, std::move(values));
  return absl::OkStatus();
}

Status HistogramShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape range, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(range.dim(0), 2, "the size of value_range").status());
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  MR_ASSIGN_OR_RETURN(const auto bins, c.ConstantInt(2));
  if (bins && *bins <= 0) return InvalidArgument("Requires nbins > 0, got ", *bins);
  c.set_output(0, PartialShape::Of({bins.value_or(-1)}));
  return absl::OkStatus();
}

Status UnravelShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRankAtMost(0, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape dims, c.WithRank(1, 1));
  if (!indices.has_rank()) return absl::OkStatus();
  c.set_output(0, indices.rank() == 0 ? dims : PartialShape::Of({dims.dim(0), indices.dim(0)}));
  return absl::OkStatus();
}

}  // namespace

void RegisterSearchOps(OpRegistry& r) {
  r.Add("LowerBound(sorted_inputs:T, values:T) -> (output:out_type) | T:type; out_type in IDX=i32")
      .Doc("For each value the first place in its row of sorted numbers where it could be inserted in order.")
      .Shape(BoundShape)
      .NotDifferentiable(kPlaces)
      .Example("f32[2,3]{1 2 2 4 5 6}, f32[2,2]{2 9 4 0}");
  r.Add("UpperBound(sorted_inputs:T, values:T) -> (output:out_type) | T:type; out_type in IDX=i32")
      .Doc("For each value the last place in its row of sorted numbers where it could be inserted in order.")
      .Shape(BoundShape)
      .NotDifferentiable(kPlaces)
      .Example("i64[2,3]{1 2 2 4 5 6}, i64[2,2]{2 9 4 0} | out_type=i64");
  r.Add("Bucketize(input:T) -> (output:i32) | T in FD|IDX; boundaries:list(float)")
      .Doc("The number of boundaries that are not above each element. The boundaries must be sorted.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kPlaces)
      .Example("!f32[5]{-5 0 3 10 200} | boundaries=[0,10,100]");
  r.Add("HistogramFixedWidth(values:T, value_range:T, nbins:i32) -> (out:dtype) | T in FD|IDX; dtype in IDX=i32")
      .Doc(
          "How many values lie in each of `nbins` equal parts of the range. Values outside count in the first and the "
          "last part.")
      .Shape(HistogramShape)
      .NotDifferentiable("counts are integers")
      .Example("!f32[6]{-1 0 1.5 2 5 15}, !f32[2]{0 5}, i32[]{5}");
  r.Add("UnravelIndex(indices:Tidx, dims:Tidx) -> (output:Tidx) | Tidx in IDX=i32")
      .Doc("The coordinates of flat indices into an array of the given dimensions, a row for each dimension.")
      .Shape(UnravelShape)
      .NotDifferentiable(kPlaces)
      .Example("i32[3]{2 5 7}, i32[2]{3 3}")
      .Example("i64[]{5}, i64[2]{2 3}");
}

}  // namespace millrace
