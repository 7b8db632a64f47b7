// SPDX-License-Identifier: Apache-2.0
#include "service/step_table.h"

#include <gtest/gtest.h>

#include "kernel/kernel_registry.h"
#include "service/worker_session.h"
#include "simulation/worker_for_tests.h"

namespace millrace {
namespace {

class StepTableTest : public ::testing::Test {
 protected:
  StepTable::StepPtr Make() {
    ++made_;
    return std::make_shared<WorkerStep>(session_, made_);
  }
  absl::StatusCode Find(int64_t step) {
    return table_.FindOrMake(step, ++now_, [&] { return Make(); }).status().code();
  }
  absl::StatusCode Begin(int64_t step) {
    return table_.Begin(step, [&] { return Make(); }).status().code();
  }

  const KernelRegistry kernels_;
  WorkerEnv env_{OneDeviceForTests(), &kernels_, nullptr};
  std::shared_ptr<WorkerSession> session_ = std::make_shared<WorkerSession>(env_, 1);
  StepTable table_;
  int64_t now_ = 0;
  int made_ = 0;
};

constexpr absl::StatusCode kOk = absl::StatusCode::kOk;

TEST_F(StepTableTest, AnyMessageMayBeTheFirst) {
  EXPECT_EQ(Find(3), kOk);
  EXPECT_EQ(Begin(3), kOk);
  EXPECT_EQ(made_, 1);
  EXPECT_TRUE(table_.End(3, /*is_over=*/true).empty());
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(StepTableTest, WhatNobodyBeginsIsForgotten) {
  EXPECT_EQ(Find(1), kOk);  // at 1
  EXPECT_EQ(Find(2), kOk);  // at 2
  EXPECT_EQ(Begin(1), kOk);
  EXPECT_EQ(Find(3), kOk);
  EXPECT_TRUE(table_.DropUnbegun(2).empty()) << "the first has begun";
  EXPECT_EQ(table_.DropUnbegun(3).size(), 1u);
  EXPECT_EQ(table_.FindOpen(2), nullptr);
  EXPECT_NE(table_.FindOpen(1), nullptr);
  EXPECT_EQ(Begin(2), kOk) << "its master comes late";
  EXPECT_EQ(table_.num_running(), 2);
}

// It would run again.
TEST_F(StepTableTest, AStepThatWasOverByItselfDoesNotComeAgain) {
  for (int64_t step = 1; step <= 1000; ++step) {
    ASSERT_EQ(Begin(step), kOk);
    EXPECT_TRUE(table_.End(step, /*is_over=*/true).empty());
    ASSERT_EQ(Begin(step), absl::StatusCode::kAborted);
  }
  EXPECT_EQ(Begin(1), absl::StatusCode::kAborted);
  EXPECT_EQ(Find(999), absl::StatusCode::kAborted);
  EXPECT_EQ(Find(1001), kOk);
}

TEST(StepSetTest, KeepsRuns) {
  StepSet set;
  for (const int64_t step : {5, 3, 4, 9, 7, 8, 3, 1}) {
    StepSet::Runs room = {{step, 0}};
    set.Add(step, room.extract(room.begin()));
  }
  for (int64_t step = 0; step < 12; ++step) {
    EXPECT_EQ(set.Has(step), step == 1 || (step >= 3 && step <= 5) || (step >= 7 && step <= 9)) << step;
  }
  EXPECT_EQ(set.num_runs(), 3u);
  set.DropBefore(6);
  EXPECT_EQ(set.num_runs(), 1u);
  EXPECT_TRUE(set.Has(8) && !set.Has(4));
}

TEST_F(StepTableTest, OnlySoManyWaitToBeBegun) {
  for (size_t i = 0; i < StepTable::kMostUnbegun; ++i) ASSERT_EQ(Find(static_cast<int64_t>(i)), kOk);
  EXPECT_EQ(Find(1'000'000), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Find(0), kOk) << "it is known";
  EXPECT_EQ(Begin(1'000'000), kOk);
  EXPECT_EQ(Begin(5), kOk);
  EXPECT_EQ(Find(1'000'001), kOk) << "one has begun";
}

TEST_F(StepTableTest, WhatIsOverIsForgottenAndNotMadeAgain) {
  for (int64_t step : {1, 2, 3, 7}) EXPECT_EQ(Find(step), kOk);
  EXPECT_EQ(table_.Drop({5, {2}}).size(), 2u);
  EXPECT_EQ(Find(1), absl::StatusCode::kAborted);
  EXPECT_EQ(Find(2), kOk);
  EXPECT_EQ(Find(4), absl::StatusCode::kAborted) << "it was over before anything was heard of it";
  EXPECT_EQ(Find(7), kOk);
  // What was said before, and comes now.
  EXPECT_TRUE(table_.Drop({4, {}}).empty());
  EXPECT_EQ(Find(2), kOk);
  EXPECT_TRUE(table_.Drop({5, {2, 4}}).empty());
  EXPECT_EQ(Find(4), absl::StatusCode::kAborted);
  EXPECT_EQ(table_.Drop({5, {}}).size(), 1u);
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(StepTableTest, CloseRefusesAndWhoeverEndsTheLastStepTellsThoseThatWait) {
  EXPECT_EQ(Begin(1), kOk);
  EXPECT_EQ(Begin(2), kOk);
  EXPECT_EQ(Find(3), kOk);
  EXPECT_EQ(table_.Close(Cancelled("enough")).size(), 3u);
  EXPECT_TRUE(table_.Close(Internal("again")).empty());
  EXPECT_EQ(Find(1), absl::StatusCode::kCancelled);
  EXPECT_EQ(Begin(9), absl::StatusCode::kCancelled);
  bool idle = false;
  EXPECT_TRUE(table_.WhenIdle([&] { idle = true; }).empty());
  EXPECT_TRUE(table_.End(2, true).empty());
  StepTable::Callbacks callbacks = table_.End(1, false);
  ASSERT_EQ(callbacks.size(), 1u);
  EXPECT_FALSE(idle);
  std::move(callbacks[0])();
  EXPECT_TRUE(idle);
  idle = false;
  callbacks = table_.WhenIdle([&] { idle = true; });
  ASSERT_EQ(callbacks.size(), 1u) << "nothing runs: it is for who asks";
  std::move(callbacks[0])();
  EXPECT_TRUE(idle);
}

TEST(StepHorizonTest, ANumberIsOverOnceItsStepHasEnded) {
  StepIds ids;
  const int64_t a = ids.Begin(), b = ids.Begin();
  const StepHorizon before = ids.horizon();
  EXPECT_FALSE(before.IsOver(a) || before.IsOver(b) || before.IsOver(b + 1));
  ids.End(a);
  const StepHorizon after = ids.horizon();
  EXPECT_TRUE(after.IsOver(a));
  EXPECT_FALSE(after.IsOver(b));
  EXPECT_TRUE(before.IsOlderThan(after));
  EXPECT_FALSE(after.IsOlderThan(before) || after.IsOlderThan(after));
  EXPECT_EQ(ids.Begin(), b + 1);
  EXPECT_TRUE(after.IsOlderThan(ids.horizon()));
}

}  // namespace
}  // namespace millrace
