// SPDX-License-Identifier: Apache-2.0
// A step on one worker, by itself: when it runs, what ends it, whose fault that is, and what it says of itself.
#include "service/worker_step.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "service/worker_session.h"
#include "simulation/worker_for_tests.h"

namespace millrace {
namespace {

// Waits until it is told, or its step is cancelled.
class HoldKernel final : public Kernel {
 public:
  static inline absl::Notification* begun = nullptr;
  Status Compute(KernelContext& ctx) override {
    begun->Notify();
    while (!ctx.step().cancellation->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return ctx.step().cancellation->reason();
  }
};
class FailKernel final : public Kernel {
 public:
  Status Compute(KernelContext&) override { return DataLoss("it fails by itself"); }
};

// Notes which node has run, and where. One of that name is slow.
struct Noted {
  std::string node;
  std::thread::id thread;
};
absl::Mutex noting;
std::vector<Noted> noted ABSL_GUARDED_BY(noting);
class NoteKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    if (ctx.node_name() == "slow") absl::SleepFor(absl::Milliseconds(1));
    absl::MutexLock lock(&noting);
    noted.push_back({ctx.node_name(), std::this_thread::get_id()});
    return absl::OkStatus();
  }
};

class WorkerStepTest : public ::testing::Test {
 protected:
  WorkerStepTest() {
    for (const char* op : {"Hold", "Fail", "Note"}) {
      ops_.ops.Add(absl::StrCat(op, "() -> () | | S")).Shape([](ShapeContext&) { return absl::OkStatus(); });
    }
    ops_.kernels.Add<HoldKernel>({.op = "Hold"});
    ops_.kernels.Add<FailKernel>({.op = "Fail"});
    ops_.kernels.Add<NoteKernel>({.op = "Note"});
  }
  int64_t Register(const std::string& op, const std::string& name = "the_node", bool in_segments = false) {
    std::vector<PartitionToRegister> partitions(1);
    Partition& p = partitions[0].partition;
    p.device = "/job:x/replica:0/task:1/device:CPU:0";
    p.graph = std::make_unique<Graph>(&ops_.ops);
    p.in_segments = in_segments;
    EXPECT_TRUE(p.graph->AddNode({.name = name, .op = op}).ok());
    const auto made = session_->Register(std::move(partitions), nullptr);
    EXPECT_TRUE(made.ok()) << made.status();
    return made->handles.at(0);
  }
  std::shared_ptr<WorkerStep> Begin(int64_t id) {
    return *session_->steps().Begin(id, [&] { return std::make_shared<WorkerStep>(session_, id); });
  }
  // Its answer comes later.
  struct Running {
    absl::Notification over;
    StatusOr<RunStepResponse> response = Internal("no answer");
  };
  static void Run(const std::shared_ptr<WorkerStep>& step, std::vector<int64_t> handles, Running* running,
                  bool is_alone = true) {
    RunStepRequest request;
    request.is_alone = is_alone;
    for (const int64_t handle : handles) request.parts.push_back({handle, {}});
    WorkerStep::Run(step, {}, std::move(request), [running](StatusOr<RunStepResponse> response) {
      running->response = std::move(response);
      running->over.Notify();
    });
  }
  static std::string Description(WorkerStep& step) {
    std::vector<std::string> lines;
    step.Describe(&lines);
    return absl::StrJoin(lines, "\n");
  }

