// SPDX-License-Identifier: Apache-2.0
// Measures over many steps: run `update` in each step, then read `value`. Run `reset` first, and to begin again.
//
//   millrace::Metric accuracy = millrace::metrics::Accuracy(scope, labels, predictions);
//   session.RunTargets({accuracy.reset});
//   for (...) session.RunTargets({accuracy.update}, batch);
//   float a = session.Run({accuracy.value})[0].scalar<float>();
//
// All are of type float. `weights`, where given, count each element; they have the values' shape or one that broadcasts
// to it. Their variables are local: no checkpoint has them.
#pragma once

#include <algorithm>

#include "millrace/control_flow.h"
#include "millrace/variable.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// A measure over steps.
struct Metric {
  Output value;   // of what was counted so far; 0 before that
  Output update;  // counts what this step has, and is the value with it
  // Makes it begin again.
  Operation reset;
};

namespace metrics {
namespace detail {

inline Output Float(Scope s, Output x) {
  return x && x.dtype() == DType::kFloat ? x : Output(s.Op("Cast", {x}, {{"DstT", DType::kFloat}}));
}
// All elements of x together.
inline Output Sum(Scope s, Output x) { return s.Op("Sum", {s.Op("Reshape", {x, Tensor({-1})}), Tensor({0})}); }
inline Output Weighted(Scope s, Output x, Output weights) {
  return weights ? Output(s.Op("Mul", {x, Float(s, weights)})) : x;
}
// As many elements as x has, or the sum of their weights.
inline Output Count(Scope s, Output x, Output weights) { return Sum(s, Weighted(s, s.Op("OnesLike", {x}), weights)); }
inline Output Ratio(Scope s, Output numerator, Output denominator) {
  return s.Op("DivNoNan", {numerator, denominator});
}

// A sum over steps.
struct Total {
  Output read, update;
  Operation reset;
};
inline Total AddTotal(Scope s, const std::string& name, Output value, const Shape& shape = {}) {
  size_t size = 1;
  for (const int64_t n : shape) size *= static_cast<size_t>(n);
  const Output zero = s.WithName(name + "/zero").Const(Tensor::Of(shape, std::vector<float>(size, 0)));
  const LocalVariable v = AddLocalVariable(s, name, zero);
  return {v.read, s.WithName(name + "/update").Op("AssignAdd", {v.ref, value}), v.initializer};
}
// numerator / denominator, both summed over steps.
inline Metric SumsRatio(Scope s, Output numerator, Output denominator) {
  const Total n = AddTotal(s, "total", numerator), d = AddTotal(s, "count", denominator);
  return {Ratio(s.WithName("value"), n.read, d.read), Ratio(s.WithName("update_op"), n.update, d.update),
          Group(s, {n.reset, d.reset})};
}
inline Output And(Scope s, Output a, Output b) { return Float(s, s.Op("LogicalAnd", {a, b})); }
inline Output Not(Scope s, Output a) { return s.Op("LogicalNot", {a}); }
inline Output Bool(Scope s, Output a) {
  return a && a.dtype() == DType::kBool ? a : Output(s.Op("Cast", {a}, {{"DstT", DType::kBool}}));
}

}  // namespace detail

// The mean of all elements, as weights count them.
inline Metric Mean(const Scope& scope, Output values, Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("mean");
  values = Float(s, values);
  return SumsRatio(s, Sum(s, Weighted(s, values, weights)), Count(s, values, weights));
}
// How often both are equal.
inline Metric Accuracy(const Scope& scope, Output labels, Output predictions, Output weights = {}) {
  Scope s = scope.SubScope("accuracy");
  if (labels && predictions && labels.dtype() != predictions.dtype()) {
    predictions = s.Op("Cast", {predictions}, {{"DstT", labels.dtype()}});
  }
  return Mean(s, s.Op("Equal", {predictions, labels}), weights);
}
// The mean of (predictions - labels)^2.
inline Metric MeanSquaredError(const Scope& scope, Output labels, Output predictions, Output weights = {}) {
  Scope s = scope.SubScope("mean_squared_error");
  return Mean(s, s.Op("SquaredDifference", {predictions, labels}), weights);
}
// Its root.
inline Metric RootMeanSquaredError(const Scope& scope, Output labels, Output predictions, Output weights = {}) {
  Scope s = scope.SubScope("root_mean_squared_error");
  Metric m = MeanSquaredError(s, labels, predictions, weights);
  return {s.Op("Sqrt", {m.value}), s.Op("Sqrt", {m.update}), m.reset};
}
// The mean of |predictions - labels|.
inline Metric MeanAbsoluteError(const Scope& scope, Output labels, Output predictions, Output weights = {}) {
  Scope s = scope.SubScope("mean_absolute_error");
  return Mean(s, s.Op("Abs", {s.Op("Sub", {predictions, labels})}), weights);
}
// The mean of differences by a normalizer of the same shape; 0 where that is 0.
inline Metric MeanRelativeError(const Scope& scope, Output labels, Output predictions, Output normalizer,
                                Output weights = {}) {
  Scope s = scope.SubScope("mean_relative_error");
  const Output off = s.Op("Abs", {s.Op("Sub", {labels, predictions})});
  return Mean(s, detail::Ratio(s, off, normalizer), weights);
}
// 1 less the mean of the products of labels and predictions, which are unit vectors along the dimension `dim`.
// `weights` have 1 there.
inline Metric MeanCosineDistance(const Scope& scope, Output labels, Output predictions, int dim, Output weights = {}) {
  Scope s = scope.SubScope("mean_cosine_distance");
  const Output along = s.Op("Sum", {s.Op("Mul", {predictions, labels}), Tensor({dim})}, {{"keep_dims", true}});
  const Metric m = Mean(s, along, weights);
  return {s.Op("Sub", {1.f, m.value}), s.Op("Sub", {1.f, m.update}), m.reset};
}
// The mean of each element: of the values' shape, which must be known.
inline Metric MeanTensor(const Scope& scope, Output values, Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("mean_tensor");
  Shape shape;
  const bool has_rank = values && s.graph().ShapeOf(values, &shape);
  if (!has_rank || std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; })) {
    s.Note(Status(TF_INVALID_ARGUMENT, "the mean of each element wants values whose shape is known"));
    return {};
  }
  values = Float(s, values);
  const Total n = AddTotal(s, "total_tensor", Weighted(s, values, weights), shape),
              d = AddTotal(s, "count_tensor", Weighted(s, s.Op("OnesLike", {values}), weights), shape);
  return {Ratio(s.WithName("value"), n.read, d.read), Ratio(s.WithName("update_op"), n.update, d.update),
          Group(s, {n.reset, d.reset})};
}
// How often the label is among the k greatest; predictions float [batch, classes], labels [batch].
inline Metric InTopK(const Scope& scope, Output labels, Output predictions, int k) {
  Scope s = scope.SubScope("in_top_k");
  return Mean(s, s.Op("InTopK", {predictions, labels}, {{"k", k}}));
}
// Of what is predicted to be true, the part that is. Numbers other than 0 are true.
inline Metric Precision(const Scope& scope, Output labels, Output predictions, Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("precision");
  const Output l = Bool(s, labels), p = Bool(s, predictions);
  return SumsRatio(s, Sum(s, Weighted(s, And(s, l, p), weights)), Sum(s, Weighted(s, Float(s, p), weights)));
}
// Of what is true, the part that is predicted to be.
inline Metric Recall(const Scope& scope, Output labels, Output predictions, Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("recall");
  const Output l = Bool(s, labels), p = Bool(s, predictions);
  return SumsRatio(s, Sum(s, Weighted(s, And(s, l, p), weights)), Sum(s, Weighted(s, Float(s, l), weights)));
}

