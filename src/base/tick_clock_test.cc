// SPDX-License-Identifier: Apache-2.0
#include "base/tick_clock.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace millrace {
namespace {

TEST(TickClockTest, TellsWhatTheMachinesClockTells) {
  for (const int64_t span : {0, 1'000, 100'000, 20'000'000}) {
    const int64_t before = RealNanos();
    TickScale scale;
    std::vector<std::pair<int64_t, int64_t>> looks;  // clock before, ticks
    const int64_t start = RealNanos();
    do {
      const int64_t nanos = RealNanos();  // first: as an argument beside the ticks it may be the later one
      looks.emplace_back(nanos, TicksNow());
    } while (RealNanos() - start < span);
    scale.Stop();
    const int64_t after = RealNanos();
    int64_t last = before;
    for (const auto& [nanos, ticks] : looks) {
      const int64_t told = scale.ToNanos(ticks);
      EXPECT_GE(told, last - 2'000) << span;
      EXPECT_LE(told, after + 2'000) << span;
      EXPECT_GE(told, nanos - 2'000) << span;
      last = told;
    }
  }
}

TEST(TickClockTest, RunsOnOverAllThreads) {
  int64_t last = TicksNow();
  for (int i = 0; i < 50; ++i) {
    int64_t other = 0;
    std::thread([&] { other = TicksNow(); }).join();
    EXPECT_GE(other, last);
    last = TicksNow();
    EXPECT_GE(last, other);
  }
}

}  // namespace
}  // namespace millrace
