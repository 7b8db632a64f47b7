// SPDX-License-Identifier: Apache-2.0
#include "service/joint_step.h"

#include <gtest/gtest.h>

#include "simulation/forwarding_worker.h"

namespace millrace {
namespace {

// Notes what it is told, and answers when the test says so.
class SlowWorker final : public ForwardingWorker {
 public:
  SlowWorker() : ForwardingWorker("/job:x/replica:0/task:0") {}
  void RunStep(const CallOptions& call, RunStepRequest request, Reply<RunStepResponse> answer) override {
    ran_here = call.runs_here;
    step = request.step.step;
    reply = std::move(answer);
  }
  void AbortStep(const CallOptions&, AbortStepRequest request, Reply<AbortStepResponse> answer) override {
    aborted = request.why;
    std::move(answer)(AbortStepResponse{});
  }
  void CleanUpSteps(const CallOptions&, CleanUpStepsRequest request, Reply<CleanUpStepsResponse> answer) override {
    horizon = request.horizon.next;
    std::move(answer)(CleanUpStepsResponse{});
  }
  void Answer(const Status& s, bool is_consequence = false) {
    RunStepResponse response{.status = s};
    response.is_consequence = is_consequence;
    std::exchange(reply, nullptr)(std::move(response));
  }

  Reply<RunStepResponse> reply;
  bool ran_here = false;
  int64_t step = 0, horizon = 0;
  Status aborted;
};

class JointStepTest : public ::testing::Test {
 protected:
  void Start(size_t n, bool is_alone = false) {
    std::vector<JointStep::Part> parts(n);
    for (size_t i = 0; i < n; ++i) {
      parts[i].worker = &workers_[i];
      parts[i].request.step.step = 5;
      parts[i].request.is_alone = is_alone;
    }
    CallOptions call;
    call.runs_here = true;
    step_.Start(std::move(parts), call, [this](Status s) {
      EXPECT_FALSE(is_done_);
      is_done_ = true;
      result_ = std::move(s);
    });
  }

  SlowWorker workers_[3];
  JointStep step_;
  bool is_done_ = false;
  Status result_;
};

TEST_F(JointStepTest, IsDoneWhenAllHaveAnswered) {
  Start(3);
  EXPECT_TRUE(workers_[0].ran_here);
  EXPECT_FALSE(workers_[1].ran_here || workers_[2].ran_here) << "one after the other";
  for (SlowWorker& w : workers_) {
    EXPECT_FALSE(is_done_);
    EXPECT_EQ(w.step, 5);
    w.Answer(absl::OkStatus());
    EXPECT_TRUE(w.aborted.ok());
  }
  EXPECT_TRUE(is_done_ && result_.ok()) << result_;
  step_.CleanUp({6, {}});
  for (const SlowWorker& w : workers_) EXPECT_EQ(w.horizon, 6);
}

TEST_F(JointStepTest, TheFirstFailureStopsTheOthersAndIsTheResult) {
  Start(3);
  workers_[1].Answer(NotFound("cause"));
  EXPECT_TRUE(absl::IsNotFound(workers_[0].aborted));
  EXPECT_TRUE(absl::IsNotFound(workers_[2].aborted));
  EXPECT_FALSE(is_done_);
  workers_[2].Answer(Internal("follows from it"));
  workers_[0].Answer(Cancelled("follows from it"));
  EXPECT_TRUE(is_done_);
  EXPECT_TRUE(absl::IsNotFound(result_)) << result_;
}

// Whatever it is: causes are kept, not guessed.
TEST_F(JointStepTest, ACancellationThatCameFirstIsTheCause) {
  Start(2);
  workers_[0].Answer(Cancelled("cause"));
  EXPECT_TRUE(absl::IsCancelled(workers_[1].aborted));
  workers_[1].Answer(NotFound("follows from it"));
  EXPECT_TRUE(absl::IsCancelled(result_)) << result_;
}

// The news of a failure may come by way of those who wait for what it would have made.
TEST_F(JointStepTest, AConsequenceIsNeverReportedAboveItsCause) {
  Start(3);
  workers_[0].Answer(Aborted("nothing comes"), /*is_consequence=*/true);
  EXPECT_TRUE(absl::IsAborted(workers_[1].aborted));
  workers_[1].Answer(Aborted("nothing comes"), /*is_consequence=*/true);
  workers_[2].Answer(NotFound("cause"));
  EXPECT_TRUE(is_done_);
  EXPECT_EQ(result_, NotFound("cause"));
  EXPECT_EQ(step_.stopped(), NotFound("cause"));
}

TEST_F(JointStepTest, AConsequenceWhoseCauseNobodyKnowsIsTheResult) {
  Start(2);
  workers_[0].Answer(Unavailable("the other is not there"), /*is_consequence=*/true);
  workers_[1].Answer(Unavailable("aborted: the other is not there"), /*is_consequence=*/true);
  EXPECT_EQ(result_, Unavailable("the other is not there"));
}

TEST_F(JointStepTest, WhatStoppedItIsTheCauseOfWhatWorkersSay) {
  Start(2);
  step_.Stop(DeadlineExceeded("late"));
  workers_[0].Answer(Cancelled("taking was cancelled"));
  step_.Stop(Cancelled("later"));
  workers_[1].Answer(NotFound("follows from it"));
  EXPECT_EQ(result_, DeadlineExceeded("late: taking was cancelled"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(workers_[1].aborted));
}

TEST_F(JointStepTest, WhatStoppedItNamesAllNodesThatItHasStoppedAt) {
  Start(3);
  step_.Stop(DeadlineExceeded("late"));
  workers_[0].Answer(DeadlineExceeded("late\n\t [[node a]]"), /*is_consequence=*/true);
  workers_[1].Answer(DeadlineExceeded("it was cancelled: late\n\t [[node b]]"), /*is_consequence=*/true);
  workers_[2].Answer(DeadlineExceeded("late\n\t [[node a]]"), /*is_consequence=*/true);
  EXPECT_EQ(result_, DeadlineExceeded("late\n\t [[node a]]\n\t [[node b]]"));
}

TEST_F(JointStepTest, StoppedBeforeItBeginsItSendsNothing) {
  step_.Stop(DeadlineExceeded("late"));
  Start(2);
  EXPECT_TRUE(is_done_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(result_));
  EXPECT_FALSE(workers_[0].reply || workers_[1].reply);
}

// The worker drops what it has of such a step by itself, but for an abort that comes later than its end.
TEST_F(JointStepTest, AStepOnOneWorkerAloneIsCleanedUpWhenItWasAborted) {
  Start(1, /*is_alone=*/true);
  workers_[0].Answer(NotFound("cause"));
  EXPECT_TRUE(workers_[0].aborted.ok());
  step_.CleanUp({6, {}});
  EXPECT_EQ(workers_[0].horizon, 0);
  step_.Stop(Cancelled("too late"));
  EXPECT_TRUE(workers_[0].aborted.ok());
}

TEST_F(JointStepTest, AnAbortedStepOnOneWorkerAloneIsCleanedUp) {
  Start(1, /*is_alone=*/true);
  step_.Stop(Cancelled("enough"));
  EXPECT_TRUE(absl::IsCancelled(workers_[0].aborted));
  workers_[0].Answer(Cancelled("enough"));
  step_.CleanUp({6, {}});
  EXPECT_EQ(workers_[0].horizon, 6);
}

}  // namespace
}  // namespace millrace
