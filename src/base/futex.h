// SPDX-License-Identifier: Apache-2.0
// Parking on a 32-bit word (Linux futex). A wait may return early for no reason: callers look again.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace millrace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// Sleeps while `word` holds `expected`, until a wake, or until `nanos` have passed (-1: without limit).
inline void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, int64_t nanos = -1) {
  const timespec patience{.tv_sec = nanos / 1'000'000'000, .tv_nsec = nanos % 1'000'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nanos < 0 ? nullptr : &patience, nullptr, 0);
}

inline void FutexWake(std::atomic<uint32_t>& word, int waiters) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, waiters, nullptr, nullptr, 0);
}

}  // namespace millrace
