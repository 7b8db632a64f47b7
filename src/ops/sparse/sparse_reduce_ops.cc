// SPDX-License-Identifier: Apache-2.0
// Ops: reductions of sparse tensors.
#include "graph/gradient.h"
#include "ops/sparse/sparse_input.h"

namespace millrace {
namespace {

Status DenseShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, 0));
  MR_ASSIGN_OR_RETURN(const bool keep, c.Attr<bool>("keep_dims"));
  MR_RETURN_IF_ERROR(c.WithRankAtMost(3, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(2));
  MR_ASSIGN_OR_RETURN(const auto axes, c.ConstantInts(3));
  if (keep && size.second >= 0 && size.second <= kMaxRank && !axes) {
    c.set_output(0, PartialShape::UnknownOfRank(static_cast<int>(size.second)));
  }
  if (!shape.has_rank() || !axes) return absl::OkStatus();
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), false);
  for (const int64_t axis : *axes) {
    const StatusOr<int> d = c.Axis(axis, shape.rank());
    if (!d.ok()) return absl::OkStatus();  // the step refuses it, as TensorFlow's does
    reduced[static_cast<size_t>(*d)] = true;
  }
  std::vector<int64_t> dims;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!reduced[static_cast<size_t>(d)]) {
      dims.push_back(shape.dim(d));
    } else if (keep) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status SparseShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, 0));
  MR_ASSIGN_OR_RETURN(const bool keep, c.Attr<bool>("keep_dims"));
  MR_RETURN_IF_ERROR(c.WithRankAtMost(3, 1).status());
  SetSparseOutput(c, 0, -1, keep ? size.second : -1);
  return absl::OkStatus();
}

Status SumGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  // The shape with 1 where it is reduced, by stitching ones over it.
  const Output axes = b.Reshape(g.x(3), b.Vector<int32_t>({-1}));
  const Output rank = b.Op("Size", {g.x(2)});
  const Output positive = b.Op("FloorMod", {b.Add(axes, rank), rank});
  const Output all = b.Op("Range", {b.Scalar<int32_t>(0), rank, b.Scalar<int32_t>(1)});
  const Output kept =
      b.Op("DynamicStitch", {std::vector<Output>{all, positive},
                             std::vector<Output>{g.x(2), b.Op("Fill", {b.Shape(axes), b.Scalar<int64_t>(1)})}});
  const Output scale = b.Op("FloorDiv", {g.x(2), b.Op("Maximum", {kept, b.Scalar<int64_t>(1)})});
  const Output at = b.Op("FloorDiv", {g.x(0), b.Op("Maximum", {scale, b.Scalar<int64_t>(1)})});
  g.set_dx(1, b.Op("GatherNd", {b.Reshape(g.dy(), kept), at}));
  return g.status();
}

constexpr char kInputs[] = "(input_indices:i64, input_values:T, input_shape:i64, reduction_axes:i32) -> ";
constexpr char kExample[] = "i64[4,3]{0 0 1 0 1 0 1 0 1 1 1 1}, f32[4]~, i64[3]{2 2 2}, i32[1]{1}";

OpDeclaration DeclareDense(OpRegistry& r, absl::string_view name, absl::string_view types, absl::string_view what) {
  return r.Add(absl::StrCat(name, kInputs, "(output:T) | keep_dims:bool=false; T in ", types))
      .Doc(absl::StrCat(
          "The ", what, " of a sparse tensor's elements along axes, as a dense tensor: 0 where there are no elements."))
      .Shape(DenseShape)
      .Example(kExample)
      .Example(absl::StrCat(kExample, " | keep_dims=true"));
}

void DeclareSparse(OpRegistry& r, absl::string_view name, absl::string_view types, absl::string_view what) {
  r.Add(absl::StrCat(name, kInputs,
                     "(output_indices:i64, output_values:T, output_shape:i64) | keep_dims:bool=false; T in ", types))
      .Doc(absl::StrCat("The ", what,
                        " of a sparse tensor's elements along axes, as a "
                        "sparse tensor."))
      .Shape(SparseShape)
      .NotDifferentiable("as in TensorFlow")
      .Example(kExample);
}

}  // namespace

void RegisterSparseReduceOps(OpRegistry& r) {
  DeclareDense(r, "SparseReduceSum", "NUM", "sum").Gradient(SumGrad);
  DeclareDense(r, "SparseReduceMax", "REAL", "maximum").NoGradient("TensorFlow has none either");
  DeclareSparse(r, "SparseReduceSumSparse", "NUM", "sum");
  DeclareSparse(r, "SparseReduceMaxSparse", "REAL", "maximum");
}

}  // namespace millrace
