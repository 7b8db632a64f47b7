// SPDX-License-Identifier: Apache-2.0
// Factorisations of square matrices, and equations solved with them. All work on stacks of matrices in the last two
// axes.
#include "ops/linalg/linalg_ops.h"

namespace millrace {
namespace {

Status SquareShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape s, SquareMatrices(c, 0));
  c.set_output(0, std::move(s));
  return absl::OkStatus();
}

Status CholeskyGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape l, SquareMatrices(c, 0));
  MR_ASSIGN_OR_RETURN(const PartialShape g, SquareMatrices(c, 1));
  MR_ASSIGN_OR_RETURN(PartialShape both, c.Merge(l, g, "factor and gradient"));
  c.set_output(0, std::move(both));
  return absl::OkStatus();
}

Status DeterminantShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape s, SquareMatrices(c, 0));
  if (!s.has_rank()) return absl::OkStatus();
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, WithoutLast(s, 2));
  return absl::OkStatus();
}

Status LuShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape s, SquareMatrices(c, 0));
  c.set_output(0, s);
  if (s.has_rank()) c.set_output(1, WithoutLast(s, 1));
  return absl::OkStatus();
}

Status SolveShapeOf(ShapeContext& c, bool broadcast) {
  MR_ASSIGN_OR_RETURN(const PartialShape a, SquareMatrices(c, 0));
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.WithRankAtLeast(1, 2));
  if (!a.has_rank() || !b.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(
      const int64_t rows, c.MergeDim(a.dim(a.rank() - 1), b.dim(b.rank() - 2), "rows of matrix and right-hand side"));
  const PartialShape a_batch = WithoutLast(a, 2), b_batch = WithoutLast(b, 2);
  PartialShape batch;
  if (broadcast) {
    bool incompatible = false;
    batch = BroadcastPartial(a_batch, b_batch, &incompatible);
    if (incompatible) {
      return InvalidArgument("batch dimensions of ", a.ToString(), " and ", b.ToString(), " do not broadcast");
    }
  } else {
    MR_ASSIGN_OR_RETURN(batch, c.Merge(a_batch, b_batch, "batch dimensions"));
  }
  c.set_output(0, WithLast(batch, {rows, b.dim(b.rank() - 1)}));
  return absl::OkStatus();
}

Status SolveShape(ShapeContext& c) { return SolveShapeOf(c, false); }
Status TriangularSolveShape(ShapeContext& c) { return SolveShapeOf(c, true); }

// L^-H tril(L^H g, diagonal halved) L^-1, symmetrised (Murray 2016, Differentiation of the Cholesky decomposition).
Status CholeskyGradient(GradContext& c) {
  const GraphBuilder& b = c.b();
  Output l = c.y();
  Output middle = BatchMatMul(b, l, c.dy(), true, false);
  Output half = b.ScalarOf(BaseType(l.dtype()), 0.5);
  middle = b.Op("MatrixSetDiag", {middle, b.Mul(half, b.Op("MatrixDiagPart", {middle}))});
  middle = BandPart(b, middle, -1, 0);
  Output left = TriangularSolve(b, l, middle, true, true);
  Output adjoint = TriangularSolve(b, l, Adjoint(b, left), true, true);
  c.set_dx(0, b.Mul(half, b.Add(adjoint, Adjoint(b, adjoint))));
  return c.status();
}

Status DeterminantGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  Output inverse = b.Op("MatrixInverse", {c.x(0)}, {{"adjoint", true}});
  Output scale = b.Mul(c.dy(), c.y());
  for (int i = 0; i < 2; ++i) scale = b.Op("ExpandDims", {scale, b.Scalar<int32_t>(-1)});
  c.set_dx(0, b.Mul(scale, inverse));
  return c.status();
}

// The sign is constant wherever the logarithm has a derivative.
Status LogDeterminantGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  Output scale = c.dy(1);
  for (int i = 0; i < 2; ++i) scale = b.Op("ExpandDims", {scale, b.Scalar<int32_t>(-1)});
  c.set_dx(0, b.Mul(scale, b.Op("MatrixInverse", {c.x(0)}, {{"adjoint", true}})));
  return c.status();
}

Status InverseGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  MR_ASSIGN_OR_RETURN(const bool adjoint, c.Attr<bool>("adjoint"));
  Output right = BatchMatMul(b, c.dy(), c.y(), adjoint, !adjoint);
  c.set_dx(0, b.Neg(BatchMatMul(b, c.y(), right, !adjoint, false)));
  return c.status();
}

// -gb x^H, the other way round for the adjoint equation.
Output MatrixSideGrad(GradContext& c, Output gb, bool adjoint) {
  const GraphBuilder& b = c.b();
  return b.Neg(adjoint ? BatchMatMul(b, c.y(), gb, false, true) : BatchMatMul(b, gb, c.y(), false, true));
}

Status SolveGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const bool adjoint, c.Attr<bool>("adjoint"));
  Output gb = c.b().Op("MatrixSolve", {c.x(0), c.dy()}, {{"adjoint", !adjoint}});
  c.set_dx(0, MatrixSideGrad(c, gb, adjoint));
  c.set_dx(1, gb);
  return c.status();
}

