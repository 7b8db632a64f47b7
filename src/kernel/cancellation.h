// SPDX-License-Identifier: Apache-2.0
// Cancellation of a step. Thread-safe. Callbacks run once, outside the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace millrace {

class CancellationManager {
 public:
  using Token = int64_t;
  static constexpr Token kInvalid = -1;
  ~CancellationManager();

  // Runs every registered callback (at most once each); later registrations are refused.
  void Cancel();
  bool IsCancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // kInvalid when already cancelled: the caller must then fail at once itself.
  Token Register(absl::AnyInvocable<void()> callback);
  // After return the callback does not run and is not running. False when it ran or is running (waits for it).
  bool Deregister(Token token);

 private:
  std::atomic<bool> cancelled_{false};
  absl::Mutex mu_;
  Token next_ ABSL_GUARDED_BY(mu_) = 0;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Token, absl::AnyInvocable<void()>> callbacks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
