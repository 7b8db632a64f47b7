// SPDX-License-Identifier: Apache-2.0
// Which way a plan goes, by what its kernels take: kernels that sleep, so that it does not depend on free processors.
#include "runtime/plan_width.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/device_for_tests.h"

namespace millrace {
namespace {

constexpr auto kSleep = std::chrono::milliseconds(8);  // long beside what a busy machine adds to it

struct Asleep {
  std::atomic<int> now{0}, most{0}, runs{0};
  std::atomic<bool> fails{false};
  absl::Mutex one_at_a_time;
  bool is_shared = false;  // the lock
};

class Sleeper final : public Kernel {
 public:
  explicit Sleeper(Asleep& asleep) : asleep_(asleep) {}
  Status Compute(KernelContext& ctx) override {
    ++asleep_.runs;
    if (asleep_.fails) return ResourceExhausted("no more");
    const int now = ++asleep_.now;
    int most = asleep_.most;
    while (most < now && !asleep_.most.compare_exchange_weak(most, now)) {
    }
    {
      absl::MutexLockMaybe lock(asleep_.is_shared ? &asleep_.one_at_a_time : nullptr);
      std::this_thread::sleep_for(kSleep);
    }
    --asleep_.now;
    return ctx.AllocateOutput(0, Shape()).status();
  }

 private:
  Asleep& asleep_;
};

class PlanWidthTest : public ::testing::Test {
 protected:
  // Lines of two sleepers each, beside each other.
  void Lay(int lines) {
    auto graph = std::make_shared<PlanGraph>();
    graph->frames.resize(1);
    for (int i = 0; i < 2 * lines; ++i) {
      PlannedNode n;
      n.info.name = absl::StrCat("n", i);
      n.info.op = &op_;
      n.info.device = &device_;
      n.info.signature.output_types = {DType::kFloat};
      n.expensive = true;
      if (i % 2 == 1) {
        n.info.signature.input_types = {DType::kFloat};
        n.inputs.push_back({i - 1, 0, false});
        graph->results.push_back({i, 0, n.info.name});
      }
      n.kernel = std::make_shared<Sleeper>(asleep_);
      graph->nodes.push_back(std::move(n));
    }
    plan_ = Plan::LayOut(graph, CutByWaits(*graph));
    ASSERT_TRUE(plan_->is_one_line());
    width_ = std::make_unique<PlanWidth>(plan_);
  }
  // How many kernels ran at once in the widest of these steps.
  int Widest(int steps, const ExecutorOptions& options = {}) {
    asleep_.most = 0;
    for (int i = 0; i < steps; ++i) {
      const Status s = Run(options);
      EXPECT_TRUE(s.ok()) << s;
    }
    return asleep_.most;
  }
  Status Run(const ExecutorOptions& options = {}) {
    CancellationManager cancellation;
    StepContext step;
    step.cancellation = &cancellation;
    const auto nothing = [](const Plan&, Frame&) { return absl::OkStatus(); };
    return width_->Run(step, options, nothing, nothing);
  }
  // The same by hand, as a worker does it; the plan that was run.
  const Plan& RunTurn() {
    PlanWidth::Turn turn = width_->Next({});
    const Plan& plan = turn.wide() != nullptr ? *turn.wide() : *plan_;
    StatusOr<HeldFrame> frame = plan.AcquireFrame();
    EXPECT_TRUE(frame.ok());
    CancellationManager cancellation;
    StepContext step;
    step.cancellation = &cancellation;
    turn.Begin();
    const Status s = turn.wide() != nullptr ? RunByReadinessHere(plan, **frame, step, {}, false)
                                            : turn.RunInOrder(plan, **frame, step, {});
    EXPECT_TRUE(s.ok()) << s;
    turn.End(s.ok());
    return plan;
  }

  // One run that is not measured, three that are, a trial of six and six.
  static constexpr int kUntilDecided = 1 + 3 + 12;
  OpDef op_;
  TestDevice device_;
  Asleep asleep_;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<PlanWidth> width_;
};

TEST_F(PlanWidthTest, WhatIsFasterOnTwoThreadsStaysThere) {
  Lay(2);
  EXPECT_EQ(Widest(4), 1) << "nothing is tried before it is measured";
  EXPECT_EQ(Widest(12), 2) << "the trial";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Widest(1), 2) << i << " runs after the decision";
}

TEST_F(PlanWidthTest, ATrialThatGainsNothingIsRefuted) {
  asleep_.is_shared = true;
  Lay(2);
  EXPECT_EQ(Widest(kUntilDecided), 2) << "it was tried";
  EXPECT_EQ(Widest(kUntilDecided), 1) << "it rests as long as it has run";
  EXPECT_EQ(Widest(kUntilDecided), 2) << "and is tried again";
}

TEST_F(PlanWidthTest, OneLineHasNoWidth) {
  Lay(1);
  EXPECT_EQ(Widest(2 * kUntilDecided), 1);
}

TEST_F(PlanWidthTest, OneThreadIsEnoughForWhoSaysSo) {
  Lay(2);
  EXPECT_EQ(Widest(2 * kUntilDecided, {.inter_op_threads = 1}), 1);
  EXPECT_EQ(Widest(2 * kUntilDecided, {.single_thread = true}), 1);
  EXPECT_EQ(Widest(kUntilDecided + 1), 2) << "these runs were not counted";
}

TEST_F(PlanWidthTest, TracedRunsMeasureNothing) {
  Lay(2);
  StepTrace trace;
  EXPECT_EQ(Widest(2 * kUntilDecided, {.trace = &trace}), 1);
  EXPECT_EQ(Widest(kUntilDecided), 2);
}

TEST_F(PlanWidthTest, ARunThatFailsDecidesNothingAndBlocksNothing) {
  Lay(2);
  EXPECT_EQ(Widest(2), 1);
  asleep_.fails = true;
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(absl::IsResourceExhausted(Run()));
  asleep_.fails = false;
  EXPECT_EQ(Widest(kUntilDecided), 2);
  EXPECT_EQ(Widest(1), 2);
}

TEST_F(PlanWidthTest, WhoRunsItByHandGetsTheSame) {
  Lay(2);
  {
    const PlanWidth::Turn never_run = width_->Next({});
  }
  for (int i = 1; i < kUntilDecided; ++i) RunTurn();
  {
    const PlanWidth::Turn never_run = width_->Next({});
  }
  for (int i = 0; i < 5; ++i) EXPECT_NE(&RunTurn(), plan_.get());
  EXPECT_EQ(Widest(1), 2) << "one decision for both";
}

}  // namespace
}  // namespace millrace
