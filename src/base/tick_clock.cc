// SPDX-License-Identifier: Apache-2.0
#include "base/tick_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace millrace {
namespace {

// The "invariant TSC" of Intel's and AMD's manuals: the same rate in every state of power.
bool HasEvenCounter() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
  return false;
#endif
}

constexpr int64_t kTellsTheRate = 100'000;  // nanoseconds: the looks at its ends are far less

}  // namespace

namespace tick_clock_internal {
const bool has_even_counter = HasEvenCounter();
}

TickScale::Moment TickScale::Look() {
  Moment best = {0, 0};
  int64_t shortest = INT64_MAX;
  for (int i = 0; i < 3; ++i) {  // a switch of threads between the looks is not to count
    const int64_t before = TicksNow(), nanos = RealNanos(), took = TicksNow() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, nanos};
    if (took < 1000) break;
  }
  return best;
}

void TickScale::Stop() {
  static const Moment first = Look();  // long ago but for the first steps of a process
  end_ = Look();
  const Moment& from = end_.nanos - begin_.nanos >= kTellsTheRate || first.nanos > begin_.nanos ? begin_ : first;
  if (end_.ticks > from.ticks) {
    nanos_per_tick_ = static_cast<double>(end_.nanos - from.nanos) / static_cast<double>(end_.ticks - from.ticks);
  }
}

}  // namespace millrace
