// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_scheduler.h"

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "base/pool_env.h"
#include "base/this_world.h"
#include "gtest/gtest.h"
#include "simulation/fake_env.h"

namespace millrace {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

// Nothing here needs a lock: one thread runs at a time.
std::string OrderOf(uint64_t seed, uint64_t* history) {
  FakeEnv env(seed);
  std::string order;
  for (char c = 'a'; c <= 'f'; ++c) env.Schedule([&order, c] { order.push_back(c); });
  for (char c = 'A'; c <= 'C'; ++c) {
    EXPECT_TRUE(env.StartThread([&, c] {
                     order.push_back(c);
                     env.RunFor(kSecond);
                     order.push_back(c);
                   })
                    .ok());
  }
  env.RunFor(2 * kSecond);
  *history = env.history();
  return order;
}

TEST(SimSchedulerTest, TheSeedAloneDecidesTheOrder) {
  std::set<std::string> orders;
  std::set<uint64_t> histories;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    uint64_t history = 0, again = 0;
    const std::string order = OrderOf(seed, &history);
    EXPECT_EQ(order.size(), 12u);
    EXPECT_EQ(OrderOf(seed, &again), order);
    EXPECT_EQ(again, history);
    orders.insert(order);
    histories.insert(history);
  }
  EXPECT_GT(orders.size(), 15u);
  EXPECT_EQ(histories.size(), 20u);
}

