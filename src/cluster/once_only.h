// SPDX-License-Identifier: Apache-2.0
// What a network may bring twice, and must be obeyed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

namespace millrace {

// Numbers of calls, which come in any order. External synchronization required.
class OnceOnly {
 public:
  // Whether a call of that number has not come before. `oldest`: its caller waits for none before that one any more.
  bool Admit(int64_t number, int64_t oldest) {
    if (oldest > oldest_) {
      oldest_ = oldest;
      seen_.erase(seen_.begin(), seen_.lower_bound(oldest));
    }
    return number >= oldest_ && seen_.insert(number).second;
  }
  size_t size() const { return seen_.size(); }

 private:
  int64_t oldest_ = 0;
  std::set<int64_t> seen_;  // from it on
};

}  // namespace millrace
