// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "base/current_thread.h"
#include "base/env.h"
#include "base/help_point.h"
#include "base/stop_scope.h"
#include "base/stopwatch.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

constexpr double kExpensive = 1e6;  // nanoseconds per index: every index is worth a chunk

TEST(ThreadPoolTest, ParallelForCoversEveryIndexOnce) {
  for (int parallelism : {1, 2, 3, 8}) {
    ThreadPool pool(parallelism);
    EXPECT_EQ(pool.parallelism(), parallelism);
    for (int64_t n : {0, 1, 2, 7, 64, 1001}) {
      for (double cost : {0.0, 50.0, kExpensive}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
        pool.ParallelFor(n, cost, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)].fetch_add(1);
        });
        for (auto& hit : hits) EXPECT_EQ(hit.load(), 1) << parallelism << " " << n << " " << cost;
      }
    }
  }
}

// Whoever waits at a point takes part in its work, when no worker has time, and in nobody else's.
TEST(ThreadPoolTest, WhoWaitsHelpsItsOwnWork) {
  ThreadPool pool(2);
  absl::Notification release;
  pool.Schedule([&] { release.WaitForNotification(); });  // the only worker
  HelpPoint mine(Env::Default()), other(Env::Default());
  std::atomic<bool> over{false};
  std::thread::id helper;
  std::thread waits([&] {
    helper = std::this_thread::get_id();
    while (!over.load()) {
      const uint32_t seen = mine.seen();
      if (!over.load()) mine.WaitAndHelp(seen, -1);
    }
  });
  for (int round = 0; round < 20; ++round) {
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it sleeps then
    const WorkFor scope(&mine);
    std::atomic<int> there{0};
    pool.ParallelFor(2, kExpensive, [&](int64_t, int64_t) {
      there.fetch_add(1);
      const auto start = std::chrono::steady_clock::now();
      while (there.load() < 2 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
      }
      EXPECT_EQ(there.load(), 2) << "nobody helped in round " << round;
    });
  }
  std::atomic<int> strangers{0};
  {
    const WorkFor scope(&other);
    for (int round = 0; round < 50; ++round) {
      pool.ParallelFor(8, kExpensive, [&](int64_t, int64_t) { strangers += std::this_thread::get_id() == helper; });
    }
  }
  EXPECT_EQ(strangers.load(), 0);
  over.store(true);
  mine.Tell();
  waits.join();
  release.Notify();
}

TEST(ThreadPoolTest, TheMeterTellsWhatHelpersDid) {
  ThreadPool pool(2);
  const uint32_t caller = CurrentThread();
  HelpMeter meter;
  pool.ParallelFor(1, kExpensive, [](int64_t, int64_t) {});
  EXPECT_TRUE(meter.Take().empty());
  const int64_t start = RealNanos();
  uint32_t helper = 0;
  std::atomic<int> there{0};
  pool.ParallelFor(2, kExpensive, [&](int64_t, int64_t) {
    there.fetch_add(1);
    while (there.load() < 2) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (CurrentThread() != caller) helper = CurrentThread();
  });
  const std::vector<HelpPart> parts = meter.Take();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].thread, helper);
  EXPECT_LE(start, parts[0].asked_nanos);
  EXPECT_LE(parts[0].asked_nanos, parts[0].start_nanos);
  EXPECT_GE(parts[0].end_nanos, parts[0].start_nanos + 2'000'000);
  EXPECT_LE(parts[0].end_nanos, RealNanos());
  meter.Add(parts[0]);
  EXPECT_EQ(meter.TakeNanos(), parts[0].end_nanos - parts[0].start_nanos);
  EXPECT_EQ(meter.TakeNanos(), 0);
}

TEST(ThreadPoolTest, RangesBeyond32Bits) {
  ThreadPool pool(2);
  const int64_t n = (int64_t{1} << 62) + 12345;
  std::atomic<int64_t> covered{0};
  pool.ParallelFor(n, 1, [&](int64_t begin, int64_t end) { covered.fetch_add(end - begin); });
  EXPECT_EQ(covered.load(), n);
}

TEST(ThreadPoolTest, SmallTotalsAndOddCostsRunInlineInOneRange) {
  ThreadPool pool(4);
  for (double cost : {0.0, -1.0, 1.0, std::nan("")}) {
    int calls = 0;
    const auto caller = std::this_thread::get_id();
    pool.ParallelFor(1000, cost, [&](int64_t begin, int64_t end) {
      ++calls;
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, 1000);
      EXPECT_EQ(std::this_thread::get_id(), caller);
    });
    EXPECT_EQ(calls, 1);
  }
}

