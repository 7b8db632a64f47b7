// SPDX-License-Identifier: Apache-2.0
// Threads that run steps of every kind on one session, with deadlines that strike anywhere, a graph that grows, and a
// close at a random moment. Everything ends, with a status that fits, and what succeeds is right. Meant for
// ThreadSanitizer too.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/variables.h"
#include "system/system.h"

namespace millrace {
namespace {

using absl::StatusCode;

constexpr int kThreads = 4;
constexpr size_t kKinds = 7;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kSessions = 12;
#else
constexpr int kSessions = 40;
#endif

class SessionStress {
 public:
  explicit SessionStress(uint64_t seed) : seed_(seed) {
    {
      millrace::GraphLock lock(&graph_->mu);
      GraphBuilder b(&graph_->graph);
      BuildGraph(b);
      EXPECT_TRUE(b.status().ok()) << b.status();
    }
    wire::ConfigProto config;
    config.device_count["CPU"] = 2;
    config.isolate_session_state = true;
    auto session = System::Default().NewSession(graph_, config);
    EXPECT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    EXPECT_TRUE(Step({}, {}, {}, {counter_.assign}).ok());
  }

  const std::array<std::atomic<int>, kKinds>& done() const { return done_; }

  void Run() {
    std::minstd_rand random(static_cast<unsigned>(seed_));
    const int before_close_us = std::uniform_int_distribution<int>(0, 60000)(random);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([this, t] { Work(static_cast<uint64_t>(t)); });
    std::this_thread::sleep_for(std::chrono::microseconds(before_close_us));
    EXPECT_TRUE(session_->Close().ok());
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(Step({x_}, {Tensor::Scalar(1.0f)}, {y_}, {}).code(), StatusCode::kCancelled);
  }

 private:
  void BuildGraph(const GraphBuilder& b) {
    const GraphBuilder d0 = b.WithDevice("/cpu:0"), d1 = b.WithDevice("/cpu:1");
    x_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y_ = d0.Mul(d1.Add(x_, d1.Scalar(1.0f)), d0.Scalar(3.0f));
    const Output wide = b.Op("Fill", {b.Vector<int32_t>({300, 300}), x_});
    product_ = b.Sum(b.MatMul(wide, wide), b.Vector<int32_t>({0, 1}));
    auto counter = AddVariable(d0, "counter", d0.Scalar(0.0f));
    EXPECT_TRUE(counter.ok()) << counter.status();
    counter_ = *counter;
    count_ = d0.Op("AssignAdd", {counter_.ref, d0.Scalar(1.0f)}, {{"use_locking", true}});
    endless_ = Loop(b, "endless", b.Op("Placeholder", {}, {{"dtype", DType::kBool}}));
    bad_ = b.Op("Reshape", {b.Vector<float>({1, 2, 3}),
                            b.Op("Cast", {b.Op("Fill", {b.Vector<int32_t>({1}), x_})}, {{"DstT", DType::kInt32}})});
  }

  // while (go_on) v = v + 1
  Output Loop(const GraphBuilder& b, const char* frame, Output go_on) {
    go_on_ = go_on;
    const auto enter = [&](Output v, bool is_constant) {
      return b.Op("Enter", {v}, {{"frame_name", std::string(frame)}, {"is_constant", is_constant}});
    };
    const Output pred = enter(go_on, true), one = enter(b.Scalar(1.0f), true);
    const Output first = enter(b.Scalar(0.0f), false);
    Node* merge = b.OpNode("Merge", {std::vector<Output>{first, first}});
    Node* turn = b.OpNode("Switch", {merge->output(0), b.Op("LoopCond", {pred})});
    const Output next = b.Op("NextIteration", {b.Add(turn->output(1), one)});
    EXPECT_TRUE(b.graph().SetInput(merge, 1, next).ok());
    return b.Op("Exit", {turn->output(0)});
  }

  Status Step(std::vector<Output> feeds, std::vector<Tensor> values, std::vector<Output> fetches,
              std::vector<Node*> targets, int64_t timeout_ms = 0, std::vector<Tensor>* out = nullptr) {
    wire::RunOptions options;
    options.timeout_in_ms = timeout_ms;
    std::vector<Tensor> ignored;
    return session_->Run(&options, feeds, values, fetches, targets, out ? out : &ignored, nullptr);
  }

