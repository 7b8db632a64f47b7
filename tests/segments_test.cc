// SPDX-License-Identifier: Apache-2.0
// Plans of segments, and plans cut for several threads: random graphs give the same bits on one thread in a seeded
// order, on one in the plan's, on two and on eight, with queues, transfers, branches and loops in between; states
// change in the plan's order; a step that fails or is stopped leaves the next one as it was.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "client/variables.h"
#include "graph/control_flow.h"
#include "system/system.h"

namespace millrace {
namespace {

constexpr int64_t kSide = 96;  // a product is worth a hand-over to another thread
constexpr int kRuns = 18;      // measured, tried, decided

Tensor Matrix(uint32_t seed) {
  Tensor t = *Tensor::Zeros(DType::kFloat, *Shape::Make({kSide, kSide}));
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.mutable_data<float>()[i] = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  }
  return t;
}

std::string BitsOf(const std::vector<Tensor>& values) {
  std::string bits;
  for (const Tensor& t : values) {
    bits.append(reinterpret_cast<const char*>(t.data<float>()), static_cast<size_t>(t.num_elements()) * sizeof(float));
  }
  return bits;
}

class SegmentsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> Open(int threads, const Determinism& determinism = {}) {
    wire::ConfigProto config;
    config.device_count["CPU"] = 2;
    config.intra_op_parallelism_threads = threads;
    config.inter_op_parallelism_threads = threads;
    config.use_per_session_threads = true;
    config.isolate_session_state = true;
    auto session = System::Default().NewSession(graph_, config, "", determinism);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  StatusOr<std::vector<Tensor>> Run(Session& session, const std::vector<Node*>& targets = {},
                                    int64_t timeout_ms = 60'000) {
    wire::RunOptions options;
    options.timeout_in_ms = timeout_ms;
    std::vector<Tensor> out;
    MR_RETURN_IF_ERROR(session.Run(&options, feeds_, values_, fetches_, targets, &out, nullptr));
    return out;
  }
  void Feed(Output o, Tensor value) {
    feeds_.push_back(o);
    values_.push_back(std::move(value));
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  std::vector<Output> feeds_, fetches_;
  std::vector<Tensor> values_;
};

Output ThroughQueue(const GraphBuilder& b, Output v) {
  const std::vector<DType> types = {DType::kFloat};
  const Output queue = b.Op("FIFOQueueV2", {}, {{"component_types", types}, {"capacity", int64_t{2}}});
  Node* put = b.OpNode("QueueEnqueueV2", {queue, v}, {{"Tcomponents", types}});
  const Output taken = b.WithControl({put}).Op("QueueDequeueV2", {queue}, {{"component_types", types}});
  return b.Reshape(taken, b.Op("Shape", {v}));
}

class RandomGraph {
 public:
  RandomGraph(const GraphBuilder& b, uint32_t seed)
      : b_(b), random_(seed), waits_(seed % 3 == 0), moves_(seed % 3 == 1) {
    const auto placeholder = [&](DType type, PartialShape shape) {
      return b_.Op("Placeholder", {}, {{"dtype", type}, {"shape", std::move(shape)}});
    };
    for (int i = 0; i < 2; ++i) matrices.push_back(placeholder(DType::kFloat, PartialShape::Of({kSide, kSide})));
    pred = placeholder(DType::kBool, PartialShape::Scalar());
    for (int i = 0; i < 40; ++i) matrices.push_back(Next());
  }
  Output Any() { return matrices[random_() % matrices.size()]; }

  std::vector<Output> matrices;
  Output pred;

