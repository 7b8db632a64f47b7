// SPDX-License-Identifier: Apache-2.0
// Queues in steps: who waits for whom, what ends a wait, queues inside conditionals and loops, many clients at once.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/interruptible.h"
#include "graph/control_flow.h"
#include "system/system.h"

namespace millrace {
namespace {

using absl::StatusCode;
using Types = std::vector<DType>;

// The ops of one form of handle.
struct QueueOps {
  GraphBuilder b;
  std::string version;  // "" or "V2"

  Output Queue(int64_t capacity, const char* shared_name = "", const char* kind = "FIFOQueue") const {
    return b.Op(kind + version, {},
                {{"component_types", Types{DType::kInt64}},
                 {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}},
                 {"capacity", capacity},
                 {"shared_name", shared_name}});
  }
  Node* Enqueue(Output q, Output v) const {
    return b.OpNode("QueueEnqueue" + version, {q, v}, {{"Tcomponents", Types{DType::kInt64}}});
  }
  Node* EnqueueMany(Output q, Output v) const {
    return b.OpNode("QueueEnqueueMany" + version, {q, v}, {{"Tcomponents", Types{DType::kInt64}}});
  }
  Output Dequeue(Output q) const {
    return b.Op("QueueDequeue" + version, {q}, {{"component_types", Types{DType::kInt64}}});
  }
  Output DequeueMany(Output q, int32_t n, const char* op = "QueueDequeueMany") const {
    return b.Op(op + version, {q, b.Scalar(n)}, {{"component_types", Types{DType::kInt64}}});
  }
  Node* Close(Output q, bool cancel = false) const {
    return b.OpNode("QueueClose" + version, {q}, {{"cancel_pending_enqueues", cancel}});
  }
  Output Size(Output q) const { return b.Op("QueueSize" + version, {q}); }
};

class QueueSteps : public ::testing::TestWithParam<const char*> {
 protected:
  template <typename Fn>
  void Build(Fn fn) {
    GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    fn(QueueOps{b, GetParam()});
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  void Open(int devices = 1) {
    wire::ConfigProto config;
    config.device_count["CPU"] = devices;
    auto s = System::Default().NewSession(graph_, config);
    ASSERT_TRUE(s.ok()) << s.status();
    session_ = *std::move(s);
  }
  StatusOr<std::vector<Tensor>> Run(const std::vector<Output>& fetches, const std::vector<Node*>& targets = {},
                                    int64_t timeout_ms = 0, const std::vector<std::pair<Output, Tensor>>& feeds = {}) {
    wire::RunOptions options;
    options.timeout_in_ms = timeout_ms;
    std::vector<Output> to;
    std::vector<Tensor> values, out;
    for (const auto& [o, v] : feeds) {
      to.push_back(o);
      values.push_back(v);
    }
    MR_RETURN_IF_ERROR(session_->Run(&options, to, values, fetches, targets, &out, nullptr));
    return out;
  }
  StatusCode CodeOf(Node* target, int64_t timeout_ms = 0) { return Run({}, {target}, timeout_ms).status().code(); }
  int64_t Int(Output o) {
    const auto out = Run({o});
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return -1;
    const Tensor& t = (*out)[0];
    return t.dtype() == DType::kInt32 ? *t.data<int32_t>() : *t.data<int64_t>();
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  std::unique_ptr<Session> session_;
};

INSTANTIATE_TEST_SUITE_P(Handles, QueueSteps, ::testing::Values("", "V2"), [](const auto& form) {
  return *form.param ? "Resource" : "Reference";
});

TEST_P(QueueSteps, OneStepWaitsForAnother) {
  Output take;
  Node* put = nullptr;
  Build([&](const QueueOps& ops) {
    const Output q = ops.Queue(1);
    put = ops.Enqueue(q, ops.b.Scalar<int64_t>(7));
    take = ops.Dequeue(q);
  });
  Open();
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(20));
    EXPECT_EQ(CodeOf(put), StatusCode::kOk);
  });
  EXPECT_EQ(Int(take), 7);
  other.join();
}

// What takes a handle runs where the queue is; its values may come from elsewhere.
TEST_P(QueueSteps, AQueueOnAnotherDevice) {
  Output twice;
  Build([&](const QueueOps& ops) {
    const Output q = QueueOps{ops.b.WithDevice("/cpu:1"), GetParam()}.Queue(3);
    const Output v = ops.b.WithDevice("/cpu:0").Scalar<int64_t>(21);
    Node* const put = ops.Enqueue(q, v);
    const Output taken = QueueOps{ops.b.WithControl({put}), GetParam()}.Dequeue(q);
    twice = ops.b.WithDevice("/cpu:0").Add(taken, v);
  });
  Open(2);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Int(twice), 42);
}

