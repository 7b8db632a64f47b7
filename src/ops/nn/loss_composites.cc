// SPDX-License-Identifier: Apache-2.0
// Composites: losses of each element, and ComputeWeightedLoss, which makes one number of them. Those that are one op
// (SquaredDifference, SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits) have no composite.
#include "ops/composite.h"
#include "ops/formula.h"
#include "ops/reductions.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;

Outputs One(Output o) { return std::vector<Output>{o}; }

Outputs AbsoluteDifference(const GraphBuilder& b, const CompositeCall& c) {
  return One(b.Op("Abs", {b.Sub(c.x("predictions"), c.x("labels"))}));
}

Outputs HuberLoss(const GraphBuilder& b, const CompositeCall& c) {
  const Formula f(b);
  const Output delta = c.x("delta"), error = b.Op("Abs", {b.Sub(c.x("predictions"), c.x("labels"))});
  // error - near has no gradient at delta, where that of near counts already.
  const Output near = f.Call("Minimum", error, delta), far = f.Sub(error, near);
  const Output square = f.Mul(f.Mul(0.5, near), near);
  return One(f.Add(square, f.Mul(delta, far)));
}

Outputs HingeLoss(const GraphBuilder& b, const CompositeCall& c) {
  const Formula f(b);
  const Output sign = f.Sub(f.Mul(2.0, c.x("labels")), 1.0);
  return One(b.Op("Relu", {f.Sub(1.0, f.Mul(sign, c.x("logits")))}));
}

Outputs LogLoss(const GraphBuilder& b, const CompositeCall& c) {
  const Formula f(b);
  const Output p = c.x("predictions"), y = c.x("labels"), epsilon = c.x("epsilon");
  const Output hit = b.Neg(f.Mul(y, b.Op("Log", {f.Add(p, epsilon)})));
  const Output no = f.Sub(1.0, y), left = f.Sub(1.0, p);
  return One(f.Sub(hit, f.Mul(no, b.Op("Log", {f.Add(left, epsilon)}))));
}

Outputs CosineDistance(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  const Output products = b.Mul(c.x("predictions"), c.x("labels"));
  const Output axes = b.Const(Tensor::Vector<int32_t>({static_cast<int32_t>(axis)}));
  return One(Formula(b).Sub(1.0, b.Sum(products, axes, true)));
}

// max(x, 0) - x z + log(1 + exp(-|x|)): no overflow for any x, and the gradient at 0 is that of the formula.
Outputs SigmoidCrossEntropyWithLogits(const GraphBuilder& b, const CompositeCall& c) {
  const Formula f(b);
  const Output x = c.x("logits");
  const Output zeros = b.WithName("zeros_like").ZerosLike(x), positive = b.Op("GreaterEqual", {x, zeros});
  const Output clipped = b.Op("Select", {positive, x, zeros});
  const Output minus_size = b.Op("Select", {positive, b.Neg(x), x});
  const Output linear = f.Sub(clipped, f.Mul(x, c.x("labels")));
  return One(b.WithName("/").Op("Add", {linear, b.Op("Log1p", {b.Op("Exp", {minus_size})})}));
}

// labels (1 - s) + s / classes, the classes being those of the last dimension; two where each element stands by itself.
Outputs SmoothedLabels(const GraphBuilder& b, const CompositeCall& c) {
  const Formula f(b);
  MR_ASSIGN_OR_RETURN(const bool exclusive, c.Attr<bool>("exclusive"));
  const Output labels = c.x("labels"), smoothing = c.x("label_smoothing");
  const Output kept = f.Mul(labels, f.Sub(1.0, smoothing));
  if (!exclusive) return One(f.Add(kept, f.Mul(0.5, smoothing)));
  const Output sizes = b.Shape(labels), from = b.Vector<int32_t>({-1}), to = b.Vector<int32_t>({0});
  const Output last = b.Op("StridedSlice", {sizes, from, to, b.Vector<int32_t>({1})},
                           {{"end_mask", int64_t{1}}, {"shrink_axis_mask", int64_t{1}}});
  return One(f.Add(kept, f.Div(smoothing, f.Cast(last, BaseType(labels.dtype())))));
}

// a / b, and 0 where b is not positive; the gradient is 0 there too.
Output SafeDiv(const GraphBuilder& b, Output x, Output y) {
  const Formula f(b);
  const Output is_zero = f.Call("Equal", y, 0.0);
  const Output divisor = b.Op("Select", {is_zero, b.WithName("ones_like").OnesLike(y), y});
  const Output good = f.Call("Greater", y, 0.0), quotient = b.WithName("div").Div(x, divisor);
  return b.WithName("value").Op("Select", {good, quotient, b.WithName("zeros_like").ZerosLike(x)});
}

Status Refused(const std::string& what, const PartialShape& weights, const PartialShape& values) {
  return InvalidArgument("weights can not be broadcast to values. ", what, " values.shape=", values.ToString(),
                         " weights.shape=", weights.ToString());
}

