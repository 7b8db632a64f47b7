// SPDX-License-Identifier: Apache-2.0
// A clock for what is measured so often that the looks at the clock count: the processor's own counter where it runs
// evenly on all cores, which takes a third of what RealNanos() takes; elsewhere RealNanos() itself.
#pragma once

#include <cstdint>

#include "base/stopwatch.h"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace millrace {

namespace tick_clock_internal {
extern const bool has_even_counter;
}

// Of the span of time that a TickScale has seen.
inline int64_t TicksNow() {
#if defined(__x86_64__)
  if (__builtin_expect(tick_clock_internal::has_even_counter, 1)) return static_cast<int64_t>(__rdtsc());
#endif
  return RealNanos();
}

// From ticks to what RealNanos() would have said, for ticks between its making and Stop: exact at both ends but for
// what it takes to look at both clocks.
class TickScale {
 public:
  TickScale() : begin_(Look()) {}
  void Stop();
  int64_t ToNanos(int64_t ticks) const {
    return end_.nanos - static_cast<int64_t>(static_cast<double>(end_.ticks - ticks) * nanos_per_tick_);
  }

 private:
  struct Moment {
    int64_t ticks, nanos;
  };
  static Moment Look();

  Moment begin_, end_ = begin_;
  double nanos_per_tick_ = 1;
};

}  // namespace millrace
