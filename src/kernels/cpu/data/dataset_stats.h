// SPDX-License-Identifier: Apache-2.0
// What data sets count about themselves while they are read.
#pragma once

#include <map>
#include <string>

#include "absl/synchronization/mutex.h"
#include "io/histogram.h"
#include "kernel/resource_manager.h"

namespace millrace {

// Histograms by tag. Thread-safe.
class StatsAggregator final : public Resource {
 public:
  void Add(const std::string& tag, double value) {
    absl::MutexLock lock(&mu_);
    histograms_[tag].Add(value);
  }
  wire::Summary ToSummary() {
    wire::Summary summary;
    absl::MutexLock lock(&mu_);
    for (const auto& [tag, histogram] : histograms_) {
      wire::SummaryValue& v = summary.value.emplace_back();
      v.tag = tag;
      v.kind = wire::SummaryValue::Kind::kHisto;
      v.histo.Ensure() = histogram.ToProto();
    }
    return summary;
  }
  std::string DebugString() const override { return "statistics of data sets"; }

 private:
  absl::Mutex mu_;
  std::map<std::string, Histogram> histograms_ ABSL_GUARDED_BY(mu_);
};

// Where the data sets below another one count, and what stands before their tags.
struct StatsSink {
  RefPtr<StatsAggregator> aggregator;
  std::string prefix;
  void Add(const std::string& tag, double value) const {
    aggregator->Add(prefix.empty() ? tag : prefix + "::" + tag, value);
  }
};

}  // namespace millrace
