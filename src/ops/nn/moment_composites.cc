// SPDX-License-Identifier: Apache-2.0
// Composites: means and variances, at once or from sums.
#include "ops/composite.h"
#include "ops/formula.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;

// Reductions over the axes of a call.
class Reducer {
 public:
  static StatusOr<Reducer> Of(const GraphBuilder& b, const CompositeCall& c) {
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, c.Attr<std::vector<int64_t>>("axes"));
    MR_ASSIGN_OR_RETURN(const bool keep_dims, c.Attr<bool>("keep_dims"));
    return Reducer(b, axes, keep_dims);
  }

  // The node is called `name`; reduced dimensions stay with size 1.
  Output Kept(const char* op, const char* name, Output x) const { return Reduce(op, name, x, true); }
  // They stay where the call wants it.
  Output Wanted(const char* op, const char* name, Output x) const { return Reduce(op, name, x, keep_dims_); }
  Output Squeezed(Output x) const {
    return keep_dims_ ? x : b_.Op("Squeeze", {x}, {{"squeeze_dims", std::vector<int64_t>(axes_.begin(), axes_.end())}});
  }
  const std::vector<int32_t>& axes() const { return axes_; }
  Output AxesAs(const GraphBuilder& b, const char* name) const {
    return b.WithName(name).Const(Tensor::Vector<int32_t>(axes_));
  }

 private:
  Reducer(const GraphBuilder& b, const std::vector<int64_t>& axes, bool keep_dims) : b_(b), keep_dims_(keep_dims) {
    for (const int64_t a : axes) axes_.push_back(static_cast<int32_t>(a));
  }
  Output Reduce(const char* op, const char* name, Output x, bool keep_dims) const {
    const GraphBuilder inside = b_.Scope(name);
    return inside.WithName("/").Op(op, {x, AxesAs(inside, "reduction_indices")}, {{"keep_dims", keep_dims}});
  }

  GraphBuilder b_;
  bool keep_dims_;
  std::vector<int32_t> axes_;
};

// The variance is that around the mean that was found, which is no part of its gradient. Halves are computed as floats.
Outputs Moments(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const Reducer r, Reducer::Of(b, c));
  const DType given = BaseType(c.x("x").dtype());
  const Output x = given == DType::kHalf ? b.Cast(c.x("x"), DType::kFloat) : c.x("x");
  const Output mean = r.Kept("Mean", "mean", x);
  const Output squares = b.Op("SquaredDifference", {x, b.Op("StopGradient", {mean})});
  const Output variance = r.Kept("Mean", "variance", squares);
  const Output flat_mean = r.Squeezed(mean), flat_variance = r.Squeezed(variance);
  const Output out_mean = b.Cast(flat_mean, given);
  return std::vector<Output>{out_mean, b.Cast(flat_variance, given)};
}

Outputs WeightedMoments(const GraphBuilder& b, const CompositeCall& c) {
  const Formula f(b);
  MR_ASSIGN_OR_RETURN(const Reducer r, Reducer::Of(b, c));
  const Output x = c.x("x"), w = c.x("frequency_weights");
  const Output total = r.Kept("Sum", "Sum", f.Add(w, b.WithName("zeros_like").ZerosLike(x)));
  const Output sum = r.Kept("Sum", "Sum", f.Mul(w, x)), mean = f.Div(sum, total);
  const Output squares = r.Kept("Sum", "Sum", f.Mul(w, b.Op("SquaredDifference", {x, mean})));
  const Output variance = f.Div(squares, total), flat_mean = r.Squeezed(mean);
  return std::vector<Output>{flat_mean, r.Squeezed(variance)};
}

// How many elements a reduction sums up, as a number of x's type: a constant where the shape tells.
Output Count(const GraphBuilder& b, const Reducer& r, Output x) {
  const DType t = BaseType(x.dtype());
  double product = 1;
  bool known = x.shape().has_rank();
  for (const int32_t axis : r.axes()) {
    if (!known) break;
    const int at = axis < 0 ? axis + x.shape().rank() : axis;
    known = at >= 0 && at < x.shape().rank() && x.shape().dim(at) >= 0;
    if (known) product *= static_cast<double>(x.shape().dim(at));
  }
  if (known) return b.WithName("count").ScalarOf(t, product);
  const Output shape = b.Shape(x), wide = t == DType::kInt32 ? shape : b.Op("Cast", {shape}, {{"DstT", t}});
  const GraphBuilder gather = b.Scope("GatherV2");
  const Output axes = r.AxesAs(gather, "indices"), first = gather.WithName("axis").Scalar<int32_t>(0);
  const Output sizes = gather.WithName("/").Op("GatherV2", {wide, axes, first});
  return b.WithName("count").Op("Prod", {sizes, b.Vector<int32_t>({0})});
}

Outputs SufficientStatistics(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const Reducer r, Reducer::Of(b, c));
  const Output x = c.x("x"), shift = c.x("shift");
  const Output count = Count(b, r, x);
  const Output off = shift ? Formula(b).Sub(x, shift) : x;
  const Output squares = shift ? b.Op("SquaredDifference", {x, shift}) : b.Op("Square", {x});
  const Output mean_ss = r.Wanted("Sum", "mean_ss", off);
  return std::vector<Output>{count, mean_ss, r.Wanted("Sum", "var_ss", squares)};
}

Outputs NormalizeMoments(const GraphBuilder& b, const CompositeCall& c) {
  const Output shift = c.x("shift"), share = b.WithName("divisor").Op("Reciprocal", {c.x("counts")});
  const Output offset = b.WithName(shift ? "shifted_mean" : "mean").Mul(c.x("mean_ss"), share);
  const Output mean = shift ? b.WithName("mean").Op("Add", {offset, shift}) : offset;
  const Output of_squares = b.Mul(c.x("variance_ss"), share);
  return std::vector<Output>{mean, b.WithName("variance").Sub(of_squares, b.Op("Square", {offset}))};
}

}  // namespace

void RegisterMomentComposites(CompositeRegistry& r) {
  const char* const reduction = "axes:list(int); keep_dims:bool=false";
  r.Add(absl::StrCat("Moments(x:T) -> (mean:T, variance:T) | T in FC; ", reduction))
      .Doc("Mean and (biased) variance of x over `axes`.")
      .Expand(Moments)
      .Example("f32[4,3]~ | axes=[0]");
  r.Add(absl::StrCat("WeightedMoments(x:T, frequency_weights:T) -> (mean:T, variance:T) | T in FC; ", reduction))
      .Doc("Mean and (biased) variance over `axes` of x, each element of which counts so many times; both broadcast.")
      .Expand(WeightedMoments)
      .Example("f32[4,3]~, !f32[4,1]{1 2 0 1} | axes=[0]");
  r.Add(absl::StrCat("SufficientStatistics(x:T, shift:S*T) -> (count:T, mean_ss:T, variance_ss:T) | T in NUM; "
                     "S:int>=0; ",
                     reduction))
      .Doc(
          "What NormalizeMoments takes: how many elements are summed up over `axes`, their sum and that of their "
          "squares; "
          "of x - shift where a shift is given.")
      .Expand(SufficientStatistics)
      .Example("f32[4,3]~, !f32[]{0.5} | axes=[0]");
  r.Add("NormalizeMoments(counts:T, mean_ss:T, variance_ss:T, shift:S*T) -> (mean:T, variance:T) | T in FC; S:int>=0")
      .Doc("Mean and variance from SufficientStatistics, of the same shift.")
      .Expand(NormalizeMoments)
      .Example("!f32[]{4}, f32[3]~, f32[3]+, !f32[]{0.5}");
}

}  // namespace millrace
