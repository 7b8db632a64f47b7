// SPDX-License-Identifier: Apache-2.0
#include "runtime/interrupt.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

thread_local Interrupt* current = nullptr;

}  // namespace

Interrupt* CurrentInterrupt() { return current; }

InterruptScope::InterruptScope(Interrupt* interrupt) : outer_(std::exchange(current, interrupt)) {}
InterruptScope::~InterruptScope() { current = outer_; }

Status KeepGoingUnlessInterrupted() {
  if (current && current->LookNowAndThen()) return Cancelled("the step was interrupted");
  return absl::OkStatus();
}

bool AwaitUnlessInterrupted(absl::Mutex& mu, const absl::Condition& condition) {
  Interrupt* const interrupt = current;
  if (interrupt == nullptr) {
    mu.Await(condition);
    return true;
  }
  while (!mu.AwaitWithTimeout(condition, kInterruptPeriod)) {
    mu.Unlock();
    const bool stop = interrupt->Look();
    mu.Lock();
    if (stop) return condition.Eval();
  }
  return true;
}

bool AwaitFor(absl::Mutex& mu, const absl::Condition& condition, absl::Duration patience) {
  // A look now and then, since Abseil waits by the clock on the wall.
  for (const int64_t start = Env::Default().MonotonicNanos();;) {
    const absl::Duration left = patience - absl::Nanoseconds(Env::Default().MonotonicNanos() - start);
    if (mu.AwaitWithTimeout(condition, std::clamp(left, absl::ZeroDuration(), absl::Seconds(1)))) return true;
    if (left <= absl::ZeroDuration()) return false;
  }
}

}  // namespace millrace