namespace detail {
inline Metric CountOf(const Scope& scope, const char* name, bool label, bool said, Output labels, Output predictions,
                      Output weights) {
  Scope s = scope.SubScope(name);
  const auto is = [&](Output x, bool wanted) { return wanted ? Bool(s, x) : Not(s, Bool(s, x)); };
  const Total t = AddTotal(s, "count", Sum(s, Weighted(s, And(s, is(labels, label), is(predictions, said)), weights)));
  return {t.read, t.update, t.reset};
}
}  // namespace detail

// How many elements are true and predicted to be, and so on; numbers other than 0 are true.
inline Metric TruePositives(const Scope& s, Output labels, Output predictions, Output weights = {}) {
  return detail::CountOf(s, "true_positives", true, true, labels, predictions, weights);
}
// Predicted to be true, and false.
inline Metric FalsePositives(const Scope& s, Output labels, Output predictions, Output weights = {}) {
  return detail::CountOf(s, "false_positives", false, true, labels, predictions, weights);
}
// Predicted to be false, and false.
inline Metric TrueNegatives(const Scope& s, Output labels, Output predictions, Output weights = {}) {
  return detail::CountOf(s, "true_negatives", false, false, labels, predictions, weights);
}
// Predicted to be false, and true.
inline Metric FalseNegatives(const Scope& s, Output labels, Output predictions, Output weights = {}) {
  return detail::CountOf(s, "false_negatives", true, false, labels, predictions, weights);
}

