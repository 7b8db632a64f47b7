// SPDX-License-Identifier: Apache-2.0
// Steps through the whole stack: session, coordinator, passes, plan, executor.
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "autodiff/gradients.h"
#include "client/variables.h"
#include "system/system.h"

namespace millrace {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  // Builds under the graph's lock.
  template <typename Fn>
  void Build(Fn fn) {
    millrace::GraphLock lock(&graph_->mu);
    GraphBuilder b(&graph_->graph);
    fn(b);
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  void Open(const wire::ConfigProto& config = {}) {
    StatusOr<std::unique_ptr<Session>> s = System::Default().NewSession(graph_, config);
    ASSERT_TRUE(s.ok()) << s.status();
    session_ = *std::move(s);
  }
  StatusOr<std::vector<Tensor>> Run(const std::vector<std::pair<Output, Tensor>>& feeds,
                                    const std::vector<Output>& fetches, const std::vector<Node*>& targets = {},
                                    const wire::RunOptions* options = nullptr, wire::RunMetadata* metadata = nullptr) {
    std::vector<Output> to;
    std::vector<Tensor> values, out;
    for (const auto& [o, v] : feeds) {
      to.push_back(o);
      values.push_back(v);
    }
    MR_RETURN_IF_ERROR(session_->Run(options, to, values, fetches, targets, &out, metadata));
    return out;
  }
  float RunScalar(Output o) {
    StatusOr<std::vector<Tensor>> out = Run({}, {o});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *(*out)[0].data<float>() : NAN;
  }
  ClientVariable Variable(const GraphBuilder& b, const char* name, float initial) {
    StatusOr<ClientVariable> v = AddVariable(b, name, b.Scalar(initial));
    EXPECT_TRUE(v.ok()) << v.status();
    return *v;
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, FeedsAnyEdge) {
  Output x, y, z;
  Build([&](const GraphBuilder& b) {
    x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y = b.Mul(x, b.Scalar(2.0f));
    z = b.Add(y, b.Scalar(1.0f));
  });
  Open();
  EXPECT_EQ(*(*Run({{x, Tensor::Scalar(3.0f)}}, {z}))[0].data<float>(), 7.0f);
  EXPECT_EQ(*(*Run({{y, Tensor::Scalar(10.0f)}}, {z}))[0].data<float>(), 11.0f);
  EXPECT_EQ(Run({}, {z}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Run({{x, Tensor::Scalar(int32_t{3})}}, {z}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Run({{x, Tensor::Scalar(3.0f)}, {x, Tensor::Scalar(3.0f)}}, {z}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, OneNodeReadsTwoVariablesByReference) {
  Output sum;
  Node* init = nullptr;
  Build([&](const GraphBuilder& b) {
    const ClientVariable v = Variable(b, "v", 2), w = Variable(b, "w", 5);
    sum = b.Sub(v.ref, w.ref);
    init = *AddInitializer(b, "init");
  });
  Open();
  EXPECT_EQ(Run({}, {sum}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Run({}, {}, {init}).ok());
  EXPECT_EQ(RunScalar(sum), -3.0f);
}

TEST_F(SessionTest, AReaderKeepsTheValueThatItReadAndAFetchHasTheLast) {
  Output read, before, after;
  Node* init = nullptr;
  Build([&](const GraphBuilder& b) {
    const ClientVariable v = Variable(b, "v", 1);
    read = v.read;
    before = b.Mul(read, b.Scalar(2.0f));
    after = b.WithControl({before.node}).Op("AssignAdd", {v.ref, b.Scalar(10.0f)});
    init = *AddInitializer(b, "init");
  });
  Open();
  ASSERT_TRUE(Run({}, {}, {init}).ok());
  StatusOr<std::vector<Tensor>> out = Run({}, {before, read, after});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*(*out)[0].data<float>(), 2.0f);
  EXPECT_EQ(*(*out)[1].data<float>(), 11.0f);
  EXPECT_EQ(*(*out)[2].data<float>(), 11.0f);
}

TEST_F(SessionTest, TheGraphMayGrowBetweenRuns) {
  Output x;
  Build([&](const GraphBuilder& b) { x = b.Scalar(2.0f); });
  Open();
  EXPECT_EQ(RunScalar(x), 2.0f);
  Output y;
  Build([&](const GraphBuilder& b) { y = b.Mul(x, b.Scalar(4.0f)); });
  EXPECT_EQ(RunScalar(y), 8.0f);
}

TEST_F(SessionTest, SeveralDevicesExchangeTensorsAndControl) {
  Output y;
  Build([&](const GraphBuilder& b) {
    const GraphBuilder d0 = b.WithDevice("/cpu:0"), d1 = b.WithDevice("/device:CPU:1");
    const Output a = d0.Op("Fill", {d0.Vector<int32_t>({2}), d0.Scalar(3.0f)});
    const Output sq = d1.Mul(a, a);
    const Output later = d0.WithControl({sq.node}).Add(a, d0.Scalar(1.0f));
    y = d0.Add(sq, later);
  });
  wire::ConfigProto config;
  config.device_count["CPU"] = 2;
  Open(config);
  for (int i = 0; i < 50; ++i) {
    StatusOr<std::vector<Tensor>> out = Run({}, {y});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].data<float>()[1], 13.0f);
  }
}

TEST_F(SessionTest, AFailureOnOneDeviceStopsTheOthers) {
  Output y;
  Build([&](const GraphBuilder& b) {
    const GraphBuilder d0 = b.WithDevice("/cpu:0"), d1 = b.WithDevice("/cpu:1");
    const Output bad = d1.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y = d0.Add(bad, d0.Scalar(1.0f));
  });
  wire::ConfigProto config;
  config.device_count["CPU"] = 2;
  Open(config);
  const Status s = Run({}, {y}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_NE(s.message().find("Placeholder"), absl::string_view::npos) << s;
}

TEST_F(SessionTest, ADeviceThatIsNotThereIsNamed) {
  Output y;
  Build([&](const GraphBuilder& b) { y = b.WithDevice("/device:GPU:0").Op("Neg", {b.Scalar(1.0f)}); });
  Open();
  wire::ConfigProto fixed;
  const Status s = Run({}, {y}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(s.message().find("GPU"), absl::string_view::npos) << s;
  wire::ConfigProto soft;
  soft.allow_soft_placement = true;
  Open(soft);
  EXPECT_EQ(RunScalar(y), -1.0f);
}

TEST_F(SessionTest, PartialRunsTakeFeedsInSeveralCalls) {
  Output a, b2, sum, product;
  Build([&](const GraphBuilder& b) {
    a = b.WithName("a").Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    b2 = b.WithName("b").Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    sum = b.Add(a, b.Scalar(1.0f));
    product = b.Mul(sum, b2);
  });
  Open();
  StatusOr<std::string> handle = session_->PartialRunSetup({a, b2}, {sum, product}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  std::vector<Tensor> out;
  EXPECT_FALSE(session_->PartialRun(*handle, {}, {}, {product}, &out).ok());
  ASSERT_TRUE(session_->PartialRun(*handle, {a}, {Tensor::Scalar(2.0f)}, {sum}, &out).ok());
  EXPECT_EQ(*out[0].data<float>(), 3.0f);
  EXPECT_FALSE(session_->PartialRun(*handle, {a}, {Tensor::Scalar(2.0f)}, {}, &out).ok());
  ASSERT_TRUE(session_->PartialRun(*handle, {b2}, {Tensor::Scalar(5.0f)}, {product}, &out).ok());
  EXPECT_EQ(*out[0].data<float>(), 15.0f);
  EXPECT_FALSE(session_->PartialRun(*handle, {}, {}, {}, &out).ok());
}

TEST_F(SessionTest, ThreadsRunSteps) {
  Output x, y;
  Build([&](const GraphBuilder& b) {
    x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y = b.Mul(b.Add(x, b.Scalar(1.0f)), b.Scalar(3.0f));
  });
  Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const float v = static_cast<float>(t * 1000 + i);
        StatusOr<std::vector<Tensor>> out = Run({{x, Tensor::Scalar(v)}}, {y});
        ASSERT_TRUE(out.ok());
        ASSERT_EQ(*(*out)[0].data<float>(), (v + 1) * 3);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

// A new signature needs the graph, which another thread keeps from it.
TEST_F(SessionTest, ADeadlineEndsTheWaitForAGraphUnderConstruction) {
  Output one, two;
  Build([&](const GraphBuilder& b) {
    one = b.Scalar(1.0f);
    two = b.Add(one, one);
  });
  Open();
  absl::Notification claimed, over;
  std::thread builder([&] {
    GraphLock lock(&graph_->mu);
    graph_->mu.Claim();
    graph_->mu.Unlock();
    claimed.Notify();
    over.WaitForNotification();
    graph_->mu.Lock();
    graph_->mu.ReleaseClaim();
  });
  claimed.WaitForNotification();
  wire::RunOptions options;
  options.timeout_in_ms = 30;
  const Status late = Run({}, {two}, {}, &options).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
  EXPECT_NE(late.message().find("another thread builds"), std::string::npos) << late;
  over.Notify();
  builder.join();
  EXPECT_EQ(RunScalar(two), 2.0f);
}

// More variables than are looked at together, each read behind its update.
TEST_F(SessionTest, ManyVariablesAreReadBehindTheirUpdates) {
  constexpr int kVariables = 150;
  std::vector<Output> after;
  Node* init = nullptr;
  Build([&](const GraphBuilder& b) {
    for (int i = 0; i < kVariables; ++i) {
      const ClientVariable v = Variable(b, absl::StrCat("v", i).c_str(), static_cast<float>(i));
      const Output update = b.Op("AssignAdd", {v.ref, b.Scalar(1000.0f)});
      after.push_back(b.WithControl({update.node}).Mul(v.read, b.Scalar(2.0f)));
    }
    init = *AddInitializer(b, "init");
  });
  Open();
  ASSERT_TRUE(Run({}, {}, {init}).ok());
  const StatusOr<std::vector<Tensor>> out = Run({}, after);
  ASSERT_TRUE(out.ok()) << out.status();
  for (int i = 0; i < kVariables; ++i) {
    EXPECT_EQ(*(*out)[static_cast<size_t>(i)].data<float>(), 2.0f * static_cast<float>(1000 + i)) << i;
  }
}

TEST_F(SessionTest, AClosedSessionRefuses) {
  Output x;
  Build([&](const GraphBuilder& b) { x = b.Scalar(1.0f); });
  Open();
  ASSERT_TRUE(session_->Close().ok());
  EXPECT_EQ(Run({}, {x}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(session_->Close().ok());
}

TEST_F(SessionTest, APartialRunThatNeverGetsItsFeedsEndsWithTheSession) {
  Output x, y;
  Build([&](const GraphBuilder& b) {
    x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y = b.Neg(x);
  });
  Open();
  ASSERT_TRUE(session_->PartialRunSetup({x}, {y}, {}).ok());
  EXPECT_TRUE(session_->Close().ok());
}

TEST_F(SessionTest, TracesNameNodesAndTimes) {
  Output y;
  Build([&](const GraphBuilder& b) {
    const Output x = b.Op("RandomUniform", {b.Vector<int32_t>({100})}, {{"dtype", DType::kFloat}});
    y = b.WithName("squared").Op("Square", {x});
  });
  Open();
  wire::RunOptions options;
  options.trace_level = wire::RunOptions::kFullTrace;
  wire::RunMetadata metadata;
  ASSERT_TRUE(Run({}, {y}, {}, &options, &metadata).ok());
  ASSERT_TRUE(wire::Decode(wire::Encode(metadata), &metadata).ok());
  ASSERT_TRUE(metadata.step_stats);
  ASSERT_GE(metadata.step_stats->dev_stats.size(), 1u);
  for (size_t i = 1; i < metadata.step_stats->dev_stats.size(); ++i) {  // where the system tells of them
    EXPECT_EQ(metadata.step_stats->dev_stats[i].device, "/host:CPU thread switches");
  }
  const wire::DeviceStepStats& device = metadata.step_stats->dev_stats[0];
  ASSERT_GE(device.node_stats.size(), 5u);
  const wire::NodeExecStats &whole = device.node_stats.front(), &sink = device.node_stats.back();
  EXPECT_EQ(whole.timeline_label, "_SOURCE = NoOp");
  EXPECT_EQ(sink.timeline_label, "_SINK = NoOp(squared)");
  int64_t made_at = 0;
  bool found = false;
  int constants = 0;
  for (const wire::NodeExecStats& n : device.node_stats) {
    if (n.timeline_label == n.node_name + " = Const()") {  // the shape; it ran before the step
      ++constants;
      EXPECT_EQ(n.all_end_rel_nanos, 0);
    }
    EXPECT_GE(n.all_start_nanos, whole.all_start_nanos);
    EXPECT_LE(n.all_start_nanos + n.all_end_rel_nanos, whole.all_start_nanos + whole.all_end_rel_nanos);
    EXPECT_LE(n.scheduled_nanos, n.all_start_nanos);
    if (n.timeline_label.find("= RandomUniform(") != std::string::npos) {
      made_at = n.all_start_nanos + n.all_end_rel_nanos;
      ASSERT_EQ(n.memory.size(), 1u);
      EXPECT_EQ(n.memory[0].total_bytes, 400);
    }
    if (n.node_name != "squared") continue;
    found = true;
    EXPECT_EQ(n.timeline_label.substr(0, 17), "squared = Square(");
    EXPECT_NE(n.timeline_label, "squared = Square()");  // it says what it waited for
    EXPECT_EQ(n.scheduled_nanos, made_at);              // when that was there
    EXPECT_TRUE(n.memory.empty());                      // it writes into its input's memory
    EXPECT_TRUE(device.thread_names.contains(n.thread_id));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(constants, 1);
}

// Every order of ready nodes gives the same bits, and the same as plan order.
TEST_F(SessionTest, SchedulesDoNotChangeValues) {
  std::vector<Output> fetches;
  Node* init = nullptr;
  Build([&](const GraphBuilder& b) {
    const ClientVariable v = Variable(b, "v", 0.5f);
    std::vector<Output> terms;
    Output chain = v.read;
    for (int i = 0; i < 12; ++i) {
      const Output branch = b.Op("Sin", {b.Mul(v.ref, b.Scalar(static_cast<float>(i) + 0.25f))});
      chain = b.Add(b.Op("Tanh", {chain}), branch);
      terms.push_back(b.Mul(branch, chain));
    }
    const Output sum = b.Op("AddN", {terms});
    const Output updated = b.WithControl({sum.node}).Op("AssignAdd", {v.ref, sum});
    fetches = {chain, sum, updated};
    init = *AddInitializer(b, "init");
  });
  auto values = [&](const Determinism& determinism) {
    std::vector<float> all;
    session_ = *System::Default().NewSession(graph_, {}, "", determinism);
    EXPECT_TRUE(Run({}, {}, {init}).ok());
    for (int step = 0; step < 3; ++step) {
      StatusOr<std::vector<Tensor>> out = Run({}, fetches);
      EXPECT_TRUE(out.ok()) << out.status();
      if (!out.ok()) return all;
      for (const Tensor& t : *out) all.push_back(*t.data<float>());
    }
    return all;
  };
  const std::vector<float> want = values({});
  for (uint64_t seed = 0; seed < 300; ++seed) {
    ASSERT_EQ(values({true, seed}), want) << "order_seed " << seed;
  }
}

TEST_F(SessionTest, ADeterministicSessionStillReportsErrors) {
  Output y;
  Build([&](const GraphBuilder& b) {
    const Output x = b.WithDevice("/cpu:1").Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y = b.WithDevice("/cpu:0").Op("Neg", {x});
  });
  wire::ConfigProto config;
  config.device_count["CPU"] = 2;
  session_ = *System::Default().NewSession(graph_, config, "", {true, 5});
  EXPECT_EQ(Run({}, {y}).status().code(), absl::StatusCode::kInvalidArgument);
}

// A fed output has no node that would tell the Merge.
TEST_F(SessionTest, FeedsWhatAMergeReadsInEveryOrder) {
  Output input, other, merged;
  Build([&](const GraphBuilder& b) {
    const Output x = b.Scalar(1.0f);
    const Output live = b.Op("Switch", {x, b.Scalar(true)});
    input = b.Op("Neg", {live});
    other = b.Op("Square", {live.node->output(1)});
    merged = b.Op("Merge", {std::vector<Output>{input, other}});
  });
  for (uint64_t seed = 0; seed < 10; ++seed) {
    session_ = *System::Default().NewSession(graph_, {}, "", {seed > 0, seed});
    StatusOr<std::vector<Tensor>> out =
        Run({{input, Tensor::Scalar<float>(5)}, {other, Tensor::Scalar<float>(5)}}, {merged});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*(*out)[0].data<float>(), 5);
  }
}

TEST_F(SessionTest, NothingFlowsThroughTheStacksOfPrograms) {
  std::vector<Output> gradients;
  Build([&](const GraphBuilder& b) {
    const Output x = b.Scalar(2.0f);
    const Output stack = b.Op("StackV2", {b.Scalar<int32_t>(3)}, {{"elem_type", DType::kFloat}});
    const Output push = b.Op("StackPushV2", {stack, x});
    const Output pop = b.WithControl({push.node}).Op("StackPopV2", {stack}, {{"elem_type", DType::kFloat}});
    StatusOr<std::vector<Output>> g = AddDenseGradients(b, {pop}, {x}, {});
    ASSERT_TRUE(g.ok()) << g.status();
    gradients = *g;
  });
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_EQ(gradients[0].node, nullptr);
}

TEST_F(SessionTest, ErrorsNameNodeOpAndLine) {
  Output y;
  Build([&](const GraphBuilder& b) {
    const Output x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y = b.At("model.cc:12").WithName("product").Op("MatMul", {x, x});
  });
  Open();
  Output x = y.node->input(0);
  StatusOr<Tensor> matrix = Tensor::Zeros(DType::kFloat, *Shape::Make({2, 3}));
  const Status s = Run({{x, *matrix}}, {y}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"product", "MatMul", "model.cc:12", "[2,3]"}) {
    EXPECT_NE(s.message().find(part), absl::string_view::npos) << part << " is not in: " << s;
  }
}

}  // namespace
}  // namespace millrace
