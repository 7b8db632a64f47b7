// SPDX-License-Identifier: Apache-2.0
// Ops: tensors made larger by a border, by repetition, or from one value.
#include "base/checked.h"
#include "ops/array/array_ops.h"

namespace millrace {
namespace {

// The rank that input 0 has according to its own shape and to an [n, 2] matrix of paddings; -1 unknown.
StatusOr<int> PaddedRank(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape paddings, c.WithRank(1, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(paddings.dim(1), 2, "second dimension of paddings").status());
  const int64_t rank = paddings.dim(0) >= 0 ? paddings.dim(0) : int64_t{c.input(0).rank()};
  if (rank > kMaxRank) return InvalidArgument("rank ", rank, " exceeds the limit of ", kMaxRank);
  if (rank >= 0) MR_RETURN_IF_ERROR(c.WithRank(0, static_cast<int>(rank)).status());
  return static_cast<int>(rank);
}

// sign +1: grown by the paddings, -1: shrunk by them.
Status PaddedShape(ShapeContext& c, int sign) {
  MR_ASSIGN_OR_RETURN(int rank, PaddedRank(c));
  if (rank < 0) return absl::OkStatus();
  std::vector<int64_t> dims(static_cast<size_t>(rank), -1);
  MR_ASSIGN_OR_RETURN(auto paddings, c.ConstantInts(1));
  for (size_t i = 0; paddings && i < dims.size(); ++i) {
    const int64_t before = (*paddings)[2 * i], after = (*paddings)[2 * i + 1];
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative, but dimension ", i, " has ", before, " and ", after);
    }
    const int64_t dim = c.input(0).has_rank() ? c.input(0).dim(static_cast<int>(i)) : -1;
    if (dim < 0) continue;
    int64_t total;
    if (!CheckedAdd(before, after, &total) || !CheckedAdd(dim, sign * total, &dims[i]) || dims[i] < 0) {
      return InvalidArgument("Paddings ", before, " and ", after, " do not fit dimension ", i, " of size ", dim);
    }
  }
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}
Status PadShape(ShapeContext& c) { return PaddedShape(c, 1); }
Status PadV2Shape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  return PaddedShape(c, 1);
}
Status MirrorPadGradShape(ShapeContext& c) { return PaddedShape(c, -1); }

// Input 0 times (or, for the gradient, divided by) input 1, dimension by dimension.
Status TiledShape(ShapeContext& c, bool divide) {
  MR_ASSIGN_OR_RETURN(PartialShape multiples_shape, c.WithRank(1, 1));
  MR_ASSIGN_OR_RETURN(int64_t rank, c.MergeDim(multiples_shape.dim(0), c.input(0).rank(), "rank and multiples"));
  if (rank < 0) return absl::OkStatus();
  if (rank > kMaxRank) return InvalidArgument("rank ", rank, " exceeds the limit of ", kMaxRank);
  MR_ASSIGN_OR_RETURN(auto multiples, c.ConstantInts(1));
  if (!multiples) {  // some of them may be known
    MR_ASSIGN_OR_RETURN(const PartialShape partly, c.InputAsShape(1));
    if (partly.has_rank()) multiples = partly.dims();
  }
  std::vector<int64_t> dims(static_cast<size_t>(rank), -1);
  for (size_t i = 0; multiples && c.input(0).has_rank() && i < dims.size(); ++i) {
    const int64_t m = (*multiples)[i], dim = c.input(0).dim(static_cast<int>(i));
    if (m < -1) return InvalidArgument("Expected multiples[", i, "] >= 0, but got ", m);
    if (dim < 0 || m < 0) continue;
    if (divide) {
      if (m == 0 || dim % m != 0) return InvalidArgument("multiples[", i, "] = ", m, " does not divide ", dim);
      dims[i] = dim / m;
    } else if (!CheckedMul(m, dim, &dims[i])) {
      return InvalidArgument("dimension ", i, " of size ", dim, " times ", m, " overflows");
    }
  }
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}
Status TileShape(ShapeContext& c) { return TiledShape(c, false); }
Status TileGradShape(ShapeContext& c) { return TiledShape(c, true); }

Status FillShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const auto dims, c.ConstantInts(0));
  for (size_t i = 0; dims && i < dims->size(); ++i) {
    if ((*dims)[i] < 0) return InvalidArgument("Fill dimensions must be >= 0, but dimension ", i, " is ", (*dims)[i]);
  }
  MR_ASSIGN_OR_RETURN(PartialShape out, c.InputAsShape(0));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status PadGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output paddings = c.x(1);
  const DType index = BaseType(paddings.dtype());
  Output begin;
  if (auto known = KnownInts(b, paddings)) {
    std::vector<int64_t> before;
    for (size_t i = 0; i < known->size(); i += 2) before.push_back((*known)[i]);
    begin = IntVector(b, index, before);
  } else {
    const Output first_column =
        b.Op("Slice", {paddings, IntVector(b, DType::kInt32, {0, 0}), IntVector(b, DType::kInt32, {-1, 1})});
    begin = b.Reshape(first_column, IntVector(b, DType::kInt32, {-1}));
  }
  c.set_dx(0, b.Op("Slice", {c.dy(), begin, ShapeOf(b, c.x(0), index)}));
  return c.status();
}