// The mean over classes of how many elements are of the class and predicted to be, over how many are one of both;
// classes that none is are left out. Labels and predictions: integers from 0 to num_classes - 1, of one shape. As
// TensorFlow's tf.metrics.mean_iou.
inline Metric MeanIou(const Scope& scope, Output labels, Output predictions, int64_t num_classes, Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("mean_iou");
  const auto column = [&](Output x) {
    return s.Op("Cast", {s.Op("Reshape", {x, Tensor({-1, 1})})}, {{"DstT", DType::kInt64}});
  };
  const Output pairs = s.Op("ConcatV2", {Outputs{column(labels), column(predictions)}, 1});
  Output each = s.Op("OnesLike", {Float(s, predictions)});
  each = s.Op("Reshape", {Weighted(s, each, weights), Tensor({-1})});
  const Output now = s.Op("ScatterNd", {pairs, each, Tensor({num_classes, num_classes})});
  const Total t = AddTotal(s, "total_confusion_matrix", now, {num_classes, num_classes});
  const auto mean = [&](const char* name, Output matrix) {
    Scope m = s.SubScope(name);
    const Output both = m.Op("MatrixDiagPart", {matrix});
    const Output either =
        m.Op("Sub", {m.Op("Add", {m.Op("Sum", {matrix, Tensor({0})}), m.Op("Sum", {matrix, Tensor({1})})}), both});
    const Output classes = Sum(m, Float(m, m.Op("Greater", {either, 0.f})));
    return Ratio(m, Sum(m, Ratio(m, both, either)), classes);
  };
  return {mean("value", t.read), mean("update_op", t.update), t.reset};
}

// The mean over classes of the part of a class's elements that is predicted to be of it; classes that none is count as
// 0. Labels and predictions: integers from 0 to num_classes - 1. As TensorFlow's tf.metrics.mean_per_class_accuracy.
inline Metric MeanPerClassAccuracy(const Scope& scope, Output labels, Output predictions, int64_t num_classes,
                                   Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("mean_accuracy");
  const auto flat = [&](Output x) {
    return s.Op("Cast", {s.Op("Reshape", {x, Tensor({-1})})}, {{"DstT", DType::kInt64}});
  };
  const Output label = flat(labels), said = flat(predictions);
  Output each = s.Op("OnesLike", {Float(s, predictions)});
  each = s.Op("Reshape", {Weighted(s, each, weights), Tensor({-1})});
  const Output at = s.Op("ExpandDims", {label, 1});
  const auto total = [&](const char* name, Output values) {
    return AddTotal(s, name, s.Op("ScatterNd", {at, values, Tensor({num_classes})}), {num_classes});
  };
  const Total count = total("total", each),
              right = total("count", s.Op("Mul", {each, Float(s, s.Op("Equal", {label, said}))}));
  const auto mean = [&](const char* name, Output hits, Output all) {
    Scope m = s.SubScope(name);
    return Output(m.Op("Mean", {Ratio(m, hits, all), Tensor({0})}));
  };
  return {mean("value", right.read, count.read), mean("update_op", right.update, count.update),
          Group(s, {right.reset, count.reset})};
}
// How many values lie below the threshold, as a part of all.
inline Metric PercentageBelow(const Scope& scope, Output values, float threshold, Output weights = {}) {
  Scope s = scope.SubScope("percentage_below_threshold");
  return Mean(s, s.Op("Less", {values, threshold}), weights);
}

