// SPDX-License-Identifier: Apache-2.0
// Timers on the monotonic clock: setting the machine's time neither fires nor delays them. One thread for the process,
// started on first use. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace millrace {

class TimerThread {
 public:
  static TimerThread& Get();
  // See Env::StartTimer and Env::StopTimer.
  int64_t Add(absl::Duration period, absl::AnyInvocable<bool()> fn);
  void Remove(int64_t id);

 private:
  struct Timer {
    int64_t period = 0;
    absl::AnyInvocable<bool()> fn;
    int64_t at = 0;  // while it waits
  };
  using Due = std::set<std::pair<int64_t, int64_t>>;  // when, and the id

  TimerThread();
  void Loop();

  // Guards what follows.
  std::mutex mu_;
  std::condition_variable changed_, idle_;
  int64_t next_id_ = 1;
  int64_t running_ = 0;  // the id of the one whose function runs; 0: none
  bool again_ = false;   // that one has not been removed
  std::map<int64_t, Timer> timers_;
  Due due_;
  std::thread::id thread_;
};

}  // namespace millrace
