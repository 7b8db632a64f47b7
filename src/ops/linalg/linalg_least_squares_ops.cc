// SPDX-License-Identifier: Apache-2.0
// QR factors and least squares.
#include "graph/control_flow.h"
#include "ops/linalg/linalg_ops.h"

namespace millrace {
namespace {

Status QrShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const bool full, c.Attr<bool>("full_matrices"));
  if (!s.has_rank()) return absl::OkStatus();
  const int64_t m = s.dim(s.rank() - 2), n = s.dim(s.rank() - 1);
  const int64_t columns = full || m == 0 ? m : n == 0 ? 0 : m < 0 || n < 0 ? -1 : std::min(m, n);
  c.set_output(0, WithLast(WithoutLast(s, 2), {m, columns}));
  c.set_output(1, WithLast(WithoutLast(s, 2), {columns, n}));
  return absl::OkStatus();
}

// x r^-H.
Output OverAdjoint(const GraphBuilder& b, Output x, Output r) {
  return Adjoint(b, TriangularSolve(b, r, Adjoint(b, x), false, false));
}

// For q with no fewer rows than columns and a square r (Walter and Lehmann 2018, On the algorithmic differentiation of
// QR factorisation).
Output QrGradOf(const GraphBuilder& b, Output q, Output r, Output gq, Output gr) {
  Output of_q = BatchMatMul(b, q, gq, true, false), of_r = BatchMatMul(b, r, gr, false, true);
  Output skew = b.Add(b.Sub(of_q, Adjoint(b, of_q)), b.Sub(of_r, Adjoint(b, of_r)));
  Output within = b.Add(gr, OverAdjoint(b, BandPart(b, skew, -1, 0), r));
  Output beside = OverAdjoint(b, b.Sub(gq, BatchMatMul(b, q, of_q, false, false)), r);
  Output g = b.Add(BatchMatMul(b, q, within, false, false), beside);
  if (!IsComplex(BaseType(q.dtype()))) return g;
  // R has a real diagonal.
  Output diagonal = b.Op("MatrixDiagPart", {b.Sub(of_r, Adjoint(b, of_q))});
  Output imaginary = b.Sub(
      diagonal, b.Cast(b.Op("Real", {diagonal},
                            {{"Tout", BaseType(q.dtype()) == DType::kComplex64 ? DType::kFloat : DType::kDouble}}),
                       BaseType(q.dtype())));
  Output turned = BatchMatMul(b, q, b.Op("MatrixDiag", {b.Conj(imaginary)}), false, false);
  return b.Add(g, OverAdjoint(b, turned, r));
}

Output Columns(const GraphBuilder& b, Output x, int64_t begin, int64_t end) {
  auto last = [&](int64_t v) { return b.Vector<int64_t>({0, v}); };
  return b.Op("StridedSlice", {x, last(begin), last(end), b.Vector<int64_t>({1, 1})}, {{"ellipsis_mask", 1}});
}

Status QrGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const PartialShape& shape = c.x(0).shape();
  const int64_t m = shape.has_rank() ? shape.dim(shape.rank() - 2) : -1;
  const int64_t n = shape.has_rank() ? shape.dim(shape.rank() - 1) : -1;
  if (m < 0 || n < 0) return Unimplemented("the gradient of Qr needs a matrix of known size, got ", shape.ToString());
  MR_ASSIGN_OR_RETURN(const bool full, c.Attr<bool>("full_matrices"));
  if (full && m > n) return Unimplemented("no gradient of Qr with full_matrices of a ", m, " x ", n, " matrix");
  if (m >= n) {
    c.set_dx(0, QrGradOf(b, c.y(0), c.y(1), c.dy(0), c.dy(1)));
    return c.status();
  }
  // [x y] = q [u v]: y = q v is a product, the rest is square.
  Output y = Columns(b, c.x(0), m, n), u = Columns(b, c.y(1), 0, m), gr = c.dy(1);
  Output gu = Columns(b, gr, 0, m), gv = Columns(b, gr, m, n);
  Output gq = b.Add(c.dy(0), BatchMatMul(b, y, gv, false, true));
  Output gx = QrGradOf(b, c.y(0), u, gq, gu), gy = BatchMatMul(b, c.y(0), gv, false, false);
  c.set_dx(0, b.Op("ConcatV2", {std::vector<Output>{gx, gy}, b.Scalar<int32_t>(shape.rank() - 1)}));
  return c.status();
}

Status SolveLsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape a, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape y, c.WithRankAtLeast(1, 2));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  if (!a.has_rank() || !y.has_rank()) return absl::OkStatus();
  MR_RETURN_IF_ERROR(
      c.MergeDim(a.dim(a.rank() - 2), y.dim(y.rank() - 2), "rows of matrix and right-hand side").status());
  MR_ASSIGN_OR_RETURN(const PartialShape batch, c.Merge(WithoutLast(a, 2), WithoutLast(y, 2), "batch dimensions"));
  c.set_output(0, WithLast(batch, {a.dim(a.rank() - 1), y.dim(y.rank() - 1)}));
  return absl::OkStatus();
}

// The lower Cholesky factor of x x^H + l2, or of x^H x + l2.
Output GramFactor(const GraphBuilder& b, Output x, Output l2, bool wide) {
  Output gram = BatchMatMul(b, x, x, !wide, wide), diagonal = b.Op("MatrixDiagPart", {gram});
  Output weight = b.Cast(l2, BaseType(x.dtype()));
  return b.Op("Cholesky", {b.Op("MatrixSetDiag", {gram, b.Add(diagonal, weight)})});
}

