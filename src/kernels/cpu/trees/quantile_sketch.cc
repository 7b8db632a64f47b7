// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stop_scope.h"

namespace millrace {
namespace {

// Levels double what they stand for: the smallest block whose levels hold the stream with this error.
int64_t BlockSize(double epsilon, int64_t max_elements) {
  if (epsilon <= std::numeric_limits<double>::epsilon()) return std::max<int64_t>(max_elements, 2);
  int64_t size = 2;
  for (int level = 1; size <= (max_elements - 1) >> level; ++level) {
    size = static_cast<int64_t>(std::ceil(level / epsilon)) + 1;
  }
  return size;
}

}  // namespace

void QuantileSummary::Merge(const QuantileSummary& other) {
  if (other.entries_.empty()) return;
  if (entries_.empty()) {
    entries_ = other.entries_;
    return;
  }
  const std::vector<QuantileEntry> one = std::move(entries_);
  const std::vector<QuantileEntry>& two = other.entries_;
  entries_.clear();
  entries_.reserve(one.size() + two.size());
  // How much of the other stream is before an entry: at least up to the other's entry that came last, at most before
  // the one that comes next.
  float after_one = 0, after_two = 0;
  auto a = one.begin(), b = two.begin();
  StopNowAndThen pause;
  while (a != one.end() && b != two.end()) {
    pause();
    if (a->value < b->value) {
      entries_.push_back({a->value, a->weight, a->min_rank + after_two, a->max_rank + b->before()});
      after_one = a++->after();
    } else if (b->value < a->value) {
      entries_.push_back({b->value, b->weight, b->min_rank + after_one, b->max_rank + a->before()});
      after_two = b++->after();
    } else {
      entries_.push_back({a->value, a->weight + b->weight, a->min_rank + b->min_rank, a->max_rank + b->max_rank});
      after_one = a++->after();
      after_two = b++->after();
    }
  }
  for (; a != one.end(); ++a) {
    entries_.push_back({a->value, a->weight, a->min_rank + after_two, a->max_rank + two.back().max_rank});
  }
  for (; b != two.end(); ++b) {
    entries_.push_back({b->value, b->weight, b->min_rank + after_one, b->max_rank + one.back().max_rank});
  }
}

// An entry may go if what lies between its neighbours is within the error; a credit of places, which each entry that is
// kept uses up, sees to it that those that stay are spread over the values as well.
void QuantileSummary::Compress(int64_t size, double epsilon) {
  size = std::max<int64_t>(size, 2);
  const int64_t n = this->size();
  if (n <= size) return;
  const double width = total_weight() * std::max(1.0 / static_cast<double>(size), epsilon);
  size_t kept = 1, last = 1;
  int64_t credit = 0;
  for (size_t at = 0; at + 1 < entries_.size();) {
    const float after = entries_[at].after();
    size_t next = at + 1;
    for (; next < entries_.size() && credit < n && entries_[next].before() - after <= width; ++next) credit += size;
    at = next == at + 1 ? at + 1 : next - 1;
    entries_[kept++] = entries_[at];
    last = at;
    credit -= n;
  }
  if (last + 1 < entries_.size()) entries_[kept++] = entries_.back();
  entries_.resize(kept);
}

double QuantileSummary::Error() const {
  if (entries_.empty()) return 0;
  float gap = 0;
  for (size_t i = 1; i < entries_.size(); ++i) {
    const QuantileEntry& e = entries_[i];
    gap = std::max(gap, std::max(e.max_rank - e.min_rank - e.weight, e.before() - entries_[i - 1].after()));
  }
  return static_cast<double>(gap) / total_weight();
}

std::vector<float> QuantileSummary::Boundaries(int64_t count) const {
  std::vector<float> values;
  if (entries_.empty()) return values;
  QuantileSummary compressed = *this;
  const auto epsilon = static_cast<float>(Error() + 1.0 / static_cast<double>(count));
  compressed.Compress(count, epsilon);
  values.reserve(compressed.entries_.size());
  for (const QuantileEntry& e : compressed.entries_) values.push_back(e.value);
  return values;
}

std::vector<float> QuantileSummary::Quantiles(int64_t count) const {
  std::vector<float> values;
  if (entries_.empty()) return values;
  values.reserve(static_cast<size_t>(count) + 1);
  size_t at = 0;
  for (int64_t i = 0; i <= count; ++i) {
    // Twice the rank, which is compared with sums of two bounds.
    const float rank = 2 * (static_cast<float>(i) * total_weight() / static_cast<float>(count));
    size_t next = at + 1;
    while (next < entries_.size() && rank >= entries_[next].min_rank + entries_[next].max_rank) ++next;
    at = next - 1;
    const bool is_first = next == entries_.size() || rank < entries_[at].after() + entries_[next].before();
    values.push_back(entries_[is_first ? at : next].value);
  }
  return values;
}

Status QuantileStream::Check(float epsilon, int64_t max_elements) {
  if (!(epsilon > 0) || !(epsilon < 1)) {
    return InvalidArgument("An epsilon must be more than 0 and less than 1, got ", epsilon,
                           epsilon == 0 ? ": an epsilon value of zero is not allowed" : "");
  }
  if (max_elements <= 0) return InvalidArgument("max_elements must be positive, got ", max_elements);
  return absl::OkStatus();
}

QuantileStream::QuantileStream(float epsilon, int64_t max_elements)
    : epsilon_(epsilon), block_size_(BlockSize(epsilon, max_elements)) {
  buffer_size_ = static_cast<size_t>(block_size_ <= max_elements / 2 ? 2 * block_size_ : max_elements);
}

void QuantileStream::Push(float value, float weight) {
  if (weight <= 0) return;
  buffer_.push_back({value, weight});
  if (buffer_.size() >= buffer_size_) Flush();
}

void QuantileStream::Push(QuantileSummary summary) {
  StopIfAsked();
  summary.Compress(block_size_, epsilon_);
  Raise(std::move(summary));
}

void QuantileStream::Flush() {
  if (buffer_.empty()) return;
  StopNowAndThen pause;
  std::sort(buffer_.begin(), buffer_.end(), [&](const Weighted& a, const Weighted& b) {
    pause();
    return a.value < b.value;
  });
  std::vector<QuantileEntry> entries;
  for (const Weighted& w : buffer_) {
    if (!entries.empty() && entries.back().value == w.value) {
      entries.back().weight += w.weight;
    } else {
      entries.push_back({w.value, w.weight, 0, 0});
    }
  }
  buffer_.clear();
  float sum = 0;
  for (QuantileEntry& e : entries) {
    e.min_rank = sum;
    e.max_rank = sum += e.weight;
  }
  Push(QuantileSummary(std::move(entries)));
}

// A level that is taken gives what it has to the next.
void QuantileStream::Raise(QuantileSummary summary) {
  if (summary.size() == 0) return;
  for (size_t level = 0;; ++level) {
    if (level == levels_.size()) levels_.emplace_back();
    QuantileSummary& here = levels_[level];
    const bool is_free = here.size() == 0;
    summary.Merge(here);
    if (is_free || summary.size() <= block_size_ + 1) {
      here = std::move(summary);
      return;
    }
    summary.Compress(block_size_, epsilon_);
    here.Clear();
  }
}

QuantileSummary QuantileStream::Finish() {
  Flush();
  QuantileSummary all;
  for (const QuantileSummary& s : levels_) all.Merge(s);
  levels_.clear();
  return all;
}

}  // namespace millrace
