// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of Hermitian matrices, singular values. The gradients are those of Giles (Collected matrix derivative
// results, 2008) and, for complex matrices, Wan and Zhang (2019).
#include "ops/linalg/linalg_ops.h"

namespace millrace {
namespace {

Status EigenShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape s, SquareMatrices(c, 0));
  MR_ASSIGN_OR_RETURN(const bool vectors, c.Attr<bool>("compute_v"));
  if (s.has_rank()) c.set_output(0, WithoutLast(s, 1));
  c.set_output(1, vectors ? s : PartialShape::Of({0}));
  return absl::OkStatus();
}

Status OldEigenShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape s, SquareMatrices(c, 0));
  if (!s.has_rank()) return absl::OkStatus();
  const int64_t n = s.dim(s.rank() - 1);
  c.set_output(0, WithLast(WithoutLast(s, 2), {n < 0 ? -1 : n + 1, n}));
  return absl::OkStatus();
}

Status SvdShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const bool vectors, c.Attr<bool>("compute_uv"));
  MR_ASSIGN_OR_RETURN(const bool full, c.Attr<bool>("full_matrices"));
  if (!vectors) {
    for (int i = 1; i < 3; ++i) c.set_output(i, PartialShape::Of({0}));
  }
  if (!s.has_rank()) return absl::OkStatus();
  const int64_t m = s.dim(s.rank() - 2), n = s.dim(s.rank() - 1);
  const int64_t least = m == 0 || n == 0 ? 0 : m < 0 || n < 0 ? -1 : std::min(m, n);
  const PartialShape batch = WithoutLast(s, 2);
  c.set_output(0, WithLast(batch, {least}));
  if (!vectors) return absl::OkStatus();
  c.set_output(1, WithLast(batch, {m, full ? m : least}));
  c.set_output(2, WithLast(batch, {n, full ? n : least}));
  return absl::OkStatus();
}

Output Last(const GraphBuilder& b, Output x, int32_t at) { return b.Op("ExpandDims", {x, b.Scalar<int32_t>(at)}); }
Output Diagonal(const GraphBuilder& b, Output x) { return b.Op("MatrixDiag", {x}); }

// 1 / x, but 0 at 0 (and finite beside it).
Output SafeReciprocal(const GraphBuilder& b, Output x) {
  return b.Div(x, b.Add(b.Op("Square", {x}), b.ScalarOf(BaseType(x.dtype()), 1e-20)));
}

// 1 / (x_j - x_i), with zeros on the diagonal.
Output Gaps(const GraphBuilder& b, Output x) {
  Output gaps = SafeReciprocal(b, b.Sub(Last(b, x, -2), Last(b, x, -1)));
  return b.Op("MatrixSetDiag", {gaps, b.ZerosLike(x)});
}

// Only the lower triangle is read: what belongs to the upper one is added to it.
Output OfLowerTriangle(const GraphBuilder& b, Output g) {
  Output half = b.ScalarOf(BaseType(g.dtype()), 0.5);
  Output lower = BandPart(b, b.Add(g, Adjoint(b, g)), -1, 0);
  return b.Op("MatrixSetDiag", {lower, b.Mul(half, b.Op("MatrixDiagPart", {lower}))});
}

// V (diag(ge) + gaps * V^H gv) V^H.
Status EigenGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  MR_ASSIGN_OR_RETURN(const bool vectors, c.Attr<bool>("compute_v"));
  Output middle = Diagonal(b, c.dy(0)), v;
  if (vectors) {
    v = c.y(1);
    middle = b.Add(middle, b.Mul(Gaps(b, c.y(0)), BatchMatMul(b, v, c.dy(1), true, false)));
  } else {
    Node* again = b.OpNode("SelfAdjointEigV2", {c.x(0)});
    if (!again) return c.status();
    v = again->output(1);
  }
  Output g = BatchMatMul(b, v, BatchMatMul(b, middle, v, false, true), false, false);
  c.set_dx(0, OfLowerTriangle(b, g));
  return c.status();
}

