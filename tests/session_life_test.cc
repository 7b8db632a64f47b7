// SPDX-License-Identifier: Apache-2.0
// What a session keeps between steps, and how it ends: compiled signatures, partial runs, closing, resetting, threads.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "base/stopwatch.h"
#include "client/variables.h"
#include "noted_kernels.h"

namespace millrace {
namespace {

std::atomic<int> kernels_made{0};

// Counts how often it is made: once for each time that a signature is compiled.
class CountedKernel : public Kernel {
 public:
  CountedKernel() { ++kernels_made; }
  Status Compute(KernelContext& ctx) override {
    ctx.Forward(0, 0);
    return absl::OkStatus();
  }
};

class SessionLifeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const bool once = [] {
      System::Default().ops().Add("TestCounted(x:f32) -> (y:f32)");
      System::Default().kernels().Add<CountedKernel>({.op = "TestCounted"});
      return AddNotedKernels();
    }();
    ASSERT_TRUE(once);
  }

  template <typename Fn>
  void Build(Fn fn) {
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    x_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    fn(b);
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  std::unique_ptr<Session> Open(const wire::ConfigProto& config = {}, const Determinism& determinism = {}) {
    auto made = System::Default().NewSession(graph_, config, "", determinism);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }
  Status Run(Session& session, Output fetch, float x = 1, const wire::RunOptions* options = nullptr) {
    std::vector<Tensor> out;
    return session.Run(options, std::vector<Output>{x_}, std::vector<Tensor>{Tensor::Scalar(x)},
                       std::vector<Output>{fetch}, {}, &out, nullptr);
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  Output x_;
};

TEST_F(SessionLifeTest, ASignatureIsCompiledOnceHoweverManyThreadsAskForIt) {
  Output y;
  Build([&](const GraphBuilder& b) {
    y = b.Op("TestCounted", {x_});
    for (int i = 0; i < 3000; ++i) y = b.Neg(y);
  });
  const auto session = Open();
  kernels_made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] { EXPECT_TRUE(Run(*session, y).ok()); });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(kernels_made, 1);
  // So is a partial run's, which is another plan.
  for (int i = 0; i < 20; ++i) {
    StatusOr<std::string> handle = session->PartialRunSetup({&x_, 1}, {&y, 1}, {});
    ASSERT_TRUE(handle.ok()) << handle.status();
    std::vector<Tensor> out;
    if (i % 2 == 0) {
      const Tensor one = Tensor::Scalar(1.0f);
      EXPECT_TRUE(session->PartialRun(*handle, {&x_, 1}, {&one, 1}, {&y, 1}, &out).ok());
    }
    EXPECT_TRUE(session->ReleasePartialRun(*handle).ok());
  }
  EXPECT_EQ(kernels_made, 2);
}

TEST_F(SessionLifeTest, PartialRunsEndWithAnErrorAndAreLimited) {
  Output bad, dead, live;
  Build([&](const GraphBuilder& b) {
    const Output size = b.Op("Cast", {x_}, {{"DstT", DType::kInt32}});
    bad = b.Op("Reshape", {b.Vector<float>({1, 2, 3}), b.Op("ExpandDims", {size, b.Scalar<int32_t>(0)})});
    Node* const branches = b.OpNode("Switch", {x_, b.Op("Less", {x_, b.Scalar(0.0f)})});
    dead = b.Neg(branches->output(1));
    live = b.Neg(branches->output(0));
  });
  const auto session = Open();
  const Tensor seven = Tensor::Scalar(7.0f);
  std::vector<Tensor> out;
  const auto again = [&](const std::string& handle, Output fetch) {
    return session->PartialRun(handle, {}, {}, {&fetch, 1}, &out);
  };
  for (Output fetch : {bad, dead}) {
    const std::vector<Output> fetches = {fetch, live};
    StatusOr<std::string> handle = session->PartialRunSetup({&x_, 1}, fetches, {});
    ASSERT_TRUE(handle.ok()) << handle.status();
    const Status s = session->PartialRun(*handle, {&x_, 1}, {&seven, 1}, {&fetch, 1}, &out);
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
    EXPECT_EQ(absl::StrContains(s.message(), "was not valid"), fetch == dead) << s;
    const Status gone = again(*handle, live);
    EXPECT_TRUE(absl::StrContains(gone.message(), "there is no partial run")) << gone;
  }
  std::vector<std::string> open;
  for (;;) {
    StatusOr<std::string> handle = session->PartialRunSetup({&x_, 1}, {&live, 1}, {});
    if (!handle.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(handle.status())) << handle.status();
      break;
    }
    open.push_back(*std::move(handle));
    ASSERT_LE(open.size(), 1000u);
  }
  EXPECT_EQ(open.size(), 1000u);
  EXPECT_TRUE(session->ReleasePartialRun(open.back()).ok());
  EXPECT_TRUE(session->PartialRunSetup({&x_, 1}, {&live, 1}, {}).ok());
  EXPECT_TRUE(session->PartialRun(open.front(), {&x_, 1}, {&seven, 1}, {&live, 1}, &out).ok());
}

