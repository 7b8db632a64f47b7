// SPDX-License-Identifier: Apache-2.0
// Losses with weights, as one number: the core's composites in scopes of TensorFlow's names.
#pragma once

#include "millrace/graph.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace losses {

// How losses of elements become one number.
struct Options {
  // A scalar, or of the rank of the losses with each dimension 1 or theirs.
  Input weights = 1.0f;
  // By what the sum of weighted losses is divided: "weighted_sum" (nothing), "weighted_mean" (the weights),
  // "weighted_sum_over_batch_size" (the number of losses), "weighted_sum_by_nonzero_weights" (that of weights other
  // than 0); "none": the weighted losses themselves.
  const char* reduction = "weighted_sum_by_nonzero_weights";
};

// The first of what a composite made; null where there is none.
inline Output First(const std::vector<Output>& made) { return made.empty() ? Output() : made[0]; }

// Losses of elements as one number, in the scope `inside`.
inline Output Weighted(const Scope& inside, Output losses, const Options& o) {
  return First(
      inside.WithName("/").Composite("ComputeWeightedLoss", {losses, o.weights}, {{"reduction", o.reduction}}));
}
// Losses of elements that the program has computed, as one number.
inline Output ComputeWeightedLoss(const Scope& s, Output losses, const Options& o = {}) {
  return Weighted(s.SubScope("weighted_loss"), losses, o);
}

// |predictions - labels|.
inline Output AbsoluteDifference(const Scope& s, Output labels, Output predictions, const Options& o = {}) {
  const Scope inside = s.SubScope("absolute_difference");
  return Weighted(inside, First(inside.WithName("/").Composite("AbsoluteDifference", {predictions, labels})), o);
}
// (predictions - labels)^2.
inline Output MeanSquaredError(const Scope& s, Output labels, Output predictions, const Options& o = {}) {
  Scope inside = s.SubScope("mean_squared_error");
  return Weighted(inside, inside.Op("SquaredDifference", {predictions, labels}), o);
}
// Squared up to an error of delta, linear beyond.
inline Output Huber(const Scope& s, Output labels, Output predictions, float delta = 1, const Options& o = {}) {
  const Scope inside = s.SubScope("huber_loss");
  return Weighted(inside, First(inside.WithName("/").Composite("HuberLoss", {predictions, labels, delta})), o);
}
// max(0, 1 - y logits); labels 0 and 1 are y -1 and 1.
inline Output Hinge(const Scope& s, Output labels, Output logits, const Options& o = {}) {
  const Scope inside = s.SubScope("hinge_loss");
  return Weighted(inside, First(inside.WithName("/").Composite("HingeLoss", {logits, labels})), o);
}
// The cross entropy of probabilities.
inline Output Log(const Scope& s, Output labels, Output predictions, float epsilon = 1e-7f, const Options& o = {}) {
  const Scope inside = s.SubScope("log_loss");
  return Weighted(inside, First(inside.WithName("/").Composite("LogLoss", {predictions, labels, epsilon})), o);
}
// 1 - labels . predictions, of unit vectors along `axis`.
inline Output CosineDistance(const Scope& s, Output labels, Output predictions, int64_t axis, const Options& o = {}) {
  const Scope inside = s.SubScope("cosine_distance_loss");
  return Weighted(
      inside, First(inside.WithName("/").Composite("CosineDistance", {predictions, labels}, {{"axis", axis}})), o);
}
namespace internal {
// The shape of x: a constant where it is known.
inline Output ShapeOf(Scope s, Output x) {
  Shape shape;
  bool known = s.graph().ShapeOf(x, &shape);
  std::vector<int32_t> dims;
  for (const int64_t d : shape) {
    known = known && d >= 0;
    dims.push_back(static_cast<int32_t>(d));
  }
  if (!known) return s.Op("Shape", {x});
  return s.WithName("Shape").Const(Tensor::Of<int32_t>({static_cast<int64_t>(dims.size())}, dims));
}
inline Output RankOf(Scope s, Output x) {
  Shape shape;
  if (!s.graph().ShapeOf(x, &shape)) return s.Op("Rank", {x});
  return s.WithName("Rank").Const(static_cast<int32_t>(shape.size()));
}
inline Output LessOne(const Scope& scope, Output rank) {
  Scope s = scope.SubScope("Sub");
  const Output one = s.WithName("y").Const(int32_t{1});
  return s.WithName("/").Op("Sub", {rank, one});
}
// A matrix whose rows are those of the last dimension.
inline Output RowsOf(Scope s, Output x) {
  const Output rank = RankOf(s, x), shape = ShapeOf(s, x), last = LessOne(s, rank);
  Scope slice = s.SubScope("Slice");
  const Output begin = slice.WithName("begin").Op("Pack", {std::vector<Output>{last}});
  const Output size = slice.WithName("size").Const({1}), width = slice.WithName("/").Op("Slice", {shape, begin, size});
  Scope concat = s.SubScope("concat");
  const Output rows = concat.WithName("values_0").Const({-1}), axis = concat.WithName("axis").Const(int32_t{0});
  return s.Op("Reshape", {x, concat.WithName("/").Op("ConcatV2", {std::vector<Output>{rows, width}, axis})});
}
}  // namespace internal

