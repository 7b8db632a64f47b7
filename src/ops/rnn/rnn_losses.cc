// SPDX-License-Identifier: Apache-2.0
// Composites: losses of sequences.
#include "ops/rnn/rnn_composites.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;

Output CrossEntropy(const GraphBuilder& b, Output logits, Output labels) {
  Node* n = b.OpNode("SparseSoftmaxCrossEntropyWithLogits", {logits, labels});
  return n ? n->output(0) : Output();
}

// A weighted mean over `axes`; weights that are all zero give zero.
Output WeightedMean(const GraphBuilder& b, Output values, Output weights, Output axes) {
  const Output tiny = b.ScalarOf(BaseType(weights.dtype()), 1e-12);
  return b.Div(b.Sum(b.Mul(values, weights), axes), b.Add(b.Sum(weights, axes), tiny));
}

Outputs SequenceLoss(const GraphBuilder& b, const CompositeCall& c) {
  const Output logits = c.x("logits"), targets = c.x("targets"), weights = c.x("weights");
  MR_ASSIGN_OR_RETURN(const bool over_time, c.Attr<bool>("average_across_timesteps"));
  MR_ASSIGN_OR_RETURN(const bool over_batch, c.Attr<bool>("average_across_batch"));
  const PartialShape shape = logits.shape();
  if (shape.has_rank() && shape.rank() != 3) {
    return InvalidArgument("SequenceLoss: logits must be [batch, steps, classes], got ", shape.ToString());
  }
  const Output all = b.Shape(logits);
  const Output classes =
      b.Op("StridedSlice", {all, b.Vector<int32_t>({2}), b.Vector<int32_t>({3}), b.Vector<int32_t>({1})});
  const Output rows = b.Op("ConcatV2", {std::vector<Output>{b.Vector<int32_t>({-1}), classes}, b.Scalar<int32_t>(0)});
  const Output each = CrossEntropy(b, b.Reshape(logits, rows), b.Reshape(targets, b.Vector<int32_t>({-1})));
  const Output grid = b.Reshape(each, b.Shape(targets));
  if (!over_time && !over_batch) return std::vector<Output>{b.Mul(grid, weights)};
  const Output axes = over_time && over_batch ? b.Vector<int32_t>({0, 1}) : b.Vector<int32_t>({over_time ? 1 : 0});
  return std::vector<Output>{WeightedMean(b, grid, weights, axes)};
}

Outputs SequenceLossByExample(const GraphBuilder& b, const CompositeCall& c) {
  const std::vector<Output> logits = c.list("logits"), targets = c.list("targets"), weights = c.list("weights");
  MR_ASSIGN_OR_RETURN(const bool average, c.Attr<bool>("average_across_timesteps"));
  std::vector<Output> losses;
  for (size_t i = 0; i < logits.size(); ++i) {
    losses.push_back(b.Mul(CrossEntropy(b, logits[i], b.Reshape(targets[i], b.Vector<int32_t>({-1}))), weights[i]));
  }
  Output loss = b.Op("AddN", {losses});
  if (average) {
    loss = b.Div(loss, b.Add(b.Op("AddN", {weights}), b.ScalarOf(BaseType(loss.dtype()), 1e-12)));
  }
  return std::vector<Output>{loss};
}

}  // namespace

void RegisterSequenceLosses(CompositeRegistry& r) {
  r.Add(
       "SequenceLoss(logits:T, targets:Tlabels, weights:T) -> (loss:T) | T in FLT; Tlabels in IDX=i32; "
       "average_across_timesteps:bool=true; average_across_batch:bool=true")
      .Doc(
          "Weighted cross entropy of a batch of sequences: logits [batch, steps, classes], targets (class numbers) and "
          "weights [batch, steps], averaged over what is asked for; weights of 0 leave padding out.")
      .Expand(SequenceLoss)
      .Example("f32[2,2,3]~, i32[2,2]{0 1 2 0}, !f32[2,2]{1 1 1 0}");
  r.Add(
       "SequenceLossByExample(logits:N*T, targets:N*Tlabels, weights:N*T) -> (log_perps:T) | T in FLT; "
       "Tlabels in IDX=i32; N:int>=1; average_across_timesteps:bool=true")
      .Doc(
          "Weighted cross entropy of each example of a batch of sequences that come step by step: logits [batch, "
          "classes], targets and weights [batch] a step.")
      .Expand(SequenceLossByExample)
      .Example("f32[2,3]~, f32[2,3]~, i32[2]{0 2}, i32[2]{1 1}, !f32[2]{1 1}, !f32[2]{1 0} | N=2");
}

}  // namespace millrace
