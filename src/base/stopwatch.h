// SPDX-License-Identifier: Apache-2.0
// How long work really takes: for traces and measured costs. What happens when, deadlines and periods, is decided by
// Env's clocks instead.
#pragma once

#include <cstdint>
#include <ctime>

namespace millrace {

// The monotonic clock of the machine.
inline int64_t RealNanos() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace millrace
