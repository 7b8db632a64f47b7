// SPDX-License-Identifier: Apache-2.0
// A thread that waits for messages lends itself to the work that they bring, so that no other must be woken for it.
#pragma once

#include "absl/functional/any_invocable.h"
#include "base/thread_pool.h"

namespace millrace {

// On the stack of the thread that lends itself, while it takes messages.
class LentThread {
 public:
  LentThread();
  ~LentThread();  // what has not run goes to its pool
  LentThread(const LentThread&) = delete;
  LentThread& operator=(const LentThread&) = delete;

  // Runs `fn` on this thread once it has taken its messages, if it lends itself and has nothing to run yet; else on the
  // pool.
  static void Schedule(ThreadPool& pool, absl::AnyInvocable<void() &&> fn);
  // When messages have been taken, and another thread goes on taking them.
  void RunNow();

 private:
  LentThread* const outer_;
  ThreadPool* pool_ = nullptr;  // null: there is nothing to run
  absl::AnyInvocable<void() &&> work_;
};

}  // namespace millrace
