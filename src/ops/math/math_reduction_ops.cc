// SPDX-License-Identifier: Apache-2.0
// Ops that reduce a tensor over some of its axes.
#include "base/checked.h"
#include "graph/gradient.h"
#include "ops/math/math_ops.h"

namespace millrace {
namespace {

Status ReductionShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const bool keep_dims, c.Attr<bool>("keep_dims"));
  MR_RETURN_IF_ERROR(c.WithRankAtMost(1, 1).status());
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) {
    if (!keep_dims && c.input(1).has_rank() && c.input(1).num_elements() == 0) c.set_output(0, in);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const auto axes, c.ConstantInts(1));
  if (!axes) {
    if (keep_dims) c.set_output(0, PartialShape::UnknownOfRank(in.rank()));
    return absl::OkStatus();
  }
  std::vector<bool> reduced(static_cast<size_t>(in.rank()));
  for (const int64_t axis : *axes) {
    int64_t i = 0;
    if (!NormalizeIndex(axis, in.rank(), &i)) {
      return InvalidArgument("Invalid reduction dimension ", axis, " for an input of rank ", in.rank());
    }
    reduced[static_cast<size_t>(i)] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) {
      dims.push_back(in.dim(i));
    } else if (keep_dims) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Output Int64s(const GraphBuilder& b, const std::vector<int64_t>& v) {
  return b.Const(Tensor::Vector<int64_t>(absl::Span<const int64_t>(v)));
}

// The gradients of reductions see the input, the axes and the shape that the result has with keep_dims.
class ReductionGrad {
 public:
  explicit ReductionGrad(GradContext& c) : c_(c), b_(c.b()) {
    const PartialShape& in = c.x(0).shape();
    const Tensor* axes = c.b().graph().ConstantValue(c.x(1));
    if (axes && in.has_rank()) Statically(in, *axes);
    if (!input_shape_) input_shape_ = b_.Shape(c.x(0), DType::kInt64);
    if (!kept_shape_) kept_shape_ = KeptShape();
  }

  Output input_shape() const { return input_shape_; }
  // `t`, of the shape of the result, with the reduced axes put back as ones.
  Output Keep(Output t) const { return b_.Reshape(t, kept_shape_); }
  Output Expand(Output t) const { return b_.Op("BroadcastTo", {Keep(t), input_shape_}); }

  Output rank() const { return b_.Op("Size", {input_shape_}, {{"out_type", DType::kInt64}}); }
  // Non-negative axes as an int64 vector.
  Output Axes() const {
    Output axes = b_.Reshape(b_.Cast(c_.x(1), DType::kInt64), b_.Vector<int64_t>({-1}));
    return b_.Op("FloorMod", {b_.Add(axes, rank()), rank()});
  }
  Output AllAxes() const { return b_.Op("Range", {b_.Scalar<int64_t>(0), rank(), b_.Scalar<int64_t>(1)}); }

 private:
  void Statically(const PartialShape& in, const Tensor& axes) {
    auto values = axes.IntValues();
    if (!values.ok()) return;
    std::vector<int64_t> mask(static_cast<size_t>(in.rank()), 1);
    for (const int64_t axis : *values) {
      int64_t i = 0;
      if (NormalizeIndex(axis, in.rank(), &i)) mask[static_cast<size_t>(i)] = 0;
    }
    std::vector<int64_t> kept(mask.size()), ones(mask.size());
    bool kept_known = true;
    for (size_t i = 0; i < mask.size(); ++i) {
      const int64_t d = in.dim(static_cast<int>(i));
      kept[i] = mask[i] ? d : 1;
      kept_known = kept_known && kept[i] >= 0;
      ones[i] = 1 - mask[i];
    }
    input_shape_ = in.IsFullyDefined() ? Int64s(b_, in.dims()) : b_.Shape(c_.x(0), DType::kInt64);
    kept_shape_ = kept_known ? Int64s(b_, kept) : b_.Add(b_.Mul(input_shape_, Int64s(b_, mask)), Int64s(b_, ones));
  }

  Output KeptShape() const {
    Output axes = Axes();
    return b_.Op("DynamicStitch", {std::vector<Output>{b_.Cast(AllAxes(), DType::kInt32), b_.Cast(axes, DType::kInt32)},
                                   std::vector<Output>{input_shape_, b_.OnesLike(axes)}});
  }

  GradContext& c_;
  const GraphBuilder& b_;
  Output input_shape_, kept_shape_;
};

Status SumGrad(GradContext& c) {
  c.set_dx(0, ReductionGrad(c).Expand(c.dy()));
  return c.status();
}

Status MeanGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const int64_t in = c.x(0).shape().num_elements(), out = c.y().shape().num_elements();
  const DType dtype = BaseType(c.x(0).dtype());
  Output count;
  if (in >= 0 && out >= 0) {
    count = b.ScalarOf(dtype, static_cast<double>(in / std::max<int64_t>(out, 1)));
  } else {
    Output in_size = b.Op("Size", {c.x(0)}, {{"out_type", DType::kInt64}});
    Output out_size = b.Op("Size", {c.y()}, {{"out_type", DType::kInt64}});
    count = b.Cast(b.Op("FloorDiv", {in_size, b.Op("Maximum", {out_size, b.Scalar<int64_t>(1)})}), dtype);
  }
  // Divided before it is spread: the smaller tensor.
  c.set_dx(0, ReductionGrad(c).Expand(b.Div(c.dy(), count)));
  return c.status();
}

