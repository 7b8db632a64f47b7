// SPDX-License-Identifier: Apache-2.0
#include "cluster/task_monitor.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "base/env.h"
#include "simulation/forwarding_worker.h"

namespace millrace {
namespace {

// Answers heartbeats when the test says so, and notes what is said of it.
class SilentWorker final : public ForwardingWorker {
 public:
  SilentWorker() : ForwardingWorker("/job:ps/replica:0/task:1") {}
  void Heartbeat(const CallOptions&, HeartbeatRequest request, Reply<HeartbeatResponse> reply) override {
    asked = std::move(request);
    held.push_back(std::move(reply));
  }
  void SetDead(const Status& why) override { told.push_back(why); }
  void Answer(StatusOr<HeartbeatResponse> response) {
    std::vector<Reply<HeartbeatResponse>> all;
    all.swap(held);
    for (auto& reply : all) std::move(reply)(response);
  }

  HeartbeatRequest asked;
  std::vector<Reply<HeartbeatResponse>> held;
  std::vector<Status> told;
};

// Only its clock is used.
class TaskMonitorTest : public ::testing::Test {
 protected:
  TaskMonitorTest() {
    liveness_.period = absl::Milliseconds(20);
    liveness_.suspect = absl::Milliseconds(60);
    liveness_.dead = absl::Milliseconds(150);
    monitor_ = std::make_unique<TaskMonitor>(&Env::Default(), liveness_);
  }
  void Beat(int times) {
    for (int i = 0; i < times; ++i) {
      monitor_->Beat({{&worker_, {{7, 1, 0}}}});
      absl::SleepFor(liveness_.period);
    }
  }

  Liveness liveness_;
  SilentWorker worker_;
  std::unique_ptr<TaskMonitor> monitor_;
};

TEST_F(TaskMonitorTest, WhoAnswersIsAlive) {
  for (int i = 0; i < 20; ++i) {
    Beat(1);
    ASSERT_EQ(worker_.held.size(), 1u) << "one at a time";
    EXPECT_EQ(worker_.asked.sessions, (std::vector<SessionRef>{{7, 1, 0}}));
    worker_.Answer(HeartbeatResponse{1, {}});
  }
  EXPECT_TRUE(worker_.told.empty());
}

TEST_F(TaskMonitorTest, WhoIsSilentIsDeadUntilItAnswers) {
  Beat(4);
  EXPECT_TRUE(worker_.told.empty()) << "not yet";
  Beat(20);
  ASSERT_EQ(worker_.told.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(worker_.told[0])) << worker_.told[0];
  worker_.Answer(HeartbeatResponse{1, {}});
  ASSERT_EQ(worker_.told.size(), 2u);
  EXPECT_TRUE(worker_.told[1].ok());
  Beat(4);
  EXPECT_EQ(worker_.told.size(), 2u);
}

// The process was stopped, or the machine slept: others are not to blame.
TEST_F(TaskMonitorTest, TimeInWhichNobodyAsksDoesNotCount) {
  Beat(2);
  absl::SleepFor(2 * liveness_.dead);
  Beat(1);
  EXPECT_TRUE(worker_.told.empty());
}

// Where nobody listens the transport ends calls by itself; who may come back must be reachable at once.
TEST_F(TaskMonitorTest, WhoCannotBeReachedIsNotSilent) {
  for (int i = 0; i < 20; ++i) {
    Beat(1);
    worker_.Answer(Unavailable("nobody listens"));
  }
  EXPECT_TRUE(worker_.told.empty());
}

TEST_F(TaskMonitorTest, WhatWaitsForAProcessThatWasRestartedEnds) {
  Beat(1);
  worker_.Answer(HeartbeatResponse{1, {}});
  Beat(1);
  worker_.Answer(HeartbeatResponse{2, {}});
  ASSERT_EQ(worker_.told.size(), 2u);
  EXPECT_TRUE(absl::StrContains(worker_.told[0].message(), "restarted")) << worker_.told[0];
  EXPECT_TRUE(worker_.told[1].ok());
}

TEST_F(TaskMonitorTest, WhoIsNotNeededIsNotJudged) {
  Beat(20);
  ASSERT_FALSE(worker_.told.empty());
  monitor_->Beat({});
  EXPECT_TRUE(worker_.told.back().ok());
  const size_t told = worker_.told.size();
  worker_.Answer(HeartbeatResponse{1, {}});
  monitor_.reset();
  EXPECT_EQ(worker_.told.size(), told);
}

TEST(LivenessTest, TheEnvironmentSaysHowSoon) {
  const auto with = [](const char* dead) {
    setenv("MILLRACE_DEAD_AFTER_SECONDS", dead, 1);
    StatusOr<Liveness> liveness = LivenessFromEnvironment();
    unsetenv("MILLRACE_DEAD_AFTER_SECONDS");
    return liveness;
  };
  EXPECT_EQ(LivenessFromEnvironment()->dead, absl::Seconds(10));
  EXPECT_EQ(with("2")->period, absl::Milliseconds(200));
  EXPECT_EQ(with("2")->suspect, absl::Seconds(1));
  EXPECT_EQ(with("300")->period, absl::Seconds(1));
  EXPECT_EQ(with("0")->dead, absl::InfiniteDuration());
  EXPECT_EQ(with("")->dead, absl::Seconds(10)) << "as if it were not there";
  for (const char* bad : {"-1", "x", "nan", "inf", "1e300"})
    EXPECT_TRUE(absl::IsInvalidArgument(with(bad).status())) << bad;
}

}  // namespace
}  // namespace millrace
