// SPDX-License-Identifier: Apache-2.0
// Functions that kernels run are compiled and run as their session says: its threads, its order, its switches; and who
// waits for their compilation can be stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "graph/function_def.h"
#include "noted_kernels.h"

namespace millrace {
namespace {

// The first of them takes as long to be made as the test likes.
struct Gate {
  std::atomic<bool> is_closed{true};
  absl::Notification reached, open;
};
Gate* gate = nullptr;
class LongMadeKernel : public Kernel {
 public:
  Status Init(const KernelInit&) override {
    if (gate != nullptr && gate->is_closed.exchange(false)) {
      gate->reached.Notify();
      gate->open.WaitForNotification();
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    ctx.Forward(0, 0);
    return absl::OkStatus();
  }
};

class FunctionSettingsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const bool once = [] {
      System::Default().ops().Add("TestLongMade(x:f32) -> (y:f32)");
      System::Default().kernels().Add<LongMadeKernel>({.op = "TestLongMade"});
      return AddNotedKernels();
    }();
    ASSERT_TRUE(once);
  }

  using Body = std::function<Output(const GraphBuilder&, Output)>;
  StatusOr<wire::FunctionDef> Function(const std::string& name, const Body& body) {
    Graph inner(&System::Default().ops());
    for (const wire::FunctionDef* f : graph_->graph.Functions()) MR_RETURN_IF_ERROR(inner.AddFunction(*f));
    const GraphBuilder b(&inner);
    FunctionSpec spec;
    spec.name = name;
    spec.inputs = {b.WithName("arg").Op("Placeholder", {}, {{"dtype", DType::kFloat}})};
    spec.outputs = {body(b, spec.inputs[0])};
    MR_RETURN_IF_ERROR(b.status());
    return GraphToFunctionDef(inner, spec);
  }
  // `body` of each of two numbers, by a kernel that runs functions.
  void Map(const Body& body) {
    const GraphLock lock(&graph_->mu);
    auto f = Function("Body", body);
    ASSERT_TRUE(f.ok()) << f.status();
    ASSERT_TRUE(graph_->graph.AddFunction(*std::move(f)).ok());
    const GraphBuilder b(&graph_->graph);
    x_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const std::vector<DType> types = {DType::kFloat};
    y_ = b.Op("MapDefun", {std::vector<Output>{x_}, std::vector<Output>{}},
              {{"output_types", types},
               {"output_shapes", std::vector<PartialShape>{PartialShape::Scalar()}},
               {"f", FuncAttr{"Body", {}}}});
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  std::unique_ptr<Session> Open(const wire::ConfigProto& config = {}, const Determinism& determinism = {}) {
    auto made = System::Default().NewSession(graph_, config, "", determinism);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }
  Status Run(Session& session, const Tensor& x, const wire::RunOptions* options = nullptr) {
    Notes::Get().Take();
    std::vector<Tensor> out;
    return session.Run(
        options, std::vector<Output>{x_}, std::vector<Tensor>{x}, std::vector<Output>{y_}, {}, &out, nullptr);
  }

  const Tensor numbers_ = Tensor::Vector<float>({3, 4});
  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  Output x_, y_;
};

TEST_F(FunctionSettingsTest, WhatAFunctionRunsIsInTheTraceOfItsStep) {
  Map([](const GraphBuilder& b, Output x) { return b.WithName("noted").Op("TestNoted", {x}); });
  const std::unique_ptr<Session> session = Open();
  wire::RunOptions options;
  options.trace_level = wire::RunOptions::kFullTrace;
  for (int step = 0; step < 2; ++step) {
    wire::RunMetadata metadata;
    std::vector<Tensor> out;
    const Status s = session->Run(
        &options, std::vector<Output>{x_}, std::vector<Tensor>{numbers_}, std::vector<Output>{y_}, {}, &out, &metadata);
    ASSERT_TRUE(s.ok()) << s;
    ASSERT_TRUE(wire::Decode(wire::Encode(metadata), &metadata).ok());
    ASSERT_TRUE(metadata.step_stats && !metadata.step_stats->dev_stats.empty());
    int calls = 0, maps = 0;
    int64_t map_begins = 0, map_ends = 0, first_begins = INT64_MAX, last_ends = 0;
    for (const wire::NodeExecStats& n : metadata.step_stats->dev_stats[0].node_stats) {
      const int64_t begins = n.all_start_nanos, ends = begins + n.all_end_rel_nanos;
      if (n.node_name == y_.node->name()) ++maps, map_begins = begins, map_ends = ends;
      if (!absl::StartsWith(n.node_name, "Body/noted")) continue;
      ++calls;
      first_begins = std::min(first_begins, begins);
      last_ends = std::max(last_ends, ends);
      EXPECT_TRUE(absl::StrContains(n.timeline_label, " = TestNoted(")) << n.timeline_label;
    }
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(maps, 1);
    EXPECT_GE(first_begins, map_begins);
    EXPECT_LE(last_ends, map_ends);
  }
}

TEST_F(FunctionSettingsTest, OneThreadIsOneInAFunctionToo) {
  Map([](const GraphBuilder& b, Output x) {
    std::vector<Output> lines;
    for (int line = 0; line < 4; ++line) {
      Output o = b.Op("TestOnOtherThread", {b.Add(x, b.Scalar(static_cast<float>(line)))});  // lines that differ
      for (int i = 0; i < 3; ++i) o = b.Op("TestOnOtherThread", {b.Op("TestNoted", {o})});
      lines.push_back(o);
    }
    return b.Add(b.Add(lines[0], lines[1]), b.Add(lines[2], lines[3]));
  });
  const auto expect_one_thread = [&](Session& session, const wire::RunOptions* options = nullptr) {
    const Status s = Run(session, numbers_, options);
    EXPECT_TRUE(s.ok()) << s;
    const Notes::Taken notes = Notes::Get().Take();
    EXPECT_EQ(notes.nodes.size(), 24u);
    EXPECT_EQ(notes.threads.size(), 1u);
    EXPECT_EQ(notes.most_inside, 1);
  };
  expect_one_thread(*Open({}, {true, 7}));
  wire::ConfigProto config;
  config.inter_op_parallelism_threads = 1;
  expect_one_thread(*Open(config));
  wire::RunOptions options;
  options.inter_op_thread_pool = -1;
  expect_one_thread(*Open(), &options);
}

TEST_F(FunctionSettingsTest, ThreadsWithinKernelsAreTheSessions) {
  Map([](const GraphBuilder& b, Output x) { return b.Op("TestNoted", {x}); });
  const auto seen = [&](Session& session) {
    EXPECT_TRUE(Run(session, numbers_).ok());
    return Notes::Get().Take().max_threads;
  };
  EXPECT_EQ(seen(*Open()), std::set<int>{0});
  EXPECT_EQ(seen(*Open({}, {true, 0})), std::set<int>{1});
  wire::ConfigProto config;
  config.intra_op_parallelism_threads = 3;
  EXPECT_EQ(seen(*Open(config)), std::set<int>{3});
}

TEST_F(FunctionSettingsTest, TheOrderIsSeeded) {
  Map([](const GraphBuilder& b, Output x) {
    Output sum = x;
    for (int i = 0; i < 6; ++i)
      sum = b.Add(sum, b.WithName(absl::StrCat("n", i)).Op("TestNoted", {b.Add(x, b.Scalar(static_cast<float>(i)))}));
    return sum;
  });
  const auto order = [&](uint64_t seed) {
    EXPECT_TRUE(Run(*Open({}, {true, seed}), numbers_).ok());
    const Notes::Taken notes = Notes::Get().Take();
    EXPECT_EQ(notes.nodes.size(), 12u);
    return notes.nodes;
  };
  std::set<std::vector<std::string>> orders;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto first = order(seed);
    EXPECT_EQ(order(seed), first);
    orders.insert(first);
  }
  EXPECT_GT(orders.size(), 1u);
  const auto in_turn = order(0);
  ASSERT_EQ(in_turn.size(), 12u);
  EXPECT_TRUE(std::is_sorted(in_turn.begin(), in_turn.begin() + 6));
}

TEST_F(FunctionSettingsTest, StagesThatAreSwitchedOffStayOff) {
  Map([](const GraphBuilder& b, Output x) { return b.Add(x, b.Op("TestNoted", {b.Scalar(2.0f)})); });
  const auto runs = [&](Session& session) {
    EXPECT_TRUE(Run(session, numbers_).ok());
    return Notes::Get().Take().nodes.size();
  };
  EXPECT_EQ(runs(*Open()), 1u) << "a constant is computed when the function is compiled";
  wire::ConfigProto config;
  config.graph_options.Ensure().optimizer_options.Ensure().opt_level = -1;
  EXPECT_EQ(runs(*Open(config)), 2u);
  ASSERT_EQ(setenv("MILLRACE_SWITCHED_OFF_STAGES", "fold_constants", 1), 0);
  const auto session = Open();
  ASSERT_EQ(unsetenv("MILLRACE_SWITCHED_OFF_STAGES"), 0);
  EXPECT_EQ(runs(*session), 2u);
}

// A function that calls itself is compiled by the first step that reaches it; others wait for it, but not for ever.
TEST_F(FunctionSettingsTest, WhoWaitsForAFunctionCanBeStopped) {
  {
    const GraphLock lock(&graph_->mu);
    auto leaf = Function("Leaf", [](const GraphBuilder& b, Output x) { return b.Op("TestLongMade", {x}); });
    ASSERT_TRUE(leaf.ok()) << leaf.status();
    ASSERT_TRUE(graph_->graph.AddFunction(*std::move(leaf)).ok());
    const auto call = [](const GraphBuilder& b, Output x) {
      return b.Op("If", {b.Op("Less", {x, b.Scalar(1.0f)}), std::vector<Output>{b.Op("Sub", {x, b.Scalar(1.0f)})}},
                  {{"Tout", std::vector<DType>{DType::kFloat}},
                   {"then_branch", FuncAttr{"Leaf", {}}},
                   {"else_branch", FuncAttr{"Leaf", {}}}});
    };
    auto down = Function("Down", call);
    ASSERT_TRUE(down.ok()) << down.status();
    for (wire::NodeDef& n : down->node_def) {
      if (n.op == "If") n.attr["else_branch"].func.Ensure().name = "Down";
    }
    ASSERT_TRUE(graph_->graph.AddFunction(*std::move(down)).ok());
    const GraphBuilder b(&graph_->graph);
    x_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const std::vector<DType> types = {DType::kFloat};
    y_ = b.Op("StatefulPartitionedCall", {std::vector<Output>{x_}},
              {{"Tin", types}, {"Tout", types}, {"f", FuncAttr{"Down", {}}}});
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  const auto session = Open();
  Gate own;
  gate = &own;
  wire::RunOptions options;
  options.timeout_in_ms = 300;
  Status first;
  std::thread compiling([&] { first = Run(*session, Tensor::Scalar(3.0f), &options); });
  own.reached.WaitForNotification();
  options.timeout_in_ms = 50;
  const Status second = Run(*session, Tensor::Scalar(3.0f), &options);
  EXPECT_TRUE(absl::IsDeadlineExceeded(second)) << second;
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  own.open.Notify();  // the step that compiles is over, too
  compiling.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(first)) << first;
  gate = nullptr;
  const Status third = Run(*session, Tensor::Scalar(3.0f));  // and compiles it anew
  EXPECT_TRUE(third.ok()) << third;
}

}  // namespace
}  // namespace millrace