// x[..., begin:end].
Output Columns(const GraphBuilder& b, Output x, int64_t begin, int64_t end) {
  auto last = [&](int64_t v) { return b.Vector<int64_t>({0, v}); };
  return b.Op("StridedSlice", {x, last(begin), last(end), b.Vector<int64_t>({1, 1})}, {{"ellipsis_mask", 1}});
}

// What is known of one decomposition A = U S V^H with m <= n, and of the gradients of its parts.
struct Decomposition {
  Output s, u, v, gs, gu, gv;
  int64_t m = 0, n = 0;
  bool full = false;
};

// Through the n - m rows of V^H that have no singular value: U S^-1 gv1^H (1 - V V^H).
Output OffSpanTerm(const GraphBuilder& b, const Decomposition& d, Output v1, Output gv1) {
  Output rest = Adjoint(b, gv1);
  rest = b.Sub(rest, BatchMatMul(b, BatchMatMul(b, gv1, v1, true, false), v1, false, true));
  if (d.full) {
    Output v2 = Columns(b, d.v, d.m, d.n), gv2 = Columns(b, d.gv, d.m, d.n);
    rest = b.Sub(rest, BatchMatMul(b, BatchMatMul(b, v1, gv2, true, false), v2, false, true));
  }
  return BatchMatMul(b, BatchMatMul(b, d.u, Diagonal(b, SafeReciprocal(b, d.s)), false, false), rest, false, false);
}

Output SvdGradOf(const GraphBuilder& b, const Decomposition& d) {
  Output s = Diagonal(b, d.s), gaps = Gaps(b, b.Op("Square", {d.s}));
  Output v1 = d.v, gv1 = d.gv;
  if (d.full && d.m < d.n) {
    v1 = Columns(b, d.v, 0, d.m);
    gv1 = Columns(b, d.gv, 0, d.m);
  }
  Output v_gv = BatchMatMul(b, v1, gv1, true, false);
  Output of_u = b.Mul(gaps, BatchMatMul(b, d.u, d.gu, true, false)), of_v = b.Mul(gaps, v_gv);
  Output middle = Diagonal(b, d.gs);
  middle = b.Add(middle, BatchMatMul(b, b.Add(of_u, Adjoint(b, of_u)), s, false, false));
  middle = b.Add(middle, BatchMatMul(b, s, b.Add(of_v, Adjoint(b, of_v)), false, false));
  if (IsComplex(BaseType(d.s.dtype()))) {  // phases
    Output phases = Diagonal(b, b.Op("MatrixDiagPart", {v_gv}));
    phases = BatchMatMul(b, Diagonal(b, SafeReciprocal(b, d.s)), b.Sub(phases, Adjoint(b, phases)), false, false);
    middle = b.Add(middle, b.Mul(b.ScalarOf(BaseType(d.s.dtype()), 0.5), phases));
  }
  Output g = BatchMatMul(b, d.u, BatchMatMul(b, middle, v1, false, true), false, false);
  return d.m < d.n ? b.Add(g, OffSpanTerm(b, d, v1, gv1)) : g;
}