TEST_P(QueueSteps, TwoDequeuesAreTwo) {
  Output first, second;
  Node* put = nullptr;
  Build([&](const QueueOps& ops) {
    const Output q = ops.Queue(-1);
    put = ops.EnqueueMany(q, ops.b.Vector<int64_t>({1, 2}));
    first = ops.Dequeue(q);
    second = ops.Dequeue(q);
  });
  Open();
  ASSERT_EQ(CodeOf(put), StatusCode::kOk);
  const auto out = *Run({first, second});
  EXPECT_EQ(*out[0].data<int64_t>() + *out[1].data<int64_t>(), 3);
}

TEST_P(QueueSteps, DeadlinesEndWaits) {
  Output take, size;
  Node *put = nullptr, *many = nullptr;
  Build([&](const QueueOps& ops) {
    const Output q = ops.Queue(2);
    put = ops.EnqueueMany(q, ops.b.Vector<int64_t>({1, 2, 3}));
    many = ops.DequeueMany(q, 5).node;
    take = ops.Dequeue(q);
    size = ops.Size(q);
  });
  Open();
  EXPECT_EQ(CodeOf(take.node, 10), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(CodeOf(put, 300), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Int(size), 2) << "what is in stays in";
  EXPECT_EQ(CodeOf(many, 10), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Int(size), 2) << "what was taken comes back";
  EXPECT_EQ(Int(take), 1);
}

TEST_P(QueueSteps, AFailureElsewhereEndsTheWait) {
  Output take, bad;
  Build([&](const QueueOps& ops) {
    take = ops.Dequeue(ops.Queue(2));
    bad = ops.b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    bad = ops.b.Neg(bad);
  });
  Open();
  EXPECT_EQ(Run({take, bad}).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(QueueSteps, ClosingTheSessionEndsWaits) {
  Output take;
  Build([&](const QueueOps& ops) { take = ops.Dequeue(ops.Queue(2)); });
  Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] { EXPECT_EQ(Run({take}).status().code(), StatusCode::kCancelled); });
  }
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(session_->Close().ok());
  for (std::thread& t : threads) t.join();
}

TEST_P(QueueSteps, AnInterruptEndsTheWait) {
  Output take;
  Build([&](const QueueOps& ops) { take = ops.Dequeue(ops.Queue(2)); });
  Open();
  int looks = 0;
  dynamic_cast<Interruptible&>(*session_).SetInterruptCheck(
      {[](void* data) { return ++*static_cast<int*>(data) > 2 ? 1 : 0; }, &looks});
  EXPECT_EQ(Run({take}).status().code(), StatusCode::kCancelled);
}

TEST_P(QueueSteps, ClosingCancelsOrLetsIn) {
  Output take, size;
  Node *put = nullptr, *close = nullptr, *cancel = nullptr;
  Build([&](const QueueOps& ops) {
    const Output q = ops.Queue(1);
    put = ops.Enqueue(q, ops.b.Scalar<int64_t>(7));
    close = ops.Close(q);
    cancel = ops.Close(q, true);
    take = ops.Dequeue(q);
    size = ops.Size(q);
  });
  Open();
  ASSERT_EQ(CodeOf(put), StatusCode::kOk);
  StatusCode waited = StatusCode::kUnknown;
  std::thread waits([&] { waited = CodeOf(put); });
  absl::SleepFor(absl::Milliseconds(10));
  std::thread closes([&] { EXPECT_EQ(CodeOf(close), StatusCode::kOk); });
  absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(Int(take), 7);
  waits.join();
  closes.join();
  EXPECT_EQ(CodeOf(put), StatusCode::kCancelled);
  if (waited == StatusCode::kOk) {
    EXPECT_EQ(Int(take), 7);
  } else {
    EXPECT_EQ(waited, StatusCode::kCancelled) << "the close came first";
  }
  EXPECT_EQ(CodeOf(take.node), StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(close), StatusCode::kCancelled);
  EXPECT_EQ(CodeOf(cancel), StatusCode::kOk);
  EXPECT_EQ(Int(size), 0);
}