// Weights for values: a scalar, or of their rank with each dimension 1 or theirs. Where the shapes do not tell, they
// wait for an assertion.
StatusOr<Output> WeightsFor(const GraphBuilder& b, Output values, Output weights) {
  const PartialShape w = weights.shape(), v = values.shape();
  if (w.has_rank() && w.rank() == 0) return weights;
  if (w.has_rank() && v.has_rank()) {
    if (w.rank() != v.rank()) {
      return Refused(absl::StrCat("values.rank=", v.rank(), ". weights.rank=", w.rank(), "."), w, v);
    }
    bool known = true;
    for (int i = 0; i < w.rank(); ++i) {
      known = known && w.dim(i) >= 0 && (w.dim(i) == 1 || v.dim(i) >= 0);
      if (w.dim(i) >= 0 && v.dim(i) >= 0 && w.dim(i) != 1 && w.dim(i) != v.dim(i)) {
        return Refused(absl::StrCat("Mismatch at dim ", i, "."), w, v);
      }
    }
    if (known) return weights;
  }
  const GraphBuilder check = b.Scope("assert_broadcastable");
  const Output w_shape = check.Shape(weights), v_shape = check.Shape(values);
  const Output w_rank = check.Op("Rank", {weights}), v_rank = check.Op("Rank", {values});
  const Output zero = check.Vector<int32_t>({0});
  const Output both = check.Op("ExpandDims", {check.Op("Minimum", {w_rank, v_rank}), check.Scalar<int32_t>(0)});
  const Output w_dims = check.Op("Slice", {w_shape, zero, both}), v_dims = check.Op("Slice", {v_shape, zero, both});
  const Output fits = check.Op(
      "LogicalOr", {check.Op("Equal", {w_dims, v_dims}), check.Op("Equal", {w_dims, check.Scalar<int32_t>(1)})});
  const Output same_rank = check.Op("Equal", {w_rank, v_rank});
  const Output all = check.Op("LogicalAnd", {same_rank, check.Op("All", {fits, zero})});
  const Output valid = check.Op("LogicalOr", {check.Op("Equal", {w_rank, check.Scalar<int32_t>(0)}), all});
  const auto text = [&](const char* t) { return check.Const(Tensor::Scalar(TString(t))); };
  Node* const assertion = check.OpNode(
      "Assert", {valid, std::vector<Output>{text("weights can not be broadcast to values."), text("weights.shape="),
                                            w_shape, text("values.shape="), v_shape}});
  MR_RETURN_IF_ERROR(b.status());
  return b.WithControl({assertion}).WithName("weights").Identity(weights);
}

// How many values have a weight other than 0: in all, or of each example, with their rank.
Output NumPresent(const GraphBuilder& b, Output values, Output weights, bool per_example) {
  const GraphBuilder inside = b.Scope("num_present");
  const Output is_zero = Formula(inside).Call("Equal", weights, 0.0);
  const Output zeros = inside.WithName("zeros_like").ZerosLike(weights);
  const Output ones = inside.WithName("ones_like").OnesLike(weights);
  Output present = inside.Op("Select", {is_zero, zeros, ones});
  if (!weights.shape().IsFullyDefined() || weights.shape() != values.shape()) {
    const GraphBuilder whole = inside.Scope("broadcast_weights");
    present = whole.WithName("/").Mul(present, whole.WithName("ones_like").OnesLike(values));
  }
  const Output axes = per_example ? AxesFrom(inside, 1, present) : AllAxes(inside, present);
  return inside.WithName("/").Sum(present, axes, per_example);
}

Outputs ComputeWeightedLoss(const GraphBuilder& b, const CompositeCall& c) {
  const Output losses = c.x("losses");
  MR_ASSIGN_OR_RETURN(const std::string reduction, c.Attr<std::string>("reduction"));
  MR_ASSIGN_OR_RETURN(const Output weights, WeightsFor(b, losses, c.x("weights")));
  const Output weighted = b.Mul(losses, weights);
  if (reduction == "none") return One(weighted);
  const Output total = b.Sum(weighted, AllAxes(b, weighted));
  if (reduction == "weighted_sum") return One(total);
  if (reduction == "weighted_sum_by_nonzero_weights") {
    return One(SafeDiv(b, total, NumPresent(b, losses, weights, false)));
  }
  if (reduction == "weighted_mean") {
    const Output all = Formula(b).Mul(b.WithName("ones_like").OnesLike(losses), weights);
    return One(SafeDiv(b, total, b.Sum(all, AllAxes(b, all))));
  }
  const Output count = b.WithName("num_elements").Op("Size", {losses});
  return One(SafeDiv(b, total, Formula(b).Cast(count, BaseType(losses.dtype()))));
}

