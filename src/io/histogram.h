// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "wire/event.h"

namespace millrace {

// Counts numbers in the buckets that histogram summaries always have: they grow by a tenth, from 1e-12 to 1e20, in both
// directions. Numbers must be finite.
class Histogram {
 public:
  Histogram();
  void Add(double v) {
    Count(v);
    AddToSums(v);
  }
  // The halves of Add. Counts may be made in any order and merged; sums depend on the order of their numbers.
  void Count(double v);
  void AddToSums(double v) {
    sum_ += v;
    sum_squares_ += v * v;
  }
  void MergeCounts(const Histogram& other);
  wire::HistogramProto ToProto() const;  // runs of empty buckets are one

 private:
  std::vector<double> counts_;
  double min_, max_;
  double num_ = 0, sum_ = 0, sum_squares_ = 0;
};

}  // namespace millrace
