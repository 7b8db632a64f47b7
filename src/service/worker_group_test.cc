// SPDX-License-Identifier: Apache-2.0
#include "service/worker_group.h"

#include <gtest/gtest.h>

#include "service/forwarding_worker.h"

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
    if (!failure.ok()) return std::move(reply)(failure);
    std::move(reply)(CreateWorkerSessionResponse{incarnation, {{.name = device_, .type = "CPU"}}});
  }
  void DeleteSession(const CallOptions&, DeleteWorkerSessionRequest request,
                     Reply<DeleteWorkerSessionResponse> reply) override {
    deleted = request.session.session;
    std::move(reply)(DeleteWorkerSessionResponse{});
  }

  Status failure;
  uint64_t incarnation = 1, session = 0, deleted = 0;
  int created = 0;

 private:
  const std::string device_;
};

class WorkerGroupTest : public ::testing::Test {
 protected:
  Status Connect() {
    Status result = Internal("no answer");
    group_.Connect({}, [&](Status s) { result = std::move(s); });
    return result;
  }

  CountingWorker a_{"/job:x/replica:0/task:0", "/job:x/replica:0/task:0/device:CPU:0"};
  CountingWorker b_{"/job:x/replica:0/task:1", "/job:x/replica:0/task:1/device:CPU:0"};
  WorkerGroup group_{{&a_, &b_}, 17, false};
};

TEST_F(WorkerGroupTest, ConnectsOnceAndAgainWhereASessionWasLost) {
  EXPECT_EQ(group_.view(), nullptr);
  ASSERT_TRUE(Connect().ok());
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(a_.created, 1);
  EXPECT_EQ(b_.session, 17u);
  const WorkerViewPtr view = group_.view();
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->worker_of_device.at("/job:x/replica:0/task:1/device:CPU:0"), 1u);

  b_.incarnation = 2;
  EXPECT_TRUE(group_.Forget(&b_, view->workers[1].session));
  EXPECT_FALSE(group_.Forget(&b_, view->workers[1].session)) << "it is known already";
  EXPECT_EQ(group_.view(), nullptr);
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(a_.created, 1);
  EXPECT_EQ(b_.created, 2);
  EXPECT_EQ(group_.view()->workers[1].session, (SessionRef{17, 2}));
  EXPECT_FALSE(group_.Forget(&b_, view->workers[1].session)) << "what is refused was for the worker before";
  group_.Delete();
  EXPECT_EQ(a_.deleted, 17u);
  EXPECT_EQ(b_.deleted, 17u);
}

TEST_F(WorkerGroupTest, AWorkerThatCannotBeReachedIsNamedAndAskedAgain) {
  b_.failure = Unavailable("nobody there");
  const Status s = Connect();
  EXPECT_TRUE(absl::IsUnavailable(s)) << s;
  EXPECT_NE(s.message().find("task:1"), absl::string_view::npos) << s;
  EXPECT_EQ(group_.view(), nullptr);
  b_.failure = absl::OkStatus();
  EXPECT_TRUE(Connect().ok());
  EXPECT_NE(group_.view(), nullptr);
}

TEST(WorkerGroupOfTwinsTest, TwoWorkersCannotHaveTheSameDevice) {
  CountingWorker a("/job:x/replica:0/task:0", "d"), b("/job:x/replica:0/task:1", "d");
  WorkerGroup group({&a, &b}, 1, false);
  Status result;
  group.Connect({}, [&](Status s) { result = std::move(s); });
  EXPECT_TRUE(absl::IsInvalidArgument(result)) << result;
}

}  // namespace
}  // namespace millrace