Status TriangularSolveGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  MR_ASSIGN_OR_RETURN(const bool adjoint, c.Attr<bool>("adjoint"));
  MR_ASSIGN_OR_RETURN(const bool lower, c.Attr<bool>("lower"));
  Output gb = TriangularSolve(b, c.x(0), c.dy(), lower, !adjoint);
  Output ga = BandPart(b, MatrixSideGrad(c, gb, adjoint), lower ? -1 : 0, lower ? 0 : -1);
  const auto [gx, gy] = UnbroadcastBatches(b, c.x(0), c.x(1), ga, gb);
  c.set_dx(0, gx);
  c.set_dx(1, gy);
  return c.status();
}

constexpr char kFactor2[] = "f32[2,2]{4 1 1 3}";
constexpr char kFactor22[] = "f64[2,2,2]{4 1 1 3 2 0.5 0.5 2}";

struct Names {
  const char* name;
  const char* types;
  const char* flags;
  const char* deprecated;
};

void AddCholesky(OpRegistry& registry, const Names& n) {
  auto d = registry.Add(absl::StrCat(n.name, "(input:T) -> (output:T) | T in ", n.types, n.flags));
  if (n.deprecated) d.Deprecated(n.deprecated);
  d.Doc(
       "Lower triangular L with L L^H equal to the input, a stack of Hermitian positive definite matrices of which "
       "only the lower triangles are read. NaN where a matrix is not positive definite.")
      .Shape(SquareShape)
      .Gradient(CholeskyGradient)
      // Not differentiated one element at a time: the gradient is that of symmetric changes.
      .Example(absl::StrCat("!", kFactor2))
      .Example(absl::StrCat("!", kFactor22));
}

void AddCholeskyGrad(OpRegistry& registry, const Names& n) {
  auto d = registry.Add(absl::StrCat(n.name, "(l:T, grad:T) -> (output:T) | T in ", n.types, n.flags));
  if (n.deprecated) d.Deprecated(n.deprecated);
  d.Doc("Gradient of the input of Cholesky, from its result and the gradient of that.")
      .Shape(CholeskyGradShape)
      .NoGradient("second derivatives go through the formula that the gradient of Cholesky builds")
      .Example("f32[2,2]{2 0 0.5 1.6}, f32[2,2]~")
      .Example("f64[2,2,2]{2 0 0.5 1.6 1 0 1 1}, f64[2,2,2]~");
}

void AddDeterminant(OpRegistry& registry, const Names& n) {
  auto d = registry.Add(absl::StrCat(n.name, "(input:T) -> (output:T) | T in ", n.types, n.flags));
  if (n.deprecated) d.Deprecated(n.deprecated);
  d.Doc("Determinant of each matrix.")
      .Shape(DeterminantShape)
      .Gradient(DeterminantGrad)
      .Example(kFactor2)
      .Example(kFactor22);
}

void AddLogDeterminant(OpRegistry& registry) {
  registry.Add("LogMatrixDeterminant(input:T) -> (sign:T, log_abs_determinant:T) | T in HFD|CPX")
      .Doc(
          "The determinant of each matrix as its sign (for complex ones, its direction) and the logarithm of its size.")
      .Shape(DeterminantShape)
      .Gradient(LogDeterminantGrad)
      .Example(kFactor2)
      .Example("f64[2,2,2]{1 4 1 3 2 0.5 0.5 2}");
}

void AddLu(OpRegistry& registry) {
  registry.Add("Lu(input:T) -> (lu:T, p:output_idx_type) | T in HFD|CPX; output_idx_type in IDX=i32")
      .Doc(
          "L and U with input[p] = L U for each matrix, L with ones on its diagonal (not stored) and U in one matrix, "
          "p "
          "a permutation of its rows. A singular matrix is an error.")
      .Shape(LuShape)
      .NoGradient("nobody has asked for it")
      .Example("f32[2,2]{1 4 2 3}")
      .Example("f64[2,2,2]{4 1 2 3 2 0.5 0.25 2} | output_idx_type=i64");
}

void AddInverse(OpRegistry& registry, const Names& n) {
  auto d = registry.Add(absl::StrCat(n.name, "(input:T) -> (output:T) | adjoint:bool=false; T in ", n.types, n.flags));
  if (n.deprecated) d.Deprecated(n.deprecated);
  d.Doc("Inverse of each matrix, or of its conjugate transpose with adjoint. A singular matrix is an error.")
      .Shape(SquareShape)
      .Gradient(InverseGrad)
      .Example(kFactor2)
      .Example("f64[2,2,2]{4 1 2 3 2 0.5 0.25 2} | adjoint=true");
}

void AddSolve(OpRegistry& registry, const Names& n) {
  auto d = registry.Add(
      absl::StrCat(n.name, "(matrix:T, rhs:T) -> (output:T) | adjoint:bool=false; T in ", n.types, n.flags));
  if (n.deprecated) d.Deprecated(n.deprecated);
  d.Doc("X with matrix X = rhs, or matrix^H X = rhs with adjoint. A singular matrix is an error.")
      .Shape(SolveShape)
      .Gradient(SolveGrad)
      .Example("f32[2,2]{4 1 2 3}, f32[2,3]~")
      .Example("f64[2,2,2]{4 1 2 3 2 0.5 0.25 2}, f64[2,2,1]~ | adjoint=true");
}

