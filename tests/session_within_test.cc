// SPDX-License-Identifier: Apache-2.0
// Sessions that are closed and deleted by what their own steps call, on every kind of thread that a step runs on: no
// step waits for itself, and the session goes when the last of them has ended.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/interruptible.h"
#include "noted_kernels.h"

namespace millrace {
namespace {

std::function<void()> client_function;
std::thread::id called_on;

class CallingKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    called_on = std::this_thread::get_id();
    if (const std::function<void()> once = std::exchange(client_function, nullptr)) once();
    ctx.Forward(0, 0);
    return absl::OkStatus();
  }
};

class SessionWithinTest : public ::testing::Test {
 protected:
  enum class Does { kClose, kDelete, kReset };

  static void SetUpTestSuite() {
    static const bool once = [] {
      System::Default().ops().Add("TestCallsClient(x:f32) -> (y:f32) | | S");
      System::Default().kernels().Add<CallingKernel>({.op = "TestCallsClient"});
      return AddNotedKernels();
    }();
    ASSERT_TRUE(once);
  }
  void TearDown() override { client_function = nullptr; }

  template <typename Fn>
  void Build(Fn fn) {
    graph_ = MakeRef<SharedGraph>(&System::Default().ops());
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    x_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y_ = fn(b);
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  void Open(const wire::ConfigProto& config, bool interruptible) {
    auto made = System::Default().NewSession(graph_, config);
    ASSERT_TRUE(made.ok()) << made.status();
    session_ = *std::move(made);
    if (!interruptible) return;
    dynamic_cast<Interruptible&>(*session_).SetInterruptCheck({[](void*) { return 0; }, nullptr});
  }
  void WithinAStep(Does what) {
    client_function = [this, what] {
      const absl::Time start = absl::Now();
      switch (what) {
        case Does::kClose: EXPECT_TRUE(session_->Close().ok()); break;
        case Does::kDelete: session_.reset(); break;
        case Does::kReset: EXPECT_TRUE(System::Default().Reset({}).ok()); break;
      }
      EXPECT_LT(absl::Now() - start, absl::Seconds(5));
      called_.Notify();
    };
  }
  // The step has been stopped, or has ended before it saw that.
  void ExpectStopped(const Status& s) { EXPECT_TRUE(s.ok() || absl::IsCancelled(s)) << s; }
  Status Run() {
    Session* const session = session_.get();
    std::vector<Tensor> out;
    const Tensor one = Tensor::Scalar(1.0f);
    return session->Run(nullptr, {&x_, 1}, {&one, 1}, {&y_, 1}, {}, &out, nullptr);
  }

  RefPtr<SharedGraph> graph_;
  Output x_, y_;
  std::unique_ptr<Session> session_;
  absl::Notification called_;
};

class EveryWayTest : public SessionWithinTest, public ::testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  Does what() const { return static_cast<Does>(std::get<0>(GetParam())); }
  bool interruptible() const { return std::get<1>(GetParam()); }
};

TEST_P(EveryWayTest, OnTheCallersThread) {
  Build([&](const GraphBuilder& b) { return b.Op("TestCallsClient", {x_}); });
  Open({}, interruptible());
  WithinAStep(what());
  ExpectStopped(Run());
  EXPECT_TRUE(called_.HasBeenNotified());
  EXPECT_EQ(called_on, std::this_thread::get_id());
}

TEST_P(EveryWayTest, OnAThreadOfThePool) {
  Build([&](const GraphBuilder& b) {
    const GraphBuilder there = b.WithDevice("/cpu:1");
    return b.Add(b.Op("TestOnOtherThread", {x_}), there.Op("TestCallsClient", {there.Scalar(1.0f)}));
  });
  wire::ConfigProto config;
  config.device_count["CPU"] = 2;
  Open(config, interruptible());
  WithinAStep(what());
  ExpectStopped(Run());
  EXPECT_TRUE(called_.HasBeenNotified());
  EXPECT_NE(called_on, std::this_thread::get_id());
}

// No call of the client is under way then: nobody but the thread that runs the step holds the session.
TEST_P(EveryWayTest, BetweenTheCallsOfAPartialRun) {
  Build([&](const GraphBuilder& b) {
    return b.Add(x_, b.Op("TestCallsClient", {b.Op("TestOnOtherThread", {b.Scalar(1.0f)})}));
  });
  Open({}, interruptible());
  WithinAStep(what());
  ExpectStopped(session_->PartialRunSetup({&x_, 1}, {&y_, 1}, {}).status());
  EXPECT_TRUE(called_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_NE(called_on, std::this_thread::get_id());
}

INSTANTIATE_TEST_SUITE_P(All, EveryWayTest, ::testing::Combine(::testing::Range(0, 3), ::testing::Bool()));

// The threads of the pool, which goes with the session, must not wait for themselves.
TEST_F(SessionWithinTest, OnAPoolOfTheSessionsOwn) {
  Build([&](const GraphBuilder& b) {
    return b.Add(x_, b.Op("TestCallsClient", {b.Op("TestOnOtherThread", {b.Scalar(1.0f)})}));
  });
  wire::ConfigProto config;
  config.use_per_session_threads = true;
  Open(config, false);
  WithinAStep(Does::kDelete);
  ExpectStopped(session_->PartialRunSetup({&x_, 1}, {&y_, 1}, {}).status());
  EXPECT_TRUE(called_.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

// What the session holds is freed once its last step has ended, whoever deleted it.
TEST_F(SessionWithinTest, TheSessionIsFreedAtLast) {
  static absl::Notification* freed;
  absl::Notification gone;
  freed = &gone;
  static float value = 1;
  Build([&](const GraphBuilder& b) {
    return b.Add(x_, b.Op("TestCallsClient", {b.Op("TestOnOtherThread", {b.Scalar(1.0f)})}));
  });
  {
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    StatusOr<Tensor> held = Tensor::FromBuffer(
        DType::kFloat, Shape(),
        WrapBuffer(&value, sizeof value, [](void*, size_t, void*) { freed->Notify(); }, nullptr, false));
    ASSERT_TRUE(held.ok()) << held.status();
    b.Op("Const", {}, {{"value", *std::move(held)}, {"dtype", DType::kFloat}});
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  Open({}, false);
  graph_ = nullptr;  // the session's alone
  WithinAStep(Does::kDelete);
  ExpectStopped(session_->PartialRunSetup({&x_, 1}, {&y_, 1}, {}).status());
  EXPECT_TRUE(gone.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_TRUE(called_.HasBeenNotified());
}

}  // namespace
}  // namespace millrace