  OpsForTests ops_;
  WorkerEnv env_{OneDeviceForTests(), &ops_.kernels, nullptr};
  std::shared_ptr<WorkerSession> session_ = std::make_shared<WorkerSession>(env_, 1);
};

TEST_F(WorkerStepTest, RunsOnce) {
  const int64_t count = Register("Count");
  const std::shared_ptr<WorkerStep> step = Begin(1);
  EXPECT_TRUE(absl::StrContains(Description(*step), "its master has not begun it")) << Description(*step);
  Running first, second;
  Run(step, {count}, &first);
  first.over.WaitForNotification();
  ASSERT_TRUE(first.response.ok()) << first.response.status();
  EXPECT_TRUE(first.response->status.ok()) << first.response->status;
  EXPECT_EQ(session_->steps().num_running(), 0);
  EXPECT_EQ(session_->steps().FindOpen(1), nullptr);
  EXPECT_EQ(Description(*step), "") << "there is nothing to tell of what is over";
  session_->steps().BeginInline();  // which the end of the second counts
  Run(step, {count}, &second);
  second.over.WaitForNotification();
  EXPECT_TRUE(absl::IsAlreadyExists(second.response.status())) << second.response.status();
}

TEST_F(WorkerStepTest, AFailureOfItsOwnIsNoConsequence) {
  Running running;
  Run(Begin(1), {Register("Fail")}, &running);
  running.over.WaitForNotification();
  ASSERT_TRUE(running.response.ok());
  EXPECT_TRUE(absl::IsDataLoss(running.response->status)) << running.response->status;
  EXPECT_TRUE(absl::StrContains(running.response->status.message(), "the_node"));
  EXPECT_FALSE(running.response->is_consequence);
}

TEST_F(WorkerStepTest, AnAbortEndsItWithTheFirstReason) {
  absl::Notification begun;
  HoldKernel::begun = &begun;
  const std::shared_ptr<WorkerStep> step = Begin(1);
  Running running;
  Run(step, {Register("Hold")}, &running);
  begun.WaitForNotification();
  EXPECT_TRUE(absl::StrContains(Description(*step), "the_node (Hold) is under way")) << Description(*step);
  EXPECT_FALSE(running.over.HasBeenNotified());
  const int64_t now = Env::Default().MonotonicNanos();
  EXPECT_FALSE(step->HasStalled(now, 1000)) << "asked for the first time";
  EXPECT_FALSE(step->HasStalled(now + 999, 1000));
  EXPECT_TRUE(step->HasStalled(now + 1000, 1000));
  EXPECT_FALSE(step->HasStalled(now + 1500, 1000)) << "once in that time";
  step->Abort(Unavailable("the first"));
  step->Abort(Internal("the second"));
  running.over.WaitForNotification();
  ASSERT_TRUE(running.response.ok());
  EXPECT_TRUE(absl::IsUnavailable(running.response->status)) << running.response->status;
  EXPECT_TRUE(running.response->is_consequence);
  EXPECT_FALSE(step->HasStalled(now + 10'000, 1000)) << "it is over";
}

TEST_F(WorkerStepTest, WhatCannotBePreparedDoesNotRun) {
  const int64_t count = Register("Count");
  Running unknown, aborted, nothing;
  Run(Begin(1), {count, count + 1}, &unknown);
  unknown.over.WaitForNotification();
  ASSERT_TRUE(unknown.response.ok());
  EXPECT_TRUE(absl::IsNotFound(unknown.response->status)) << unknown.response->status;
  const std::shared_ptr<WorkerStep> step = Begin(2);
  step->Abort(Cancelled("before it came"));
  Run(step, {count}, &aborted);
  aborted.over.WaitForNotification();
  ASSERT_TRUE(aborted.response.ok());
  EXPECT_EQ(aborted.response->status, Cancelled("before it came"));
  RandomPositions positions;
  session_->GetRandomPositions(&positions);
  EXPECT_EQ(positions["the_node"][0], 0u) << "its kernel has run";
  Run(Begin(3), {}, &nothing);
  nothing.over.WaitForNotification();
  ASSERT_TRUE(nothing.response.ok());
  EXPECT_TRUE(nothing.response->status.ok()) << "no partition is a step too";
}

// For which others may wait, and another thread would come when they are over.
TEST_F(WorkerStepTest, ShortPartitionsRunFirstOnTheThreadThatStartsTheStep) {
  const int64_t slow = Register("Note", "slow", true), quick = Register("Note", "quick", true);
  bool was_first = false;
  for (int64_t id = 1; id < 500 && !was_first; ++id) {  // a quick one too takes long when others have the processor
    {
      absl::MutexLock lock(&noting);
      noted.clear();
    }
    RunStepRequest request;
    request.is_alone = true;
    for (const int64_t handle : {slow, quick}) request.parts.push_back({handle, {}});
    CallOptions call;
    call.runs_here = true;
    absl::Notification over;
    WorkerStep::Run(Begin(id), call, std::move(request), [&](const StatusOr<RunStepResponse>& r) {
      EXPECT_TRUE(r.ok() && r->status.ok());
      over.Notify();
    });
    over.WaitForNotification();
    absl::MutexLock lock(&noting);
    ASSERT_EQ(noted.size(), 2u);
    was_first = noted[0].node == "quick" && noted[0].thread == std::this_thread::get_id() &&
                noted[1].thread == std::this_thread::get_id();
  }
  EXPECT_TRUE(was_first);
}

TEST_F(WorkerStepTest, AStepOfSeveralWorkersStaysUntilItsMasterSaysSo) {
  const int64_t count = Register("Count");
  const std::shared_ptr<WorkerStep> step = Begin(1);
  ASSERT_TRUE(step->sent_here().Send(EdgeKey{7}.ToString(), Tensor::Scalar(5.0f), false).ok());
  Running running;
  Run(step, {count}, &running, /*is_alone=*/false);
  running.over.WaitForNotification();
  EXPECT_EQ(session_->steps().FindOpen(1), step) << "others may yet ask for what it has sent";
  float got = 0;
  step->sent_here().RecvAsync(
      EdgeKey{7}.ToString(), [&](const Status&, Tensor value, bool) { got = *value.data<float>(); });
  EXPECT_EQ(got, 5.0f);
  EXPECT_EQ(session_->steps().Drop({2, {}}).size(), 1u);
}

}  // namespace
}  // namespace millrace
