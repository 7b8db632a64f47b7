// SPDX-License-Identifier: Apache-2.0
// Ops: reductions over rows that share a segment id.
#include "ops/index/index_ops.h"

namespace millrace {
namespace {

Status SegmentShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape data, c.WithRankAtLeast(0, 1));
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  if (!data.has_rank()) return absl::OkStatus();
  c.set_output(0, JoinDims({{-1}, DimRange(data, 1, data.rank())}));  // as many ids as rows is a matter of the step
  return absl::OkStatus();
}

Status UnsortedSegmentShape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& ids = c.input(1);
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> count, c.ConstantInt(2));
  if (count && *count < 0) return InvalidArgument("Input num_segments == ", *count, " must not be negative.");
  if (!data.has_rank() || !ids.has_rank()) return absl::OkStatus();
  if (ids.rank() > data.rank()) {
    return InvalidArgument(
        "segment_ids of shape ", ids.ToString(), " do not lead the shape of data, ", data.ToString());
  }
  MR_RETURN_IF_ERROR(
      c.Merge(PartialShape::Of(DimRange(data, 0, ids.rank())), ids, "the shape of the segment ids").status());
  c.set_output(0, JoinDims({{count ? *count : -1}, DimRange(data, ids.rank(), data.rank())}));
  return absl::OkStatus();
}

Status SegmentSumGrad(GradContext& g) {
  g.set_dx(0, TakeRows(g.b(), g.dy(), g.x(1)));
  return g.status();
}

// An integer vector of `count` ones, where count is a scalar.
Output Ones(const GraphBuilder& b, Output count) {
  return b.Op("Fill", {b.Op("ExpandDims", {count, b.Scalar<int32_t>(0)}), b.Scalar<int32_t>(1)});
}

Status SegmentMeanGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  Output trailing = Ones(b, b.Sub(b.Op("Rank", {g.x(0)}), b.Scalar<int32_t>(1)));
  Output shape = b.Op("ConcatV2", {std::vector<Output>{b.Shape(g.x(1)), trailing}, b.Scalar<int32_t>(0)});
  Output ones = b.Op("Fill", {shape, b.ScalarOf(BaseType(g.x(0).dtype()), 1)});
  Output counts = b.Op("SegmentSum", {ones, g.x(1)});
  // Segments without rows count 0; nothing reads their quotient.
  g.set_dx(0, TakeRows(b, b.Div(g.dy(), counts), g.x(1)));
  return g.status();
}

Status SegmentExtremeGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  Output selected = b.Op("Equal", {g.x(0), TakeRows(b, g.y(), g.x(1))});
  Output ties = b.Op("SegmentSum", {b.Cast(selected, g.dy().dtype()), g.x(1)});
  Output shares = TakeRows(b, b.Div(g.dy(), ties), g.x(1));
  g.set_dx(0, b.Op("Select", {selected, shares, b.ZerosLike(shares)}));
  return g.status();
}

// Rows of per-segment values for each id, where negative ids stand for rows that no segment took.
struct Membership {
  Output ids;     // negatives replaced by 0
  Output member;  // bool, the shape of ids followed by ones up to the rank of the rows
};
Membership MembershipOf(const GraphBuilder& b, Output ids, Output data) {
  Membership m;
  Output zeros = b.ZerosLike(ids);
  m.ids = b.Op("Maximum", {ids, zeros});
  Output trailing = Ones(b, b.Sub(b.Op("Rank", {data}), b.Op("Rank", {ids})));
  Output shape = b.Op("ConcatV2", {std::vector<Output>{b.Shape(ids), trailing}, b.Scalar<int32_t>(0)});
  m.member = b.Reshape(b.Op("GreaterEqual", {ids, zeros}), shape);
  return m;
}
Output TakeMembers(const GraphBuilder& b, const Membership& m, Output per_segment) {
  Output rows = TakeRows(b, per_segment, m.ids);
  return b.Op("SelectV2", {m.member, rows, b.ZerosLike(rows)});
}

Status UnsortedSegmentSumGrad(GradContext& g) {
  g.set_dx(0, TakeMembers(g.b(), MembershipOf(g.b(), g.x(1), g.x(0)), g.dy()));
  return g.status();
}

Status UnsortedSegmentExtremeGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Membership m = MembershipOf(b, g.x(1), g.x(0));
  Output selected = b.Op("Equal", {g.x(0), TakeRows(b, g.y(), m.ids)});
  selected = b.Op("LogicalAnd", {selected, m.member});
  Output ties = b.Op("UnsortedSegmentSum", {b.Cast(selected, g.dy().dtype()), g.x(1), g.x(2)});
  Output shares = TakeRows(b, b.Div(g.dy(), ties), m.ids);
  g.set_dx(0, b.Op("Select", {selected, shares, b.ZerosLike(shares)}));
  return g.status();
}

