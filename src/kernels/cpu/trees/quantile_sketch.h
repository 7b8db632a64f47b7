// SPDX-License-Identifier: Apache-2.0
// Approximate quantiles of a stream of weighted numbers, in memory that grows with the logarithm of its length: Zhang
// and Wang, "A Fast Algorithm for Approximate Quantiles in High Speed Data Streams" (2007), with weights as in Chen and
// Guestrin, "XGBoost" (2016), appendix. Sums of weights are kept in float and taken in TensorFlow's order, so that
// equal streams give equal numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace millrace {

// A value of the stream, the weight of those that equal it, and bounds of the weight before it and up to it.
struct QuantileEntry {
  float value = 0;
  float weight = 0;
  float min_rank = 0;
  float max_rank = 0;

  float before() const { return max_rank - weight; }  // at most this is before it
  float after() const { return min_rank + weight; }   // at least this is up to it
};

// Entries in the order of their values.
class QuantileSummary {
 public:
  QuantileSummary() = default;
  explicit QuantileSummary(std::vector<QuantileEntry> entries) : entries_(std::move(entries)) {}
  const std::vector<QuantileEntry>& entries() const { return entries_; }
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  float total_weight() const { return entries_.empty() ? 0 : entries_.back().max_rank; }
  void Clear() { entries_.clear(); }

  // Of both streams. The error is that of the worse one.
  void Merge(const QuantileSummary& other);
  // Keeps about `size` entries (at least two), the first and the last among them. Adds at most max(1 / size, epsilon)
  // to the error.
  void Compress(int64_t size, double epsilon);
  // Of ranks, as a part of the total weight.
  double Error() const;

  // About `count` values of the stream whose ranks are far apart, ascending.
  std::vector<float> Boundaries(int64_t count) const;
  // The values at ranks 0, 1 / count .. 1. `count` is at least 2.
  std::vector<float> Quantiles(int64_t count) const;

 private:
  std::vector<QuantileEntry> entries_;
};

// A stream of at most about `max_elements` numbers whose quantiles have errors of at most `epsilon`. A step may stop in
// each of its functions (base/stop_scope.h), which leaves it without some of its numbers.
class QuantileStream {
 public:
  static Status Check(float epsilon, int64_t max_elements);
  QuantileStream(float epsilon, int64_t max_elements);  // checked

  // What has no positive weight is passed over.
  void Push(float value, float weight);
  void Push(QuantileSummary summary);
  // Of all that has come. The stream is empty afterwards.
  QuantileSummary Finish();

 private:
  struct Weighted {
    float value;
    float weight;
  };
  void Flush();
  void Raise(QuantileSummary summary);

  double epsilon_;
  int64_t block_size_ = 2;  // of a level's summary
  size_t buffer_size_ = 0;  // how many wait
  std::vector<Weighted> buffer_;
  std::vector<QuantileSummary> levels_;  // one stands for twice as many elements as the one before
};

}  // namespace millrace
