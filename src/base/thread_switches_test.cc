// SPDX-License-Identifier: Apache-2.0
#include "base/thread_switches.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/current_thread.h"
#include "base/stopwatch.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

std::vector<OffCpu> Of(uint32_t thread, std::vector<OffCpu> all) {
  std::erase_if(all, [&](const OffCpu& off) { return off.thread != thread; });
  return all;
}

// The system may refuse: then there is nothing to see.
bool IsPermitted() {
  const ThreadSwitches::Recording recording;
  ThreadSwitches::Get().WatchThisThread();
  const int64_t start = RealNanos();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return !Of(CurrentThread(), ThreadSwitches::Get().Between(start, RealNanos())).empty();
}

TEST(ThreadSwitches, TellsWhenAThreadSlept) {
  if (!IsPermitted()) GTEST_SKIP() << "skipped: the system lets no process watch its threads";
  const ThreadSwitches::Recording recording;
  const int64_t start = RealNanos();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int64_t end = RealNanos();
  int64_t asleep = 0;
  for (const OffCpu& off : Of(CurrentThread(), ThreadSwitches::Get().Between(start, end))) {
    EXPECT_GE(off.start_nanos, start);
    EXPECT_LT(off.start_nanos, off.end_nanos);
    EXPECT_LE(off.end_nanos, end);
    if (!off.is_preempted) asleep += off.end_nanos - off.start_nanos;
  }
  EXPECT_GT(asleep, 15'000'000);
}

TEST(ThreadSwitches, ARecordingKnowsNothingOfTheTimeBeforeIt) {
  if (!IsPermitted()) GTEST_SKIP() << "skipped: the system lets no process watch its threads";
  for (const bool rests : {false, true}) {
    if (rests) ThreadSwitches::Get().Rest();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const int64_t begun = RealNanos();
    const ThreadSwitches::Recording recording;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const int64_t end = RealNanos();
    int64_t asleep = 0;
    for (const OffCpu& off : Of(CurrentThread(), ThreadSwitches::Get().Between(begun - 50'000'000, end))) {
      EXPECT_GE(off.start_nanos, begun) << rests;
      asleep += off.end_nanos - off.start_nanos;
    }
    EXPECT_GT(asleep, 15'000'000) << rests;
  }
}

TEST(ThreadSwitches, TellsOfAThreadThatStillSleeps) {
  if (!IsPermitted()) GTEST_SKIP() << "skipped: the system lets no process watch its threads";
  const ThreadSwitches::Recording recording;
  std::atomic<uint32_t> number{0};
  std::atomic<bool> go_on{false};
  std::thread sleeper([&] {
    ThreadSwitches::Get().WatchThisThread();
    number = CurrentThread();
    go_on.wait(false);
  });
  while (number == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int64_t now = RealNanos();
  const std::vector<OffCpu> seen = Of(number, ThreadSwitches::Get().Between(now - 5'000'000, now));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].start_nanos, now - 5'000'000);
  EXPECT_EQ(seen[0].end_nanos, now);
  go_on = true;
  go_on.notify_all();
  sleeper.join();
  EXPECT_TRUE(Of(number, ThreadSwitches::Get().Between(now, RealNanos())).empty());  // it is forgotten
}

TEST(ThreadSwitches, KeepsNothingWhileNobodyRecords) {
  IsPermitted();  // watches this thread from now on
  const int64_t start = RealNanos();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const ThreadSwitches::Recording recording;
  EXPECT_TRUE(Of(CurrentThread(), ThreadSwitches::Get().Between(start, start + 4'000'000)).empty());
}

}  // namespace
}  // namespace millrace