// What a synchronous part of a partial run does in Setup has a deadline, and Close waits for calls that go on with one.
TEST_F(SessionLifeTest, PartialRunsHaveDeadlinesAndAreAwaited) {
  Output y;
  Node* endless = nullptr;
  Build([&](const GraphBuilder& b) {
    y = b.Neg(x_);
    const Output queue = b.Op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kFloat}}});
    endless = b.OpNode("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::kFloat}}});
  });
  wire::ConfigProto config;
  config.operation_timeout_in_ms = 50;
  const auto session = Open(config);
  const Output never = endless->output(0);
  StatusOr<std::string> handle = session->PartialRunSetup({}, {&never, 1}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  std::vector<Tensor> out;
  const Status late = session->PartialRun(*handle, {}, {}, {&never, 1}, &out);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;

  const auto patient = Open();
  handle = patient->PartialRunSetup({}, {&never, 1}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  absl::Notification over;
  std::thread waiting([&] {
    std::vector<Tensor> none;
    EXPECT_TRUE(absl::IsCancelled(patient->PartialRun(*handle, {}, {}, {&never, 1}, &none)));
    over.Notify();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(patient->Close().ok());
  waiting.join();
}

// Constants that take long are computed once, by the first step that needs them, and nobody must wait for that longer
// than for a step: not its deadline, not Close.
TEST_F(SessionLifeTest, FoldingEndsWithTheStepAndWithTheSession) {
  constexpr int64_t kLength = 20000;
  Output distance;
  Build([&](const GraphBuilder& b) {
    const auto text = [&](int32_t letter) {
      const Output zeros = b.Op("Fill", {b.Vector<int32_t>({kLength}), b.Scalar(int64_t{0})});
      const Output count = b.Op("Range", {b.Scalar(int64_t{0}), b.Scalar(kLength), b.Scalar(int64_t{1})});
      return std::vector<Output>{
          b.Op("Pack", {std::vector<Output>{zeros, count}}, {{"axis", int64_t{1}}}),
          b.Op("Fill", {b.Vector<int32_t>({kLength}), b.Scalar(letter)}), b.Vector<int64_t>({1, kLength})};
    };
    const std::vector<Output> x = text(1), y = text(2);
    distance = b.Op("EditDistance", {x[0], x[1], x[2], y[0], y[1], y[2]}, {{"normalize", false}});
  });
  const auto session = Open();
  const auto seconds = [&](const auto& run) {
    const int64_t start = RealNanos();
    run();
    return static_cast<double>(RealNanos() - start) * 1e-9;
  };
  wire::RunOptions options;
  options.timeout_in_ms = 20;
  Status s;
  std::vector<Tensor> out;
  const double late = seconds([&] { s = session->Run(&options, {}, {}, {&distance, 1}, {}, &out, nullptr); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
  const auto closed = Open();
  Status ended;
  double closing = 0;
  std::thread asks([&] {
    std::vector<Tensor> unused;
    ended = closed->Run(nullptr, {}, {}, {&distance, 1}, {}, &unused, nullptr);
  });
  absl::SleepFor(absl::Milliseconds(20));
  closing = seconds([&] { EXPECT_TRUE(closed->Close().ok()); });
  asks.join();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
  const double whole = seconds([&] { s = session->Run(nullptr, {}, {}, {&distance, 1}, {}, &out, nullptr); });
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(*out[0].data<float>(), static_cast<float>(kLength));
  EXPECT_LT(late, whole / 2);
  EXPECT_LT(closing, whole / 2);
}

// A client's buffer that is freed when the session is closed may use the session, as one does that needs a lock which
// another thread holds while it is in a step.
TEST_F(SessionLifeTest, CloseRunsNoCallbackUnderItsLock) {
  Output fetch;
  Build([&](const GraphBuilder& b) {
    const Output queue = b.Op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kFloat}}});
    Node* const wait = b.OpNode("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::kFloat}}});
    fetch = b.WithControl({wait}).Identity(x_);
  });
  static Session* session;
  static std::atomic<int> released;
  const auto owned = Open();
  session = owned.get();
  released = 0;
  static float value = 1;
  RefPtr<Buffer> buffer = WrapBuffer(
      &value, sizeof value,
      [](void*, size_t, void*) {
        std::thread([] {
          std::vector<Tensor> out;
          EXPECT_TRUE(absl::IsCancelled(session->Run(nullptr, {}, {}, {}, {}, &out, nullptr)));
          ++released;
        }).join();
      },
      nullptr, false);
  std::thread running([&, mine = std::move(buffer)]() mutable {
    std::vector<Tensor> out;
    StatusOr<Tensor> fed = Tensor::FromBuffer(DType::kFloat, Shape(), std::move(mine));
    ASSERT_TRUE(fed.ok()) << fed.status();
    std::vector<Tensor> values = {*std::move(fed)};
    EXPECT_TRUE(absl::IsCancelled(
        session->Run(nullptr, std::vector<Output>{x_}, values, std::vector<Output>{fetch}, {}, &out, nullptr)));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(session->Close().ok());
  running.join();
  EXPECT_EQ(released, 1);
}

TEST_F(SessionLifeTest, ResetClosesSessionsAndDropsTheirState) {
  ClientVariable v;
  Build([&](const GraphBuilder& b) {
    StatusOr<ClientVariable> made = AddVariable(b, "v", b.Scalar(6.0f));
    ASSERT_TRUE(made.ok()) << made.status();
    v = *made;
  });
  const auto session = Open();
  std::vector<Tensor> out;
  ASSERT_TRUE(session->Run(nullptr, {}, {}, {}, std::vector<Node*>{v.assign}, &out, nullptr).ok());
  ASSERT_TRUE(Run(*session, v.read).ok());
  EXPECT_TRUE(System::Default().Reset({}).ok());
  EXPECT_TRUE(absl::IsCancelled(Run(*session, v.read)));
  const auto next = Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(*next, v.read)));
}

// One thread, the caller's, whatever the step waits for and wherever its parts lie; so it is with one inter-op thread.
TEST_F(SessionLifeTest, DeterministicStepsRunOnTheCallersThread) {
  Output y;
  Build([&](const GraphBuilder& b) {
    std::vector<Output> lines;
    for (int line = 0; line < 4; ++line) {
      const GraphBuilder at = b.WithDevice(line % 2 == 0 ? "/cpu:0" : "/cpu:1");
      Output o = at.Op("TestOnOtherThread", {x_});
      for (int i = 0; i < 3; ++i) o = at.Op("TestOnOtherThread", {at.Op("TestNoted", {o})});
      lines.push_back(o);
    }
    y = b.Add(b.Add(lines[0], lines[1]), b.Add(lines[2], lines[3]));
  });
  wire::ConfigProto config;
  config.device_count["CPU"] = 2;
  const auto seen = [&](Session& session, const wire::RunOptions* options = nullptr) {
    Notes::Get().Take();
    const Status s = Run(session, y, 1, options);
    EXPECT_TRUE(s.ok()) << s;
    return Notes::Get().Take().threads;
  };
  const std::set<std::thread::id> here = {std::this_thread::get_id()};
  EXPECT_EQ(seen(*Open(config, {true, 7})), here);
  // Between the calls of a partial run nothing runs at all.
  const auto session_of_partial = Open(config, {true, 7});
  Notes::Get().Take();
  const StatusOr<std::string> handle = session_of_partial->PartialRunSetup({&x_, 1}, {&y, 1}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  const Tensor fed = Tensor::Scalar(1.0f);
  std::vector<Tensor> out;
  const Status s = session_of_partial->PartialRun(*handle, {&x_, 1}, {&fed, 1}, {&y, 1}, &out);
  EXPECT_TRUE(s.ok()) << s;
  EXPECT_EQ(Notes::Get().Take().threads, here);
  const StatusOr<std::string> left_open = session_of_partial->PartialRunSetup({&x_, 1}, {&y, 1}, {});
  ASSERT_TRUE(left_open.ok()) << left_open.status();
  wire::ConfigProto one = config;
  one.inter_op_parallelism_threads = 1;
  EXPECT_EQ(seen(*Open(one)), here);
  wire::ConfigProto pools = config;
  pools.session_inter_op_thread_pool.resize(2);
  pools.session_inter_op_thread_pool[1].num_threads = 1;
  const auto session = Open(pools);
  wire::RunOptions options;
  options.inter_op_thread_pool = 1;
  EXPECT_EQ(seen(*session, &options), here);
  options.inter_op_thread_pool = -1;
  EXPECT_EQ(seen(*session, &options), here);
  options.inter_op_thread_pool = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(*session, y, 1, &options)));
  wire::ConfigProto own = config;
  own.use_per_session_threads = true;
  EXPECT_FALSE(seen(*Open(own)).empty());
  own.inter_op_parallelism_threads = 5000;
  EXPECT_TRUE(absl::IsInvalidArgument(System::Default().NewSession(graph_, own).status()));
}

}  // namespace
}  // namespace millrace
