// SPDX-License-Identifier: Apache-2.0
// Ops: centers of clusters.
#include "ops/linalg/linalg_ops.h"

namespace millrace {
namespace {

constexpr char kChoice[] = "it chooses among points";

Status KmeansPlusPlusShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape points, c.WithRank(0, 2));
  for (const int scalar : {1, 2, 3}) MR_RETURN_IF_ERROR(c.RequireScalar(scalar));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> count, c.ConstantInt(1));
  if (count && *count < 1) return InvalidArgument("Expected num_to_sample > 0, got ", *count);
  c.set_output(0, PartialShape::Of({count.value_or(-1), points.dim(1)}));
  return absl::OkStatus();
}

Status MarkovChainShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  return ScalarShape(c);
}

Status NearestNeighborsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape points, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape centers, c.WithRank(1, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(points.dim(1), centers.dim(1), "dimensions of points and centers").status());
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> k, c.ConstantInt(2));
  if (k && *k < 0) return InvalidArgument("Expected k >= 0, got ", *k);
  const int64_t found = k && centers.dim(0) != -1 ? std::min(*k, centers.dim(0)) : -1;
  for (const int output : {0, 1}) c.set_output(output, PartialShape::Of({points.dim(0), found}));
  return absl::OkStatus();
}

}  // namespace

void RegisterClusteringOps(OpRegistry& r) {
  r.Add(
       "KmeansPlusPlusInitialization(points:f32, num_to_sample:i64, seed:i64, num_retries_per_sample:i64) -> "
       "(samples:f32)")
      .Doc(
          "Rows of `points` by k-means++: each is drawn with a chance as large as its squared distance from those "
          "before "
          "it, and is the best of 1 + num_retries_per_sample draws; where that is negative, of 3 + log(num_to_sample).")
      .Shape(KmeansPlusPlusShape)
      .NotDifferentiable(kChoice)
      .Example("f32[4,2]#, i64[]{2}, i64[]{7}, i64[]{1}");
  r.Add("KMC2ChainInitialization(distances:f32, seed:i64) -> (index:i64)")
      .Doc(
          "The last state of a Markov chain along a vector, which begins with its first element and goes on to another "
          "with the chance that the quotient of their distances is.")
      .Shape(MarkovChainShape)
      .NotDifferentiable(kChoice)
      .Example("f32[5]+, i64[]{7}");
  r.Add(
       "NearestNeighbors(points:f32, centers:f32, k:i64) -> (nearest_center_indices:i64, "
       "nearest_center_distances:f32)")
      .Doc(
          "The numbers of the k nearest centers of each point (all, where there are fewer), and their squared "
          "distances.")
      .Shape(NearestNeighborsShape)
      .NotDifferentiable(kChoice)
      .Example("f32[4,2]#, f32[3,2]~, i64[]{2}");
}

}  // namespace millrace
