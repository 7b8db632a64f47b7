// SPDX-License-Identifier: Apache-2.0
// Ops: sparse tensors as strings or variants, for readers and queues.
#include "ops/sparse/sparse_input.h"

namespace millrace {
namespace {

constexpr char kReason[] = "serialized tensors have no gradient";
constexpr char kInputs[] =
    "(sparse_indices:i64, sparse_values:T, sparse_shape:i64) -> (serialized_sparse:out_type) | "
    "T:type; out_type in str|var=str";

Status SerializeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(SparseInput(c, 0).status());
  c.set_output(0, PartialShape::Of({3}));
  return absl::OkStatus();
}

Status SerializeManyShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(SparseInput(c, 0).status());
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(2));
  c.set_output(0, PartialShape::Of({shape.has_rank() && shape.rank() > 0 ? shape.dim(0) : -1, 3}));
  return absl::OkStatus();
}

Status DeserializeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape serialized, c.WithRankAtLeast(0, 1));
  if (serialized.has_rank()) {
    MR_RETURN_IF_ERROR(
        c.MergeDim(serialized.dim(serialized.rank() - 1), 3, "a sparse tensor is three tensors").status());
  }
  SetSparseOutput(c, 0, -1, -1);
  return absl::OkStatus();
}

Status DeserializeManyShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape serialized, c.WithRank(0, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(serialized.dim(1), 3, "a sparse tensor is three tensors").status());
  SetSparseOutput(c, 0, -1, -1);
  return absl::OkStatus();
}

}  // namespace

void RegisterSparseSerialOps(OpRegistry& r) {
  r.Add(absl::StrCat("SerializeSparse", kInputs))
      .Doc("A sparse tensor as three strings (TensorProtos of indices, values and shape) or variants.")
      .Shape(SerializeShape)
      .NotDifferentiable(kReason)
      .Example("i64[3,2]{0 1 1 0 1 2}, f32[3]~, i64[2]{2 3}");
  r.Add(absl::StrCat("SerializeManySparse", kInputs))
      .Doc(
          "A row of three strings, or variants, for each slice of a sparse tensor along its first dimension: "
          "DeserializeManySparse joins any selection of rows. The elements are in row-major order.")
      .Shape(SerializeManyShape)
      .NotDifferentiable(kReason)
      .Example("i64[3,2]{0 1 1 0 1 2}, f32[3]~, i64[2]{2 3}");
  r.Add(
       "DeserializeSparse(serialized_sparse:Tserialized) -> (sparse_indices:i64, sparse_values:dtype, "
       "sparse_shape:i64) | dtype:type; Tserialized in str|var=str")
      .Doc(
          "Sparse tensors out of what SerializeSparse made of them, [..., 3], stacked along the dimensions before the "
          "last; the other dimensions are the largest of theirs.")
      .Shape(DeserializeShape)
      .NotDifferentiable(kReason)
      .NoExample("needs serialized tensors");
  r.Add(
       "DeserializeManySparse(serialized_sparse:str) -> (sparse_indices:i64, sparse_values:dtype, sparse_shape:i64) | "
       "dtype:type")
      .Doc("DeserializeSparse of a matrix of strings, [n, 3].")
      .Shape(DeserializeManyShape)
      .NotDifferentiable(kReason)
      .NoExample("needs serialized tensors");
}

}  // namespace millrace
