// SPDX-License-Identifier: Apache-2.0
// Ops: bands of diagonals.
#include <algorithm>

#include "ops/index/index_ops.h"

namespace millrace {
namespace {

struct Band {
  int64_t lower, upper;
};

// Input i as a band, where it is known.
StatusOr<std::optional<Band>> BandOf(ShapeContext& c, int i) {
  MR_RETURN_IF_ERROR(c.WithRankAtMost(i, 1).status());
  MR_ASSIGN_OR_RETURN(const auto k, c.ConstantInts(i));
  if (!k) return std::optional<Band>();
  if (k->empty() || k->size() > 2) return InvalidArgument("k must hold one or two numbers, got ", k->size());
  if (k->front() > k->back()) {
    return InvalidArgument("lower_diag_index must not be larger than upper_diag_index: ", k->front(), " > ", k->back());
  }
  return std::optional<Band>({k->front(), k->back()});
}

StatusOr<PartialShape> PartOf(const PartialShape& in, const std::optional<Band>& band) {
  if (!in.has_rank() || !band) return PartialShape::Unknown();
  const int r = in.rank();
  const int64_t rows = in.dim(r - 2), cols = in.dim(r - 1);
  for (const int64_t d : {band->lower, band->upper}) {
    if (d == 0 || ((rows < 0 || -rows < d) && (cols < 0 || d < cols))) continue;
    return InvalidArgument("diagonal ", d, " is not in matrices of shape ", in.ToString());
  }
  std::vector<int64_t> dims = DimRange(in, 0, r - 2);
  if (band->lower < band->upper) dims.push_back(band->upper - band->lower + 1);
  const int64_t below = std::min<int64_t>(band->upper, 0), above = std::max<int64_t>(band->lower, 0);
  dims.push_back(rows < 0 || cols < 0 ? -1 : std::min(rows + below, cols - above));
  return PartialShape::Of(std::move(dims));
}

Status PartShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const auto band, BandOf(c, 1));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  MR_ASSIGN_OR_RETURN(PartialShape out, PartOf(in, band));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status SetShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape diagonal, c.WithRankAtLeast(1, 1));
  MR_ASSIGN_OR_RETURN(const auto band, BandOf(c, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape part, PartOf(in, band));
  MR_RETURN_IF_ERROR(c.Merge(diagonal, part, "the shape of the diagonal").status());
  if (diagonal.has_rank() && band) {
    const int kept = diagonal.rank() - (band->lower < band->upper ? 2 : 1);
    if (kept < 0) return InvalidArgument("several diagonals need a rank of 2, got ", diagonal.ToString());
    const PartialShape batch = JoinDims({DimRange(diagonal, 0, kept), {-1, -1}});
    MR_ASSIGN_OR_RETURN(in, c.Merge(in, batch, "the batches of the matrices and of the diagonal"));
  }
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

Status DiagShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, 1));
  MR_ASSIGN_OR_RETURN(const auto band, BandOf(c, 1));
  for (int i = 2; i < 5; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  MR_ASSIGN_OR_RETURN(const auto given_rows, c.ConstantInt(2));
  MR_ASSIGN_OR_RETURN(const auto given_cols, c.ConstantInt(3));
  if (!in.has_rank() || !band) return absl::OkStatus();
  const bool several = band->lower < band->upper;
  if (several && in.rank() < 2) return InvalidArgument("several diagonals need a rank of 2, got ", in.ToString());
  std::vector<int64_t> dims = DimRange(in, 0, in.rank() - (several ? 2 : 1));
  const int64_t longest = in.dim(in.rank() - 1);
  const int64_t least_rows = longest < 0 ? -1 : longest - std::min<int64_t>(band->upper, 0);
  const int64_t least_cols = longest < 0 ? -1 : longest + std::max<int64_t>(band->lower, 0);
  int64_t rows = given_rows.value_or(-1), cols = given_cols.value_or(-1);
  const bool all_known = given_rows && given_cols;
  if (all_known && rows == -1 && cols == -1) {
    rows = cols = longest < 0 ? -1 : std::max(least_rows, least_cols);
  } else {
    if (given_rows && rows == -1 && given_cols) rows = least_rows;
    if (given_cols && cols == -1 && given_rows) cols = least_cols;
  }
  if (rows < -1 || cols < -1 ||
      (least_rows >= 0 && ((rows >= 0 && rows < least_rows) || (cols >= 0 && cols < least_cols)))) {
    return InvalidArgument("a matrix of ", rows, " x ", cols, " does not hold diagonals of length ", longest);
  }
  dims.insert(dims.end(), {rows, cols});
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

// The attribute of V3, for the ops of a gradient.
StatusOr<AttrMap> AlignOf(GradContext& g) {
  AttrMap attrs;
  const auto align = g.node()->attrs().find("align");
  if (align != g.node()->attrs().end()) attrs["align"] = align->second;
  return attrs;
}
absl::string_view VersionOf(const GradContext& g) {
  return absl::string_view(g.node()->op_name()).substr(g.node()->op_name().size() - 2);
}
Output Make(GradContext& g, absl::string_view op, std::vector<Arg> inputs) {
  StatusOr<AttrMap> attrs = AlignOf(g);
  Node* n = attrs.ok() ? g.b().OpNode(absl::StrCat(op, VersionOf(g)), std::move(inputs), *std::move(attrs)) : nullptr;
  return n == nullptr ? Output() : n->output(0);
}
Output Zero(GradContext& g) { return g.b().ScalarOf(BaseType(g.dy().dtype()), 0); }

Status DiagGrad(GradContext& g) {
  g.set_dx(0, Make(g, "MatrixDiagPart", {g.dy(), g.x(1), Zero(g)}));
  return g.status();
}
Status PartGrad(GradContext& g) {
  g.set_dx(0, Make(g, "MatrixSetDiag", {g.b().ZerosLike(g.x(0)), g.dy(), g.x(1)}));
  return g.status();
}
Status SetGrad(GradContext& g) {
  g.set_dx(0, Make(g, "MatrixSetDiag", {g.dy(), g.b().ZerosLike(g.x(1)), g.x(2)}));
  g.set_dx(1, Make(g, "MatrixDiagPart", {g.dy(), g.x(2), Zero(g)}));
  return g.status();
}

constexpr char kBand[] =
    " `k` is the number of a diagonal (0 is the main one, positive ones are above it), or the lowest and the highest "
    "of a band. A band is kept as a matrix with a row for each diagonal, the highest first, as long as the longest; ";

void AddBandOps(OpRegistry& r, absl::string_view version, absl::string_view attrs, absl::string_view align) {
  r.Add(absl::StrCat("MatrixDiag", version,
                     "(diagonal:T, k:i32, num_rows:i32, num_cols:i32, padding_value:T) -> (output:T) | T:type", attrs))
      .Doc(absl::StrCat("Matrices with the given diagonals, and the padding value elsewhere.", kBand, align,
                        " Sizes of -1 are the least that hold the diagonals, in a square where both are."))
      .Shape(DiagShape)
      .Gradient(DiagGrad)
      .Example("f32[2,3]~, i32[]{1}, i32[]{-1}, i32[]{-1}, !f32[]{0}")
      .Example("f32[2,2,3]~, i32[2]{0 1}, i32[]{3}, i32[]{4}, !f32[]{9}");
  r.Add(absl::StrCat("MatrixDiagPart", version, "(input:T, k:i32, padding_value:T) -> (diagonal:T) | T:type", attrs))
      .Doc(absl::StrCat("Diagonals of matrices, filled up with the padding value.", kBand, align))
      .Shape(PartShape)
      .Gradient(PartGrad)
      .Example("f32[2,3,4]~, i32[2]{-1 2}, !f32[]{9}")
      .Example("f32[3,3]~, i32[]{-1}, !f32[]{0}");
  r.Add(absl::StrCat("MatrixSetDiag", version, "(input:T, diagonal:T, k:i32) -> (output:T) | T:type", attrs))
      .Doc(absl::StrCat("Matrices with some of their diagonals replaced.", kBand, align))
      .Shape(SetShape)
      .Gradient(SetGrad)
      .Example("f32[2,3,4]~, f32[2,2,3]~, i32[2]{-1 0}")
      .Example("f32[3,3]~, f32[2]~, i32[]{1}");
}

}  // namespace

void RegisterBandOps(OpRegistry& r) {
  AddBandOps(r, "V2", "", "shorter ones stand at the left.");
  AddBandOps(r, "V3", "; align in {LEFT_RIGHT,RIGHT_LEFT,LEFT_LEFT,RIGHT_RIGHT}=\"RIGHT_LEFT\"",
             "`align` says where shorter ones above and below the main diagonal stand.");
}

}  // namespace millrace