 private:
  Output Next() {
    const GraphBuilder b = moves_ ? b_.WithDevice(absl::StrCat("/device:CPU:", random_() % 2)) : b_;
    switch (random_() % 8) {
      case 0: return b.Add(Any(), Any());
      case 1: return b.Mul(Any(), Any());
      case 2: return b.Neg(Any());
      case 3: {
        Node* s = b.OpNode("Switch", {Any(), pred});
        return b.Op("Merge", {std::vector<Output>{b.Neg(s->output(0)), b.Op("Tanh", {s->output(1)})}});
      }
      case 4: return waits_ ? ThroughQueue(b, Any()) : b.Op("Tanh", {Any()});
      case 5: return waits_ ? Loop(b, Any(), Any(), Any()) : b.Op("Tanh", {Any()});
      default: return b.Op("Tanh", {b.MatMul(Any(), Any())});
    }
  }
  // Its bodies wait for a queue between nodes that do not, and some nodes wait for the counter alone.
  static Output Loop(const GraphBuilder& b, Output start, Output x, Output y) {
    const auto goes_on = [](const GraphBuilder& s, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      return std::vector<Output>{s.Op("Less", {v[0], s.Scalar<int32_t>(5)})};
    };
    const auto body = [&](const GraphBuilder& s, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      const Output scale = s.Cast(v[0], DType::kFloat);
      const Output early = s.Op("Tanh", {s.Mul(s.Op("Tanh", {s.MatMul(x, y)}), scale)});
      const Output taken = ThroughQueue(s, s.Op("Tanh", {s.Add(v[1], x)}));
      return std::vector<Output>{s.Add(v[0], s.Scalar<int32_t>(1)), s.Op("Tanh", {s.Add(s.Mul(taken, y), early)})};
    };
    const auto results = WhileLoop(b, {b.Scalar<int32_t>(0), start}, goes_on, body);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? (*results)[1] : Output();
  }

  const GraphBuilder b_;
  std::mt19937 random_;
  const bool waits_, moves_;
};

TEST_F(SegmentsTest, RandomGraphsGiveTheSameBitsOnAnyThreads) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    graph_ = MakeRef<SharedGraph>(&System::Default().ops());
    feeds_.clear(), values_.clear(), fetches_.clear();
    {
      const GraphLock lock(&graph_->mu);
      const GraphBuilder b(&graph_->graph);
      RandomGraph random(b, seed);
      Feed(random.matrices[0], Matrix(seed));
      Feed(random.matrices[1], Matrix(seed + 100));
      Feed(random.pred, Tensor::Scalar(seed % 2 == 0));
      for (int i = 0; i < 3; ++i) fetches_.push_back(random.Any());
      fetches_.push_back(random.matrices.back());
      ASSERT_TRUE(b.status().ok()) << "seed " << seed << ": " << b.status();
    }
    const auto expected = Run(*Open(1, {.on = true, .order_seed = seed + 1}));
    ASSERT_TRUE(expected.ok()) << "seed " << seed << ": " << expected.status();
    const std::string bits = BitsOf(*expected);
    for (const int threads : {1, 2, 8}) {
      const auto session = Open(threads);
      for (int run = 0; run < kRuns; ++run) {
        const auto got = Run(*session);
        ASSERT_TRUE(got.ok()) << "seed " << seed << ", " << threads << " threads: " << got.status();
        ASSERT_EQ(BitsOf(*got), bits) << "seed " << seed << ", " << threads << " threads, run " << run;
      }
    }
  }
}

// What `explain` tells of the cut is what the worker did; without the stage each node runs by itself, to the same bits.
TEST_F(SegmentsTest, TheCutIsToldAndSwitchedOff) {
  {
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    const Output x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({kSide, kSide})}});
    Feed(x, Matrix(4));
    Output y = x;
    for (int i = 0; i < 7; ++i) y = b.Op("Tanh", {b.MatMul(y, x)});
    fetches_.push_back(y);
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  const auto tells = [&](Session& session, const char* what) {
    const StatusOr<Explanation> told = session.Explain(feeds_, fetches_, {});
    ASSERT_TRUE(told.ok()) << told.status();
    EXPECT_NE(told->text.find(what), std::string::npos) << what << " in\n" << told->text;
  };
  const auto cut = Open(1);
  tells(*cut, ": 1 segments, the longest of 14 nodes, and 0 nodes by themselves");
  ASSERT_EQ(setenv("MILLRACE_SWITCHED_OFF_STAGES", "cut", 1), 0);
  const auto whole = Open(1);
  ASSERT_EQ(unsetenv("MILLRACE_SWITCHED_OFF_STAGES"), 0);
  tells(*whole, ": 0 segments, the longest of 0 nodes, and 14 nodes by themselves");
  const auto a = Run(*cut), b = Run(*whole);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(BitsOf(*a), BitsOf(*b));
}

