// SPDX-License-Identifier: Apache-2.0
#include "kernel/cancellation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace millrace {
namespace {

TEST(CancellationTest, EachCallbackRunsOnceOutsideOfTheLock) {
  CancellationManager step;
  int first = 0, second = 0;
  const auto a = step.Register([&] {
    ++first;
    EXPECT_TRUE(step.IsCancelled());
    EXPECT_EQ(step.Register([] {}), CancellationManager::kInvalid);  // would not return if the lock were held
    step.Cancel(Cancelled("enough"));
  });
  const auto b = step.Register([&] { ++second; });
  EXPECT_NE(a, b);
  EXPECT_FALSE(step.IsCancelled());
  EXPECT_EQ(step.reason(), absl::OkStatus());
  step.Cancel(DeadlineExceeded("late"));
  step.Cancel(Cancelled("enough"));
  EXPECT_EQ(step.reason(), DeadlineExceeded("late"));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_FALSE(step.Deregister(b));
}

TEST(CancellationTest, WhoDeregisteredIsNotCalled) {
  CancellationManager step;
  int calls = 0;
  const auto token = step.Register([&] { ++calls; });
  EXPECT_TRUE(step.Deregister(token));
  EXPECT_FALSE(step.Deregister(token));
  step.Cancel(Cancelled("enough"));
  EXPECT_EQ(calls, 0);
}

TEST(CancellationTest, WhoComesLaterIsRefused) {
  CancellationManager step;
  step.Cancel(Cancelled("enough"));
  int calls = 0;
  EXPECT_EQ(step.Register([&] { ++calls; }), CancellationManager::kInvalid);
  EXPECT_EQ(calls, 0);
}

TEST(CancellationTest, DeregisteringWaitsForACallbackThatRuns) {
  CancellationManager step;
  absl::Notification runs, may_end;
  std::atomic<bool> ended{false};
  const auto token = step.Register([&] {
    runs.Notify();
    may_end.WaitForNotification();
    ended = true;
  });
  std::thread canceller([&] { step.Cancel(Cancelled("enough")); });
  runs.WaitForNotification();
  std::thread releaser([&] { may_end.Notify(); });
  EXPECT_FALSE(step.Deregister(token));
  EXPECT_TRUE(ended);
  canceller.join();
  releaser.join();
}

TEST(CancellationTest, OneThatThrowsKeepsNobodyFromBeingTold) {
  CancellationManager step;
  int told = 0;
  step.Register([] { throw std::bad_alloc(); });
  step.Register([&] { ++told; });
  step.Cancel(Cancelled("enough"));
  EXPECT_EQ(told, 1);
}

TEST(CancellationTest, ManyThreadsCancelAndDeregister) {
  for (int round = 0; round < 200; ++round) {
    CancellationManager step;
    std::atomic<int> called{0}, left{0};
    std::vector<CancellationManager::Token> tokens;
    for (int i = 0; i < 8; ++i) tokens.push_back(step.Register([&] { ++called; }));
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) threads.emplace_back([&] { step.Cancel(Cancelled("enough")); });
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = static_cast<size_t>(t); i < tokens.size(); i += 2) left += step.Deregister(tokens[i]);
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(called + left, 8);
  }
}

}  // namespace
}  // namespace millrace