// The cross entropy of each row of the last dimension, in the scope `inside`: TensorFlow's nodes, which nobody reads
// where the logits are rows already.
inline Output SoftmaxCrossEntropyOfEach(Scope inside, Output labels, Output logits) {
  Shape shape;
  const bool plain = inside.graph().ShapeOf(logits, &shape) && shape.size() == 2;
  const Output rank = internal::RankOf(inside, logits), sizes = internal::ShapeOf(inside, logits);
  const Output rows = internal::RowsOf(inside, logits), wanted = internal::RowsOf(inside, labels);
  const Output loss =
      inside.WithName("/").Op("SoftmaxCrossEntropyWithLogits", {plain ? logits : rows, plain ? labels : wanted});
  const Output last = internal::LessOne(inside, rank);
  Scope slice = inside.SubScope("Slice");
  const Output begin = slice.WithName("begin").Const({0});
  const Output count = slice.WithName("size").Op("Pack", {std::vector<Output>{last}});
  const Output kept = slice.WithName("/").Op("Slice", {sizes, begin, count});
  const Output shaped = inside.Op("Reshape", {loss, kept});
  return plain ? loss : shaped;
}
// The same of class numbers; logits [batch, classes].
inline Output SparseSoftmaxCrossEntropyOfEach(Scope inside, Output labels, Output logits) {
  internal::ShapeOf(inside, labels);  // TensorFlow's, which nobody reads
  return inside.Op("SparseSoftmaxCrossEntropyWithLogits", {logits, labels});
}

// The cross entropy of distributions `labels`, to which no gradient flows.
inline Output SoftmaxCrossEntropy(const Scope& s, Output labels, Output logits, const Options& o = {}) {
  Scope inside = s.SubScope("softmax_cross_entropy_loss");
  const Output known = inside.WithName("labels_stop_gradient").Op("StopGradient", {labels});
  return Weighted(inside, SoftmaxCrossEntropyOfEach(inside.SubScope("xentropy"), known, logits), o);
}
// The cross entropy of class numbers.
inline Output SparseSoftmaxCrossEntropy(const Scope& s, Output labels, Output logits, const Options& o = {}) {
  const Scope inside = s.SubScope("sparse_softmax_cross_entropy_loss");
  return Weighted(inside, SparseSoftmaxCrossEntropyOfEach(inside.SubScope("xentropy"), labels, logits), o);
}
// The cross entropy of independent classes.
inline Output SigmoidCrossEntropy(const Scope& s, Output labels, Output logits, const Options& o = {}) {
  Scope inside = s.SubScope("sigmoid_cross_entropy_loss");
  return Weighted(
      inside, First(inside.WithName("xentropy").Composite("SigmoidCrossEntropyWithLogits", {logits, labels})), o);
}
// The mean over pairs of elements of an example of ((p_i - p_j) - (y_i - y_j))^2, summed over the examples.
inline Output MeanPairwiseSquaredError(const Scope& s, Output labels, Output predictions, Input weights = 1.0f) {
  const Scope inside = s.SubScope("mean_pairwise_squared_error");
  return First(inside.WithName("/").Composite("MeanPairwiseSquaredError", {predictions, labels, weights}));
}

}  // namespace losses
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
