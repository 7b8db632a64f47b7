// SPDX-License-Identifier: Apache-2.0
#include "service/step_rendezvous.h"

#include <gtest/gtest.h>

#include "kernel/edge_key.h"
#include "simulation/forwarding_worker.h"

namespace millrace {
namespace {

// Keeps the answers back, and what it is sent.
class FarWorker final : public ForwardingWorker {
 public:
  FarWorker() : ForwardingWorker("/job:x/replica:0/task:1") {}
  void RecvTensor(const CallOptions& call, RecvTensorRequest request, Reply<RecvTensorResponse> reply) override {
    cancellation = call.cancellation;
    asked = std::move(request);
    answer = std::move(reply);
  }
  void SendTensor(const CallOptions&, SendTensorRequest request, Reply<SendTensorResponse> reply) override {
    sent.push_back(std::move(request));
    std::move(reply)(Unavailable("it does not come through"));
  }
  CancellationManager* cancellation = nullptr;
  RecvTensorRequest asked;
  std::vector<SendTensorRequest> sent;
  Reply<RecvTensorResponse> answer;
};

class StepRendezvousTest : public ::testing::Test {
 protected:
  // Of the value over that edge; Unavailable until it is there.
  struct Received {
    Status status = Unavailable("not yet");
    Tensor value;
    bool is_dead = false;
    int times = 0;
  };
  void Recv(const EdgeKey& key, Received& to) {
    rendezvous_->RecvAsync(key.ToString(), [&to](const Status& s, Tensor value, bool is_dead) {
      to.status = s;
      to.value = std::move(value);
      to.is_dead = is_dead;
      ++to.times;
    });
  }