Status MirrorPadGradOf(GradContext& c, const char* op) {
  MR_ASSIGN_OR_RETURN(std::string mode, c.Attr<std::string>("mode"));
  c.set_dx(0, c.b().Op(op, {c.dy(), c.x(1)}, {{"mode", AttrValue(mode)}}));
  return c.status();
}
Status MirrorPadGradient(GradContext& c) { return MirrorPadGradOf(c, "MirrorPadGrad"); }
Status MirrorPadGradGradient(GradContext& c) { return MirrorPadGradOf(c, "MirrorPad"); }

// Seen as [m0, d0, m1, d1, ...] the gradient is summed over the repetitions.
Status TileGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = c.x(0), multiples = c.x(1);
  const DType index = BaseType(multiples.dtype());
  const auto known = KnownInts(b, multiples);
  Output split, axes;
  if (known && x.shape().IsFullyDefined() && static_cast<int>(known->size()) == x.shape().rank()) {
    std::vector<int64_t> dims;
    for (int i = 0; i < x.shape().rank(); ++i) {
      dims.push_back((*known)[static_cast<size_t>(i)]);
      dims.push_back(x.shape().dim(i));
    }
    split = IntVector(b, index, dims);
  } else {
    split = b.Reshape(b.Op("Pack", {std::vector<Output>{multiples, ShapeOf(b, x, index)}}, {{"axis", 1}}),
                      IntVector(b, DType::kInt32, {-1}));
  }
  if (x.shape().has_rank()) {
    std::vector<int64_t> even;
    for (int i = 0; i < x.shape().rank(); ++i) even.push_back(2 * i);
    axes = IntVector(b, DType::kInt32, even);
  } else {
    axes = b.Op("Range", {b.Scalar<int32_t>(0), b.Op("Size", {split}), b.Scalar<int32_t>(2)});
  }
  c.set_dx(0, b.Sum(b.Reshape(c.dy(), split), axes));
  return c.status();
}

Status FillGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output g = c.dy();
  Output axes;
  if (g && g.shape().has_rank()) {
    std::vector<int64_t> all;
    for (int i = 0; i < g.shape().rank(); ++i) all.push_back(i);
    axes = IntVector(b, DType::kInt32, all);
  } else {
    axes = b.Op("Range", {b.Scalar<int32_t>(0), b.Op("Rank", {g}), b.Scalar<int32_t>(1)});
  }
  c.set_dx(1, b.Sum(g, axes));
  return c.status();
}

}  // namespace

void RegisterArrayPadOps(OpRegistry& r) {
  r.Add("Pad(input:T, paddings:Tpaddings) -> (output:T) | T:type; Tpaddings in IDX=i32")
      .Doc("Surrounds a tensor with zeros: paddings[d] gives how many before and after it along dimension d.")
      .Shape(PadShape)
      .Gradient(PadGrad)
      .Example("f32[2,3]~, i32[2,2]{1 0 0 2}");
  r.Add("PadV2(input:T, paddings:Tpaddings, constant_values:T) -> (output:T) | T:type; Tpaddings in IDX=i32")
      .Doc("Surrounds a tensor with the value `constant_values`; see Pad.")
      .Shape(PadV2Shape)
      .Gradient(PadGrad)
      .Example("f32[2,3]~, i32[2,2]{1 0 0 2}, !f32[]{7}");
  r.Add(
       "MirrorPad(input:T, paddings:Tpaddings) -> (output:T) | T:type; Tpaddings in IDX=i32; "
       "mode in {REFLECT,SYMMETRIC}")
      .Doc("Surrounds a tensor with its mirror image. SYMMETRIC repeats the border element, REFLECT does not.")
      .Shape(PadShape)
      .Gradient(MirrorPadGradient)
      .Example("f32[2,3]~, i32[2,2]{1 0 2 1} | mode=\"REFLECT\"")
      .Example("f32[2,3]~, i32[2,2]{1 0 2 1} | mode=\"SYMMETRIC\"");
  r.Add(
       "MirrorPadGrad(input:T, paddings:Tpaddings) -> (output:T) | T:type; Tpaddings in IDX=i32; "
       "mode in {REFLECT,SYMMETRIC}")
      .Doc("Folds the borders that MirrorPad added back onto the elements that they mirror, and adds.")
      .Shape(MirrorPadGradShape)
      .Gradient(MirrorPadGradGradient)
      .Example("f32[4,5]~, i32[2,2]{1 0 1 1} | mode=\"REFLECT\"");
  r.Add("Tile(input:T, multiples:Tmultiples) -> (output:T) | T:type; Tmultiples in IDX=i32")
      .Doc("Repeats a tensor multiples[d] times along each dimension d.")
      .Shape(TileShape)
      .Gradient(TileGrad)
      .Example("f32[2,3]~, i32[2]{2 3}");
  r.Add("TileGrad(input:T, multiples:i32) -> (output:T) | T:type | D3")
      .Doc("Sums a tiled tensor over its repetitions.")
      .Deprecated("Tile's gradient is made of Reshape and Sum")
      .Shape(TileGradShape)
      .NoGradient("TensorFlow defines none")
      .NoExample("new graphs cannot hold it");
  r.Add("Fill(dims:index_type, value:T) -> (output:T) | T:type; index_type in IDX=i32")
      .Doc("A tensor of shape `dims` in which every element is `value`.")
      .Shape(FillShape)
      .Gradient(FillGrad)
      .Example("i32[2]{2 3}, f32[]{1.5}");
}

}  // namespace millrace
