// SPDX-License-Identifier: Apache-2.0
#include "service/worker.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "simulation/worker_for_tests.h"

namespace millrace {
namespace {

constexpr uint64_t kIncarnation = 7, kSession = 17;

class WorkerTest : public ::testing::Test {
 protected:
  template <typename Request, typename Response>
  using MethodOf = void (WorkerInterface::*)(const CallOptions&, Request, Reply<Response>);
  // Each call here is answered before it returns, or on the pool.
  template <typename Request, typename Response>
  StatusOr<Response> Ask(MethodOf<Request, Response> method, Request request) {
    StepThread caller;
    CallOptions call;
    call.caller = &caller;
    call.runs_here = true;
    StatusOr<Response> got = Internal("no answer");
    (static_cast<WorkerInterface&>(worker_).*method)(call, std::move(request), [&](StatusOr<Response> response) {
      got = std::move(response);
      caller.Finish();
    });
    caller.Drive(/*may_be_interrupted=*/false);
    return got;
  }
  void Create(uint64_t session = kSession) {
    CreateWorkerSessionRequest request;
    request.session = session;
    const auto made = Ask(&WorkerInterface::CreateSession, std::move(request));
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->incarnation, kIncarnation);
    ASSERT_EQ(made->devices.size(), 1u);
  }
  static SessionRef Ref(uint64_t session = kSession, uint64_t incarnation = kIncarnation) {
    SessionRef ref;
    ref.session = session;
    ref.incarnation = incarnation;
    return ref;
  }
  StatusOr<int64_t> Register(const std::string& node, const SessionRef& session) {
    RegisterPartitionsRequest request;
    request.session = session;
    request.partitions.push_back(ops_.Counting(node));
    EXPECT_TRUE(ops_.made.ok()) << ops_.made;
    MR_ASSIGN_OR_RETURN(
        const RegisterPartitionsResponse made, Ask(&WorkerInterface::RegisterPartitions, std::move(request)));
    return made.handles.at(0);
  }
  Status Run(int64_t handle, int64_t step, const SessionRef& session) {
    RunStepRequest request;
    request.step.session = session;
    request.step.step = step;
    request.parts.resize(1);
    request.parts[0].handle = handle;
    MR_ASSIGN_OR_RETURN(const RunStepResponse ran, Ask(&WorkerInterface::RunStep, std::move(request)));
    return ran.status;
  }
  // How often the session's kernel of that node has run.
  int64_t Runs(const std::string& node, const SessionRef& session) {
    const auto got = Ask(&WorkerInterface::GetRandomPositions, GetRandomPositionsRequest{session});
    if (!got.ok() || got->positions.count(node) == 0) return -1;
    return got->positions.at(node)[0];
  }

  OpsForTests ops_;
  Worker worker_{OneDeviceForTests(), &ops_.kernels, nullptr, kIncarnation};
};

TEST_F(WorkerTest, ObeysOnlyWhatIsMeantForItAndForASessionOfIts) {
  EXPECT_TRUE(absl::IsAborted(Register("n", Ref()).status()));
  Create();
  Create();  // again: changes nothing
  EXPECT_TRUE(Register("n", Ref()).ok());
  const Status other_life = Register("n", Ref(kSession, kIncarnation + 1)).status();
  EXPECT_TRUE(absl::IsAborted(other_life));
  EXPECT_NE(other_life.message().find("was restarted"), absl::string_view::npos) << other_life;
  EXPECT_TRUE(absl::IsAborted(Register("n", Ref(kSession + 1)).status()));
  const auto status = Ask(&WorkerInterface::GetStatus, GetStatusRequest{});
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->num_sessions, 1);
  EXPECT_EQ(status->task, "/job:x/replica:0/task:1");
}

TEST_F(WorkerTest, RegistersAllPartitionsOrNone) {
  Create();
  RegisterPartitionsRequest request;
  request.session = Ref();
  request.partitions.push_back(ops_.Counting("a"));
  request.partitions.push_back(ops_.Counting("b", "/job:x/replica:0/task:1/device:CPU:9"));
  const Status s = Ask(&WorkerInterface::RegisterPartitions, std::move(request)).status();
  EXPECT_TRUE(absl::IsNotFound(s));
  EXPECT_NE(s.message().find("CPU:9"), absl::string_view::npos) << s;
  EXPECT_FALSE(Run(1, 1, Ref()).ok());
}

TEST_F(WorkerTest, GivesUpARegistrationThatNobodyWaitsFor) {
  Create();
  CancellationManager stopped;
  stopped.Cancel(Cancelled("enough"));
  CallOptions call;
  call.stop_compiling = &stopped;
  RegisterPartitionsRequest request;
  request.session = Ref();
  request.partitions.push_back(ops_.Counting("a"));
  Status s;
  worker_.RegisterPartitions(
      call, std::move(request), [&](StatusOr<RegisterPartitionsResponse> made) { s = made.status(); });
  EXPECT_TRUE(absl::IsCancelled(s)) << s;
}

TEST_F(WorkerTest, HoldsSoManyPartitionsOfASessionAndNoMore) {
  constexpr size_t kMost = 100'000, kAtOnce = 10'000;
  Create();
  Create(kSession + 1);
  const auto add = [&](size_t count, uint64_t session) {
    RegisterPartitionsRequest request;
    request.session = Ref(session);
    for (size_t i = 0; i < count; ++i) request.partitions.push_back(ops_.Counting("n"));
    return Ask(&WorkerInterface::RegisterPartitions, std::move(request));
  };
  StatusOr<RegisterPartitionsResponse> last;
  for (size_t made = 0; made < kMost; made += kAtOnce) {
    last = add(kAtOnce, kSession);
    ASSERT_TRUE(last.ok()) << last.status();
  }
  const Status s = add(1, kSession).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
  EXPECT_TRUE(add(1, kSession + 1).ok()) << "another session's";
  ASSERT_TRUE(Ask(&WorkerInterface::DeregisterPartitions, DeregisterPartitionsRequest{Ref(), {last->handles[0]}}).ok());
  EXPECT_TRUE(add(1, kSession).ok());
}