  static constexpr int64_t kFarEdge = 5, kNearEdge = 6, kPushedEdge = 7;
  FarWorker far_;
  const EdgePeer peer_{&far_, {17, 9, 2}}, pushed_{&far_, {17, 9, 2}, true};
  Status failed_;
  std::vector<float> got_pushed_;
  const RefPtr<Rendezvous> here_ = NewLocalRendezvous();
  const RefPtr<StepRendezvous> rendezvous_ = NewStepRendezvous(
      here_, 3,
      [this](int64_t edge) {
        return edge == kFarEdge ? &peer_ : edge == kPushedEdge ? &pushed_ : nullptr;
      },
      [this](const Status& why) { failed_ = why; },
      [this](const Tensor& value) { got_pushed_.push_back(*value.data<float>()); });
};

TEST_F(StepRendezvousTest, WhatIsSentHereWaitsHereForAnybody) {
  Received own;
  Recv({kNearEdge}, own);
  EXPECT_TRUE(rendezvous_->Send(EdgeKey{kNearEdge}.ToString(), Tensor::Scalar(4.0f), false).ok());
  EXPECT_TRUE(own.status.ok()) << own.status;
  EXPECT_TRUE(rendezvous_->Send(EdgeKey{8}.ToString(), Tensor::Scalar(2.0f), true).ok());
  Received others;
  here_->RecvAsync(EdgeKey{8}.ToString(), [&](const Status& s, Tensor, bool is_dead) {
    others.status = s;
    others.is_dead = is_dead;
  });
  EXPECT_TRUE(others.status.ok() && others.is_dead);
  EXPECT_FALSE(far_.answer) << "nothing of this is the other worker's";
}

TEST_F(StepRendezvousTest, AnEdgeWithASourceIsAskedForThere) {
  Received got;
  Recv({kFarEdge, 2, 1}, got);
  EXPECT_EQ(far_.asked.key, (EdgeKey{kFarEdge, 2, 1}));
  EXPECT_EQ(far_.asked.step.session, (SessionRef{17, 9, 2}));
  EXPECT_EQ(far_.asked.step.step, 3);
  EXPECT_EQ(got.times, 0);
  std::move(far_.answer)(RecvTensorResponse{{Tensor::Scalar(1.5f), false}});
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(*got.value.ScalarValue<float>(), 1.5f);
}

TEST_F(StepRendezvousTest, AbortAnswersAtOnceAndLateAnswersFindNobody) {
  Received far, near, late;
  Recv({kFarEdge}, far);
  Recv({kNearEdge}, near);
  rendezvous_->Abort(DeadlineExceeded("first"));
  rendezvous_->Abort(Cancelled("second"));
  EXPECT_EQ(far.status, DeadlineExceeded("first"));
  EXPECT_EQ(near.status, DeadlineExceeded("first"));
  ASSERT_NE(far_.cancellation, nullptr);
  EXPECT_TRUE(far_.cancellation->IsCancelled());
  std::move(far_.answer)(RecvTensorResponse{{Tensor::Scalar(1.5f), false}});
  EXPECT_EQ(far.times, 1);
  Recv({kFarEdge}, late);
  EXPECT_EQ(late.status, DeadlineExceeded("first"));
  EXPECT_EQ(here_->Send(EdgeKey{8}.ToString(), Tensor(), false), DeadlineExceeded("first"));
}

TEST_F(StepRendezvousTest, ItTellsWhatItWaitsForAndWhatDoesNotCome) {
  Received got;
  Recv({kFarEdge}, got);
  std::vector<std::string> lines;
  rendezvous_->Describe(&lines);
  EXPECT_EQ(lines, (std::vector<std::string>{"waits for edge 5 from /job:x/replica:0/task:1"}));
  std::move(far_.answer)(NotFound("there is no such step"));
  EXPECT_EQ(got.status, NotFound("there is no such step"));
  EXPECT_EQ(failed_, got.status);
}

TEST_F(StepRendezvousTest, WhatIsPushedIsSentAndKeptForWhoAsksNevertheless) {
  EXPECT_TRUE(rendezvous_->Send(EdgeKey{kPushedEdge}.ToString(), Tensor::Scalar(4.0f), false).ok());
  ASSERT_EQ(far_.sent.size(), 1u);
  EXPECT_EQ(far_.sent[0].key, (EdgeKey{kPushedEdge}));
  EXPECT_EQ(far_.sent[0].step.session, (SessionRef{17, 9, 2}));
  EXPECT_EQ(far_.sent[0].step.step, 3);
  EXPECT_EQ(*far_.sent[0].tensor.value.ScalarValue<float>(), 4.0f);
  Tensor kept;
  here_->RecvAsync(
      EdgeKey{kPushedEdge}.ToString(), [&](const Status&, Tensor value, bool) { kept = std::move(value); });
  EXPECT_EQ(*kept.ScalarValue<float>(), 4.0f);
}

TEST_F(StepRendezvousTest, LoopsAreNotPushed) {
  EXPECT_TRUE(rendezvous_->Send(EdgeKey{kPushedEdge, 2, 1}.ToString(), Tensor::Scalar(4.0f), false).ok());
  EXPECT_TRUE(far_.sent.empty());
  Received got;
  Recv({kPushedEdge, 2, 2}, got);
  EXPECT_EQ(far_.asked.key, (EdgeKey{kPushedEdge, 2, 2}));
}

TEST_F(StepRendezvousTest, WhatIsPushedIsAskedForOnlyWhenItIsLate) {
  Received got, late;
  Recv({kPushedEdge}, got);
  rendezvous_->AskForMissing();
  EXPECT_FALSE(far_.answer);
  EXPECT_TRUE(here_->Send(EdgeKey{kPushedEdge}.ToString(), Tensor::Scalar(4.0f), false).ok());
  EXPECT_EQ(*got.value.ScalarValue<float>(), 4.0f);
  EXPECT_EQ(got_pushed_, std::vector<float>{4});
  rendezvous_->AskForMissing();
  EXPECT_FALSE(far_.answer) << "it has come";
}

TEST_F(StepRendezvousTest, WhatWasLostIsAskedForAndComesOnce) {
  Received got;
  Recv({kPushedEdge}, got);
  for (int i = 0; i < 3; ++i) rendezvous_->AskForMissing();
  EXPECT_EQ(far_.asked.key, (EdgeKey{kPushedEdge}));
  std::move(far_.answer)(RecvTensorResponse{{Tensor::Scalar(1.5f), false}});
  EXPECT_TRUE(here_->Send(EdgeKey{kPushedEdge}.ToString(), Tensor::Scalar(1.5f), false).ok()) << "it was not lost";
  EXPECT_EQ(got.times, 1);
  EXPECT_EQ(*got.value.ScalarValue<float>(), 1.5f);
}

TEST_F(StepRendezvousTest, AnAbortEndsTheWaitForWhatIsPushed) {
  Received got;
  Recv({kPushedEdge}, got);
  std::vector<std::string> lines;
  rendezvous_->Describe(&lines);
  EXPECT_EQ(lines, (std::vector<std::string>{"waits for edge 7 from /job:x/replica:0/task:1"}));
  rendezvous_->Abort(DeadlineExceeded("first"));
  EXPECT_EQ(got.status, DeadlineExceeded("first"));
  EXPECT_EQ(got.times, 1);
}

TEST_F(StepRendezvousTest, AKeyThatIsNoneIsRefused) {
  Received got;
  rendezvous_->RecvAsync("nonsense", [&](const Status& s, Tensor, bool) { got.status = s; });
  EXPECT_TRUE(absl::IsInvalidArgument(got.status)) << got.status;
}

}  // namespace
}  // namespace millrace
