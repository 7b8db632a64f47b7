// SPDX-License-Identifier: Apache-2.0
// Waits that cancellation ends.
#pragma once

#include "absl/synchronization/mutex.h"
#include "kernel/cancellation.h"

namespace millrace {

// While it lives, cancellation wakes whoever waits for a condition of `mu`. Must outlive locks of `mu`.
class WakeOnCancel {
 public:
  WakeOnCancel(CancellationManager& cancellation, absl::Mutex& mu) : cancellation_(cancellation) {
    token_ = cancellation_.Register([&mu] { absl::MutexLock wake(&mu); });
  }
  ~WakeOnCancel() {
    if (token_ != CancellationManager::kInvalid) cancellation_.Deregister(token_);
  }
  WakeOnCancel(const WakeOnCancel&) = delete;
  WakeOnCancel& operator=(const WakeOnCancel&) = delete;

 private:
  CancellationManager& cancellation_;
  CancellationManager::Token token_;
};

}  // namespace millrace