TEST(ThreadPoolTest, MaxThreadsIsKept) {
  ThreadPool pool(8);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  pool.ParallelFor(
      64, kExpensive,
      [&](int64_t, int64_t) {
        const int now = inside.fetch_add(1) + 1;
        for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        inside.fetch_sub(1);
      },
      3);
  EXPECT_LE(most.load(), 3);
}

TEST(ThreadPoolTest, WorkersHelp) {
  ThreadPool pool(2);
  // Each of the two ranges waits for the other, so both threads must be there.
  std::atomic<int> arrived{0};
  pool.ParallelFor(2, kExpensive, [&](int64_t, int64_t) {
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
  });
}

TEST(ThreadPoolTest, NestedAndConcurrentCalls) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        pool.ParallelFor(5, kExpensive, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            pool.ParallelFor(7, kExpensive, [&](int64_t b, int64_t e) {
              for (int64_t j = b; j < e; ++j) {
                pool.ParallelFor(3, kExpensive, [&](int64_t b2, int64_t e2) { sum.fetch_add(e2 - b2); });
              }
            });
          }
        });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), int64_t{6} * 20 * 5 * 7 * 3);
}

TEST(ThreadPoolTest, WritesOfHelpersAreVisibleAfterwards) {
  ThreadPool pool(4);
  std::vector<int64_t> values(4096);
  for (int64_t round = 0; round < 500; ++round) {
    pool.ParallelFor(4096, 100, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] = i + round;
    });
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), 4096 * 4095 / 2 + 4096 * round);
  }
}

