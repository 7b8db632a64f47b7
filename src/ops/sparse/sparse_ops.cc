// SPDX-License-Identifier: Apache-2.0
// Ops: sparse tensors, each given by the indices [n, rank] of its entries, their values [n] and the dense shape [rank].
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"
#include "ops/sparse/sparse_input.h"
#include "ops/sparse/sparse_map_ops.h"

namespace millrace {

StatusOr<std::pair<int64_t, int64_t>> SparseInput(ShapeContext& c, int indices, int values, int shape) {
  MR_ASSIGN_OR_RETURN(const PartialShape places, c.WithRank(indices, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape elements, c.WithRank(values, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape dims, c.WithRank(shape, 1));
  MR_ASSIGN_OR_RETURN(const int64_t n, c.MergeDim(places.dim(0), elements.dim(0), "as many indices as values"));
  MR_ASSIGN_OR_RETURN(
      const int64_t rank, c.MergeDim(places.dim(1), dims.dim(0), "indices as wide as the shape is long"));
  return std::make_pair(n, rank);
}

void SetSparseOutput(ShapeContext& c, int first, int64_t n, int64_t rank) {
  c.set_output(first, PartialShape::Of({n, rank}));
  c.set_output(first + 1, PartialShape::Of({n}));
  c.set_output(first + 2, PartialShape::Of({rank}));
}

namespace {

Status SparseToDenseShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRankAtMost(0, 2));
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());  // a step checks the values, as in TensorFlow
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.InputAsShape(1));
  if (indices.rank() == 2 && indices.has_dim(1) && shape.has_rank() && shape.rank() != indices.dim(1)) {
    return InvalidArgument("indices of shape ", indices.ToString(), " do not fit the output shape ", shape.ToString());
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status SparseToDenseGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const PartialShape& indices = g.x(0).shape();
  Output at = g.x(0);
  if (!indices.has_rank() || indices.rank() < 2) {  // a lone index, or a list of them, is one column
    const Output depth = b.Shape(g.x(1));
    at = b.Reshape(at, b.Op("ConcatV2", {std::vector<Output>{b.Vector<int32_t>({-1}), depth}, b.Scalar<int32_t>(0)}));
  }
  const Output values = b.Op("GatherNd", {g.dy(), at});
  const Output flat = b.Vector<int32_t>({-1});
  g.set_dx(2, SumToShapeOf(b, values, g.x(2)));
  const Output zero = b.Scalar<int32_t>(0);
  g.set_dx(3, b.Sub(b.Sum(b.Reshape(g.dy(), flat), zero), b.Sum(b.Reshape(values, flat), zero)));
  return g.status();
}

Status EditDistanceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto hypothesis, SparseInput(c, 0));
  MR_ASSIGN_OR_RETURN(const auto truth, SparseInput(c, 3));
  MR_RETURN_IF_ERROR(c.MergeDim(hypothesis.second, truth.second, "both have one rank").status());
  MR_ASSIGN_OR_RETURN(const PartialShape a, c.InputAsShape(2));
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.InputAsShape(5));
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank() || a.rank() == 0) return absl::OkStatus();
  std::vector<int64_t> dims;
  for (int i = 0; i + 1 < a.rank(); ++i) {
    dims.push_back(a.has_dim(i) && b.has_dim(i) ? std::max(a.dim(i), b.dim(i)) : -1);
  }
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status MatMulShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto a, SparseInput(c, 0));
  MR_RETURN_IF_ERROR(c.MergeDim(a.second, 2, "the sparse tensor must be a matrix").status());
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(3, 2));
  MR_ASSIGN_OR_RETURN(const bool adjoint_a, c.Attr<bool>("adjoint_a"));
  MR_ASSIGN_OR_RETURN(const bool adjoint_b, c.Attr<bool>("adjoint_b"));
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(2));
  const int64_t rows = shape.has_rank() ? shape.dim(adjoint_a ? 1 : 0) : -1;
  const int64_t inner = shape.has_rank() ? shape.dim(adjoint_a ? 0 : 1) : -1;
  MR_RETURN_IF_ERROR(c.MergeDim(inner, b.dim(adjoint_b ? 1 : 0), "the inner dimensions must agree").status());
  c.set_output(0, PartialShape::Of({rows, b.dim(adjoint_b ? 0 : 1)}));
  return absl::OkStatus();
}

Output Column(const GraphBuilder& b, Output indices, int column) {
  return b.Op("GatherV2", {indices, b.Scalar<int32_t>(column), b.Scalar<int32_t>(1)});
}

Output Rows(const GraphBuilder& b, Output matrix, Output rows) {
  return b.Op("GatherV2", {matrix, rows, b.Scalar<int32_t>(0)});
}

Output Adjoint(const GraphBuilder& b, Output matrix) {
  return b.Conj(b.Op("Transpose", {matrix, b.Vector<int32_t>({1, 0})}));
}