// d prod / dx is prod / x; for the only zero of a segment the product of the others; nothing where there are more
// zeros. `sums` and `products` reduce by segment, `take` gives each element its segment's value.
template <typename Sums, typename Products, typename Take>
Output ProductGrad(GradContext& g, const Sums& sums, const Products& products, const Take& take) {
  const GraphBuilder& b = g.b();
  Output is_zero = b.Op("Equal", {g.x(0), b.ZerosLike(g.x(0))});
  Output zeros = sums(b.Cast(is_zero, DType::kInt32));
  Output many = b.Op("Greater", {zeros, b.OnesLike(zeros)});
  Output dy = b.Op("Select", {many, b.ZerosLike(g.dy()), g.dy()});
  Output others = b.Op("Select", {is_zero, b.OnesLike(g.x(0)), g.x(0)});
  Output quotient = b.Div(take(g.y()), others);
  Output partial = b.Op("Select", {is_zero, take(products(others)), quotient});
  return b.Mul(take(dy), b.Conj(partial));
}

Status SegmentProdGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  auto reduce = [&](const char* op) { return [&g, &b, op](Output v) { return b.Op(op, {v, g.x(1)}); }; };
  g.set_dx(
      0, ProductGrad(g, reduce("SegmentSum"), reduce("SegmentProd"), [&](Output v) { return TakeRows(b, v, g.x(1)); }));
  return g.status();
}

Status UnsortedSegmentProdGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Membership m = MembershipOf(b, g.x(1), g.x(0));
  auto reduce = [&](const char* op) { return [&g, &b, op](Output v) { return b.Op(op, {v, g.x(1), g.x(2)}); }; };
  g.set_dx(0, ProductGrad(g, reduce("UnsortedSegmentSum"), reduce("UnsortedSegmentProd"), [&](Output v) {
             return TakeMembers(b, m, v);
           }));
  return g.status();
}

// Slices of `data` along the axis: pairs of a begin and an end, or a vector of where one ends and the next begins.
Status ReduceSliceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape data, c.WithRankAtLeast(0, 1));
  MR_RETURN_IF_ERROR(c.WithRankAtLeast(1, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRankAtMost(1, 2));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  int64_t count = indices.dim(0);
  if (indices.rank() == 1 && count >= 0) count = std::max<int64_t>(count, 1) - 1;
  if (indices.rank() == 2) {
    MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(1), 2, "a row of indices is a begin and an end").status());
  }
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, c.ConstantInt(2));
  if (!data.has_rank()) return absl::OkStatus();
  if (!axis) {
    c.set_output(0, PartialShape::UnknownOfRank(data.rank()));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const int along, c.Axis(*axis, data.rank()));
  std::vector<int64_t> dims = data.dims();
  dims[static_cast<size_t>(along)] = count;
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

}  // namespace

