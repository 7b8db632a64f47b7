// SPDX-License-Identifier: Apache-2.0
// Softmax along the last axis and the cross entropies on top of it.
#include "graph/gradient.h"
#include "ops/math/math_ops.h"

namespace millrace {
namespace {

Status SoftmaxShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 1));
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

Output SumOfRows(const GraphBuilder& b, Output x) { return b.Sum(x, b.Scalar<int32_t>(-1), true); }

Status SoftmaxGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Mul(b.Sub(c.dy(), SumOfRows(b, b.Mul(c.dy(), c.y()))), c.y()));
  return c.status();
}

Status LogSoftmaxGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Sub(c.dy(), b.Mul(SumOfRows(b, c.dy()), b.Op("Exp", {c.y()}))));
  return c.status();
}

Status CrossEntropyShape(ShapeContext& c) {
  bool incompatible = false;
  const PartialShape both = BroadcastPartial(c.input(0), c.input(1), &incompatible);
  if (incompatible || (both.has_rank() && both.rank() != 2)) {
    return InvalidArgument("logits and labels must be rank 2 once they are broadcast, got ", c.input(0).ToString(),
                           " and ", c.input(1).ToString());
  }
  c.set_output(0, PartialShape::Of({both.has_rank() ? both.dim(0) : -1}));
  c.set_output(1, both.has_rank() ? both : PartialShape::UnknownOfRank(2));
  return absl::OkStatus();
}

Status SparseCrossEntropyShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape features, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape labels, c.WithRank(1, 1));
  const int64_t rows = features.has_rank() ? features.dim(0) : -1;
  MR_ASSIGN_OR_RETURN(
      const int64_t batch, c.MergeDim(rows, labels.has_rank() ? labels.dim(0) : -1, "batch size of logits and labels"));
  c.set_output(0, PartialShape::Of({batch}));
  c.set_output(1, PartialShape::Of({batch, features.has_rank() ? features.dim(1) : -1}));
  return absl::OkStatus();
}

Output Column(const GraphBuilder& b, Output v) { return b.Op("ExpandDims", {v, b.Scalar<int32_t>(-1)}); }

// Through the loss, and through output 1, which is itself softmax minus something that does not depend on the logits.
Output LogitsGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  Output g = b.Mul(Column(b, c.dy(0)), c.y(1));
  if (!c.has_dy(1)) return g;
  Output softmax = b.Op("Softmax", {c.x(0)});
  return b.Add(g, b.Mul(b.Sub(c.dy(1), SumOfRows(b, b.Mul(c.dy(1), softmax))), softmax));
}

bool KnownEqual(Output a, Output b) { return a.shape().IsFullyDefined() && a.shape() == b.shape(); }

// As in TensorFlow, nothing reaches the labels through output 1.
Status CrossEntropyGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  Output logits = LogitsGrad(c);
  Output labels = b.Mul(Column(b, c.dy(0)), b.Neg(b.Op("LogSoftmax", {c.x(0)})));
  const bool may_broadcast = c.x(0).shape().IsFullyDefined() && c.x(1).shape().IsFullyDefined();
  if (may_broadcast && !KnownEqual(c.x(0), c.y(1))) logits = SumToShapeOf(b, logits, c.x(0));
  if (may_broadcast && !KnownEqual(c.x(1), c.y(1))) labels = SumToShapeOf(b, labels, c.x(1));
  c.set_dx(0, logits);
  c.set_dx(1, labels);
  return c.status();
}

Status SparseCrossEntropyGrad(GradContext& c) {
  c.set_dx(0, LogitsGrad(c));
  return c.status();
}

}  // namespace

void RegisterSoftmaxOps(OpRegistry& registry) {
  registry.Add("Softmax(logits:T) -> (softmax:T) | T in FLT")
      .Doc("exp(logits) divided by its sum over the last axis, without overflow.")
      .Shape(SoftmaxShape)
      .Gradient(SoftmaxGrad)
      .Example("f32[2,5]~")
      .Example("f64[2,2,3]~");
  registry.Add("LogSoftmax(logits:T) -> (logsoftmax:T) | T in FLT")
      .Doc("The logarithm of softmax over the last axis: logits - log(sum(exp(logits))), without overflow.")
      .Shape(SoftmaxShape)
      .Gradient(LogSoftmaxGrad)
      .Example("f32[2,5]~")
      .Example("f64[2,2,3]~");
  registry.Add("SoftmaxCrossEntropyWithLogits(features:T, labels:T) -> (loss:T, backprop:T) | T in FLT")
      .Doc(
          "Cross entropy between each row of labels and the softmax of the same row of logits, and its derivative by "
          "the logits. The two matrices broadcast.")
      .Shape(CrossEntropyShape)
      .Gradient(CrossEntropyGrad)
      .Example("f32[2,3]~, !f32[2,3]{0.25 0.5 0.25 1 0 0}")
      .Example("f64[4,3]~, !f64[4,3]{1 0 0 0 1 0 0 0 1 0 0 1}");
  registry
      .Add(
          "SparseSoftmaxCrossEntropyWithLogits(features:T, labels:Tlabels) -> (loss:T, backprop:T) | T in FLT; "
          "Tlabels in IDX=i64")
      .Doc(
          "Cross entropy of the softmax of each row of logits where the row's label is one class, and its derivative "
          "by the logits.")
      .Shape(SparseCrossEntropyShape)
      .Gradient(SparseCrossEntropyGrad)
      .Example("f32[2,3]~, i64[2]{2 0}")
      .Example("f64[3,2]~, i32[3]{1 1 0}");
}

}  // namespace millrace