Output CholeskySolve(const GraphBuilder& b, Output factor, Output rhs) {
  return TriangularSolve(b, factor, TriangularSolve(b, factor, rhs, true, false), true, true);
}

// X = (A^H A + l2)^-1 A^H B.
std::vector<Output> TallGrad(const GraphBuilder& b, Output a, Output rhs, Output l2, Output x, Output g) {
  Output z = CholeskySolve(b, GramFactor(b, a, l2, false), g);
  Output xz = BatchMatMul(b, x, z, false, true), both = b.Add(xz, Adjoint(b, xz));
  Output ga = b.Sub(BatchMatMul(b, rhs, z, false, true), BatchMatMul(b, a, both, false, false));
  return {ga, BatchMatMul(b, a, z, false, false)};
}

// X = A^H (A A^H + l2)^-1 B.
std::vector<Output> WideGrad(const GraphBuilder& b, Output a, Output rhs, Output l2, Output g) {
  Output factor = GramFactor(b, a, l2, true);
  Output gb = CholeskySolve(b, factor, BatchMatMul(b, a, g, false, false)), y = CholeskySolve(b, factor, rhs);
  Output beside = b.Sub(g, BatchMatMul(b, a, gb, true, false));
  Output ga = b.Sub(
      BatchMatMul(b, y, beside, false, true), BatchMatMul(b, gb, BatchMatMul(b, y, a, true, false), false, false));
  return {ga, gb};
}

Output LastDimension(const GraphBuilder& b, Output x, int32_t which) {
  Output begin = b.Vector<int32_t>({which}), step = b.Vector<int32_t>({1});
  Output end = b.Vector<int32_t>({which + 1});
  return b.Op(
      "StridedSlice", {b.Shape(x), begin, end, step}, {{"end_mask", which == -1 ? 1 : 0}, {"shrink_axis_mask", 1}});
}

Status SolveLsGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  MR_ASSIGN_OR_RETURN(const bool fast, c.Attr<bool>("fast"));
  if (!fast) return Unimplemented("no gradient of ", c.node()->op()->name, " with fast=false");
  Output a = c.x(0), rhs = c.x(1), l2 = c.x(2), x = c.y(), g = c.dy();
  const PartialShape& shape = a.shape();
  const int64_t m = shape.has_rank() ? shape.dim(shape.rank() - 2) : -1;
  const int64_t n = shape.has_rank() ? shape.dim(shape.rank() - 1) : -1;
  std::vector<Output> grads;
  if (m >= 0 && n >= 0) {
    grads = m >= n ? TallGrad(b, a, rhs, l2, x, g) : WideGrad(b, a, rhs, l2, g);
  } else {
    Output tall = b.Op("GreaterEqual", {LastDimension(b, a, -2), LastDimension(b, a, -1)});
    MR_ASSIGN_OR_RETURN(
        grads,
        Cond(
            b, tall,
            [&](const GraphBuilder& inner, const std::vector<Output>&) -> StatusOr<std::vector<Output>> {
              return TallGrad(inner, a, rhs, l2, x, g);
            },
            [&](const GraphBuilder& inner, const std::vector<Output>&) -> StatusOr<std::vector<Output>> {
              return WideGrad(inner, a, rhs, l2, g);
            }));
  }
  c.set_dx(0, grads[0]);
  c.set_dx(1, grads[1]);
  return c.status();
}

void AddSolveLs(OpRegistry& registry, const char* name, const char* types, const char* deprecated) {
  auto d = registry.Add(absl::StrCat(
      name, "(matrix:T, rhs:T, l2_regularizer:f64) -> (output:T) | fast:bool=true; T in ", types,
      deprecated ? " | D13" : ""));
  if (deprecated) d.Deprecated(deprecated);
  d.Doc(
       "X that minimises |matrix X - rhs|^2 + l2_regularizer |X|^2. With fast from the normal equations, an error "
       "where "
       "they are singular; else from the singular values, the shortest of the best, and without the regularizer.")
      .Shape(SolveLsShape)
      .Gradient(SolveLsGrad)
      .Example("f32[3,2]{4 1 2 3 0.5 1}, f32[3,2]~, !f64[]{0.5}")
      .Example("f64[2,3]{4 1 2 3 0.5 1}, f64[2,2]~, !f64[]{0}")
      .Example("!f64[3,2]{4 1 2 3 0.5 1}, !f64[3,1]~, !f64[]{0} | fast=false");
}

}  // namespace

void RegisterLeastSquaresOps(OpRegistry& registry) {
  registry.Add("Qr(input:T) -> (q:T, r:T) | full_matrices:bool=false; T in HFD|CPX")
      .Doc(
          "Each matrix as q r, q with orthonormal columns, r upper triangular with a real diagonal. With full_matrices "
          "q "
          "is square and r has the shape of the input.")
      .Shape(QrShape)
      .Gradient(QrGrad)
      .Example("f32[3,2]{4 1 2 3 0.5 1}")
      .Example("f64[2,2,3]{4 1 2 3 0.5 1 2 1 1 0.5 3 1}");
  AddSolveLs(registry, "MatrixSolveLs", "HFD|CPX", nullptr);
  AddSolveLs(registry, "BatchMatrixSolveLs", "FD", "use MatrixSolveLs instead");
}

}  // namespace millrace