// ---- by thresholds ----
// Predictions are probabilities, which count as true from a threshold on. Where several thresholds are given, value and
// update have one element for each.

namespace detail {

constexpr float kThresholdEpsilon = 1e-7f;

// `count` of them over [0, 1], the first below it and the last above it.
inline std::vector<float> EvenThresholds(int count) {
  std::vector<float> at = {-kThresholdEpsilon};
  for (int i = 1; i + 1 < count; ++i) at.push_back(static_cast<float>(i) / static_cast<float>(count - 1));
  at.push_back(1 + kThresholdEpsilon);
  return at;
}

// Counts by threshold: [thresholds].
struct Counts {
  Output tp, fn, fp, tn;
};
struct TotalCounts {
  Counts read, update;
  Operation reset;
};
inline TotalCounts CountByThreshold(Scope s, Output labels, Output predictions, Output weights,
                                    const std::vector<float>& at) {
  const auto count = static_cast<int64_t>(at.size());
  const Output thresholds = s.Const(Tensor::Of({count, 1}, at));
  const Output flat = s.Op("Reshape", {Float(s, predictions), Tensor({1, -1})});
  const Output is = s.Op("Reshape", {Bool(s, labels), Tensor({1, -1})});
  const Output said = s.Op("Greater", {flat, thresholds});  // [thresholds, elements]
  Output weight;
  if (weights) {
    const Output whole = s.Op("Mul", {s.Op("OnesLike", {Float(s, predictions)}), Float(s, weights)});
    weight = s.Op("Reshape", {whole, Tensor({1, -1})});
  }
  const auto total = [&](const char* name, Output a, Output b) {
    return AddTotal(s, name, s.Op("Sum", {Weighted(s, And(s, a, b), weight), Tensor({1})}), {count});
  };
  const Total tp = total("true_positives", said, is), fn = total("false_negatives", Not(s, said), is),
              fp = total("false_positives", said, Not(s, is)), tn = total("true_negatives", Not(s, said), Not(s, is));
  return {{tp.read, fn.read, fp.read, tn.read},
          {tp.update, fn.update, fp.update, tn.update},
          Group(s, {tp.reset, fn.reset, fp.reset, tn.reset})};
}
// of(scope, counts) of what was counted so far and of what is counted now.
template <typename Of>
Metric OfCounts(Scope s, const TotalCounts& counts, Of of) {
  return {of(s.SubScope("value"), counts.read), of(s.SubScope("update_op"), counts.update), counts.reset};
}
inline Output RatioOfSum(Scope s, Output a, Output b) {
  return s.Op("Div", {a, s.Op("Add", {s.Op("Add", {a, b}), kThresholdEpsilon})});
}

}  // namespace detail

// Of true over false positives, or of precision over recall.
enum class Curve { kRoc, kPrecisionRecall };
// What is between two thresholds: a trapezoid; of precision over recall what Davis and Goadrich (2006) interpolate
// (elsewhere a trapezoid); the lesser, or the greater, of the two heights.
enum class Summation { kTrapezoidal, kCarefulInterpolation, kMinoring, kMajoring };

