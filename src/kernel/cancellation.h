// SPDX-License-Identifier: Apache-2.0
// Cancellation of a step, a call, a session. Thread-safe. Callbacks run once, outside the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"

namespace millrace {

class CancellationManager {
 public:
  using Token = int64_t;
  static constexpr Token kInvalid = -1;
  ~CancellationManager();

  // Runs every registered callback (at most once each); later registrations are refused. `why` is not OK; the first
  // one is kept, later calls do nothing.
  void Cancel(const Status& why);
  bool IsCancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // The first cause; OK: it goes on.
  Status reason() const { return IsCancelled() ? Why() : absl::OkStatus(); }
  // kInvalid when already cancelled: the caller must then fail at once itself.
  Token Register(absl::AnyInvocable<void()> callback);
  // After return the callback does not run and is not running. False when it ran or is running (waits for it).
  bool Deregister(Token token);

 private:
  Status Why() const;

  std::atomic<bool> cancelled_{false};
  mutable absl::Mutex mu_;
  Status reason_ ABSL_GUARDED_BY(mu_);
  Token next_ ABSL_GUARDED_BY(mu_) = 0;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Token, absl::AnyInvocable<void()>> callbacks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
