// SPDX-License-Identifier: Apache-2.0
// Ops: sparse tensors kept by number, so that queues can carry them.
#include "ops/sparse/sparse_map_ops.h"

#include "op/shape_context.h"

namespace millrace {
namespace {

constexpr char kNames[] = "container:string=\"\"; shared_name:string=\"\" | S";

Status CheckSparse(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape values, c.WithRank(1, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(2, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(0), values.dim(0), "as many indices as values").status());
  return c.MergeDim(indices.dim(1), shape.dim(0), "indices as wide as the shape is long").status();
}

Status AddShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckSparse(c));
  c.set_output(0, PartialShape::Scalar());
  return absl::OkStatus();
}

Status AddManyShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckSparse(c));
  c.set_output(0, PartialShape::Of({-1}));
  return absl::OkStatus();
}

Status TakeManyShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  c.set_output(0, PartialShape::Of({-1, -1}));
  c.set_output(1, PartialShape::Of({-1}));
  c.set_output(2, PartialShape::Of({-1}));
  return absl::OkStatus();
}

void Declare(OpRegistry& r, absl::string_view schema, absl::string_view doc, ShapeFn shape) {
  r.Add(absl::StrCat(schema, kNames))
      .Doc(doc)
      .Shape(shape)
      .NotDifferentiable("what is kept is state")
      .NoExample("state");
}

}  // namespace

void RegisterSparseMapOps(OpRegistry& r) {
  Declare(r,
          "AddSparseToTensorsMap(sparse_indices:i64, sparse_values:T, sparse_shape:i64) -> (sparse_handle:i64) | "
          "T:type; ",
          "Keeps a sparse tensor in a map of that name (else the node's) and gives its number.", AddShape);
  Declare(
      r,
      "AddManySparseToTensorsMap(sparse_indices:i64, sparse_values:T, sparse_shape:i64) -> (sparse_handles:i64) | "
      "T:type; ",
      "Keeps each slice of a sparse tensor along its first dimension in a map, and gives their numbers.", AddManyShape);
  Declare(r,
          "TakeManySparseFromTensorsMap(sparse_handles:i64) -> (sparse_indices:i64, sparse_values:dtype, "
          "sparse_shape:i64) | dtype:type; ",
          "Takes the sparse tensors of those numbers out of a map and stacks them along a new first dimension; the "
          "other dimensions are the largest of theirs.",
          TakeManyShape);
}

}  // namespace millrace