namespace detail {

// All but the last, and all but the first, of so many elements.
inline Output Front(Scope s, Output x, int count) { return s.Op("Slice", {x, Tensor({0}), Tensor({count - 1})}); }
inline Output Back(Scope s, Output x, int count) { return s.Op("Slice", {x, Tensor({1}), Tensor({count - 1})}); }

// True positives are linear in those that are called positive.
inline Output InterpolatedArea(Scope s, const Counts& c, int count) {
  const auto above = [&](Output x) { return s.Op("Greater", {x, 0.f}); };
  const auto not_negative = [&](Output x) { return s.Op("Maximum", {x, 0.f}); };
  const Output called = s.Op("Add", {c.tp, c.fp}), now = Back(s, called, count), before = Front(s, called, count);
  const Output found = Back(s, c.tp, count), missed = Back(s, c.fn, count);
  const Output gain = s.Op("Sub", {Front(s, c.tp, count), found});
  const Output slope = Ratio(s, gain, not_negative(s.Op("Sub", {before, now})));
  const Output start = s.Op("Sub", {found, s.Op("Mul", {slope, now})});
  const Output both = s.Op("LogicalAnd", {above(before), above(now)});
  const Output share = s.Op("Select", {both, Ratio(s, before, not_negative(now)), s.Op("OnesLike", {now})});
  const Output part = s.Op("Mul", {slope, s.Op("Add", {gain, s.Op("Mul", {start, s.Op("Log", {share})})})});
  return Sum(s, Ratio(s, part, not_negative(s.Op("Add", {found, missed}))));
}

}  // namespace detail

// The area under a curve by `num_thresholds` thresholds. As TensorFlow's tf.metrics.auc.
inline Metric Auc(const Scope& scope, Output labels, Output predictions, Output weights = {}, int num_thresholds = 200,
                  Curve curve = Curve::kRoc, Summation summation = Summation::kTrapezoidal) {
  using namespace detail;
  Scope s = scope.SubScope("auc");
  const std::vector<float> at = EvenThresholds(num_thresholds);
  const auto count = static_cast<int>(at.size());
  const bool is_roc = curve == Curve::kRoc;
  return OfCounts(s, CountByThreshold(s, labels, predictions, weights, at), [&](Scope a, const Counts& c) {
    if (!is_roc && summation == Summation::kCarefulInterpolation) return InterpolatedArea(a, c, count);
    const auto plus = [&](Output x) { return Output(a.Op("Add", {x, 1e-6f})); };
    const auto share = [&](Output part, Output x, Output y) {
      return Output(a.Op("Div", {part, plus(a.Op("Add", {x, y}))}));
    };
    const Output recall = share(plus(c.tp), c.tp, c.fn);
    const Output along = is_roc ? share(c.fp, c.fp, c.tn) : recall;
    const Output height = is_roc ? recall : share(plus(c.tp), c.tp, c.fp);
    const Output left = Front(a, height, count), right = Back(a, height, count);
    const Output between =
        summation == Summation::kMinoring ? a.Op("Minimum", {left, right})
        : summation == Summation::kMajoring
            ? a.Op("Maximum", {left, right})
            : a.Op("Mul", {a.Op("Add", {left, right}), 0.5f});
    const Output width = a.Op("Sub", {Front(a, along, count), Back(a, along, count)});
    return Sum(a, a.Op("Mul", {width, between}));
  });
}

// For each threshold the part of the predictions above it whose labels are true: [thresholds].
inline Metric PrecisionAtThresholds(const Scope& scope, Output labels, Output predictions,
                                    const std::vector<float>& thresholds, Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("precision_at_thresholds");
  return OfCounts(s, CountByThreshold(s, labels, predictions, weights, thresholds), [](Scope a, const Counts& c) {
    return RatioOfSum(a, c.tp, c.fp);
  });
}
// For each threshold the part of the true labels whose predictions are above it: [thresholds].
inline Metric RecallAtThresholds(const Scope& scope, Output labels, Output predictions,
                                 const std::vector<float>& thresholds, Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("recall_at_thresholds");
  return OfCounts(s, CountByThreshold(s, labels, predictions, weights, thresholds), [](Scope a, const Counts& c) {
    return RatioOfSum(a, c.tp, c.fn);
  });
}