  void Work(uint64_t thread) {
    std::minstd_rand random(static_cast<unsigned>(seed_ * 31 + thread + 1));
    for (int i = 0; i < 400; ++i) {
      const size_t kind = random() % kKinds;
      const Status s = OneStep(kind, random, i);
      if (s.code() == StatusCode::kCancelled) return;  // closed
      ASSERT_TRUE(s.ok()) << "seed " << seed_ << " thread " << thread << " step " << i << ": " << s;
      ++done_[kind];
    }
  }

  // OK, or Cancelled when the session is closed; anything else is wrong.
  Status OneStep(size_t kind, std::minstd_rand& random, int i) {
    const float v = static_cast<float>(i % 100);
    std::vector<Tensor> out;
    switch (kind) {
      case 0: {
        MR_RETURN_IF_ERROR(Step({x_}, {Tensor::Scalar(v)}, {y_}, {}, 0, &out));
        return *out[0].data<float>() == (v + 1) * 3 ? absl::OkStatus() : Internal("y is ", out[0].DebugString());
      }
      case 1: {
        MR_RETURN_IF_ERROR(Step({x_}, {Tensor::Scalar(2.0f)}, {product_, count_}, {}, 0, &out));
        return *out[0].data<float>() == 4.0f * 300 * 300 * 300
                   ? absl::OkStatus()
                   : Internal("sum ", out[0].DebugString());
      }
      case 2: {
        const Status s = Step({go_on_}, {Tensor::Scalar(true)}, {endless_}, {}, 1 + static_cast<int64_t>(random() % 3));
        if (s.code() == StatusCode::kDeadlineExceeded) return absl::OkStatus();
        return s.ok() ? Internal("an endless loop ended") : s;
      }
      case 3: {
        MR_RETURN_IF_ERROR(Step({go_on_}, {Tensor::Scalar(false)}, {endless_}, {}, 0, &out));
        return *out[0].data<float>() == 0 ? absl::OkStatus() : Internal("loop gave ", out[0].DebugString());
      }
      case 4: {
        const Status s = Step({x_}, {Tensor::Scalar(7.0f)}, {bad_}, {});
        return s.code() == StatusCode::kInvalidArgument ? absl::OkStatus() : s.ok() ? Internal("7 of 3 elements") : s;
      }
      case 5: return PartialStep(random, v);
      default: return GrownStep(i);
    }
  }

  Status PartialStep(std::minstd_rand& random, float v) {
    MR_ASSIGN_OR_RETURN(const std::string handle, session_->PartialRunSetup({x_}, {y_}, {}));
    if (random() % 2 == 0) return session_->ReleasePartialRun(handle);
    std::vector<Tensor> out;
    return session_->PartialRun(handle, {x_}, {Tensor::Scalar(v)}, {y_}, &out);
  }

  Status GrownStep(int i) {
    Output more;
    {
      millrace::GraphLock lock(&graph_->mu);
      GraphBuilder b(&graph_->graph);
      more = b.Add(b.Scalar(static_cast<float>(i)), b.Scalar(1.0f));
      MR_RETURN_IF_ERROR(b.status());
    }
    std::vector<Tensor> out;
    MR_RETURN_IF_ERROR(Step({}, {}, {more}, {}, 0, &out));
    return *out[0].data<float>() == static_cast<float>(i) + 1
               ? absl::OkStatus()
               : Internal("sum ", out[0].DebugString());
  }

  const uint64_t seed_;
  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  std::unique_ptr<Session> session_;
  Output x_, y_, product_, count_, go_on_, endless_, bad_;
  ClientVariable counter_;
  std::array<std::atomic<int>, kKinds> done_{};
};

TEST(SessionStress, StepsDeadlinesAndClose) {
  std::array<int, kKinds> done{};
  // On a loaded machine a session may be closed before a kind of step has ended: then there are more of them.
  const auto lacks = [&] { return std::count(done.begin(), done.end(), 0) > 0; };
  for (uint64_t seed = 1; seed <= kSessions || (lacks() && seed <= 20 * kSessions); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    SessionStress stress(seed);
    stress.Run();
    if (testing::Test::HasFailure()) return;
    for (size_t k = 0; k < kKinds; ++k) done[k] += stress.done()[k];
  }
  for (size_t k = 0; k < kKinds; ++k) EXPECT_GT(done[k], 0) << "no step of kind " << k << " ended before its session";
}

}  // namespace
}  // namespace millrace