TEST(ThreadPoolTest, ManyMoreCallersThanSlots) {
  ThreadPool pool(2);
  std::atomic<int> count{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 80; ++t) {
    callers.emplace_back([&] {
      pool.ParallelFor(4, kExpensive, [&](int64_t b, int64_t e) { count += static_cast<int>(e - b); });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(count.load(), 320);
}

TEST(ThreadPoolTest, ScheduleRunsEverythingBeforeTheEnd) {
  for (int parallelism : {1, 2, 4}) {
    std::atomic<int> count{0};
    {
      ThreadPool pool(parallelism);
      for (int i = 0; i < 1000; ++i) {
        pool.Schedule([&] {
          count.fetch_add(1);
          pool.Schedule([&] { count.fetch_add(1); });
        });
      }
    }
    EXPECT_EQ(count.load(), 2000);
  }
}

TEST(ThreadPoolTest, ScheduledWorkWakesAllParkedWorkers) {
  ThreadPool pool(5);
  for (int round = 0; round < 20; ++round) {
    if (round % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    // All four closures must run at once for any to end.
    std::atomic<int> arrived{0};
    absl::BlockingCounter done(4);
    for (int i = 0; i < 4; ++i) {
      pool.Schedule([&] {
        arrived.fetch_add(1);
        while (arrived.load() < 4) std::this_thread::yield();
        done.DecrementCount();
      });
    }
    done.Wait();
  }
}

TEST(ThreadPoolTest, ScheduledClosureMayUseParallelFor) {
  ThreadPool pool(2);
  absl::Notification done;
  int64_t sum = 0;
  pool.Schedule([&] {
    std::atomic<int64_t> partial{0};
    pool.ParallelFor(100, kExpensive, [&](int64_t begin, int64_t end) { partial += end - begin; });
    sum = partial.load();
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(sum, 100);
}

TEST(ThreadPoolTest, AnExceptionReachesTheCallerAfterAllHelpersLeft) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.ParallelFor(16, kExpensive,
                                  [&](int64_t begin, int64_t) {
                                    if (begin % 3 == 0) throw std::runtime_error("expected");
                                  }),
                 std::runtime_error);
  }
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(16, kExpensive, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum.load(), 16);
}

// ---- Work that is stopped ----

struct Stop {
  std::atomic<bool> now{false};
  std::atomic<int> asked{0};
  static bool Must(void* data) {
    auto* stop = static_cast<Stop*>(data);
    ++stop->asked;
    return stop->now.load();
  }
};

constexpr double kLong = 5e6;  // nanoseconds: one index alone takes long

TEST(StopScopeTest, ParallelForLeavesTheRestUndone) {
  for (int width : {1, 4}) {
    ThreadPool pool(width);
    Stop stop;
    StopScope scope(&Stop::Must, &stop);
    scope.may_stop = true;
    std::atomic<int64_t> done{0};
    EXPECT_THROW(pool.ParallelFor(1000, kLong,
                                  [&](int64_t begin, int64_t end) {
                                    if (done.fetch_add(end - begin) >= 20) stop.now = true;
                                  }),
                 WorkStopped);
    EXPECT_GE(done.load(), 20);
    EXPECT_LT(done.load(), 1000);
    // What nobody stops is done wholly, and so is what does not take long.
    const auto count = [&](int64_t begin, int64_t end) { done += end - begin; };
    done = 0;
    pool.ParallelFor(1000, 1, count);
    EXPECT_EQ(done.load(), 1000);
    done = 0;
    scope.may_stop = false;
    pool.ParallelFor(1000, kLong, count);
    EXPECT_EQ(done.load(), 1000);
    done = 0;
    scope.may_stop = true;
    stop.now = false;
    pool.ParallelFor(1000, kLong, count);
    EXPECT_EQ(done.load(), 1000);
  }
}

TEST(StopScopeTest, PiecesCoverEveryIndexOnce) {
  ThreadPool pool(3);
  Stop stop;
  StopScope scope(&Stop::Must, &stop);
  scope.may_stop = true;
  for (const auto& [n, cost] : {std::pair<int64_t, double>{1, 1e7}, {7, 1e6}, {12345, 1e4}, {1000000, 10}}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
    pool.ParallelFor(n, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    for (const auto& s : seen) ASSERT_EQ(s.load(), 1);
  }
  EXPECT_GT(stop.asked.load(), 4);
}

TEST(StopScopeTest, LoopsAskOnEveryThreadThatDoesAPart) {
  ThreadPool pool(4);
  Stop stop;
  StopScope scope(&Stop::Must, &stop);
  scope.may_stop = true;
  std::atomic<int> in_loops{0};
  EXPECT_THROW(pool.ParallelFor(8, kLong,
                                [&](int64_t, int64_t) {
                                  if (++in_loops == 2) stop.now = true;
                                  StopNowAndThen pause;
                                  for (;;) pause();
                                }),
               WorkStopped);
  EXPECT_EQ(CurrentStopScope(), &scope);
}

TEST(StopScopeTest, LongRoundsAreAskedAboutAsOftenAsManyShortOnes) {
  int asked = 0;
  StopScope scope(
      [](void* data) {
        ++*static_cast<int*>(data);
        return false;
      },
      &asked);
  scope.may_stop = true;
  StopNowAndThen pause;
  for (int i = 0; i < 4095; ++i) pause();
  EXPECT_EQ(asked, 0);
  pause();
  EXPECT_EQ(asked, 1);
  for (int i = 0; i < 8; ++i) pause(1024);
  EXPECT_EQ(asked, 3);
  pause(int64_t{1} << 40);
  EXPECT_EQ(asked, 4);
}

TEST(StopScopeTest, ScopesNestAndWhoAsksIsOutside) {
  Stop outer_stop, inner_stop;
  outer_stop.now = true;
  StopIfAsked();
  StopScope outer(&Stop::Must, &outer_stop);
  StopIfAsked();  // it may not stop yet
  outer.may_stop = true;
  {
    StopScope inner(&Stop::Must, &inner_stop);
    StopIfAsked();
    inner.may_stop = true;
    StopIfAsked();
    EXPECT_EQ(inner_stop.asked.load(), 1);
  }
  EXPECT_THROW(StopIfAsked(), WorkStopped);
  struct Recursive {
    static bool Must(void*) {
      EXPECT_EQ(CurrentStopScope(), nullptr);
      StopIfAsked();
      return false;
    }
  };
  StopScope asks(&Recursive::Must, nullptr);
  asks.may_stop = true;
  StopIfAsked();
  EXPECT_EQ(CurrentStopScope(), &asks);
}

TEST(StopScopeTest, AKernelMayAllowIt) {
  {
    const StopAllowed nobody_asks;
  }
  Stop stop;
  stop.now = true;
  StopScope scope(&Stop::Must, &stop);
  {
    const StopAllowed allowed;
    EXPECT_THROW(StopIfAsked(), WorkStopped);
    {
      const StopAllowed again;
    }
    EXPECT_THROW(StopIfAsked(), WorkStopped);
  }
  EXPECT_FALSE(scope.may_stop);
  StopIfAsked();
}

}  // namespace
}  // namespace millrace