void AddTriangularSolve(OpRegistry& registry, const Names& n) {
  auto d = registry.Add(absl::StrCat(
      n.name, "(matrix:T, rhs:T) -> (output:T) | lower:bool=true; adjoint:bool=false; T in ", n.types, n.flags));
  if (n.deprecated) d.Deprecated(n.deprecated);
  d.Doc(
       "X with matrix X = rhs, or matrix^H X = rhs with adjoint, where only the lower (or upper) triangle of the "
       "matrix is read. Batch dimensions broadcast.")
      .Shape(TriangularSolveShape)
      .Gradient(TriangularSolveGrad)
      .Example("f32[2,2]{4 0 2 3}, f32[2,3]~")
      .Example("f64[2,2,2]{4 1 0 3 2 0.5 0 2}, f64[2,2,1]~ | lower=false; adjoint=true");
}

}  // namespace

StatusOr<PartialShape> SquareMatrices(ShapeContext& c, int i) {
  MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRankAtLeast(i, 2));
  if (!s.has_rank()) return s;
  std::vector<int64_t> dims = s.dims();
  const size_t n = dims.size();
  MR_ASSIGN_OR_RETURN(dims[n - 1], c.MergeDim(dims[n - 2], dims[n - 1], "rows and columns of a square matrix"));
  dims[n - 2] = dims[n - 1];
  return PartialShape::Of(std::move(dims));
}

PartialShape WithoutLast(const PartialShape& s, int count) {
  return PartialShape::Of(std::vector<int64_t>(s.dims().begin(), s.dims().end() - count));
}

PartialShape WithLast(PartialShape batch, std::initializer_list<int64_t> dims) {
  std::vector<int64_t> all = batch.dims();
  all.insert(all.end(), dims);
  return PartialShape::Of(std::move(all));
}

Output Adjoint(const GraphBuilder& b, Output x) {
  Output order;
  if (x.shape().has_rank() && x.shape().rank() >= 2) {
    std::vector<int32_t> p(static_cast<size_t>(x.shape().rank()));
    for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<int32_t>(i);
    std::swap(p[p.size() - 1], p[p.size() - 2]);
    order = b.Const(Tensor::Vector<int32_t>(absl::Span<const int32_t>(p)));
  } else {
    Output rank = b.Op("Rank", {x});
    Output head = b.Op("Range", {b.Scalar<int32_t>(0), b.Sub(rank, b.Scalar<int32_t>(2)), b.Scalar<int32_t>(1)});
    Output tail = b.Sub(rank, b.Vector<int32_t>({1, 2}));
    order = b.Op("ConcatV2", {std::vector<Output>{head, tail}, b.Scalar<int32_t>(0)});
  }
  return b.Op(IsComplex(BaseType(x.dtype())) ? "ConjugateTranspose" : "Transpose", {x, order});
}

Output BandPart(const GraphBuilder& b, Output x, int64_t lower, int64_t upper) {
  return b.Op("MatrixBandPart", {x, b.Scalar<int64_t>(lower), b.Scalar<int64_t>(upper)});
}

Output TriangularSolve(const GraphBuilder& b, Output a, Output rhs, bool lower, bool adjoint) {
  return b.Op("MatrixTriangularSolve", {a, rhs}, {{"lower", lower}, {"adjoint", adjoint}});
}

void RegisterFactorizationOps(OpRegistry& registry) {
  AddCholesky(registry, {"Cholesky", "HFD|CPX", "", nullptr});
  AddCholesky(registry, {"BatchCholesky", "FD", " | D13", "use Cholesky instead"});
  AddCholeskyGrad(registry, {"CholeskyGrad", "HFD", "", nullptr});
  AddCholeskyGrad(registry, {"BatchCholeskyGrad", "FD", " | D13", "use CholeskyGrad instead"});
  AddDeterminant(registry, {"MatrixDeterminant", "HFD|CPX", "", nullptr});
  AddDeterminant(registry, {"BatchMatrixDeterminant", "CPX|FD", " | D13", "use MatrixDeterminant instead"});
  AddLogDeterminant(registry);
  AddLu(registry);
  AddInverse(registry, {"MatrixInverse", "HFD|CPX", "", nullptr});
  AddInverse(registry, {"BatchMatrixInverse", "FD|f16", " | D13", "use MatrixInverse instead"});
  AddSolve(registry, {"MatrixSolve", "HFD|CPX", "", nullptr});
  AddSolve(registry, {"BatchMatrixSolve", "FD|CPX", " | D13", "use MatrixSolve instead"});
  AddTriangularSolve(registry, {"MatrixTriangularSolve", "HFD|CPX", "", nullptr});
  AddTriangularSolve(registry, {"BatchMatrixTriangularSolve", "FD|CPX", " | D13", "use MatrixTriangularSolve instead"});
}

}  // namespace millrace
