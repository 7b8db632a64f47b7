// SPDX-License-Identifier: Apache-2.0
// The sessions that a worker has had. A message that makes one may be a copy that comes late, when its session has
// ended: it must not make the session again, with steps that would run again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

namespace millrace {

// External synchronization required.
class EndedSessions {
 public:
  static constexpr size_t kMost = 10'000;  // are remembered, the last ones

  void Add(uint64_t session, int64_t epoch) {
    const auto [at, is_new] = epochs_.try_emplace(session, epoch);
    if (!is_new) {
      at->second = std::max(at->second, epoch);
      return;
    }
    order_.push_back(session);
    if (order_.size() <= kMost) return;
    epochs_.erase(order_.front());
    order_.pop_front();
  }
  // Whether it has ended in this epoch, or in a later one.
  bool Has(uint64_t session, int64_t epoch) const {
    const auto at = epochs_.find(session);
    return at != epochs_.end() && epoch <= at->second;
  }

 private:
  std::map<uint64_t, int64_t> epochs_;  // their last ones
  std::deque<uint64_t> order_;          // in which they ended first
};

}  // namespace millrace
