// SPDX-License-Identifier: Apache-2.0
// A partial run by itself, over a worker of which the test decides when it answers what.
#include "service/partial_run.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "base/env.h"
#include "graph/graph.h"
#include "simulation/forwarding_worker.h"

namespace millrace {
namespace {

class AskedWorker final : public ForwardingWorker {
 public:
  AskedWorker() : ForwardingWorker("/job:x/replica:0/task:0") {}
  // Ends when the test says so, or with an abort.
  void RunStep(const CallOptions&, RunStepRequest, Reply<RunStepResponse> reply) override { ran = std::move(reply); }
  void EndRun(Status s) {
    if (!ran) return;
    RunStepResponse response;
    response.status = std::move(s);
    std::exchange(ran, nullptr)(std::move(response));
  }
  void AbortStep(const CallOptions&, AbortStepRequest request, Reply<AbortStepResponse> reply) override {
    std::move(reply)(AbortStepResponse{});
    EndRun(request.why);
  }
  // With a tensor for each fetch: its edge.
  void ExchangeTensors(const CallOptions&, ExchangeTensorsRequest request,
                       Reply<ExchangeTensorsResponse> reply) override {
    asked.push_back(request);
    if (!refuses.ok()) return std::move(reply)(refuses);
    ExchangeTensorsResponse response;
    for (const int64_t edge : request.fetches) {
      response.fetches.push_back({Tensor::Scalar(static_cast<float>(edge)), gives_dead});
    }
    std::move(reply)(std::move(response));
  }

  Reply<RunStepResponse> ran;
  std::vector<ExchangeTensorsRequest> asked;
  Status refuses;
  bool gives_dead = false;
};

// Feeds a, b and c; fetch x needs a, y needs a and b; nothing needs c.
class PartialStepTest : public ::testing::Test {
 protected:
  PartialStepTest() {
    ops_.Add("In() -> (value:f32) | | S").Shape([](ShapeContext&) { return absl::OkStatus(); });
    const auto view = std::make_shared<WorkerView>();
    view->workers.push_back({&worker_, {}, {}});
    const auto compiled = std::make_shared<Compiled>(view);
    for (const char* name : {"a", "b", "c", "x", "y", "z"}) {
      const StatusOr<Node*> node = graph_.AddNode({.name = name, .op = "In"});
      EXPECT_TRUE(node.ok()) << node.status();
      of_[name] = {*node, 0};
    }
    compiled->signature = {{of_["a"], of_["b"], of_["c"]}, {of_["x"], of_["y"]}, {}};
    compiled->through_rendezvous = true;
    compiled->feeds_needed = {{true, false, false}, {true, true, false}};
    compiled->feed_edges = {1, 2, -1};
    compiled->fetch_edges = {11, 12};
    PartialStep::Master master;
    master.end = [this] {
      ++ended_;
      return StepHorizon();
    };
    master.refused = [this](const WorkerView::Of&, const Status& why) { refused_.push_back(why); };
    step_ = std::make_unique<PartialStep>(compiled, Env::Default(), std::move(master));
    std::vector<JointStep::Part> messages(1);
    messages[0].worker = &worker_;
    messages[0].request.step.step = 5;
    step_->Start(std::move(messages));
  }
  Status Advance(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches) {
    std::vector<Output> f, g;
    for (const std::string& name : feeds) f.push_back(of_.at(name));
    for (const std::string& name : fetches) g.push_back(of_.at(name));
    return step_->Advance(f, std::vector<Tensor>(feeds.size(), Tensor::Scalar(1.0f)), g, &out_);
  }

  OpRegistry ops_;
  Graph graph_{&ops_};
  std::map<std::string, Output> of_;
  AskedWorker worker_;
  int ended_ = 0;
  std::vector<Status> refused_;
  std::unique_ptr<PartialStep> step_;
  std::vector<Tensor> out_;
};

TEST_F(PartialStepTest, GivesWhatWasAskedForAndIsOverThen) {
  ASSERT_TRUE(Advance({"a", "c"}, {"x"}).ok());
  ASSERT_EQ(out_.size(), 1u);
  EXPECT_EQ(*out_[0].data<float>(), 11.0f);
  ASSERT_EQ(worker_.asked.size(), 1u);
  EXPECT_EQ(worker_.asked[0].step.step, 5);
  ASSERT_EQ(worker_.asked[0].feeds.size(), 1u) << "nobody needs c";
  EXPECT_EQ(worker_.asked[0].feeds[0].edge, 1);
  EXPECT_FALSE(step_->Over());
  ASSERT_TRUE(Advance({"b"}, {"y"}).ok());
  EXPECT_EQ(*out_[0].data<float>(), 12.0f);
  EXPECT_TRUE(step_->Over());
  EXPECT_FALSE(step_->WaitFor(absl::ZeroDuration())) << "it runs still";
  worker_.EndRun(absl::OkStatus());
  EXPECT_TRUE(step_->Wait().ok());
  step_.reset();
  EXPECT_EQ(ended_, 1);
}

TEST_F(PartialStepTest, MistakesLeaveItAsItWas) {
  const auto is_refused = [&](const Status& s, const char* why) {
    EXPECT_TRUE(absl::IsInvalidArgument(s) && absl::StrContains(s.message(), why)) << s;
    EXPECT_TRUE(worker_.asked.empty()) << "the worker has heard of it";
  };
  is_refused(Advance({"z"}, {}), "The feed z:0 was not specified in partial_run_setup.");
  is_refused(Advance({}, {"z"}), "The fetch z:0 was not specified in partial_run_setup.");
  is_refused(Advance({"a", "a"}, {}), "The feed a:0 has already been fed.");
  is_refused(Advance({"a"}, {"y"}), "needs feed b:0");
  is_refused(Advance({"a"}, {"x", "x"}), "The fetch x:0 has already been fetched.");
  EXPECT_TRUE(absl::IsInvalidArgument(step_->Advance({&of_["a"], 1}, {}, {}, &out_))) << "a feed without a value";
  ASSERT_TRUE(Advance({"a", "b"}, {"x", "y"}).ok()) << "none of them has counted";
  EXPECT_EQ(*out_[1].data<float>(), 12.0f);
}

TEST_F(PartialStepTest, AFailureIsItsEnd) {
  worker_.refuses = Aborted("the worker has forgotten it");
  EXPECT_TRUE(absl::IsAborted(Advance({"a"}, {"x"})));
  ASSERT_FALSE(refused_.empty()) << "its master hears that the worker does not know it";
  EXPECT_TRUE(absl::IsAborted(refused_[0]));
  EXPECT_TRUE(step_->Over());
  EXPECT_TRUE(absl::IsAborted(step_->Wait()));
}

TEST_F(PartialStepTest, WhatLiesOnABranchThatWasNotTakenIsNoValue) {
  worker_.gives_dead = true;
  const Status s = Advance({"a"}, {"x"});
  EXPECT_TRUE(absl::IsInvalidArgument(s) && absl::StrContains(s.message(), "x:0")) << s;
  EXPECT_TRUE(step_->Over());
}

TEST_F(PartialStepTest, AStopEndsItWithTheFirstReason) {
  step_->Stop(Cancelled("the session was closed"));
  step_->Stop(Internal("later"));
  EXPECT_TRUE(step_->Over());
  EXPECT_EQ(step_->Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(PartialStepTest, ItsDestructionStopsAndAwaitsIt) {
  step_.reset();
  EXPECT_FALSE(worker_.ran);
  EXPECT_EQ(ended_, 1);
}

}  // namespace
}  // namespace millrace
