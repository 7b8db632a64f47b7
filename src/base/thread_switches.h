// SPDX-License-Identifier: Apache-2.0
// When the kernel had threads of this process off their CPUs, by Linux's software events (perf_event_open, which needs
// no privilege for a process's own threads where kernel.perf_event_paranoid is at most 2). Where the system refuses,
// there are none. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace millrace {

struct OffCpu {
  uint32_t thread = 0;                     // as CurrentThread() says
  int64_t start_nanos = 0, end_nanos = 0;  // as RealNanos() says
  bool is_preempted = false;               // it could have gone on: others had the CPU
};

class ThreadSwitches {
 public:
  // Of this process. A watched thread costs 36 KB, and while somebody records about 0.2 us a switch.
  static ThreadSwitches& Get();

  // While somebody records: watches this thread until it ends.
  void WatchThisThread() noexcept;

  // While one lives, switches are recorded. The kernel goes on with it until Rest, so that a step that is traced after
  // another one asks it for nothing.
  class Recording {
   public:
    Recording() { Get().Begin(); }
    ~Recording() { Get().End(); }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
  };

  // No step is traced for now. Costs nothing when there was none.
  void Rest() {
    if (lingers_.load(std::memory_order_relaxed)) Disable();
  }

  // What is known of a time that a Recording had, clipped to it, by thread and time. A busy thread's oldest may be
  // gone.
  std::vector<OffCpu> Between(int64_t from_nanos, int64_t to_nanos);

 private:
  class Watched;
  friend struct ThreadSwitchesOwner;

  ThreadSwitches() = default;
  void Begin();
  void End();
  void Disable();
  void Forget(const Watched* watched);

  absl::Mutex mu_;
  std::atomic<int> recordings_{0};    // changed under mu_
  std::atomic<bool> lingers_{false};  // changed under mu_: nobody records, the kernel does
  std::vector<std::unique_ptr<Watched>> watched_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