TEST_P(QueueSteps, OneNameIsOneQueue) {
  Output a, b, other;
  Node* put = nullptr;
  Build([&](const QueueOps& ops) {
    put = ops.Enqueue(ops.Queue(3, "q"), ops.b.Scalar<int64_t>(7));
    a = ops.Size(ops.Queue(3, "q"));
    b = ops.Size(ops.Queue(4, "q"));
    other = ops.Size(ops.Queue(3, "q", "RandomShuffleQueue"));
  });
  Open();
  ASSERT_EQ(CodeOf(put), StatusCode::kOk);
  EXPECT_EQ(Int(a), 1);
  EXPECT_EQ(Run({b}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Run({other}).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(QueueSteps, ABranchThatIsNotTakenTakesNothing) {
  Output result, predicate, size;
  Node* put = nullptr;
  Build([&](const QueueOps& ops) {
    const Output q = ops.Queue(-1);
    put = ops.EnqueueMany(q, ops.b.Vector<int64_t>({1, 2}));
    predicate = ops.b.Op("Placeholder", {}, {{"dtype", DType::kBool}});
    const auto cond = Cond(
        ops.b, predicate,
        [&](const GraphBuilder& b, const std::vector<Output>&) -> StatusOr<std::vector<Output>> {
          return std::vector<Output>{QueueOps{b, GetParam()}.Dequeue(q)};
        },
        [&](const GraphBuilder& b, const std::vector<Output>&) -> StatusOr<std::vector<Output>> {
          return std::vector<Output>{b.Scalar<int64_t>(-5)};
        });
    ASSERT_TRUE(cond.ok()) << cond.status();
    result = (*cond)[0];
    size = ops.Size(q);
  });
  Open();
  ASSERT_EQ(CodeOf(put), StatusCode::kOk);
  for (const bool taken : {false, true, false}) {
    const auto out = Run({result}, {}, 0, {{predicate, Tensor::Scalar(taken)}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*(*out)[0].data<int64_t>(), taken ? 1 : -5);
  }
  EXPECT_EQ(Int(size), 1);
}

// Sums what another step enqueues, one element an iteration.
TEST_P(QueueSteps, ALoopDequeues) {
  constexpr int64_t kCount = 50;
  Output sum, fed;
  Node* put = nullptr;
  Build([&](const QueueOps& ops) {
    const Output q = ops.Queue(3);
    fed = ops.b.Op("Placeholder", {}, {{"dtype", DType::kInt64}});
    put = ops.Enqueue(q, fed);
    const auto loop = WhileLoop(
        ops.b, {ops.b.Scalar<int64_t>(0), ops.b.Scalar<int64_t>(0)},
        [&](const GraphBuilder& b, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
          return std::vector<Output>{b.Op("Less", {v[0], b.Scalar<int64_t>(kCount)})};
        },
        [&](const GraphBuilder& b, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
          const Output next = QueueOps{b, GetParam()}.Dequeue(q);
          return std::vector<Output>{b.Add(v[0], b.Scalar<int64_t>(1)), b.Add(v[1], next)};
        });
    ASSERT_TRUE(loop.ok()) << loop.status();
    sum = (*loop)[1];
  });
  Open();
  std::thread feeder([&] {
    for (int64_t i = 0; i < kCount; ++i) EXPECT_TRUE(Run({}, {put}, 0, {{fed, Tensor::Scalar(i)}}).ok());
  });
  EXPECT_EQ(Int(sum), kCount * (kCount - 1) / 2);
  feeder.join();
  EXPECT_EQ(CodeOf(sum.node, 10), StatusCode::kDeadlineExceeded) << "no more comes";
}

// Every element that entered leaves once, though deadlines strike anywhere.
TEST_P(QueueSteps, ManyClientsLoseAndDoubleNothing) {
  constexpr int kClients = 3;
  constexpr int64_t kEach = 400;
  Output fed, one, many;
  Node *put = nullptr, *close = nullptr;
  Build([&](const QueueOps& ops) {
    const Output q = ops.Queue(8);
    fed = ops.b.Op("Placeholder", {}, {{"dtype", DType::kInt64}});
    put = ops.Enqueue(q, fed);
    one = ops.Dequeue(q);
    many = ops.DequeueMany(q, 11, "QueueDequeueUpTo");
    close = ops.Close(q);
  });
  Open();
  std::vector<std::atomic<int>> seen(kClients * kEach);
  std::atomic<int64_t> unsure{0};
  std::atomic<int> producing{kClients};
  std::vector<std::thread> threads;
  for (int t = 0; t < kClients; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < kEach; ++i) {
        const Tensor v = Tensor::Scalar(t * kEach + i);
        // An enqueue that ends at the deadline may have been on its way in.
        const Status s = Run({}, {put}, i % 8 == 0 ? 1 : 0, {{fed, v}}).status();
        if (!s.ok()) ++unsure;
        EXPECT_TRUE(s.ok() || s.code() == StatusCode::kDeadlineExceeded) << s;
      }
      if (producing.fetch_sub(1) == 1) {
        EXPECT_EQ(CodeOf(close), StatusCode::kOk);
      }
    });
    threads.emplace_back([&, t] {
      for (int i = 0;; ++i) {
        const auto out = Run({t == 0 ? one : many}, {}, i % 4 == 0 ? 1 : 0);
        if (out.status().code() == StatusCode::kOutOfRange) return;
        if (!out.ok()) {
          EXPECT_EQ(out.status().code(), StatusCode::kDeadlineExceeded) << out.status();
          continue;
        }
        for (const int64_t v : (*out)[0].flat<int64_t>()) ++seen[static_cast<size_t>(v)];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  int64_t missing = 0;
  for (const auto& count : seen) {
    EXPECT_LE(count.load(), 1);
    missing += count.load() == 0;
  }
  EXPECT_LE(missing, unsure.load());
}

}  // namespace
}  // namespace millrace