// Three lines of products, of which each adds to a variable and reads it; no edge says in which order.
TEST_F(SegmentsTest, StatesChangeInTheOrderOfThePlan) {
  Node* init = nullptr;
  {
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    const ClientVariable v = *AddVariable(b, "v", b.Const(Matrix(1)));
    init = v.assign;
    const Output x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({kSide, kSide})}});
    Feed(x, Matrix(2));
    for (int line = 0; line < 3; ++line) {
      Output y = x;
      for (int i = 0; i < 12; ++i) y = b.Op("Tanh", {b.MatMul(y, x)});
      const Output sum = b.Op("AssignAdd", {v.ref, y});
      fetches_.push_back(b.Neg(b.Mul(sum, y)));
      fetches_.push_back(b.WithControl({sum.node}).Op("Identity", {v.ref}));
    }
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  std::vector<std::string> expected;
  for (const int threads : {1, 2, 8}) {
    const auto session = Open(threads);
    std::vector<Tensor> none;
    ASSERT_TRUE(session->Run(nullptr, {}, {}, {}, {init}, &none, nullptr).ok());
    for (size_t run = 0; run < kRuns; ++run) {
      const auto got = Run(*session);
      ASSERT_TRUE(got.ok()) << got.status();
      if (threads == 1) expected.push_back(BitsOf(*got));
      ASSERT_EQ(BitsOf(*got), expected[run]) << threads << " threads, run " << run;
    }
  }
}

// What is read of a variable goes through a queue, and so before other work: updates beside it stay where they stood.
TEST_F(SegmentsTest, StatesChangeInTheOrderOfThePlanBesideWaits) {
  constexpr size_t kSteps = 150;
  Node* init = nullptr;
  {
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    const ClientVariable v = *AddVariable(b, "v", b.Const(Matrix(1)));
    init = v.assign;
    const Output x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({kSide, kSide})}});
    Feed(x, Matrix(2));
    for (int line = 0; line < 3; ++line) {
      fetches_.push_back(ThroughQueue(b, b.Op("Identity", {v.ref})));
      fetches_.push_back(b.Neg(b.Op("AssignAdd", {v.ref, b.Mul(x, b.Scalar(static_cast<float>(line + 1)))})));
    }
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  std::vector<std::string> expected;
  const auto compare = [&](Session& session, absl::string_view how) {
    std::vector<Tensor> none;
    ASSERT_TRUE(session.Run(nullptr, {}, {}, {}, {init}, &none, nullptr).ok());
    for (size_t step = 0; step < kSteps; ++step) {
      const auto got = Run(session);
      ASSERT_TRUE(got.ok()) << got.status();
      if (expected.size() == step) expected.push_back(BitsOf(*got));
      ASSERT_EQ(BitsOf(*got), expected[step]) << how << ", step " << step;
    }
  };
  for (const int threads : {1, 2, 8}) compare(*Open(threads), absl::StrCat(threads, " threads"));
  for (const uint64_t seed : {1, 2, 3})
    compare(*Open(1, {.on = true, .order_seed = seed}), absl::StrCat("seed ", seed));
}

TEST_F(SegmentsTest, AFailureOnAnyThreadNamesItsNodeAndEndsTheStep) {
  {
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    const Output x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({kSide, kSide})}});
    Feed(x, Matrix(3));
    for (int line = 0; line < 4; ++line) {
      Output y = x;
      for (int i = 0; i < 10; ++i) y = b.Op("Tanh", {b.MatMul(y, x)});
      if (line == 3) y = b.Op("CheckNumerics", {y}, {{"message", "here"}});
      fetches_.push_back(y);
    }
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  const Tensor good = values_[0];
  Tensor bad = Matrix(3);
  bad.mutable_data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  const auto session = Open(8);
  std::string bits;
  for (int run = 0; run < 3 * kRuns; ++run) {
    values_[0] = run % 3 == 2 ? bad : good;
    const auto got = Run(*session);
    if (run % 3 == 2) {
      EXPECT_TRUE(absl::IsInvalidArgument(got.status())) << got.status();
      EXPECT_NE(got.status().message().find("CheckNumerics"), std::string::npos) << got.status();
      continue;
    }
    ASSERT_TRUE(got.ok()) << got.status();
    if (bits.empty()) bits = BitsOf(*got);
    EXPECT_EQ(BitsOf(*got), bits) << "run " << run;
  }
  values_[0] = good;
  for (int run = 0; run < kRuns; ++run) {
    const Status s = Run(*session, {}, /*timeout_ms=*/1).status();
    EXPECT_TRUE(s.ok() || absl::IsDeadlineExceeded(s)) << s;
  }
  EXPECT_EQ(BitsOf(*Run(*session)), bits);
}

}  // namespace
}  // namespace millrace
