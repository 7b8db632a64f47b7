// SPDX-License-Identifier: Apache-2.0
// Sessions whose masters are gone, epochs, and steps that nobody begins.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "kernel/kernel_registry.h"
#include "service/worker.h"
#include "simulation/worker_for_tests.h"

namespace millrace {
namespace {

class WorkerEndingsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSession = 5, kIncarnation = 77;

  template <typename Request, typename Response>
  StatusOr<Response> Ask(void (WorkerInterface::*method)(const CallOptions&, Request, Reply<Response>),
                         Request request) {
    const auto got = std::make_shared<StatusOr<Response>>(Internal("no answer"));  // which may come later
    WorkerInterface& worker = worker_;
    (worker.*method)({}, std::move(request), [got](StatusOr<Response> r) { *got = std::move(r); });
    return *got;
  }
  Status Create(int64_t epoch = 0, absl::Duration lease = absl::ZeroDuration(), uint64_t session = kSession) {
    return Ask(&WorkerInterface::CreateSession,
               CreateWorkerSessionRequest{session, epoch, absl::ToInt64Milliseconds(lease)})
        .status();
  }
  Status Run(int64_t step, int64_t epoch = 0) {
    RunStepRequest request;
    request.step = {{kSession, kIncarnation, epoch}, step};
    request.is_alone = true;
    return Ask(&WorkerInterface::RunStep, std::move(request)).status();
  }
  std::vector<uint64_t> Lost(std::vector<SessionRef> sessions) {
    return Ask(&WorkerInterface::Heartbeat, HeartbeatRequest{std::move(sessions)})->lost;
  }
  int64_t num_sessions() { return Ask(&WorkerInterface::GetStatus, GetStatusRequest{})->num_sessions; }

