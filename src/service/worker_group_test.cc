// SPDX-License-Identifier: Apache-2.0
#include "service/worker_group.h"

#include <gtest/gtest.h>

#include "simulation/forwarding_worker.h"

namespace millrace {
namespace {

// Has one device, and counts the sessions that it is asked to make.
class CountingWorker final : public ForwardingWorker {
 public:
  CountingWorker(const std::string& task, std::string device) : ForwardingWorker(task), device_(std::move(device)) {}
  void CreateSession(const CallOptions&, CreateWorkerSessionRequest request,
                     Reply<CreateWorkerSessionResponse> reply) override {
    ++created;
    session = request.session;
    epoch = request.epoch;
    if (holds) {
      held = std::move(reply);
      return;
    }
    if (!failure.ok()) return std::move(reply)(failure);
    Answer(std::move(reply));
  }
  void Answer(Reply<CreateWorkerSessionResponse> reply) {
    std::move(reply)(CreateWorkerSessionResponse{incarnation, {{.name = device_, .type = "CPU"}}});
  }
  void DeleteSession(const CallOptions&, DeleteWorkerSessionRequest request,
                     Reply<DeleteWorkerSessionResponse> reply) override {
    deleted = request.session.session;
    std::move(reply)(DeleteWorkerSessionResponse{});
  }

  Status failure;
  bool holds = false;
  Reply<CreateWorkerSessionResponse> held;
  uint64_t incarnation = 1, session = 0, deleted = 0;
  int64_t epoch = -1;
  int created = 0;

 private:
  const std::string device_;
};

class WorkerGroupTest : public ::testing::Test {
 protected:
  Status Connect() {
    Status result = Internal("no answer");
    group_->Connect(nullptr, [&](const StatusOr<WorkerViewPtr>& view) { result = view.status(); });
    return result;
  }

  CountingWorker a_{"/job:x/replica:0/task:0", "/job:x/replica:0/task:0/device:CPU:0"};
  CountingWorker b_{"/job:x/replica:0/task:1", "/job:x/replica:0/task:1/device:CPU:0"};
  std::unique_ptr<WorkerGroup> group_ = std::make_unique<WorkerGroup>(std::vector<WorkerInterface*>{&a_, &b_}, 17);
};

TEST_F(WorkerGroupTest, ConnectsOnceAndAgainWhereASessionWasLost) {
  EXPECT_EQ(group_->view(), nullptr);
  ASSERT_TRUE(Connect().ok());
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(a_.created, 1);
  EXPECT_EQ(b_.session, 17u);
  const WorkerViewPtr view = group_->view();
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->worker_of_device.at("/job:x/replica:0/task:1/device:CPU:0"), 1u);

  b_.incarnation = 2;
  EXPECT_TRUE(group_->Forget(&b_, view->workers[1].session));
  EXPECT_FALSE(group_->Forget(&b_, view->workers[1].session)) << "it is known already";
  EXPECT_EQ(group_->view(), nullptr);
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(a_.created, 2) << "all are told that a new epoch has begun";
  EXPECT_EQ(b_.created, 2);
  EXPECT_EQ(group_->view()->workers[0].session, (SessionRef{17, 1, 1}));
  EXPECT_EQ(group_->view()->workers[1].session, (SessionRef{17, 2, 1}));
  EXPECT_FALSE(group_->Forget(&b_, view->workers[1].session)) << "what is refused was for the worker before";
  group_->Delete();
  EXPECT_EQ(a_.deleted, 17u);
  EXPECT_EQ(b_.deleted, 17u);
}

TEST_F(WorkerGroupTest, AWorkerThatCannotBeReachedIsNamedAndAskedAgain) {
  b_.failure = Unavailable("nobody there");
  const Status s = Connect();
  EXPECT_TRUE(absl::IsUnavailable(s)) << s;
  EXPECT_NE(s.message().find("task:1"), absl::string_view::npos) << s;
  EXPECT_EQ(group_->view(), nullptr);
  b_.failure = absl::OkStatus();
  EXPECT_TRUE(Connect().ok());
  EXPECT_NE(group_->view(), nullptr);
  EXPECT_EQ(a_.created, 1) << "what the other has made is kept";
}

// Its answer was lost, and so was the session: the worker makes none of that epoch again.
TEST_F(WorkerGroupTest, ASessionThatHasEndedUnheardOfIsMadeInANewEpoch) {
  b_.failure = Aborted("session 17 of epoch 0 has ended");
  EXPECT_TRUE(absl::IsAborted(Connect()));
  b_.failure = absl::OkStatus();
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(a_.epoch, 1);
  EXPECT_EQ(b_.epoch, 1);
  EXPECT_EQ(a_.created, 2) << "all begin the epoch";
}

TEST_F(WorkerGroupTest, ASessionThatWasMadeBesideAFailureIsDeleted) {
  b_.failure = Unavailable("nobody there");
  EXPECT_FALSE(Connect().ok());
  group_.reset();
  EXPECT_EQ(a_.deleted, 17u);
  EXPECT_EQ(b_.deleted, 0u);
}

TEST_F(WorkerGroupTest, WhoGivesUpLosesNoSession) {
  b_.holds = true;
  CancellationManager cancellation;
  int answers = 0;
  Status result;
  group_->Connect(&cancellation, [&](const StatusOr<WorkerViewPtr>& view) {
    ++answers;
    result = view.status();
  });
  EXPECT_EQ(answers, 0);
  cancellation.Cancel(Cancelled("enough"));
  EXPECT_TRUE(absl::IsCancelled(result)) << result;
  b_.Answer(std::move(b_.held));
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(Connect().ok());
  EXPECT_EQ(b_.created, 1) << "the late answer was forgotten";
}

TEST_F(WorkerGroupTest, ASessionThatComesWhenTheGroupIsGoneIsDeleted) {
  b_.holds = true;
  CancellationManager cancellation;
  group_->Connect(&cancellation, [](const StatusOr<WorkerViewPtr>&) {});
  cancellation.Cancel(Cancelled("enough"));
  group_.reset();
  EXPECT_EQ(a_.deleted, 17u);
  EXPECT_EQ(b_.deleted, 0u);
  b_.Answer(std::move(b_.held));
  EXPECT_EQ(b_.deleted, 17u);
}

TEST(WorkerGroupOfTwinsTest, TwoWorkersCannotHaveTheSameDevice) {
  CountingWorker a("/job:x/replica:0/task:0", "d"), b("/job:x/replica:0/task:1", "d");
  WorkerGroup group({&a, &b}, 1);
  Status result;
  const auto connect = [&](WorkerGroup& of) {
    of.Connect(nullptr, [&](const StatusOr<WorkerViewPtr>& view) { result = view.status(); });
  };
  connect(group);
  EXPECT_TRUE(absl::IsInvalidArgument(result)) << result;
  WorkerGroup twice({&a, &a}, 2);
  result = absl::OkStatus();
  connect(twice);
  EXPECT_TRUE(absl::IsInvalidArgument(result)) << result;
  EXPECT_EQ(a.created, 1) << "asked although nothing can come of it";
}

}  // namespace
}  // namespace millrace
