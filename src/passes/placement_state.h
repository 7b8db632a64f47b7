// SPDX-License-Identifier: Apache-2.0
// What the compilations of one session know of each other: where its state lies, what its nodes have cost, and what has
// been logged. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/hash_map.h"

namespace millrace {

class PlacementState {
 public:
  // Of one run of a node on a type of device.
  struct Cost {
    double nanos = 0;
    std::vector<int64_t> output_bytes;
  };
  // Smoothed over the times that it is told.
  void AddCost(const std::string& node, const std::string& device_type, const Cost& cost);
  std::optional<Cost> FindCost(const std::string& node, const std::string& device_type) const;

  // A variable, or a stream of random numbers, stays where its first step put it. The first Pin of a node counts.
  void Pin(const std::string& node, const std::string& device);
  std::string PinOf(const std::string& node) const;  // "": nowhere yet

  // Whether this is asked for the first time.
  bool IsNews(const std::string& text);

  // Held while nodes are placed that state decides about.
  absl::Mutex& placing() ABSL_LOCK_RETURNED(placing_) { return placing_; }

 private:
  absl::Mutex placing_;
  mutable absl::Mutex mu_;
  HashMap<std::pair<std::string, std::string>, Cost> costs_ ABSL_GUARDED_BY(mu_);
  HashMap<std::string, std::string> pins_ ABSL_GUARDED_BY(mu_);
  HashSet<std::string> told_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
