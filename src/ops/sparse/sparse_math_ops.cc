// SPDX-License-Identifier: Apache-2.0
// Ops: arithmetic of sparse tensors, element by element.
#include "graph/gradient.h"
#include "ops/sparse/sparse_input.h"

namespace millrace {
namespace {

constexpr char kExample[] = "i64[3,2]{0 1 1 0 1 2}, f32[3]~, i64[2]{2 3}";

Status BothShape(ShapeContext& c, int64_t* rank) {
  MR_ASSIGN_OR_RETURN(const auto a, SparseInput(c, 0));
  MR_ASSIGN_OR_RETURN(const auto b, SparseInput(c, 3));
  MR_ASSIGN_OR_RETURN(*rank, c.MergeDim(a.second, b.second, "both have one rank"));
  return absl::OkStatus();
}

Status AddShape(ShapeContext& c) {
  int64_t rank = -1;
  MR_RETURN_IF_ERROR(BothShape(c, &rank));
  MR_RETURN_IF_ERROR(c.RequireScalar(6));
  SetSparseOutput(c, 0, -1, rank);
  return absl::OkStatus();
}

Status AddGrad(GradContext& g) {
  Node* both = g.b().OpNode("SparseAddGrad", {g.dy(1), g.x(0), g.x(3), g.y(0)});
  if (both == nullptr) return g.status();
  g.set_dx(1, both->output(0));
  g.set_dx(4, both->output(1));
  return g.status();
}

Status AddGradShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  for (int i = 1; i <= 3; ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 2).status());
  c.set_output(0, PartialShape::Of({c.input(1).dim(0)}));
  c.set_output(1, PartialShape::Of({c.input(2).dim(0)}));
  return absl::OkStatus();
}

Status ExtremeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto a, SparseInput(c, 0));
  MR_RETURN_IF_ERROR(SparseInput(c, 3).status());  // a step compares the ranks, as in TensorFlow
  c.set_output(0, PartialShape::Of({-1, a.second}));
  c.set_output(1, PartialShape::Of({-1}));
  return absl::OkStatus();
}

Status ValuesShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, 0));
  c.set_output(0, PartialShape::Of({size.first}));
  return absl::OkStatus();
}

// What the dense operand, whose shape is padded with ones to the sparse one's, has at the sparse elements: where it is
// broadcast, the index is 0.
struct Operand {
  Output shape;   // padded
  Output at;      // indices into it
  Output values;  // there
};

Operand DenseOperand(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Output dims = b.Shape(g.x(3), DType::kInt64);
  const Output missing = b.Sub(b.Shape(g.x(2)), b.Shape(dims));
  const Output ones = b.Op("Fill", {missing, b.Scalar<int64_t>(1)});
  const Output padded = b.Op("ConcatV2", {std::vector<Output>{ones, dims}, b.Scalar<int32_t>(0)});
  const Output scale = b.Op("FloorDiv", {g.x(2), b.Op("Maximum", {padded, b.Scalar<int64_t>(1)})});
  const Output at = b.Op("FloorDiv", {g.x(0), b.Op("Maximum", {scale, b.Scalar<int64_t>(1)})});
  return {padded, at, b.Op("GatherNd", {b.Reshape(g.x(3), padded), at})};
}

// The gradient by the dense operand, of that by its values at the elements.
Output Spread(GradContext& g, const Operand& dense, Output values) {
  const GraphBuilder& b = g.b();
  return b.Reshape(b.Op("ScatterNd", {dense.at, values, dense.shape}), b.Shape(g.x(3)));
}

Status MulGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Operand dense = DenseOperand(g);
  g.set_dx(1, b.Mul(g.dy(), b.Conj(dense.values)));
  g.set_dx(3, Spread(g, dense, b.Mul(g.dy(), b.Conj(g.x(1)))));
  return g.status();
}

Status DivGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Operand dense = DenseOperand(g);
  g.set_dx(1, b.Div(g.dy(), b.Conj(dense.values)));
  const Output square = b.Mul(dense.values, dense.values);
  g.set_dx(3, Spread(g, dense, b.Mul(g.dy(), b.Conj(b.Neg(b.Div(g.x(1), square))))));
  return g.status();
}

Status SoftmaxShape(ShapeContext& c) { return ValuesShape(c); }

Status SoftmaxGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Output product = b.Mul(g.y(), g.dy());
  const Output sums = b.Op("SparseReduceSum", {g.x(0), product, g.x(2), b.Vector<int32_t>({-1})});
  const Output rows =
      b.Op("StridedSlice", {g.x(0), b.Vector<int32_t>({0, 0}), b.Vector<int32_t>({0, -1}), b.Vector<int32_t>({1, 1})},
           {{"begin_mask", int64_t{3}}, {"end_mask", int64_t{1}}});
  g.set_dx(1, b.Mul(b.Sub(g.dy(), b.Op("GatherNd", {sums, rows})), g.y()));
  return g.status();
}