// Equal extremes share the gradient.
Status ExtremeGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  ReductionGrad r(c);
  Output chosen = b.Cast(b.Op("Equal", {r.Keep(c.y()), c.x(0)}), BaseType(c.x(0).dtype()));
  Output count = r.Keep(b.Sum(chosen, c.x(1)));
  c.set_dx(0, b.Mul(b.Div(chosen, count), r.Keep(c.dy())));
  return c.status();
}

// The product of all others, as products of those before and those after: no division, so zeros are no exception.
Status ProdGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  ReductionGrad r(c);
  Output axes = r.Axes();
  Output others = b.OpNode("ListDiff", {r.AllAxes(), axes})->output(0);
  if (!b.status().ok()) return b.status();
  Output order = b.Op("ConcatV2", {std::vector<Output>{axes, others}, b.Scalar<int32_t>(0)});
  Output zero = b.Scalar<int32_t>(0);
  auto size_of = [&](Output which) { return b.Op("Prod", {b.Op("GatherV2", {r.input_shape(), which, zero}), zero}); };
  Output matrix_shape = b.Op("Pack", {std::vector<Output>{size_of(axes), size_of(others)}});
  Output moved = b.Op("Transpose", {c.x(0), order});
  Output matrix = b.Reshape(moved, matrix_shape);
  Output before = b.Op("Cumprod", {matrix, zero}, {{"exclusive", true}});
  Output after = b.Op("Cumprod", {matrix, zero}, {{"exclusive", true}, {"reverse", true}});
  Output product = b.Reshape(b.Mul(b.Conj(before), b.Conj(after)), b.Shape(moved, DType::kInt64));
  Output derivative = b.Op("Transpose", {product, b.Op("InvertPermutation", {order})});
  c.set_dx(0, b.Mul(r.Keep(c.dy()), derivative));
  return c.status();
}

// x / norm, conjugation not needed: the norm is real.
Status EuclideanNormGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  ReductionGrad r(c);
  c.set_dx(0, b.Mul(c.x(0), r.Keep(b.Div(c.dy(), c.y()))));
  return c.status();
}

constexpr char kBool[] =
    "(input:bool, reduction_indices:Tidx) -> (output:bool) | keep_dims:bool=false; Tidx in IDX=i32";
constexpr char kNumber[] =
    "(input:T, reduction_indices:Tidx) -> (output:T) | keep_dims:bool=false; T in NUM; Tidx in IDX=i32";

}  // namespace

void RegisterReductionOps(OpRegistry& registry) {
  registry.Add(absl::StrCat("All", kBool))
      .Doc("Whether all elements along the given axes are true; true where there is none.")
      .Shape(ReductionShape)
      .NotDifferentiable("its values are booleans")
      .Example("bool[2,3]{1 1 0 1 1 1}, i32[1]{1}")
      .Example("bool[2,3]{1 1 0 1 1 1}, i32[]{-2} | keep_dims=true");
  registry.Add(absl::StrCat("Any", kBool))
      .Doc("Whether some element along the given axes is true; false where there is none.")
      .Shape(ReductionShape)
      .NotDifferentiable("its values are booleans")
      .Example("bool[2,3]{1 0 0 0 0 0}, i32[1]{1}")
      .Example("bool[2,3]{1 0 0 0 0 0}, i32[]{-2} | keep_dims=true");
  registry.Add(absl::StrCat("Sum", kNumber))
      .Doc("Sum of the elements along the given axes; zero where there is none.")
      .Shape(ReductionShape)
      .Gradient(SumGrad)
      .Example("f32[2,3,4]~, i32[2]{0 2}")
      .Example("f64[2,3]~, i64[1]{-1} | keep_dims=true");
  registry.Add(absl::StrCat("Mean", kNumber))
      .Doc(
          "Mean of the elements along the given axes. The mean of nothing is NaN, or zero for integers, whose means "
          "are rounded towards zero.")
      .Shape(ReductionShape)
      .Gradient(MeanGrad)
      .Example("f32[2,3,4]~, i32[2]{0 2}")
      .Example("f64[2,3]~, i64[1]{-1} | keep_dims=true");
  registry.Add(absl::StrCat("Prod", kNumber))
      .Doc("Product of the elements along the given axes; one where there is none.")
      .Shape(ReductionShape)
      .Gradient(ProdGrad)
      .Example("f32[2,3,4]+, i32[2]{0 2}")
      .Example("f64[2,3]{1 0 3 4 5 6}, i64[1]{-1} | keep_dims=true");
  registry.Add(absl::StrCat("Max", kNumber))
      .Doc(
          "Largest element along the given axes, NaN where there is a NaN; the type's lowest value where there is no "
          "element.")
      .Shape(ReductionShape)
      .Gradient(ExtremeGrad)
      .Example("f32[2,3,4]~, i32[2]{0 2}")
      .Example("f64[2,3]~, i64[1]{-1} | keep_dims=true");
  registry.Add(absl::StrCat("Min", kNumber))
      .Doc(
          "Smallest element along the given axes, NaN where there is a NaN; the type's highest value where there is no "
          "element.")
      .Shape(ReductionShape)
      .Gradient(ExtremeGrad)
      .Example("f32[2,3,4]~, i32[2]{0 2}")
      .Example("f64[2,3]~, i64[1]{-1} | keep_dims=true");
  registry.Add(absl::StrCat("EuclideanNorm", kNumber))
      .Doc("Square root of the sum of the squared magnitudes of the elements along the given axes.")
      .Shape(ReductionShape)
      .Gradient(EuclideanNormGrad)
      .Example("f32[2,3,4]+, i32[2]{0 2}")
      .Example("f64[2,3]+, i64[1]{-1} | keep_dims=true");
}

}  // namespace millrace
