// SPDX-License-Identifier: Apache-2.0
// When a worker hears which steps are over.
#include "cluster/remote_worker.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cluster/worker_codec.h"

namespace millrace {
namespace {

using Calls = std::vector<std::pair<std::string, absl::Cord>>;

// Notes calls, and answers none well.
class NotingTransport final : public RpcTransport {
 public:
  explicit NotingTransport(Calls* calls) : calls_(calls) {}
  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions&, RpcHandler*) override {
    return Unimplemented("this is a client");
  }
  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string&) override {
    return std::make_unique<Channel>(calls_);
  }

 private:
  class Channel final : public RpcChannel {
   public:
    explicit Channel(Calls* calls) : calls_(calls) {}
    void Call(absl::string_view method, const RpcOptions&, absl::Cord request, RpcReply reply) override {
      calls_->emplace_back(method, std::move(request));
      std::move(reply)(Unavailable("nobody is there"));
    }

   private:
    Calls* const calls_;
  };
  Calls* const calls_;
};

class RemoteWorkerTest : public ::testing::Test {
 protected:
  static constexpr SessionRef kSession{7, 1, 0}, kOther{8, 1, 0};

  void AreOver(const SessionRef& session, int64_t next) {
    bool is_answered = false;
    worker_.CleanUpSteps({}, {session, {next, {}}}, [&](const auto& answer) { is_answered = answer.ok(); });
    EXPECT_TRUE(is_answered);
  }
  void RunStep(const SessionRef& session) {
    RunStepRequest request;
    request.step = {session, 20};
    worker_.RunStep({}, std::move(request), [](const auto&) {});
  }
  // What the n-th call, a step's, says is over.
  int64_t OverInCall(size_t n) {
    if (n >= calls_.size() || calls_[n].first != "Worker.RunStep") return -1;
    RunStepRequest request;
    EXPECT_TRUE(DecodeMessage(calls_[n].second, nullptr, &request).ok());
    return request.over.next;
  }

  Calls calls_;
  Channels channels_{Env::Default(), [this] {
                       return StatusOr<std::unique_ptr<RpcTransport>>(std::make_unique<NotingTransport>(&calls_));
                     }};
  RemoteWorker worker_{"/job:ps/replica:0/task:0", "there", &channels_};
};

TEST_F(RemoteWorkerTest, TheNextStepsMessageSaysWhatIsOver) {
  AreOver(kSession, 5);
  AreOver(kSession, 6);
  AreOver(kSession, 4);  // later than others
  AreOver(kOther, 9);
  EXPECT_TRUE(calls_.empty());
  RunStep(kSession);
  RunStep(kSession);
  RunStep(kOther);
  EXPECT_EQ(calls_.size(), 3u);
  EXPECT_EQ(OverInCall(0), 6);
  EXPECT_EQ(OverInCall(1), 0) << "it has been said";
  EXPECT_EQ(OverInCall(2), 9);
}

TEST_F(RemoteWorkerTest, WithoutAnotherStepAHeartbeatComesWithIt) {
  AreOver(kSession, 5);
  AreOver(kOther, 9);
  worker_.DeleteSession({}, {kOther}, [](const auto&) {});  // which ends its steps
  worker_.Heartbeat({}, {}, [](const auto&) {});
  worker_.Heartbeat({}, {}, [](const auto&) {});
  ASSERT_EQ(calls_.size(), 4u);
  EXPECT_EQ(calls_[1].first, "Worker.CleanUpSteps");
  CleanUpStepsRequest request;
  ASSERT_TRUE(DecodeMessage(calls_[1].second, nullptr, &request).ok());
  EXPECT_EQ(request.session, kSession);
  EXPECT_EQ(request.horizon.next, 5);
  EXPECT_EQ(calls_[2].first, "Worker.Heartbeat");
  EXPECT_EQ(calls_[3].first, "Worker.Heartbeat");
}

}  // namespace
}  // namespace millrace
