// SPDX-License-Identifier: Apache-2.0
// A look at what interrupts the client (signals of an interpreter, say) while a step runs. It is taken on the thread
// that asked for the step, which may be the only one on which the client can look: between two kernels when that thread
// runs them itself, every now and then while it waits. Somebody else's clock says when it is due.
#pragma once

#include <atomic>

#include "base/env.h"
#include "base/status.h"

namespace millrace {

inline constexpr absl::Duration kInterruptPeriod = absl::Milliseconds(40);

struct InterruptCheck {
  int (*check)(void* data) = nullptr;  // not 0: stop the step
  void* data = nullptr;
};

// Of one step. Only the thread that asked for the step uses it, except for MakeDue.
class Interrupt {
 public:
  Interrupt(const InterruptCheck& check, Env& env) : check_(check), env_(env) {}
  void MakeDue() { due_.store(true, std::memory_order_relaxed); }
  bool IsDue() const { return due_.load(std::memory_order_relaxed); }
  // True when the step must stop; then it stays so.
  bool Look() {
    due_.store(false, std::memory_order_relaxed);
    if (!stop_) stop_ = check_.check(check_.data) != 0;
    if (stop_) MakeDue();
    return stop_;
  }
  // Look for who has no clock: while a step is being prepared.
  bool LookNowAndThen() {
    const int64_t now = env_.MonotonicNanos();
    if (looked_ != 0 && now - looked_ < absl::ToInt64Nanoseconds(kInterruptPeriod)) return stop_;
    looked_ = now;
    return Look();
  }

 private:
  const InterruptCheck check_;
  Env& env_;
  std::atomic<bool> due_{false};
  bool stop_ = false;
  int64_t looked_ = 0;  // 0: never
};

// The interrupt of the step that this thread asked for, while it runs it; else null.
Interrupt* CurrentInterrupt();

// Makes `interrupt` (may be null) this thread's.
class InterruptScope {
 public:
  explicit InterruptScope(Interrupt* interrupt);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  Interrupt* const outer_;
};

// For who has work to do before a step: Cancelled when this thread's interrupt says stop.
Status KeepGoingUnlessInterrupted();

// Waits for a condition on what `mu`, which the caller holds, guards. True when it holds; false when this thread's
// interrupt says stop before.
bool AwaitUnlessInterrupted(Env& env, absl::Mutex& mu, const absl::Condition& condition);

}  // namespace millrace