// With d = predictions - labels, of each example: sum over pairs of (d_i - d_j)^2 / pairs, from the sums of d and d^2.
Outputs MeanPairwiseSquaredError(const GraphBuilder& b, const CompositeCall& c) {
  const Formula f(b);
  MR_ASSIGN_OR_RETURN(const bool count_self, c.Attr<bool>("count_self"));
  const Output difference = b.Sub(c.x("predictions"), c.x("labels"));
  MR_RETURN_IF_ERROR(b.status());
  MR_ASSIGN_OR_RETURN(const Output weights, WeightsFor(b, difference, c.x("weights")));
  const Output axes = AxesFrom(b, 1, difference), count = NumPresent(b, difference, weights, true);
  const Output others = f.Call("Maximum", f.Sub(count, count_self ? 0.0 : 1.0), 0.0);
  const Output squares = b.Sum(b.Op("Square", {difference}), axes, true), sums = b.Sum(difference, axes, true);
  const Output within = f.Mul(2.0, SafeDiv(b, squares, others));
  const Output square_of_sum = b.Op("Square", {sums}), pairs = f.Mul(count, others);
  const Output between = f.Mul(2.0, SafeDiv(b, square_of_sum, pairs));
  const Output weighted = b.Mul(f.Sub(within, between), weights), loss = b.Sum(weighted, AllAxes(b, weighted));
  const Output any = f.Call("Greater", b.Sum(count, AllAxes(b, count)), 0.0);
  return One(b.WithName("value").Op("Select", {any, loss, b.WithName("zeros_like").ZerosLike(loss)}));
}

}  // namespace

void RegisterLossComposites(CompositeRegistry& r) {
  r.Add("AbsoluteDifference(predictions:T, labels:T) -> (losses:T) | T in FLT")
      .Doc("|predictions - labels|.")
      .Expand(AbsoluteDifference)
      .Example("f32[2,3]~, f32[2,3]~");
  r.Add("HuberLoss(predictions:T, labels:T, delta:T) -> (losses:T) | T in FLT")
      .Doc("Of each element: quadratic up to an error of delta, linear beyond (Huber 1964).")
      .Expand(HuberLoss)
      .Example("f32[2,3]~, f32[2,3]~, !f32[]{1}");
  r.Add("HingeLoss(logits:T, labels:T) -> (losses:T) | T in FLT")
      .Doc("max(0, 1 - (2 labels - 1) logits); labels are 0 or 1.")
      .Expand(HingeLoss)
      .Example("f32[2,3]~, !f32[2,3]{1 0 1 0 0 1}");
  r.Add("LogLoss(predictions:T, labels:T, epsilon:T) -> (losses:T) | T in FLT")
      .Doc("-labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon).")
      .Expand(LogLoss)
      .Example("f32[2,3]{0.1 0.9 0.5 0.3 0.7 0.2}, !f32[2,3]{1 0 1 0 0 1}, !f32[]{1e-7}");
  r.Add("CosineDistance(predictions:T, labels:T) -> (losses:T) | T in FLT; axis:int")
      .Doc("1 - predictions . labels, of unit vectors along `axis`, which stays with size 1.")
      .Expand(CosineDistance)
      .Example("f32[2,3]~, f32[2,3]~ | axis=1");
  r.Add("SigmoidCrossEntropyWithLogits(logits:T, labels:T) -> (losses:T) | T in FLT")
      .Doc("The cross entropy of independent classes: labels in [0, 1], logits before the sigmoid.")
      .Expand(SigmoidCrossEntropyWithLogits)
      .Example("f32[2,3]~, !f32[2,3]{1 0 1 0 0.5 1}");
  r.Add("SmoothedLabels(labels:T, label_smoothing:T) -> (smoothed:T) | T in FLT; exclusive:bool=true")
      .Doc(
          "labels (1 - s) + s / classes, where the last dimension is one of classes that exclude each other; else s / "
          "2 "
          "in place of s / classes.")
      .Expand(SmoothedLabels)
      .Example("f32[2,3]{1 0 0 0 0 1}, !f32[]{0.1}");
  r.Add(
       "ComputeWeightedLoss(losses:T, weights:T) -> (loss:T) | T in FLT; reduction in "
       "{none,weighted_sum,weighted_mean,weighted_sum_over_batch_size,weighted_sum_by_nonzero_weights}="
       "\"weighted_sum_by_nonzero_weights\"")
      .Doc(
          "Losses times weights, as one number. Weights are a scalar, or of the rank of the losses with each dimension "
          "1 "
          "or theirs. The divisor: none, the sum of the weights, the number of losses, or that of weights other than "
          "0; "
          "the loss is 0 where it is 0.")
      .Expand(ComputeWeightedLoss)
      .Example("f32[2,3]~, !f32[2,1]{1 0}")
      .Example("f32[2,3]~, !f32[]{2} | reduction=\"weighted_mean\"");
  r.Add("MeanPairwiseSquaredError(predictions:T, labels:T, weights:T) -> (loss:T) | T in FLT; count_self:bool=false")
      .Doc(
          "The weighted sum over the examples of the mean of ((p_i - p_j) - (y_i - y_j))^2 over pairs of elements; "
          "with "
          "`count_self` an element and itself are a pair too.")
      .Expand(MeanPairwiseSquaredError)
      .Example("f32[2,3]~, f32[2,3]~, !f32[]{1}");
}

}  // namespace millrace
