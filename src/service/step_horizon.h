// SPDX-License-Identifier: Apache-2.0
// Which steps of a session are over. The master numbers its steps and tells workers where they stand; messages may
// come in any order, and what comes late for a step that is over must find nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace millrace {

// Steps before `next` are over, but for those that are live.
struct StepHorizon {
  int64_t next = 0;
  std::vector<int64_t> live;  // ascending

  bool IsOver(int64_t step) const { return step < next && !std::binary_search(live.begin(), live.end(), step); }
  // Of two horizons of one session. Between two steps' beginnings, steps only end.
  bool IsOlderThan(const StepHorizon& other) const {
    return next != other.next ? next < other.next : live.size() > other.live.size();
  }
};

// Numbers of steps, most of which follow each other.
class StepSet {
 public:
  bool Has(int64_t step) const {
    const auto after = runs_.upper_bound(step);
    return after != runs_.begin() && std::prev(after)->second > step;
  }
  using Runs = std::map<int64_t, int64_t>;  // from the first to behind the last
  // `room`: where a run of its own goes, so that nothing has to be allocated.
  void Add(int64_t step, Runs::node_type room) {
    if (Has(step)) return;
    const auto after = runs_.upper_bound(step);
    const bool joins_after = after != runs_.end() && after->first == step + 1;
    const int64_t end = joins_after ? after->second : step + 1;
    if (joins_after) runs_.erase(after);
    const auto before = runs_.lower_bound(step);
    const bool joins_before = before != runs_.begin() && std::prev(before)->second == step;
    if (joins_before) {
      std::prev(before)->second = end;
      return;
    }
    room.key() = step;
    room.mapped() = end;
    runs_.insert(std::move(room));
  }
  // Those up to `step`.
  void DropBefore(int64_t step) {
    while (!runs_.empty() && runs_.begin()->second <= step) runs_.erase(runs_.begin());
  }
  size_t num_runs() const { return runs_.size(); }

 private:
  Runs runs_;
};

// The steps that a master has begun. External synchronization required.
class StepIds {
 public:
  int64_t Begin() {
    live_.insert(live_.end(), next_);
    return next_++;
  }
  void End(int64_t step) { live_.erase(step); }
  // The first that has not ended, or the next to begin.
  int64_t oldest() const { return live_.empty() ? next_ : *live_.begin(); }
  StepHorizon horizon() const { return {next_, {live_.begin(), live_.end()}}; }

 private:
  int64_t next_ = 1;
  std::set<int64_t> live_;
};

}  // namespace millrace
