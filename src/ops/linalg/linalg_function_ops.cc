// SPDX-License-Identifier: Apache-2.0
// Ops: functions of matrices, and matrices of three diagonals.
#include "ops/linalg/linalg_ops.h"

namespace millrace {
namespace {

Status SquareShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape out, SquareMatrices(c, 0));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The upper right block of the function of [[A^H, dy], [0, A^H]]: its derivative at A^H in the direction of dy
// (Mathias 1996, A chain rule for matrix functions and applications).
Status FunctionGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output a = Adjoint(b, c.x(0)), rows = b.Scalar<int32_t>(-2), columns = b.Scalar<int32_t>(-1);
  const auto join = [&](Output x, Output y, Output axis) {
    return b.Op("ConcatV2", {std::vector<Output>{x, y}, axis});
  };
  const auto half = [&](Output x, Output axis, int i) -> Output {
    Node* const halves = b.OpNode("Split", {axis, x}, {{"num_split", 2}});
    return halves != nullptr ? halves->output(i) : Output();
  };
  const Output blocks = join(join(a, c.dy(), columns), join(b.ZerosLike(a), a, columns), rows);
  c.set_dx(0, half(half(b.Op(c.node()->op_name(), {blocks}), columns, 1), rows, 0));
  return c.status();
}

// Row i of each matrix, which stays a matrix of one row.
Output Row(const GraphBuilder& b, Output x, int64_t i) {
  const auto last = [&](int64_t v, int64_t w) { return b.Vector<int64_t>({0, v, w}); };
  return b.Op("StridedSlice", {x, last(i, 0), last(i + 1, 0), last(1, 1)},
              {{"ellipsis_mask", 1}, {"begin_mask", 4}, {"end_mask", 4}});
}

// sum over columns of x * y, as a diagonal.
Output DiagonalOf(const GraphBuilder& b, Output x, Output y) {
  const Output sum = b.Sum(b.Mul(x, y), b.Vector<int32_t>({-1}));
  return b.Op("ExpandDims", {sum, b.Scalar<int32_t>(-2)});
}
// Zeros with the shape of a diagonal that fits x.
Output NoDiagonal(const GraphBuilder& b, Output x) { return b.ZerosLike(DiagonalOf(b, x, x)); }
// Rows moved up or down by one, with zeros at the free end.
Output MovedUp(const GraphBuilder& b, Output x) {
  const Output zeros = NoDiagonal(b, x);
  return b.Op("TridiagonalMatMul", {b.OnesLike(zeros), zeros, zeros, x});
}
Output MovedDown(const GraphBuilder& b, Output x) {
  const Output zeros = NoDiagonal(b, x);
  return b.Op("TridiagonalMatMul", {zeros, zeros, b.OnesLike(zeros), x});
}
// The diagonals of the transposed matrix: what is not used may be anything.
Output Rolled(const GraphBuilder& b, Output diagonal, int32_t by) {
  return b.Op("Roll", {diagonal, b.Scalar<int32_t>(by), b.Scalar<int32_t>(-1)});
}

Status MatMulShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape rhs, c.WithRankAtLeast(3, 2));
  for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(c.WithRankAtLeast(i, 2).status());
  if (rhs.has_rank()) {
    const PartialShape diagonal = WithLast(WithoutLast(rhs, 2), {1, rhs.dim(rhs.rank() - 2)});
    for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(c.Merge(c.input(i), diagonal, "each diagonal").status());
  }
  c.set_output(0, std::move(rhs));
  return absl::OkStatus();
}

Status MatMulGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output g = c.dy(), x = b.Conj(c.x(3)), main = c.x(1);
  c.set_dx(0, DiagonalOf(b, MovedUp(b, x), g));
  c.set_dx(1, DiagonalOf(b, x, g));
  c.set_dx(2, DiagonalOf(b, MovedDown(b, x), g));
  c.set_dx(
      3, b.Op("TridiagonalMatMul", {Rolled(b, b.Conj(c.x(2)), -1), b.Conj(main), Rolled(b, b.Conj(c.x(0)), 1), g}));
  return c.status();
}

