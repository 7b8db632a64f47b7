// SPDX-License-Identifier: Apache-2.0
// Threads that take turns.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "base/futex.h"

namespace millrace {

// What one thread waits for, until another gives it.
class Turn {
 public:
  void Give() {
    is_given_.store(1, std::memory_order_release);
    FutexWake(is_given_, 1);
  }
  void Await() {
    while (is_given_.exchange(0, std::memory_order_acquire) == 0) FutexWait(is_given_, 0);
  }

 private:
  std::atomic<uint32_t> is_given_{0};
};

// A thread that begins `work` at its turn, and waits for other work when that has ended.
struct CrewMember {
  Turn turn;
  absl::AnyInvocable<void()> work;
};

// Threads of the process that all simulated worlds share: a world needs dozens, one after the other, and to make a
// thread takes as long as many switches. Never ends.
class Crew {
 public:
  // One that has nothing to do, which is the caller's until its work has ended. Throws when there can be no more.
  static CrewMember& Take();
};

}  // namespace millrace
