// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"

#include <gtest/gtest.h>

#include <atomic>

#include "simulation/fake_env.h"

namespace millrace {
namespace {

TEST(DeadlineTest, CallsOnceWhenTheTimeHasCome) {
  FakeEnv env;
  int calls = 0;
  const Deadline deadline(env, absl::Seconds(5), [&] { ++calls; });
  env.RunFor(absl::Seconds(4.9));
  EXPECT_EQ(calls, 0);
  env.RunFor(absl::Seconds(0.2));
  EXPECT_EQ(calls, 1);
  env.RunFor(absl::Seconds(100));
  EXPECT_EQ(calls, 1);
}

TEST(DeadlineTest, TheClockOnTheWallDoesNotMatter) {
  FakeEnv env;
  int calls = 0;
  const Deadline deadline(env, absl::Seconds(5), [&] { ++calls; });
  env.SetWallClock(env.Now() + absl::Hours(24));
  env.RunFor(absl::Seconds(4));
  EXPECT_EQ(calls, 0);
  env.SetWallClock(env.Now() - absl::Hours(48));
  env.RunFor(absl::Seconds(2));
  EXPECT_EQ(calls, 1);
}

TEST(DeadlineTest, NeverAfterItsScope) {
  FakeEnv env;
  int calls = 0;
  {
    const Deadline deadline(env, absl::Seconds(1), [&] { ++calls; });
  }
  {
    const Ticks ticks(env, absl::Seconds(1), [&] { return ++calls > 0; });
  }
  env.RunFor(absl::Seconds(10));
  EXPECT_EQ(calls, 0);
}

TEST(DeadlineTest, InfiniteIsNever) {
  FakeEnv env;
  int calls = 0;
  const Deadline deadline(env, absl::InfiniteDuration(), [&] { ++calls; });
  env.RunFor(absl::Hours(1000));
  EXPECT_EQ(calls, 0);
}

TEST(TicksTest, UntilItHasEnough) {
  FakeEnv env;
  int calls = 0;
  const Ticks ticks(env, absl::Milliseconds(10), [&] { return ++calls < 3; });
  env.RunFor(absl::Milliseconds(25));
  EXPECT_EQ(calls, 2);
  env.RunFor(absl::Seconds(1));
  EXPECT_EQ(calls, 3);
}

TEST(DeadlineTest, RealTimersEndWithTheirScopeToo) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> calls{0};
    {
      const Deadline deadline(Env::Default(), absl::Microseconds(20 * i), [&] { ++calls; });
    }
    EXPECT_LE(calls, 1);
  }
}

}  // namespace
}  // namespace millrace
