// SPDX-License-Identifier: Apache-2.0
// Composites: losses. Each returns one scalar, the mean over all examples (weighted where weights are given).
#include "ops/composite.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;

// Mean over every element.
Output MeanOfAll(const GraphBuilder& b, Output x) {
  const Output axes = b.Op("Range", {b.Scalar<int32_t>(0), b.Op("Rank", {x}), b.Scalar<int32_t>(1)});
  return b.Op("Mean", {x, axes});
}

Outputs One(Output o) { return std::vector<Output>{o}; }

Outputs SoftmaxCrossEntropy(const GraphBuilder& b, const CompositeCall& c) {
  const Node* n = b.OpNode("SoftmaxCrossEntropyWithLogits", {c.x("logits"), c.x("labels")});
  MR_RETURN_IF_ERROR(b.status());
  return One(MeanOfAll(b, const_cast<Node*>(n)->output(0)));
}

Outputs SparseSoftmaxCrossEntropy(const GraphBuilder& b, const CompositeCall& c) {
  Node* n = b.OpNode("SparseSoftmaxCrossEntropyWithLogits", {c.x("logits"), c.x("labels")});
  MR_RETURN_IF_ERROR(b.status());
  return One(MeanOfAll(b, n->output(0)));
}

// max(x, 0) - x z + log(1 + exp(-|x|)): no overflow for any x.
Outputs SigmoidCrossEntropy(const GraphBuilder& b, const CompositeCall& c) {
  const Output x = c.x("logits"), z = c.x("labels");
  const Output softplus = b.Op("Log1p", {b.Op("Exp", {b.Neg(b.Op("Abs", {x}))})});
  return One(MeanOfAll(b, b.Add(b.Sub(b.Op("Relu", {x}), b.Mul(x, z)), softplus)));
}

Outputs MeanSquaredError(const GraphBuilder& b, const CompositeCall& c) {
  return One(MeanOfAll(b, b.Op("SquaredDifference", {c.x("predictions"), c.x("labels")})));
}

Outputs AbsoluteDifference(const GraphBuilder& b, const CompositeCall& c) {
  return One(MeanOfAll(b, b.Op("Abs", {b.Sub(c.x("predictions"), c.x("labels"))})));
}

Outputs HuberLoss(const GraphBuilder& b, const CompositeCall& c) {
  const Output labels = c.x("labels");
  const DType t = BaseType(labels.dtype());
  MR_ASSIGN_OR_RETURN(const float delta, c.Attr<float>("delta"));
  const Output d = b.ScalarOf(t, static_cast<double>(delta));
  const Output error = b.Op("Abs", {b.Sub(c.x("predictions"), labels)});
  const Output quadratic = b.Op("Minimum", {error, d});
  const Output linear = b.Sub(error, quadratic);
  return One(MeanOfAll(b, b.Add(b.Mul(b.ScalarOf(t, 0.5), b.Op("Square", {quadratic})), b.Mul(d, linear))));
}

Outputs HingeLoss(const GraphBuilder& b, const CompositeCall& c) {
  const Output labels = c.x("labels");
  const DType t = BaseType(labels.dtype());
  const Output sign = b.Sub(b.Mul(b.ScalarOf(t, 2), labels), b.ScalarOf(t, 1));
  return One(MeanOfAll(b, b.Op("Relu", {b.Sub(b.ScalarOf(t, 1), b.Mul(sign, c.x("logits")))})));
}

Outputs LogLoss(const GraphBuilder& b, const CompositeCall& c) {
  const Output p = c.x("predictions"), y = c.x("labels");
  const DType t = BaseType(p.dtype());
  MR_ASSIGN_OR_RETURN(const float epsilon, c.Attr<float>("epsilon"));
  const Output e = b.ScalarOf(t, static_cast<double>(epsilon)), one = b.ScalarOf(t, 1);
  const Output hit = b.Mul(y, b.Op("Log", {b.Add(p, e)}));
  const Output miss = b.Mul(b.Sub(one, y), b.Op("Log", {b.Add(b.Sub(one, p), e)}));
  return One(MeanOfAll(b, b.Neg(b.Add(hit, miss))));
}

}  // namespace

void RegisterLossComposites(CompositeRegistry& r) {
  r.Add("SoftmaxCrossEntropyLoss(logits:T, labels:T) -> (loss:T) | T in FLT")
      .Doc("Mean over the batch of the cross entropy between softmax(logits) and the distributions `labels`.")
      .Expand(SoftmaxCrossEntropy)
      .Example("f32[2,3]~, !f32[2,3]{0.25 0.5 0.25 1 0 0}");
  r.Add("SparseSoftmaxCrossEntropyLoss(logits:T, labels:Tlabels) -> (loss:T) | T in FLT; Tlabels in IDX=i64")
      .Doc("Mean over the batch of the cross entropy between softmax(logits) and class numbers `labels`.")
      .Expand(SparseSoftmaxCrossEntropy)
      .Example("f32[2,3]~, i64[2]{2 0}");
  r.Add("SigmoidCrossEntropyLoss(logits:T, labels:T) -> (loss:T) | T in FLT")
      .Doc("Mean cross entropy of independent classes: labels in [0, 1], logits before the sigmoid.")
      .Expand(SigmoidCrossEntropy)
      .Example("f32[2,3]~, !f32[2,3]{1 0 1 0 0.5 1}");
  r.Add("MeanSquaredError(predictions:T, labels:T) -> (loss:T) | T in FLT")
      .Doc("Mean of (predictions - labels)^2.")
      .Expand(MeanSquaredError)
      .Example("f32[2,3]~, f32[2,3]~");
  r.Add("AbsoluteDifferenceLoss(predictions:T, labels:T) -> (loss:T) | T in FLT")
      .Doc("Mean of |predictions - labels|.")
      .Expand(AbsoluteDifference)
      .Example("f32[2,3]~, f32[2,3]~");
  r.Add("HuberLoss(predictions:T, labels:T) -> (loss:T) | T in FLT; delta:float=1.0")
      .Doc("Quadratic up to an error of delta, linear beyond (Huber 1964); mean over all elements.")
      .Expand(HuberLoss)
      .Example("f32[2,3]~, f32[2,3]~");
  r.Add("HingeLoss(logits:T, labels:T) -> (loss:T) | T in FLT")
      .Doc("Mean of max(0, 1 - (2 labels - 1) logits); labels are 0 or 1.")
      .Expand(HingeLoss)
      .Example("f32[2,3]~, !f32[2,3]{1 0 1 0 0 1}");
  r.Add("LogLoss(predictions:T, labels:T) -> (loss:T) | T in FLT; epsilon:float=1e-7")
      .Doc("Mean of -labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon).")
      .Expand(LogLoss)
      .Example("f32[2,3]{0.1 0.9 0.5 0.3 0.7 0.2}, !f32[2,3]{1 0 1 0 0 1}");
}

}  // namespace millrace