Status DenseAddShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(SparseInput(c, 0).status());
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(2));
  MR_ASSIGN_OR_RETURN(PartialShape sum, c.Merge(c.input(3), shape, "the shapes of both operands"));
  c.set_output(0, std::move(sum));
  return absl::OkStatus();
}

Status DenseAddGrad(GradContext& g) {
  g.set_dx(1, g.b().Op("GatherNd", {g.dy(), g.x(0)}));
  g.set_dx(3, g.dy());
  return g.status();
}

OpDeclaration DeclareCwise(OpRegistry& r, absl::string_view name, absl::string_view what) {
  return r.Add(absl::StrCat(name, "(sp_indices:i64, sp_values:T, sp_shape:i64, dense:T) -> (output:T) | T in NUM"))
      .Doc(absl::StrCat("The values of a sparse tensor ", what,
                        " the elements of a dense one at their places. Where the dense one has fewer dimensions, or "
                        "1 of a dimension, it is broadcast."))
      .Shape(ValuesShape)
      .Example(absl::StrCat(kExample, ", f32[2,3]+"))
      .Example(absl::StrCat(kExample, ", f32[3]+"));
}

OpDeclaration DeclareExtreme(OpRegistry& r, absl::string_view name, absl::string_view types, absl::string_view what) {
  return r
      .Add(absl::StrCat(name,
                        "(a_indices:i64, a_values:T, a_shape:i64, b_indices:i64, b_values:T, b_shape:i64) -> "
                        "(output_indices:i64, output_values:T) | T in ",
                        types))
      .Doc(absl::StrCat("The ", what,
                        " of two sparse tensors of one shape and in row-major order, element by element: what only "
                        "one of them has is compared with 0."))
      .Shape(ExtremeShape)
      .NoGradient("TensorFlow has none either")
      .Example(absl::StrCat(kExample, ", i64[2,2]{0 1 1 1}, f32[2]~, i64[2]{2 3}"));
}

}  // namespace

void RegisterSparseMathOps(OpRegistry& r) {
  r.Add(
       "SparseAdd(a_indices:i64, a_values:T, a_shape:i64, b_indices:i64, b_values:T, b_shape:i64, thresh:Treal) -> "
       "(sum_indices:i64, sum_values:T, sum_shape:i64) | T in NUM; Treal in REAL")
      .Doc(
          "The sum of two sparse tensors of one shape and in row-major order. Of elements that both have, those whose "
          "sum is nearer to 0 than `thresh` are left out.")
      .Shape(AddShape)
      .Gradient(AddGrad)
      .Example(absl::StrCat(kExample, ", i64[2,2]{0 1 1 1}, f32[2]~, i64[2]{2 3}, !f32[]{0}"));
  r.Add(
       "SparseAddGrad(backprop_val_grad:T, a_indices:i64, b_indices:i64, sum_indices:i64) -> (a_val_grad:T, "
       "b_val_grad:T) | T in NUM")
      .Doc("Gradients of SparseAdd by both operands' values: 0 for those that are not in the sum.")
      .Shape(AddGradShape)
      .NotDifferentiable("second derivatives of a sum are 0")
      .Example("f32[3]~, i64[2,2]{0 1 1 0}, i64[2,2]{0 1 1 1}, i64[3,2]{0 1 1 0 1 1}");
  DeclareCwise(r, "SparseDenseCwiseAdd", "plus").NoGradient("TensorFlow has none either");
  DeclareCwise(r, "SparseDenseCwiseDiv", "divided by").Gradient(DivGrad);
  DeclareCwise(r, "SparseDenseCwiseMul", "times").Gradient(MulGrad);
  r.Add("SparseSoftmax(sp_indices:i64, sp_values:T, sp_shape:i64) -> (output:T) | T in HFD")
      .Doc("The softmax along the last dimension, over the elements that there are alone: the new values.")
      .Shape(SoftmaxShape)
      .Gradient(SoftmaxGrad)
      .Example(kExample);
  DeclareExtreme(r, "SparseSparseMaximum", "REAL", "maximum");
  DeclareExtreme(r, "SparseSparseMinimum", "NUM", "minimum");
  r.Add(
       "SparseTensorDenseAdd(a_indices:Tindices, a_values:T, a_shape:Tindices, b:T) -> (output:T) | T in NUM; Tindices "
       "in IDX")
      .Doc("The sum of a sparse tensor and a dense one of the same shape, which is dense.")
      .Shape(DenseAddShape)
      .Gradient(DenseAddGrad)
      .Example(absl::StrCat(kExample, ", f32[2,3]~"));
}

}  // namespace millrace
