// SPDX-License-Identifier: Apache-2.0
#include "runtime/interrupt.h"

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

// The lock is let go of while the client looks, which the analysis cannot follow through Env.
bool AwaitUnlessInterrupted(Env& env, absl::Mutex& mu,
                            const absl::Condition& condition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Interrupt* const interrupt = current;
  if (interrupt == nullptr) return env.Await(mu, condition);
  while (!env.Await(mu, condition, kInterruptPeriod)) {
    mu.Unlock();
    const bool stop = interrupt->Look();
    mu.Lock();
    if (stop) return condition.Eval();
  }
  return true;
}

}  // namespace millrace