Status SvdGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  MR_ASSIGN_OR_RETURN(const bool vectors, c.Attr<bool>("compute_uv"));
  if (!vectors) {
    Node* again = b.OpNode("Svd", {c.x(0)});
    if (!again) return c.status();
    Output right = BatchMatMul(b, Diagonal(b, c.dy(0)), again->output(2), false, true);
    c.set_dx(0, BatchMatMul(b, again->output(1), right, false, false));
    return c.status();
  }
  const PartialShape& shape = c.x(0).shape();
  const int64_t m = shape.has_rank() ? shape.dim(shape.rank() - 2) : -1;
  const int64_t n = shape.has_rank() ? shape.dim(shape.rank() - 1) : -1;
  if (m < 0 || n < 0) return Unimplemented("the gradient of Svd needs a matrix of known size, got ", shape.ToString());
  Decomposition d{c.y(0), c.y(1), c.y(2), c.dy(0), c.dy(1), c.dy(2), m, n};
  MR_ASSIGN_OR_RETURN(d.full, c.Attr<bool>("full_matrices"));
  if (d.full && (m > n + 1 || n > m + 1)) {
    return Unimplemented("no gradient of Svd with full_matrices of a ", m, " x ", n, " matrix");
  }
  const bool tall = m > n;  // A^H = V S U^H
  if (tall) {
    std::swap(d.u, d.v);
    std::swap(d.gu, d.gv);
    std::swap(d.m, d.n);
  }
  Output g = SvdGradOf(b, d);
  c.set_dx(0, tall ? Adjoint(b, g) : g);
  return c.status();
}

void AddEigen(OpRegistry& registry, const char* name, const char* types, const char* deprecated) {
  auto d = registry.Add(
      absl::StrCat(name, "(input:T) -> (e:T, v:T) | compute_v:bool=true; T in ", types, deprecated ? " | D13" : ""));
  if (deprecated) d.Deprecated(deprecated);
  d.Doc(
       "Eigenvalues e, ascending, and eigenvectors, the columns of v, of each Hermitian matrix, of which only the "
       "lower "
       "triangle is read. Without compute_v, v is empty.")
      .Shape(EigenShape)
      .Gradient(EigenGrad)
      .Example("f32[2,2]{4 1 1 3} | compute_v=false")
      .Example("f64[2,3,3]{4 1 2 1 3 0.5 2 0.5 7 1 0.5 2 0.5 5 1 2 1 -3}");
}

void AddOldEigen(OpRegistry& registry, const char* name, const char* types) {
  registry.Add(absl::StrCat(name, "(input:T) -> (output:T) | T in ", types, " | D11"))
      .Deprecated("use SelfAdjointEigV2 instead")
      .Doc("SelfAdjointEigV2 in one tensor: eigenvalues in the first row of each matrix, eigenvectors below.")
      .Shape(OldEigenShape)
      .NoGradient("use SelfAdjointEigV2 instead")
      .Example("f32[2,2]{4 1 1 3}");
}

void AddSvd(OpRegistry& registry, const char* name, const char* types, const char* deprecated) {
  auto d = registry.Add(absl::StrCat(
      name,
      "(input:T) -> (s:T, u:T, v:T) | compute_uv:bool=true; full_matrices:bool=false; "
      "T in ",
      types, deprecated ? " | D13" : ""));
  if (deprecated) d.Deprecated(deprecated);
  d.Doc(
       "Singular values s, descending, and singular vectors, the columns of u and v, of each matrix: input = u diag(s) "
       "v^H. With full_matrices u and v are square; without compute_uv they are empty. NaN for a matrix that is not "
       "finite.")
      .Shape(SvdShape)
      .Gradient(SvdGrad)
      .Example("f32[2,3]{4 1 0 1 3 2} | compute_uv=false")
      .Example("f64[2,3,2]{4 1 2 1 3 0.5 2 0.5 -7 1 0.5 2}")
      .Example("f64[2,3]{4 1 0 1 3 2} | full_matrices=true");
}

}  // namespace

void RegisterSpectralOps(OpRegistry& registry) {
  AddEigen(registry, "SelfAdjointEigV2", "HFD|CPX", nullptr);
  AddEigen(registry, "BatchSelfAdjointEigV2", "FD", "use SelfAdjointEigV2 instead");
  AddOldEigen(registry, "SelfAdjointEig", "HFD");
  AddOldEigen(registry, "BatchSelfAdjointEig", "FD");
  AddSvd(registry, "Svd", "HFD|CPX", nullptr);
  AddSvd(registry, "BatchSvd", "CPX|FD", "use Svd instead");
}

}  // namespace millrace