void RegisterSegmentOps(OpRegistry& registry) {
  const char* ids = "i32[4]{0 0 2 2}";
  auto example = [&](const char* data) { return absl::StrCat(data, ", ", ids); };
  registry.Add("SegmentSum(data:T, segment_ids:Tindices) -> (output:T) | T in NUM; Tindices in IDX")
      .Doc(
          "Sums of the rows of `data` that share a segment id. Ids are sorted and not negative; ids that do not occur "
          "give zeros.")
      .Shape(SegmentShape)
      .Gradient(SegmentSumGrad)
      .Example(example("f32[4,3]~"));
  registry.Add("SegmentMean(data:T, segment_ids:Tindices) -> (output:T) | T in NUM; Tindices in IDX")
      .Doc(
          "Means of the rows of `data` that share a segment id. Ids are sorted and not negative; ids that do not occur "
          "give zeros.")
      .Shape(SegmentShape)
      .Gradient(SegmentMeanGrad)
      .Example(example("f32[4,3]~"));
  registry.Add("SegmentProd(data:T, segment_ids:Tindices) -> (output:T) | T in NUM; Tindices in IDX")
      .Doc(
          "Products of the rows of `data` that share a segment id. Ids are sorted and not negative; ids that do not "
          "occur give ones.")
      .Shape(SegmentShape)
      .Gradient(SegmentProdGrad)
      .Example(example("f32[4,3]+"));
  registry.Add("SegmentMax(data:T, segment_ids:Tindices) -> (output:T) | T in REAL; Tindices in IDX")
      .Doc(
          "Largest values among the rows of `data` that share a segment id. Ids are sorted and not negative; ids that "
          "do not occur give zeros. Rows that tie share the gradient.")
      .Shape(SegmentShape)
      .Gradient(SegmentExtremeGrad)
      .Example(example("f32[4,3]~"));
  registry.Add("SegmentMin(data:T, segment_ids:Tindices) -> (output:T) | T in REAL; Tindices in IDX")
      .Doc(
          "Smallest values among the rows of `data` that share a segment id. Ids are sorted and not negative; ids that "
          "do not occur give zeros. Rows that tie share the gradient.")
      .Shape(SegmentShape)
      .Gradient(SegmentExtremeGrad)
      .Example(example("f32[4,3]~"));
  registry
      .Add(
          "UnsortedSegmentSum(data:T, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:T) | T in NUM; "
          "Tindices in IDX; Tnumsegments in IDX=i32")
      .Doc(
          "Sums of the elements or slices of `data` that share a segment id, in any order of ids. Negative ids are "
          "dropped; segments without members give zeros. The result does not depend on the number of threads.")
      .Shape(UnsortedSegmentShape)
      .Gradient(UnsortedSegmentSumGrad)
      .Example("f32[4,3]~, i32[4]{2 0 -1 2}, i32[]{4}")
      .Example("f64[2,2,2]~, i64[2,2]{1 0 1 1}, i64[]{2}");
  registry
      .Add(
          "UnsortedSegmentProd(data:T, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:T) | T in NUM; "
          "Tindices in IDX; Tnumsegments in IDX=i32")
      .Doc(
          "Products of the elements or slices of `data` that share a segment id, in any order of ids. Negative ids are "
          "dropped; segments without members give ones.")
      .Shape(UnsortedSegmentShape)
      .Gradient(UnsortedSegmentProdGrad)
      .Example("f32[4,3]+, i32[4]{2 0 -1 2}, i32[]{4}");
  registry
      .Add(
          "UnsortedSegmentMax(data:T, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:T) | T in REAL; "
          "Tindices in IDX; Tnumsegments in IDX=i32")
      .Doc(
          "Largest values among the elements or slices of `data` that share a segment id, in any order of ids. "
          "Negative ids are dropped; segments without members give the lowest number of the type.")
      .Shape(UnsortedSegmentShape)
      .Gradient(UnsortedSegmentExtremeGrad)
      .Example("f32[4,3]~, i32[4]{1 0 -1 1}, i32[]{2}");
  registry
      .Add(
          "UnsortedSegmentMin(data:T, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:T) | T in REAL; "
          "Tindices in IDX; Tnumsegments in IDX=i32")
      .Doc(
          "Smallest values among the elements or slices of `data` that share a segment id, in any order of ids. "
          "Negative ids are dropped; segments without members give the highest number of the type.")
      .Shape(UnsortedSegmentShape)
      .Gradient(UnsortedSegmentExtremeGrad)
      .Example("f32[4,3]~, i32[4]{1 0 -1 1}, i32[]{2}");
  struct Slices {
    const char* name;
    const char* types;
    const char* doc;
    const char* of_none;
  };
  for (const Slices& op :
       {Slices{"Sum", "NUM", "Sums", "0"}, Slices{"Prod", "NUM", "Products", "1"},
        Slices{"Max", "REAL", "Largest values", "the lowest number of the type"},
        Slices{"Min", "REAL", "Smallest values", "the highest number of the type"}}) {
    registry
        .Add(absl::StrCat("ReduceSlice", op.name, "(data:T, indices:Tindices, axis:i64) -> (output:T) | T in ",
                          op.types, "; Tindices in IDX"))
        .Doc(absl::StrCat(
            op.doc,
            " of slices of `data` along the axis, which may overlap: of rows [begin, end) for each row "
            "of indices [n, 2], or, for a vector, from each index to the next one. What lies behind the "
            "end of `data` does not count; nothing gives ",
            op.of_none, "."))
        .Shape(ReduceSliceShape)
        .NoGradient("TensorFlow has none; UnsortedSegment ops of gathered rows have one")
        .Example("f32[3,2]+, i32[3,2]{0 2 1 9 2 2}, i64[]{0}")
        .Example("f32[2,4]+, i64[3]{0 1 4}, i64[]{1}");
  }
  struct Counted {
    const char* name;
    const char* types;
    GradientFn gradient;
  };
  for (const Counted& op :
       {Counted{"Sum", "NUM", UnsortedSegmentSumGrad}, Counted{"Prod", "NUM", UnsortedSegmentProdGrad},
        Counted{"Max", "REAL", UnsortedSegmentExtremeGrad}, Counted{"Min", "REAL", UnsortedSegmentExtremeGrad}}) {
    registry
        .Add(absl::StrCat(
            "Segment", op.name, "V2(data:T, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:T) | T in ",
            op.types, "; Tindices in IDX; Tnumsegments in IDX=i32"))
        .Doc(absl::StrCat("UnsortedSegment", op.name, ", as newer TensorFlow calls it where ids are sorted."))
        .Shape(UnsortedSegmentShape)
        .Gradient(op.gradient)
        .Example("f32[4,3]+, i32[4]{0 0 -1 1}, i32[]{2}");
  }
}

}  // namespace millrace