Status MatMulGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  MR_ASSIGN_OR_RETURN(const bool adjoint_a, g.Attr<bool>("adjoint_a"));
  MR_ASSIGN_OR_RETURN(const bool adjoint_b, g.Attr<bool>("adjoint_b"));
  if (IsComplex(g.x(1).dtype())) return Unimplemented("the gradient of a sparse product of complex numbers");
  const Output rows = Column(b, g.x(0), adjoint_a ? 1 : 0), columns = Column(b, g.x(0), adjoint_a ? 0 : 1);
  const Output dense = adjoint_b ? Adjoint(b, g.x(3)) : g.x(3);
  g.set_dx(1, b.Sum(b.Mul(Rows(b, g.dy(), rows), Rows(b, dense, columns)), b.Scalar<int32_t>(1)));
  const Output db = b.Op("SparseTensorDenseMatMul", {g.x(0), g.x(1), g.x(2), g.dy()}, {{"adjoint_a", !adjoint_a}});
  g.set_dx(3, adjoint_b ? Adjoint(b, db) : db);
  return g.status();
}

Status ReorderShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, 0));
  c.set_output(0, PartialShape::Of({size.first, size.second}));
  c.set_output(1, PartialShape::Of({size.first}));
  return absl::OkStatus();
}

Status ReorderGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Output count = b.Reshape(b.Op("Size", {g.x(1)}), b.Vector<int32_t>({}));
  const Output order = b.Op("Range", {b.Scalar<int32_t>(0), count, b.Scalar<int32_t>(1)});
  Node* moved = b.OpNode("SparseReorder", {g.x(0), order, g.x(2)});
  if (moved == nullptr) return g.status();
  g.set_dx(1, Rows(b, g.dy(1), b.Op("InvertPermutation", {moved->output(1)})));
  return g.status();
}

}  // namespace

void RegisterSparseOps(OpRegistry& r) {
  RegisterSparseMapOps(r);
  RegisterSparseMathOps(r);
  RegisterSparseReduceOps(r);
  RegisterSparseLayoutOps(r);
  RegisterSparseSerialOps(r);
  RegisterSparseSetOps(r);
  r.Add(
       "SparseToDense(sparse_indices:Tindices, output_shape:Tindices, sparse_values:T, default_value:T) -> (dense:T) | "
       "validate_indices:bool=true; T:type; Tindices in IDX")
      .Doc(
          "A dense tensor with sparse_values (one for each index, or one for all) at sparse_indices and default_value "
          "elsewhere. The indices are a matrix, a vector (of a vector's elements) or a scalar; with validate_indices "
          "they must be in row-major order without repetition.")
      .Shape(SparseToDenseShape)
      .Gradient(SparseToDenseGrad)
      .Example("i32[2,2]{0 1 2 0}, i32[2]{3 2}, f32[2]~, f32[]~")
      .Example("i64[2]{1 3}, i64[1]{5}, f32[]~, f32[]~");
  r.Add(
       "EditDistance(hypothesis_indices:i64, hypothesis_values:T, hypothesis_shape:i64, truth_indices:i64, "
       "truth_values:T, truth_shape:i64) -> (output:f32) | normalize:bool=true; T:type")
      .Doc(
          "The Levenshtein distance between the sequences that run along the last dimension of two sparse tensors; "
          "with `normalize`, divided by the length of the true sequence (infinite where that is empty and the other is "
          "not).")
      .Shape(EditDistanceShape)
      .NotDifferentiable("it counts edits")
      .Example("i64[3,2]{0 0 0 1 1 0}, i32[3]{1 2 3}, i64[2]{2 2}, i64[2,2]{0 0 0 1}, i32[2]{1 4}, i64[2]{2 2}");
  r.Add(
       "SparseTensorDenseMatMul(a_indices:Tindices, a_values:T, a_shape:i64, b:T) -> (product:T) | T:type; Tindices in "
       "IDX=i64; adjoint_a:bool=false; adjoint_b:bool=false")
      .Doc("The product of a sparse matrix and a dense one, each as it is or conjugated and transposed.")
      .Shape(MatMulShape)
      .Gradient(MatMulGrad)
      .Example("i64[3,2]{0 1 1 0 1 2}, f32[3]~, i64[2]{2 3}, f32[3,2]~")
      .Example("i64[3,2]{0 1 1 0 1 2}, f32[3]~, i64[2]{2 3}, f32[4,2]~ | adjoint_a=true; adjoint_b=true");
  r.Add(
       "SparseReorder(input_indices:i64, input_values:T, input_shape:i64) -> (output_indices:i64, output_values:T) | "
       "T:type")
      .Doc("The entries of a sparse tensor in row-major order.")
      .Shape(ReorderShape)
      .Gradient(ReorderGrad)
      .Example("i64[3,2]{1 0 0 1 0 0}, f32[3]~, i64[2]{2 3}");
}

}  // namespace millrace
