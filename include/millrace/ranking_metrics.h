// SPDX-License-Identifier: Apache-2.0
// Measures over many steps (metrics.h) of the k classes with the greatest predictions. predictions: [batch, classes];
// labels: int64 [batch] or [batch, n], the classes that each example has (the same one twice counts once, one that is
// no class is never found); weights: [batch].
#pragma once

#include "millrace/metrics.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace metrics {
namespace detail {

// How many of each example's labels are among the k, and how many there are, or k: [batch].
struct Found {
  Output hits, misses;
};
// misses: labels that are not among the k, or (of_labels false) classes among the k that are no label. `class_id`: of
// this class alone; below 0: of all.
inline Found FindTopK(Scope s, Output labels, Output predictions, int k, bool of_labels, int64_t class_id = -1) {
  const Operation best = s.Op("TopKV2", {predictions, k});
  if (!best) return {};
  const Attrs to_int64 = {{"DstT", DType::kInt64}};
  const Output top = s.Op("Cast", {best[1]}, to_int64);
  const Output batch =
      s.Op("StridedSlice", {s.Op("Shape", {top}), Tensor({0}), Tensor({1}), Tensor({1})}, {{"shrink_axis_mask", 1}});
  const Output rows = s.Op("Pack", {Outputs{batch, s.Const(Tensor(-1))}});
  const Output wanted = s.Op("Reshape", {s.Op("Cast", {labels}, to_int64), rows});
  if (class_id >= 0) {
    const auto has = [&](Output classes) {
      return s.Op("Any", {s.Op("Equal", {classes, s.Const(Tensor(class_id))}), Tensor({1})});
    };
    const Output is_found = has(top), is_wanted = has(wanted);
    return {And(s, is_found, is_wanted),
            of_labels ? And(s, is_wanted, Not(s, is_found)) : And(s, is_found, Not(s, is_wanted))};
  }
  const auto count = [&](Output a, Output b, const char* what) {
    const Operation set =
        s.Op("DenseToDenseSetOperation", {a, b}, {{"set_operation", what}, {"validate_indices", false}});
    if (!set) return Output();
    return Float(s, s.Op("SetSize", {set[0], set[1], set[2]}, {{"validate_indices", false}}));
  };
  return {count(top, wanted, "intersection"), of_labels ? count(wanted, top, "a-b") : count(top, wanted, "a-b")};
}
inline Metric RatioAtK(Scope s, Output labels, Output predictions, int k, Output weights, bool of_labels,
                       int64_t class_id) {
  const Found f = FindTopK(s, labels, predictions, k, of_labels, class_id);
  const Output hits = Sum(s, Weighted(s, f.hits, weights)), misses = Sum(s, Weighted(s, f.misses, weights));
  return SumsRatio(s, hits, s.Op("Add", {hits, misses}));
}

}  // namespace detail

// Of the labels, the part that is among the k; of one class from 0 on, or (-1) of all. As tf.metrics.recall_at_k.
inline Metric RecallAtK(const Scope& scope, Output labels, Output predictions, int k, Output weights = {},
                        int64_t class_id = -1) {
  return detail::RatioAtK(
      scope.SubScope("recall_at_" + std::to_string(k)), labels, predictions, k, weights, true, class_id);
}
// Of the k, the part that are labels. As tf.metrics.precision_at_k.
inline Metric PrecisionAtK(const Scope& scope, Output labels, Output predictions, int k, Output weights = {},
                           int64_t class_id = -1) {
  return detail::RatioAtK(
      scope.SubScope("precision_at_" + std::to_string(k)), labels, predictions, k, weights, false, class_id);
}
// The mean over examples of the average of the precision at 1 to k, at those places that have a label, over as many as
// there could be. As tf.metrics.average_precision_at_k.
inline Metric AveragePrecisionAtK(const Scope& scope, Output labels, Output predictions, int k, Output weights = {}) {
  using namespace detail;
  Scope s = scope.SubScope("average_precision_at_" + std::to_string(k));
  Output sum, before, count;
  for (int i = 1; i <= k; ++i) {  // the k-th place has a label when one more is found than in the places before it
    const Found f = FindTopK(s, labels, predictions, i, true);
    const Output gain = i == 1 ? f.hits : Output(s.Op("Sub", {f.hits, before}));
    const Output precision = s.Op("Mul", {s.Op("Div", {f.hits, static_cast<float>(i)}), gain});
    sum = i == 1 ? precision : Output(s.Op("Add", {sum, precision}));
    before = f.hits;
    count = s.Op("Add", {f.hits, f.misses});
  }
  const Output most = s.Op("Minimum", {count, static_cast<float>(k)});
  return Mean(s, Ratio(s, sum, most), weights);
}

}  // namespace metrics
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
