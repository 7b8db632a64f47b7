// SPDX-License-Identifier: Apache-2.0
// The sessions that a worker has had. A message that makes one may be a copy that comes late, when its session has
// ended: it must not make the session again, with steps that would run again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace millrace {

// External synchronization required.
class EndedSessions {
 public:
  static constexpr size_t kMost = 10'000;  // are remembered, the last ones

  // Nothing has changed when it throws.
  void Add(uint64_t session, int64_t epoch) {
    Ended& ended = sessions_[session];
    ended.epoch = ended.number == 0 ? epoch : std::max(ended.epoch, epoch);
    ended.number = ++count_;
    if (sessions_.size() <= kMost) return;
    sessions_.erase(std::min_element(sessions_.begin(), sessions_.end(), [](const auto& a, const auto& b) {
      return a.second.number < b.second.number;
    }));
  }
  // Whether it has ended in this epoch, or in a later one.
  bool Has(uint64_t session, int64_t epoch) const {
    const auto at = sessions_.find(session);
    return at != sessions_.end() && epoch <= at->second.epoch;
  }

 private:
  struct Ended {
    int64_t epoch = 0;    // the last one
    uint64_t number = 0;  // of its last end, from 1 on
  };
  std::map<uint64_t, Ended> sessions_;
  uint64_t count_ = 0;
};

}  // namespace millrace
