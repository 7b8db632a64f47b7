// SPDX-License-Identifier: Apache-2.0
// Ops: sparse tensors joined, taken apart, reshaped and filled.
#include "base/checked.h"
#include "graph/gradient.h"
#include "ops/sparse/sparse_input.h"

namespace millrace {
namespace {

constexpr char kExample[] = "i64[3,2]{0 1 1 0 1 2}, f32[3]~, i64[2]{2 3}";

Status ConcatShape(ShapeContext& c) {
  const ArgRange indices = c.input_arg("indices"), values = c.input_arg("values"), shapes = c.input_arg("shapes");
  int64_t n = 0, rank = -1;
  for (int i = 0; i < indices.end - indices.begin; ++i) {
    MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, indices.begin + i, values.begin + i, shapes.begin + i));
    MR_ASSIGN_OR_RETURN(rank, c.MergeDim(rank, size.second, "all have one rank"));
    if (n < 0 || size.first < 0 || !CheckedAdd(n, size.first, &n)) n = -1;
  }
  SetSparseOutput(c, 0, n, rank);
  return absl::OkStatus();
}

Status FillRowsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, 0));
  MR_RETURN_IF_ERROR(c.RequireScalar(3));
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(2));
  c.set_output(0, PartialShape::Of({-1, size.second}));
  c.set_output(1, PartialShape::Of({-1}));
  c.set_output(2, PartialShape::Of({shape.has_rank() && shape.rank() > 0 ? shape.dim(0) : -1}));
  c.set_output(3, PartialShape::Of({size.first}));
  return absl::OkStatus();
}

Status FillRowsGrad(GradContext& g) {
  Node* made = g.b().OpNode("SparseFillEmptyRowsGrad", {g.y(3), g.dy(1)});
  if (made == nullptr) return g.status();
  g.set_dx(1, made->output(0));
  g.set_dx(3, made->output(1));
  return g.status();
}

Status FillRowsGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape map, c.WithRank(0, 1));
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, std::move(map));
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

Status ReshapeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(1, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape wanted, c.WithRank(2, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(1), shape.dim(0), "indices as wide as the shape is long").status());
  c.set_output(0, PartialShape::Of({indices.dim(0), wanted.dim(0)}));
  c.set_output(1, PartialShape::Of({wanted.dim(0)}));
  return absl::OkStatus();
}

Status SliceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, 0));
  int64_t rank = size.second;
  for (int i = 3; i <= 4; ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape v, c.WithRank(i, 1));
    MR_ASSIGN_OR_RETURN(rank, c.MergeDim(rank, v.dim(0), "start and size are as long as the shape"));
  }
  SetSparseOutput(c, 0, -1, rank);
  return absl::OkStatus();
}

Status SliceGrad(GradContext& g) {
  g.set_dx(1, g.b().Op("SparseSliceGrad", {g.dy(1), g.x(0), g.x(3), g.y(0)}));
  return g.status();
}

Status SliceGradShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1, 2));
  MR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  MR_RETURN_IF_ERROR(c.WithRank(3, 2).status());
  c.set_output(0, PartialShape::Of({indices.dim(0)}));
  return absl::OkStatus();
}

Status SplitShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, 1));
  const int count = c.num_outputs() / 3;
  for (int i = 0; i < count; ++i) {
    c.set_output(i, PartialShape::Of({-1, size.second}));
    c.set_output(count + i, PartialShape::Of({-1}));
    c.set_output(2 * count + i, PartialShape::Of({size.second}));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterSparseLayoutOps(OpRegistry& r) {
  r.Add(
       "SparseConcat(indices:N*i64, values:N*T, shapes:N*i64) -> (output_indices:i64, output_values:T, "
       "output_shape:i64) | concat_dim:int; N:int>=2; T:type")
      .Doc("Joins sparse tensors along a dimension; the others must agree. The result is in row-major order.")
      .Shape(ConcatShape)
      .NotDifferentiable("as in TensorFlow")
      .Example("i64[2,2]{0 1 1 0}, i64[1,2]{1 1}, f32[2]~, f32[1]~, i64[2]{2 2}, i64[2]{2 3} | N=2; concat_dim=1");
  r.Add(
       "SparseFillEmptyRows(indices:i64, values:T, dense_shape:i64, default_value:T) -> (output_indices:i64, "
       "output_values:T, empty_row_indicator:bool, reverse_index_map:i64) | T:type")
      .Doc(
          "A sparse tensor with its elements in the order of their rows, where each row without any has "
          "`default_value` at its beginning; which rows those are; and where each element went.")
      .Shape(FillRowsShape)
      .Gradient(FillRowsGrad)
      .Example("i64[3,2]{2 0 0 1 2 1}, f32[3]~, i64[2]{4 3}, f32[]~");
  r.Add("SparseFillEmptyRowsGrad(reverse_index_map:i64, grad_values:T) -> (d_values:T, d_default_value:T) | T:type")
      .Doc("Gradients of SparseFillEmptyRows by the values and by the default value.")
      .Shape(FillRowsGradShape)
      .NoGradient("TensorFlow has none either")
      .Example("i64[3]{2 0 3}, f32[5]~");
  r.Add("SparseReshape(input_indices:i64, input_shape:i64, new_shape:i64) -> (output_indices:i64, output_shape:i64)")
      .Doc("The indices of a sparse tensor's elements in another shape of as many. One dimension may be -1.")
      .Shape(ReshapeShape)
      .NotDifferentiable("indices are integers")
      .Example("i64[3,2]{0 1 1 0 1 2}, i64[2]{2 3}, i64[2]{3 -1}");
  r.Add(
       "SparseSlice(indices:i64, values:T, shape:i64, start:i64, size:i64) -> (output_indices:i64, output_values:T, "
       "output_shape:i64) | T:type")
      .Doc("The elements of a sparse tensor in a block, which ends where the tensor ends, with indices into it.")
      .Shape(SliceShape)
      .Gradient(SliceGrad)
      .Example(absl::StrCat(kExample, ", i64[2]{1 0}, i64[2]{1 5}"));
  r.Add(
       "SparseSliceGrad(backprop_val_grad:T, input_indices:i64, input_start:i64, output_indices:i64) -> (val_grad:T) | "
       "T in NUM")
      .Doc("Gradient of SparseSlice by the values: 0 outside of the block.")
      .Shape(SliceGradShape)
      .NoGradient("TensorFlow has none either")
      .Example("f32[2]~, i64[3,2]{0 1 1 0 1 2}, i64[2]{1 0}, i64[2,2]{0 0 0 2}");
  r.Add(
       "SparseSplit(split_dim:i64, indices:i64, values:T, shape:i64) -> (output_indices:num_split*i64, "
       "output_values:num_split*T, output_shape:num_split*i64) | num_split:int>=1; T:type")
      .Doc(
          "A sparse tensor in parts along a dimension, with indices into each. The first are longer by 1 where it does "
          "not divide.")
      .Shape(SplitShape)
      .NotDifferentiable("as in TensorFlow")
      .Example("i64[]{1}, i64[3,2]{0 1 1 0 1 2}, f32[3]~, i64[2]{2 3} | num_split=2");
}

}  // namespace millrace