TEST(SimSchedulerTest, TimeOrdersWhatTheSeedDoesNot) {
  FakeEnv env(3);
  const int64_t start = env.MonotonicNanos();
  std::vector<int64_t> times;
  for (const int seconds : {5, 1, 3, 2, 4}) {
    env.ScheduleAfter(seconds * kSecond, [&] { times.push_back((env.MonotonicNanos() - start) / 1'000'000'000); });
  }
  EXPECT_EQ(times.size(), 0u);  // the world stands still until somebody waits
  EXPECT_TRUE(env.RunUntil([&] { return times.size() == 3; }));
  EXPECT_EQ(env.MonotonicNanos() - start, 3'000'000'000);
  EXPECT_FALSE(env.RunUntil([] { return false; }));  // nothing is left that could happen
  EXPECT_EQ(times, (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

TEST(SimSchedulerTest, TimersRepeatUntilTheyAreStopped) {
  FakeEnv env;
  int a = 0, b = 0, c = 0;
  const auto first = env.StartTimer(kSecond, [&] { return ++a < 3; });
  const auto second = env.StartTimer(kSecond, [&] { return ++b, true; });
  Env::TimerId own = 0;
  own = env.StartTimer(kSecond, [&] {
    if (++c == 2) env.StopTimer(own);
    return true;
  });
  env.RunFor(5.5 * kSecond);
  EXPECT_EQ(a, 3);
  EXPECT_EQ(b, 5);
  EXPECT_EQ(c, 2);
  env.StopTimer(first);  // it is over
  env.StopTimer(second);
  env.RunFor(5 * kSecond);
  EXPECT_EQ(b, 5);
}

TEST(SimSchedulerTest, TheWallJumpsAndPeriodsDoNot) {
  FakeEnv env;
  bool fired = false;
  env.ScheduleAfter(10 * kSecond, [&] { fired = true; });
  env.SetWallClock(env.Now() + absl::Hours(24));
  env.RunFor(9 * kSecond);
  EXPECT_FALSE(fired);
  env.SetWallClock(env.Now() - absl::Hours(48));
  env.RunFor(2 * kSecond);
  EXPECT_TRUE(fired);
}

// A bounded buffer between threads that wait for each other, which no nesting of waits on one stack could run.
TEST(SimSchedulerTest, ThreadsWaitForEachOther) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FakeEnv env(seed);
    absl::Mutex mu;
    std::deque<int> buffer;
    int sum = 0, ended = 0;
    const auto has_room = [&] { return buffer.size() < 2; };
    const auto has_any = [&] { return !buffer.empty(); };
    for (int producer = 0; producer < 2; ++producer) {
      EXPECT_TRUE(env.StartThread([&] {
                       for (int i = 1; i <= 20; ++i) {
                         absl::MutexLock lock(&mu);
                         EXPECT_TRUE(env.Await(mu, absl::Condition(&has_room)));
                         buffer.push_back(i);
                       }
                       ++ended;
                     })
                      .ok());
    }
    for (int consumer = 0; consumer < 4; ++consumer) {
      EXPECT_TRUE(env.StartThread([&] {
                       for (int i = 0; i < 10; ++i) {
                         absl::MutexLock lock(&mu);
                         EXPECT_TRUE(env.Await(mu, absl::Condition(&has_any)));
                         sum += buffer.front();
                         buffer.pop_front();
                       }
                       ++ended;
                     })
                      .ok());
    }
    EXPECT_TRUE(env.RunUntil([&] { return ended == 6; }));
    EXPECT_EQ(sum, 2 * 210);
  }
}

TEST(SimSchedulerTest, WaitsEndWithTheirPatience) {
  FakeEnv env;
  absl::Mutex mu;
  bool flag = false;
  const int64_t start = env.MonotonicNanos();
  env.ScheduleAfter(3 * kSecond, [&] { flag = true; });
  absl::MutexLock lock(&mu);
  EXPECT_FALSE(env.Await(mu, absl::Condition(&flag), kSecond));
  EXPECT_EQ(env.MonotonicNanos() - start, 1'000'000'000);
  EXPECT_TRUE(env.Await(mu, absl::Condition(&flag), 5 * kSecond));
  EXPECT_EQ(env.MonotonicNanos() - start, 3'000'000'000);
}

TEST(SimSchedulerTest, EventsMayWaitForOthers) {
  FakeEnv env;
  std::atomic<uint32_t> word{0};
  std::vector<int> order;
  env.Schedule([&] {
    order.push_back(1);
    env.WaitWhile(word, 0, -1);
    order.push_back(3);
  });
  env.ScheduleAfter(kSecond, [&] {
    order.push_back(2);
    word = 1;
    env.WakeOne(word);
  });
  EXPECT_TRUE(env.RunUntil([&] { return order.size() == 3; }));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

// Those that wait may go on in any order: none stands on another's stack.
TEST(SimSchedulerTest, EventsThatWaitDoNotWaitForEachOther) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FakeEnv env(seed);
    std::atomic<uint32_t> words[3] = {0, 0, 0};
    std::vector<int> order;
    for (int i = 0; i < 3; ++i) {
      env.ScheduleAfter(i * kSecond, [&, i] {
        env.WaitWhile(words[i], 0, -1);
        order.push_back(i);
      });
      env.ScheduleAfter((10 + i) * kSecond, [&, i] { words[i] = 1; });
    }
    EXPECT_TRUE(env.RunUntil([&] { return order.size() == 3; }));
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
    // Threads that waited are used again, and what waits at the end of the world ends with it.
    bool ended = false;
    {
      FakeEnv last(seed);
      last.Schedule([&] {
        last.RunUntil([] { return false; });
        ended = true;
      });
      last.RunFor(kSecond);
      EXPECT_FALSE(ended);
    }
    EXPECT_TRUE(ended);
  }
}

TEST(SimSchedulerTest, StoppingATimerWaitsForWhatItCalls) {
  FakeEnv env;
  int begun = 0, ended = 0;
  const auto timer = env.StartTimer(kSecond, [&] {
    ++begun;
    env.RunFor(10 * kSecond);
    ++ended;
    return true;
  });
  env.RunFor(2 * kSecond);
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(ended, 0);
  env.StopTimer(timer);
  EXPECT_EQ(ended, 1);
  env.RunFor(20 * kSecond);
  EXPECT_EQ(begun, 1);
}

// Locks that know no Env wait in the world that their thread is in.
TEST(SimSchedulerTest, ThreadsKnowTheirWorld) {
  FakeEnv env;
  absl::Mutex mu;
  bool flag = false;
  int64_t waited = 0;
  const auto wait = [&] {
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(AwaitInThisWorld(mu, absl::Condition(&flag)));
    ++waited;
  };
  EXPECT_TRUE(env.StartThread(wait).ok());
  env.Schedule(wait);
  env.ScheduleAfter(3600 * kSecond, [&] { flag = true; });
  wait();
  EXPECT_TRUE(env.RunUntil([&] { return waited == 3; }));
}

TEST(SimSchedulerTest, APoolOfASimulatedWorldHasNoThreads) {
  FakeEnv env;
  const std::unique_ptr<ThreadPool> pool = NewThreadPool(env);
  EXPECT_EQ(pool->parallelism(), 1);
  EXPECT_EQ(&EnvOf(*pool), &env);
  bool ran = false;
  pool->Schedule([&] { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_TRUE(env.RunUntil([&] { return ran; }));
  int64_t total = 0;
  pool->ParallelFor(1000, 1e6, [&](int64_t begin, int64_t end) { total += end - begin; });
  EXPECT_EQ(total, 1000);
}

TEST(SimSchedulerTest, WhatHasNotRunIsDropped) {
  const auto kept = std::make_shared<int>(0);
  {
    FakeEnv env;
    env.Schedule([kept] {});
    env.ScheduleAfter(kSecond, [kept] {});
    EXPECT_EQ(kept.use_count(), 3);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace millrace