// Who sends unasked decides how much. What is refused is not lost: who needs it asks for it.
TEST_F(WorkerTest, HoldsSoMuchThatWasSentUnaskedAndNoMore) {
  Create();
  Create(kSession + 1);
  const Tensor large = Tensor::Make(DType::kUInt8, Shape::Vector(PushedValues::kMostBytes / 4)).value();
  int64_t edge = 0;
  const auto push = [&](int64_t step, Tensor value, uint64_t session = kSession) {
    return Ask(&WorkerInterface::SendTensor, SendTensorRequest{{Ref(session), step}, {++edge, 0, 0}, {value, false}})
        .status();
  };
  for (int64_t i = 0; i < 4; ++i) ASSERT_TRUE(push(1 + i % 2, large).ok());
  const std::string limit = absl::StrCat(PushedValues::kMostBytes);
  Status s = push(3, Tensor::Scalar(1.0f));
  EXPECT_TRUE(absl::IsResourceExhausted(s) && absl::StrContains(s.message(), limit)) << s;
  EXPECT_TRUE(push(3, Tensor::Scalar(1.0f), kSession + 1).ok()) << "another session's";
  ASSERT_TRUE(Ask(&WorkerInterface::CleanUpSteps, CleanUpStepsRequest{Ref(), {.next = 2, .live = {}}}).ok());
  EXPECT_TRUE(push(3, large).ok()) << "a step is over";
  s = push(3, Tensor::Scalar(TString("text")));
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
}

TEST_F(WorkerTest, HoldsSoManySessionsAndNoMore) {
  constexpr uint64_t kMost = 4000;
  for (uint64_t session = 1; session <= kMost; ++session) Create(session);
  CreateWorkerSessionRequest one_more;
  one_more.session = kMost + 1;
  const Status s = Ask(&WorkerInterface::CreateSession, one_more).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
  Create(5);  // which is there
  EXPECT_TRUE(Ask(&WorkerInterface::DeleteSession, DeleteWorkerSessionRequest{Ref(5)}).ok());
  Create(kMost + 1);
}

TEST_F(WorkerTest, KernelsWithStateAreTheSessions) {
  Create();
  Create(kSession + 1);
  const StatusOr<int64_t> first = Register("n", Ref()), second = Register("n", Ref());
  const StatusOr<int64_t> others = Register("n", Ref(kSession + 1));
  ASSERT_TRUE(first.ok() && second.ok() && others.ok());
  EXPECT_TRUE(Run(*first, 1, Ref()).ok());
  EXPECT_TRUE(Run(*second, 2, Ref()).ok());
  EXPECT_TRUE(Run(*others, 1, Ref(kSession + 1)).ok());
  EXPECT_EQ(Runs("n", Ref()), 2);
  EXPECT_EQ(Runs("n", Ref(kSession + 1)), 1);
}

TEST_F(WorkerTest, AStepThatIsOverIsNotRunAgain) {
  Create();
  const StatusOr<int64_t> handle = Register("n", Ref());
  ASSERT_TRUE(handle.ok());
  EXPECT_TRUE(Run(*handle, 1, Ref()).ok());
  EXPECT_FALSE(Run(*handle, 1, Ref()).ok());
  CleanUpStepsRequest over;
  over.session = Ref();
  over.horizon.next = 3;
  EXPECT_TRUE(Ask(&WorkerInterface::CleanUpSteps, std::move(over)).ok());
  EXPECT_TRUE(absl::IsAborted(Run(*handle, 2, Ref()))) << "a message that came late";
  EXPECT_TRUE(Run(*handle, 3, Ref()).ok());
  EXPECT_EQ(Runs("n", Ref()), 2);
}

TEST_F(WorkerTest, AnAbortThatComesFirstStopsTheStep) {
  Create();
  const StatusOr<int64_t> handle = Register("n", Ref());
  ASSERT_TRUE(handle.ok());
  AbortStepRequest abort;
  abort.step.session = Ref();
  abort.step.step = 4;
  abort.why = DeadlineExceeded("too late");
  EXPECT_TRUE(Ask(&WorkerInterface::AbortStep, std::move(abort)).ok());
  EXPECT_EQ(Run(*handle, 4, Ref()), DeadlineExceeded("too late"));
  EXPECT_EQ(Runs("n", Ref()), 0);
}

TEST_F(WorkerTest, WhatIsDeletedIsGone) {
  Create();
  const StatusOr<int64_t> handle = Register("n", Ref());
  ASSERT_TRUE(handle.ok());
  EXPECT_TRUE(Ask(&WorkerInterface::DeleteSession, DeleteWorkerSessionRequest{Ref()}).ok());
  EXPECT_TRUE(Ask(&WorkerInterface::DeleteSession, DeleteWorkerSessionRequest{Ref()}).ok()) << "it is gone already";
  EXPECT_TRUE(absl::IsAborted(Run(*handle, 1, Ref())));
  const auto status = Ask(&WorkerInterface::GetStatus, GetStatusRequest{});
  EXPECT_EQ(status->num_sessions, 0);
}

}  // namespace
}  // namespace millrace
