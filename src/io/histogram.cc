// SPDX-License-Identifier: Apache-2.0
#include "io/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace millrace {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

// Bucket i holds limit[i - 1] <= v < limit[i].
std::vector<double> MakeLimits() {
  std::vector<double> positive;
  for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
  positive.push_back(kLargest);
  std::vector<double> limits;
  for (auto it = positive.rbegin(); it != positive.rend(); ++it) limits.push_back(-*it);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

const std::vector<double>& Limits() {
  static const std::vector<double>& limits = *new std::vector<double>(MakeLimits());
  return limits;
}

// By sign, exponent and the first four digits of a number: the bucket of the least number that begins so. From there to
// the number's own bucket it is at most two steps, since buckets grow by a tenth and numbers that begin alike differ by
// a sixteenth at most.
std::vector<uint16_t> MakeStarts() {
  std::vector<uint16_t> starts(size_t{1} << 16);
  for (uint64_t key = 0; key < starts.size(); ++key) {
    const bool negative = key >> 15 != 0;
    const double least = std::bit_cast<double>(key << 48 | (negative ? 0xffffffffffffu : 0u));
    const auto above = std::upper_bound(Limits().begin(), Limits().end(), std::isnan(least) ? 0.0 : least);
    starts[key] = static_cast<uint16_t>(above - Limits().begin());
  }
  return starts;
}

const std::vector<uint16_t>& Starts() {
  static const std::vector<uint16_t>& starts = *new std::vector<uint16_t>(MakeStarts());
  return starts;
}

}  // namespace

Histogram::Histogram() : counts_(Limits().size()), min_(kLargest), max_(-kLargest) {}

void Histogram::Count(double v) {
  size_t bucket = Starts()[std::bit_cast<uint64_t>(v) >> 48];
  while (bucket + 1 < counts_.size() && Limits()[bucket] <= v) ++bucket;
  counts_[std::min(bucket, counts_.size() - 1)] += 1;
  min_ = std::min(min_, v);
  max_ = std::max(max_, v);
  num_ += 1;
}

void Histogram::MergeCounts(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  num_ += other.num_;
}

wire::HistogramProto Histogram::ToProto() const {
  wire::HistogramProto proto;
  proto.min = min_;
  proto.max = max_;
  proto.num = num_;
  proto.sum = sum_;
  proto.sum_squares = sum_squares_;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const double count = counts_[i];
    while (count == 0 && i + 1 < counts_.size() && counts_[i + 1] == 0) ++i;
    proto.bucket_limit.push_back(Limits()[i]);
    proto.bucket.push_back(count);
  }
  return proto;
}

}  // namespace millrace
