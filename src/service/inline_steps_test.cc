// SPDX-License-Identifier: Apache-2.0
#include "service/inline_steps.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace millrace {
namespace {

TEST(InlineStepsTest, ClosedItStopsWhatRunsAndRefusesTheRest) {
  InlineSteps steps(Env::Default());
  StepTable table;
  const auto owner = std::make_shared<int>(0);
  CancellationManager first, second, third;
  std::optional<InlineSteps::Running> a(std::in_place, steps, first), b(std::in_place, steps, second);
  EXPECT_FALSE(a->is_refused() || b->is_refused() || a->is_stopped());
  a.reset();
  EXPECT_EQ(owner.use_count(), 1);
  steps.Close(Unavailable("enough"), table, owner);
  EXPECT_FALSE(first.IsCancelled());
  EXPECT_TRUE(second.IsCancelled());
  EXPECT_TRUE(b->is_stopped());
  EXPECT_EQ(owner.use_count(), 2);
  const InlineSteps::Running late(steps, third);
  EXPECT_TRUE(late.is_refused());
  EXPECT_FALSE(third.IsCancelled());
  steps.Close(Internal("later"), table, owner);
  EXPECT_TRUE(absl::IsUnavailable(steps.closed()));
  bool is_idle = false;
  for (auto& callback : table.WhenIdle([&] { is_idle = true; })) std::move(callback)();
  EXPECT_FALSE(is_idle) << "one runs";
  b.reset();
  EXPECT_TRUE(is_idle);
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(InlineStepsTest, MoreAtOnceThanEverBeforeFindRoom) {
  InlineSteps steps(Env::Default());
  StepTable table;
  std::vector<CancellationManager> cancellations(100);
  std::vector<std::unique_ptr<InlineSteps::Running>> running;
  for (CancellationManager& c : cancellations) running.push_back(std::make_unique<InlineSteps::Running>(steps, c));
  steps.Close(Cancelled("enough"), table, nullptr);
  for (const CancellationManager& c : cancellations) EXPECT_TRUE(c.IsCancelled());
  running.clear();
  EXPECT_EQ(table.WhenIdle([] {}).size(), 1u);
}

TEST(InlineStepsTest, StepsAndTheEndOfTheirSessionMeetAnywhere) {
  for (int round = 0; round < 200; ++round) {
    InlineSteps steps(Env::Default());
    StepTable table;
    const auto owner = std::make_shared<int>(0);
    std::atomic<int> begun{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (;;) {
          CancellationManager step;
          const InlineSteps::Running running(steps, step);
          if (running.is_refused()) return;
          ++begun;
          if (begun % 64 == 0) {
            while (!step.IsCancelled()) std::this_thread::yield();
          }
        }
      });
    }
    while (begun < round % 100) std::this_thread::yield();
    std::thread again([&] { steps.Close(Cancelled("too"), table, owner); });
    steps.Close(Cancelled("enough"), table, owner);
    again.join();
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(table.WhenIdle([] {}).size(), 1u);
    EXPECT_EQ(owner.use_count(), 1);
  }
}

}  // namespace
}  // namespace millrace
