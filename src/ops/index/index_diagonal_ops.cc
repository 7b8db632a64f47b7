// SPDX-License-Identifier: Apache-2.0
// Ops: diagonals and bands.
#include <algorithm>

#include "ops/index/index_ops.h"

namespace millrace {
namespace {

Status DiagShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 1));
  if (in.has_rank()) c.set_output(0, JoinDims({in.dims(), in.dims()}));
  return absl::OkStatus();
}

Status DiagPartShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() < 2 || in.rank() % 2 != 0) {
    return InvalidArgument("input must have an even rank of at least 2, got ", in.ToString());
  }
  const int half = in.rank() / 2;
  MR_ASSIGN_OR_RETURN(PartialShape out,
                      c.Merge(PartialShape::Of(DimRange(in, 0, half)), PartialShape::Of(DimRange(in, half, in.rank())),
                              "the two halves of the input's dimensions"));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status MatrixDiagShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 1));
  if (in.has_rank()) c.set_output(0, JoinDims({in.dims(), {in.dim(in.rank() - 1)}}));
  return absl::OkStatus();
}

int64_t MinDim(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a < 0 || b < 0 ? -1 : std::min(a, b);
}

// [..., m, n] -> [..., min(m, n)]
PartialShape DiagonalOf(const PartialShape& in) {
  if (!in.has_rank()) return PartialShape::Unknown();
  const int r = in.rank();
  return JoinDims({DimRange(in, 0, r - 2), {MinDim(in.dim(r - 2), in.dim(r - 1))}});
}

Status MatrixDiagPartShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 2));
  c.set_output(0, DiagonalOf(in));
  return absl::OkStatus();
}

Status MatrixSetDiagShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(PartialShape diagonal, c.WithRankAtLeast(1, 1));
  MR_RETURN_IF_ERROR(c.Merge(diagonal, DiagonalOf(in), "the shape of the diagonal").status());
  if (diagonal.has_rank()) {
    const PartialShape batch = JoinDims({DimRange(diagonal, 0, diagonal.rank() - 1), {-1, -1}});
    MR_ASSIGN_OR_RETURN(in, c.Merge(in, batch, "the batches of the matrices and of the diagonal"));
  }
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

Status MatrixBandPartShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 2));
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

Status DiagGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("DiagPart", {g.dy()}));
  return g.status();
}
Status DiagPartGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("Diag", {g.dy()}));
  return g.status();
}
Status MatrixDiagGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("MatrixDiagPart", {g.dy()}));
  return g.status();
}
Status MatrixDiagPartGrad(GradContext& g) {
  const PartialShape& s = g.x(0).shape();
  const bool square =
      s.has_rank() && s.rank() >= 2 && s.has_dim(s.rank() - 1) && s.dim(s.rank() - 1) == s.dim(s.rank() - 2);
  g.set_dx(0, square ? g.b().Op("MatrixDiag", {g.dy()}) : g.b().Op("MatrixSetDiag", {g.b().ZerosLike(g.x(0)), g.dy()}));
  return g.status();
}
Status MatrixSetDiagGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("MatrixSetDiag", {g.dy(), g.b().ZerosLike(g.x(1))}));
  g.set_dx(1, g.b().Op("MatrixDiagPart", {g.dy()}));
  return g.status();
}
Status MatrixBandPartGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("MatrixBandPart", {g.dy(), g.x(1), g.x(2)}));
  return g.status();
}

void AddOldNames(OpRegistry& r) {
  const char* no_gradient = "old names have none; the ops of today do";
  const auto doc = [](absl::string_view today) { return absl::StrCat("The old name of ", today, "."); };
  const auto reason = [](absl::string_view today) { return absl::StrCat("Use ", today); };
  r.Add("BatchMatrixDiag(diagonal:T) -> (output:T) | T:type | D14")
      .Doc(doc("MatrixDiag"))
      .Deprecated(reason("MatrixDiag"))
      .Shape(MatrixDiagShape)
      .NoGradient(no_gradient)
      .Example("f32[2,3]~");
  r.Add("BatchMatrixDiagPart(input:T) -> (diagonal:T) | T:type | D14")
      .Doc(doc("MatrixDiagPart"))
      .Deprecated(reason("MatrixDiagPart"))
      .Shape(MatrixDiagPartShape)
      .NoGradient(no_gradient)
      .Example("f32[2,4,3]~");
  r.Add("BatchMatrixSetDiag(input:T, diagonal:T) -> (output:T) | T:type | D14")
      .Doc(doc("MatrixSetDiag"))
      .Deprecated(reason("MatrixSetDiag"))
      .Shape(MatrixSetDiagShape)
      .NoGradient(no_gradient)
      .Example("f32[2,3,4]~, f32[2,3]~");
  r.Add("BatchMatrixBandPart(input:T, num_lower:i64, num_upper:i64) -> (band:T) | T:type | D14")
      .Doc(doc("MatrixBandPart"))
      .Deprecated(reason("MatrixBandPart"))
      .Shape(MatrixBandPartShape)
      .NoGradient(no_gradient)
      .Example("f32[2,4,5]~, i64[]{1}, i64[]{-1}");
}

}  // namespace

void RegisterDiagonalOps(OpRegistry& registry) {
  AddOldNames(registry);
  registry.Add("Diag(diagonal:T) -> (output:T) | T in FC|IDX")
      .Doc("A tensor of twice the rank, zero except on its diagonal: output[i..., i...] = diagonal[i...].")
      .Shape(DiagShape)
      .Gradient(DiagGrad)
      .Example("f32[3]~")
      .Example("f64[2,3]~");
  registry.Add("DiagPart(input:T) -> (diagonal:T) | T in FC|IDX")
      .Doc(
          "The diagonal of a tensor whose second half of dimensions repeats the first: diagonal[i...] = "
          "input[i..., i...].")
      .Shape(DiagPartShape)
      .Gradient(DiagPartGrad)
      .Example("f32[3,3]~")
      .Example("f32[2,3,2,3]~");
  registry.Add("MatrixDiag(diagonal:T) -> (output:T) | T:type")
      .Doc("Square matrices with the last dimension of the input on their diagonals.")
      .Shape(MatrixDiagShape)
      .Gradient(MatrixDiagGrad)
      .Example("f32[2,3]~");
  registry.Add("MatrixDiagPart(input:T) -> (diagonal:T) | T:type")
      .Doc("The main diagonals of the matrices in the last two dimensions.")
      .Shape(MatrixDiagPartShape)
      .Gradient(MatrixDiagPartGrad)
      .Example("f32[2,3,3]~")
      .Example("f32[2,4,3]~");
  registry.Add("MatrixSetDiag(input:T, diagonal:T) -> (output:T) | T:type")
      .Doc("The matrices of the input with their main diagonals replaced.")
      .Shape(MatrixSetDiagShape)
      .Gradient(MatrixSetDiagGrad)
      .Example("f32[2,3,4]~, f32[2,3]~");
  registry.Add("MatrixBandPart(input:T, num_lower:Tindex, num_upper:Tindex) -> (band:T) | T:type; Tindex in IDX=i64")
      .Doc(
          "The matrices of the input with everything set to zero that lies more than `num_lower` diagonals below or "
          "`num_upper` above the main one. A negative number keeps that whole triangle.")
      .Shape(MatrixBandPartShape)
      .Gradient(MatrixBandPartGrad)
      .Example("f32[2,4,5]~, !i64[]{1}, !i64[]{-1}")
      .Example("f64[3,3]~, !i32[]{0}, !i32[]{1}");
}

}  // namespace millrace