Status SolveShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape diagonals, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape rhs, c.WithRankAtLeast(1, 2));
  if (!diagonals.has_rank() || !rhs.has_rank()) return absl::OkStatus();
  MR_RETURN_IF_ERROR(c.MergeDim(diagonals.dim(diagonals.rank() - 2), 3, "the number of diagonals").status());
  MR_ASSIGN_OR_RETURN(
      const int64_t m,
      c.MergeDim(diagonals.dim(diagonals.rank() - 1), rhs.dim(rhs.rank() - 2), "the length of the diagonals"));
  bool incompatible = false;
  const PartialShape batch = BroadcastPartial(WithoutLast(diagonals, 2), WithoutLast(rhs, 2), &incompatible);
  if (incompatible) {
    return InvalidArgument("the batches of ", diagonals.ToString(), " and ", rhs.ToString(), " do not fit");
  }
  c.set_output(0, WithLast(batch, {m, rhs.dim(rhs.rank() - 1)}));
  return absl::OkStatus();
}

// With X = A^-1 B: the gradient of B is A^-H g, that of A minus that times X^H, of which three diagonals count.
Status SolveGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  MR_ASSIGN_OR_RETURN(const bool pivoting, c.Attr<bool>("partial_pivoting"));
  const Output upper = Row(b, c.x(0), 0), main = Row(b, c.x(0), 1), lower = Row(b, c.x(0), 2);
  const Output rows = b.Scalar<int32_t>(-2);
  const Output adjoint =
      b.Conj(b.Op("ConcatV2", {std::vector<Output>{Rolled(b, lower, -1), main, Rolled(b, upper, 1)}, rows}));
  const Output gx = b.Op("TridiagonalSolve", {adjoint, c.dy()}, {{"partial_pivoting", pivoting}});
  const Output x = b.Conj(c.y());
  const std::vector<Output> parts = {
      DiagonalOf(b, gx, MovedUp(b, x)), DiagonalOf(b, gx, x), DiagonalOf(b, gx, MovedDown(b, x))};
  const Output ga = b.Neg(b.Op("ConcatV2", {parts, rows}));
  const auto [da, dx] = UnbroadcastBatches(b, c.x(0), c.x(1), ga, gx);
  c.set_dx(0, da);
  c.set_dx(1, dx);
  return c.status();
}

}  // namespace

void RegisterMatrixFunctionOps(OpRegistry& r) {
  r.Add("MatrixExponential(input:T) -> (output:T) | T in HFD|CPX | D27")
      .Doc("The exponential of each square matrix: the sum of its powers divided by factorials.")
      .Deprecated("Use Python implementation tf.linalg.matrix_exponential instead.")
      .Shape(SquareShape)
      .Gradient(FunctionGrad)
      .Example("f32[2,3,3]~");
  r.Add("MatrixLogarithm(input:T) -> (output:T) | T in CPX")
      .Doc("The principal logarithm of each square matrix, whose exponential is the matrix.")
      .Shape(SquareShape)
      .Gradient(FunctionGrad)
      .Example("c64[2,3,3]~");
  r.Add("MatrixSquareRoot(input:T) -> (output:T) | T in HFD|CPX")
      .Doc(
          "The principal square root of each square matrix, whose square is the matrix. NaN where a real matrix has "
          "none that is real.")
      .Shape(SquareShape)
      .Gradient(FunctionGrad)
      .Example("f64[2,2,2]{4 1 0.5 3 2 0.25 0.5 5}");
  r.Add("TridiagonalMatMul(superdiag:T, maindiag:T, subdiag:T, rhs:T) -> (output:T) | T in CPX|FD")
      .Doc(
          "Products of matrices of three diagonals, each a row of a matrix [..., 1, m], with matrices. The last "
          "element "
          "of the upper diagonal and the first of the lower one are not used.")
      .Shape(MatMulShape)
      .Gradient(MatMulGrad)
      .Example("f64[2,1,3]~, f64[2,1,3]~, f64[2,1,3]~, f64[2,3,2]~");
  r.Add("TridiagonalSolve(diagonals:T, rhs:T) -> (output:T) | partial_pivoting:bool=true; T in CPX|FD")
      .Doc(
          "Solutions of equations whose matrices have three diagonals, which are rows: the upper one, the main one, "
          "the "
          "lower one. The last element of the upper one and the first of the lower one are not used.")
      .Shape(SolveShape)
      .Gradient(SolveGrad)
      .Example("f64[3,3]{1 -0.5 9 4 5 3 9 1 0.5}, f64[3,2]~")
      .Example("f64[2,3,2]{1 9 4 5 9 1 0.5 9 3 4 9 1}, f64[2,2,1]~ | partial_pivoting=false");
}

}  // namespace millrace