namespace detail {

inline Metric CountAtThresholds(const char* name, Output Counts::* which, const Scope& scope, Output labels,
                                Output predictions, const std::vector<float>& thresholds, Output weights) {
  Scope s = scope.SubScope(name);
  const TotalCounts counts = CountByThreshold(s, labels, predictions, weights, thresholds);
  return {counts.read.*which, counts.update.*which, counts.reset};
}

// `wanted` at the threshold at which `given` is as near to `target` as it comes, the first of several.
template <typename Rate>
Metric RateAtRate(Scope s, Output labels, Output predictions, Output weights, float target, int num_thresholds,
                  Rate given, Rate wanted) {
  const TotalCounts counts = CountByThreshold(s, labels, predictions, weights, EvenThresholds(num_thresholds));
  return OfCounts(s, counts, [&](Scope a, const Counts& c) {
    const Output off = a.Op("Abs", {a.Op("Sub", {given(a, c), target})});
    const Output nearest = a.Op("ArgMin", {off, 0}, {{"output_type", DType::kInt32}});
    return Output(a.Op("Gather", {wanted(a, c), nearest}));
  });
}
inline Output Sensitivity(Scope s, const Counts& c) { return RatioOfSum(s, c.tp, c.fn); }
inline Output Specificity(Scope s, const Counts& c) { return RatioOfSum(s, c.tn, c.fp); }

}  // namespace detail

// For each threshold how many predictions above it have true labels: [thresholds].
inline Metric TruePositivesAtThresholds(const Scope& s, Output labels, Output predictions,
                                        const std::vector<float>& thresholds, Output weights = {}) {
  return detail::CountAtThresholds("true_positives", &detail::Counts::tp, s, labels, predictions, thresholds, weights);
}
// How many above it have false ones.
inline Metric FalsePositivesAtThresholds(const Scope& s, Output labels, Output predictions,
                                         const std::vector<float>& thresholds, Output weights = {}) {
  return detail::CountAtThresholds("false_positives", &detail::Counts::fp, s, labels, predictions, thresholds, weights);
}
// How many that are not above it have false ones.
inline Metric TrueNegativesAtThresholds(const Scope& s, Output labels, Output predictions,
                                        const std::vector<float>& thresholds, Output weights = {}) {
  return detail::CountAtThresholds("true_negatives", &detail::Counts::tn, s, labels, predictions, thresholds, weights);
}
// How many that are not above it have true ones.
inline Metric FalseNegativesAtThresholds(const Scope& s, Output labels, Output predictions,
                                         const std::vector<float>& thresholds, Output weights = {}) {
  return detail::CountAtThresholds("false_negatives", &detail::Counts::fn, s, labels, predictions, thresholds, weights);
}
// The part of the true ones that is found where the part of the false ones that is left out is nearest to
// `specificity`.
inline Metric SensitivityAtSpecificity(const Scope& scope, Output labels, Output predictions, float specificity,
                                       Output weights = {}, int num_thresholds = 200) {
  return detail::RateAtRate(scope.SubScope("sensitivity_at_specificity"), labels, predictions, weights, specificity,
                            num_thresholds, detail::Specificity, detail::Sensitivity);
}
// The part of the false ones that is left out where the part of the true ones that is found is nearest to
// `sensitivity`.
inline Metric SpecificityAtSensitivity(const Scope& scope, Output labels, Output predictions, float sensitivity,
                                       Output weights = {}, int num_thresholds = 200) {
  return detail::RateAtRate(scope.SubScope("specificity_at_sensitivity"), labels, predictions, weights, sensitivity,
                            num_thresholds, detail::Sensitivity, detail::Specificity);
}

}  // namespace metrics
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
