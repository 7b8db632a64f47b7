// SPDX-License-Identifier: Apache-2.0
// Threads of the process for calls that may wait: as many as there are calls at once. Thread-safe.
#pragma once

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"

namespace millrace {

class WaitingThreads {
 public:
  static WaitingThreads& Get();
  // See Env::StartThread.
  Status Run(absl::AnyInvocable<void() &&> call);

 private:
  WaitingThreads() = default;
  void Loop();

  absl::Mutex mu_;
  std::deque<absl::AnyInvocable<void() &&>> calls_ ABSL_GUARDED_BY(mu_);
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;  // threads that wait, or are about to
};

}  // namespace millrace