  const KernelRegistry kernels_;
  Worker worker_{OneDeviceForTests(), &kernels_, nullptr, kIncarnation};
};

TEST_F(WorkerEndingsTest, ASessionLivesAsLongAsItsMasterIsHeardOf) {
  const absl::Duration lease = absl::Milliseconds(400);
  ASSERT_TRUE(Create(0, lease).ok());
  ASSERT_TRUE(Create(0, absl::ZeroDuration(), 6).ok());
  for (int i = 0; i < 6; ++i) {
    absl::SleepFor(lease / 5);
    EXPECT_TRUE(Lost({{kSession, kIncarnation, 0}}).empty());
    worker_.EndLost();
  }
  EXPECT_TRUE(Run(1).ok());
  absl::SleepFor(lease + lease / 10);
  worker_.EndLost();
  EXPECT_EQ(num_sessions(), 1) << "the one without a lease";
  const Status s = Run(2);
  EXPECT_TRUE(absl::IsAborted(s)) << s;
  EXPECT_EQ(Lost({{kSession, kIncarnation, 0}, {6, kIncarnation, 0}, {6, kIncarnation + 1, 0}}),
            (std::vector<uint64_t>{kSession, 6}));
}

// A process that was stopped finds, when it goes on, what came meanwhile: nothing of it is obeyed, news of the master
// included.
TEST_F(WorkerEndingsTest, WhatComesAfterALeaseIsRefused) {
  ASSERT_TRUE(Create(0, absl::Milliseconds(20)).ok());
  absl::SleepFor(absl::Milliseconds(60));
  EXPECT_EQ(Lost({{kSession, kIncarnation, 0}}), (std::vector<uint64_t>{kSession}));
  EXPECT_TRUE(absl::IsAborted(Run(1)));
  ASSERT_TRUE(Create(1, absl::Milliseconds(20)).ok()) << "its master makes it again";
  absl::SleepFor(absl::Milliseconds(60));
  const Status s = Run(1, 1);
  EXPECT_TRUE(absl::IsAborted(s) && absl::StrContains(s.message(), "lease")) << s;
}

TEST_F(WorkerEndingsTest, MessagesOfAnotherEpochAreRefused) {
  ASSERT_TRUE(Create(2).ok());
  EXPECT_TRUE(Run(1, 2).ok());
  for (const int64_t epoch : {0, 1, 3}) {
    const Status s = Run(2, epoch);
    EXPECT_TRUE(absl::IsAborted(s) && absl::StrContains(s.message(), "epoch")) << s;
  }
  // What a step that is open waits for still comes; nothing new is opened.
  const auto recv = [&](int64_t step, int64_t epoch) {
    return Ask(&WorkerInterface::RecvTensor, RecvTensorRequest{{{kSession, kIncarnation, epoch}, step}, {5, 0, 0}})
        .status();
  };
  const auto waiting = std::make_shared<Status>();
  worker_.RecvTensor({}, {{{kSession, kIncarnation, 2}, 9}, {4, 0, 0}},
                     [waiting](const StatusOr<RecvTensorResponse>& r) { *waiting = r.status(); });
  ASSERT_TRUE(Create(3).ok());
  EXPECT_TRUE(absl::IsInternal(recv(9, 2))) << "it waits";
  EXPECT_TRUE(absl::IsAborted(recv(10, 2)));
  EXPECT_TRUE(absl::IsAborted(Create(2))) << "an earlier one does not come back";
  Ask(&WorkerInterface::AbortStep, AbortStepRequest{{{kSession, kIncarnation, 2}, 9}, DataLoss("enough")})
      .IgnoreError();
  EXPECT_TRUE(absl::IsDataLoss(*waiting)) << *waiting;
  Ask(&WorkerInterface::DeleteSession, DeleteWorkerSessionRequest{{kSession, kIncarnation, 2}}).IgnoreError();
  EXPECT_EQ(num_sessions(), 1) << "a deletion of an earlier epoch came late";
}

// A copy of the message that made a session, which a network or somebody else brings when the session has ended.
TEST_F(WorkerEndingsTest, AReplayedRegistrationIsRefused) {
  const auto refused = [&](int64_t epoch) {
    const Status s = Create(epoch);
    EXPECT_TRUE(absl::IsAborted(s) && absl::StrContains(s.message(), "has ended")) << s;
    EXPECT_EQ(num_sessions(), 0);
    EXPECT_TRUE(absl::IsAborted(Run(7, epoch))) << "nor do its steps run again";
  };
  ASSERT_TRUE(Create(1).ok());
  EXPECT_TRUE(Create(1).ok()) << "while it is there a copy changes nothing";
  Ask(&WorkerInterface::DeleteSession, DeleteWorkerSessionRequest{{kSession, kIncarnation, 1}}).IgnoreError();
  for (const int64_t epoch : {0, 1}) refused(epoch);
  ASSERT_TRUE(Create(2, absl::Milliseconds(1)).ok());
  absl::SleepFor(absl::Milliseconds(5));
  refused(2);
  ASSERT_TRUE(Create(3).ok()) << "its master makes it again";
  Ask(&WorkerInterface::Reset, ResetRequest{}).IgnoreError();
  ASSERT_TRUE(Create(4, absl::ZeroDuration(), 6).ok()) << "another session's";
}

// Deletion tells who waits in a step that it is over, and who is told may have made the session anew meanwhile.
TEST_F(WorkerEndingsTest, ADeletionEndsNoSessionThatWasMadeMeanwhile) {
  ASSERT_TRUE(Create(0, absl::Milliseconds(20)).ok());
  Status made = Internal("not asked");
  worker_.RecvTensor({}, {{{kSession, kIncarnation, 0}, 9}, {4, 0, 0}}, [&](const StatusOr<RecvTensorResponse>&) {
    absl::SleepFor(absl::Milliseconds(60));
    made = Create(1);  // the lease of the one before is over
  });
  Ask(&WorkerInterface::DeleteSession, DeleteWorkerSessionRequest{{kSession, kIncarnation, 0}}).IgnoreError();
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_EQ(num_sessions(), 1);
  EXPECT_TRUE(Run(1, 1).ok());
}

std::atomic<bool> may_end{false};
class EndlessKernel final : public Kernel {
 public:
  Status Compute(KernelContext&) override {
    while (!may_end) absl::SleepFor(absl::Milliseconds(1));
    return absl::OkStatus();
  }
};

// What a session has still to do when it is gone would be seen in containers that were cleared.
TEST_F(WorkerEndingsTest, AResetWaitsForStepsOfSessionsThatAreGone) {
  OpRegistry ops;
  ops.Add("Endless() -> () | container:string='' | S").Shape([](ShapeContext&) { return absl::OkStatus(); });
  KernelRegistry kernels;
  kernels.Add<EndlessKernel>({.op = "Endless"});
  enum class End { kLost, kDeleted, kReset };
  for (const End how : {End::kLost, End::kDeleted, End::kReset}) {
    SCOPED_TRACE(static_cast<int>(how));
    may_end = false;
    Worker worker(OneDeviceForTests(), &kernels, nullptr, kIncarnation);
    const SessionRef ref{kSession, kIncarnation, 0};
    const int64_t lease = how == End::kLost ? 20 : 0;
    worker.CreateSession({}, {kSession, 0, lease}, [](const StatusOr<CreateWorkerSessionResponse>& r) {
      EXPECT_TRUE(r.ok()) << r.status();
    });
    PartitionToRegister p;
    p.partition.device = "/job:x/replica:0/task:1/device:CPU:0";
    p.partition.graph = std::make_unique<Graph>(&ops);
    ASSERT_TRUE(p.partition.graph->AddNode({.name = "endless", .op = "Endless"}).ok());
    RegisterPartitionsRequest registration{ref, {}};
    registration.partitions.push_back(std::move(p));
    RunStepRequest step;
    step.step = {ref, 1};
    step.is_alone = true;
    worker.RegisterPartitions({}, std::move(registration), [&](const StatusOr<RegisterPartitionsResponse>& r) {
      ASSERT_TRUE(r.ok()) << r.status();
      step.parts.resize(1);
      step.parts[0].handle = r->handles.at(0);
    });
    absl::Notification step_is_over, is_reset;
    worker.RunStep({}, std::move(step), [&](const StatusOr<RunStepResponse>&) { step_is_over.Notify(); });
    const auto reset = [&](absl::Notification* done) {
      worker.Reset({}, {}, [done](const StatusOr<ResetResponse>& r) {
        EXPECT_TRUE(r.ok()) << r.status();
        done->Notify();
      });
    };
    absl::Notification first_reset;
    switch (how) {
      case End::kLost:
        absl::SleepFor(absl::Milliseconds(60));
        worker.EndLost();
        break;
      case End::kDeleted: worker.DeleteSession({}, {ref}, [](const StatusOr<DeleteWorkerSessionResponse>&) {}); break;
      case End::kReset: reset(&first_reset); break;
    }
    reset(&is_reset);
    EXPECT_FALSE(is_reset.HasBeenNotified());
    may_end = true;
    is_reset.WaitForNotification();
    step_is_over.WaitForNotification();
    if (how == End::kReset) first_reset.WaitForNotification();
  }
}

TEST_F(WorkerEndingsTest, RemembersTheLastSessionsThatEnded) {
  EndedSessions ended;
  for (uint64_t session = 1; session <= EndedSessions::kMost + 1; ++session) ended.Add(session, 5);
  ended.Add(2, 3);
  EXPECT_FALSE(ended.Has(1, 5));
  EXPECT_TRUE(ended.Has(2, 5) && ended.Has(2, 4) && !ended.Has(2, 6));
  ended.Add(2, 6);  // the last again
  for (uint64_t session = 20'001; session < 20'000 + EndedSessions::kMost; ++session) ended.Add(session, 5);
  EXPECT_TRUE(ended.Has(2, 6));
  EXPECT_FALSE(ended.Has(3, 5));
}

TEST_F(WorkerEndingsTest, PeersCannotOpenAsManyStepsAsTheyLike) {
  ASSERT_TRUE(Create().ok());
  const auto refused = std::make_shared<size_t>(0);
  size_t asked = 0;
  for (int64_t step = 1; step <= 3000; ++step) {
    worker_.RecvTensor(
        {}, {{{kSession, kIncarnation, 0}, step}, {4, 0, 0}},
        [refused](const StatusOr<RecvTensorResponse>& r) { *refused += absl::IsResourceExhausted(r.status()); });
    ++asked;
  }
  EXPECT_EQ(*refused, asked - StepTable::kMostUnbegun);
  EXPECT_TRUE(Run(1).ok()) << "what its master begins is begun";
  EXPECT_TRUE(Run(4000).ok());
}

}  // namespace
}  // namespace millrace
