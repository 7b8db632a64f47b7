// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops in many orders, over several devices, and stopped in the middle: always the same bits, never a
// step that hangs, never a session that a failed step has spoilt. MILLRACE_SCHEDULES says how many orders of each graph
// are run (default 250).
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "base/env.h"
#include "client/local_session.h"
#include "control_flow_graphs.h"
#include "device/cpu/cpu_device.h"
#include "graph/control_flow.h"
#include "system/system.h"

namespace millrace {
namespace {

int Schedules() {
  const char* text = std::getenv("MILLRACE_SCHEDULES");
  return text == nullptr ? 250 : std::atoi(text);
}

std::vector<const FlowGraph*> AllGraphs() {
  std::vector<const FlowGraph*> all;
  for (const FlowGraph& g : FlowGraphs()) all.push_back(&g);
  for (const FlowGraph& g : VariableFlowGraphs()) all.push_back(&g);
  for (const FlowGraph& g : FlowGradientGraphs()) all.push_back(&g);
  return all;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && IsPlain(a.dtype()) &&
         (a.TotalBytes() == 0 || std::memcmp(a.raw(), b.raw(), a.TotalBytes()) == 0);
}

// So many workers in this process, each with so many devices.
StatusOr<std::unique_ptr<Session>> OpenWorkers(RefPtr<SharedGraph> graph, const wire::ConfigProto& config, int workers,
                                               int devices, const Determinism& determinism = {}) {
  std::vector<DeviceList> lists(static_cast<size_t>(workers));
  for (int w = 0; w < workers; ++w) {
    for (int d = 0; d < devices; ++d) {
      const DeviceName name{.job = "localhost", .replica = 0, .task = w, .type = "CPU", .id = d};
      lists[static_cast<size_t>(w)].push_back(NewCpuDevice(name, Env::Default().Random64(), ProcessThreadPool()));
    }
  }
  return NewLocalSession(std::move(graph), config, std::move(lists), &System::Default().kernels(), determinism);
}

class SchedulesTest : public ::testing::TestWithParam<const FlowGraph*> {
 protected:
  void SetUp() override {
    const GraphLock lock(&shared_->mu);
    const GraphBuilder b(&shared_->graph);
    Status s = GetParam()->build(b, &step_);
    s.Update(b.status());
    ASSERT_TRUE(s.ok()) << s;
  }

  std::unique_ptr<Session> Open(const Determinism& determinism = {}, int workers = 1, int devices = 1) {
    wire::ConfigProto config;
    config.allow_soft_placement = true;
    config.operation_timeout_in_ms = 60'000;
    StatusOr<std::unique_ptr<Session>> session = OpenWorkers(shared_, config, workers, devices, determinism);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  Status Initialise(Session& session) {
    if (step_.init.empty()) return absl::OkStatus();
    std::vector<Tensor> none;
    return session.Run(nullptr, {}, {}, {}, step_.init, &none, nullptr);
  }
  Status Run(Session& session, std::vector<Tensor>* out, const wire::RunOptions* options = nullptr) {
    return session.Run(options, step_.feeds, step_.values, step_.fetches, {}, out, nullptr);
  }
  // What a fresh session gives in plan order.
  void FindReference() {
    const std::unique_ptr<Session> session = Open();
    ASSERT_NE(session, nullptr);
    Status s = Initialise(*session);
    if (s.ok()) s = Run(*session, &reference_);
    ASSERT_TRUE(s.ok()) << s;
  }
  void ExpectReference(const std::vector<Tensor>& out) {
    ASSERT_EQ(out.size(), reference_.size());
    for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(SameBits(out[i], reference_[i])) << "fetch " << i;
  }

  RefPtr<SharedGraph> shared_ = MakeRef<SharedGraph>(&System::Default().ops());
  FlowStep step_;
  std::vector<Tensor> reference_;
};

TEST_P(SchedulesTest, EveryOrderGivesTheSameBits) {
  FindReference();
  // Graphs with variables are begun again each time, so that every step sees the same state.
  const int rounds = step_.init.empty() ? 1 : Schedules(), steps = step_.init.empty() ? Schedules() : 1;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const uint64_t seed = static_cast<uint64_t>(round) + 1;
    SCOPED_TRACE(absl::StrCat("order_seed ", seed));
    const std::unique_ptr<Session> session = Open({true, seed});
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(Initialise(*session).ok());
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      SCOPED_TRACE(absl::StrCat("step ", i));
      std::vector<Tensor> out;
      const Status s = Run(*session, &out);
      ASSERT_TRUE(s.ok()) << s;
      ExpectReference(out);
    }
  }
}

// Nodes lie on the devices of one worker, or of several, at random, so that conditionals and loops are cut in all
// places.
TEST_P(SchedulesTest, AnyPlacementGivesTheSameBits) {
  FindReference();
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    const unsigned workers = seed % 3 + 1, devices = workers == 1 ? 3 : 2;
    SCOPED_TRACE(absl::StrCat("placement ", seed, " on ", workers, " workers"));
    std::mt19937_64 random(seed);
    {
      const GraphLock lock(&shared_->mu);
      for (Node* n : shared_->graph.nodes()) {
        n->set_device(absl::StrCat("/task:", random() % workers, "/device:CPU:", random() % devices));
        // A reference does not travel, and its value would be read too early.
        for (const Output& in : n->inputs()) {
          if (IsRef(in.dtype())) n->set_device(in.node->device());
        }
      }
    }
    for (const bool deterministic : {false, true}) {
      const std::unique_ptr<Session> session =
          Open({deterministic, seed}, static_cast<int>(workers), static_cast<int>(devices));
      ASSERT_NE(session, nullptr);
      Status s = Initialise(*session);
      std::vector<Tensor> out;
      if (s.ok()) s = Run(*session, &out);
      ASSERT_TRUE(s.ok()) << s;
      ExpectReference(out);
    }
  }
}

// Another thread stops steps at random points; the next step of the same session is as if nothing had been.
TEST_P(SchedulesTest, AStepThatIsStoppedLeavesNoTrace) {
  FindReference();
  if (!step_.init.empty()) GTEST_SKIP() << "what a stopped step has assigned stays assigned";
  const std::unique_ptr<Session> session = Open();
  std::mt19937_64 random(1);
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    wire::RunOptions options;
    options.timeout_in_ms = 1;
    std::vector<Tensor> out;
    std::thread other([&] {
      std::vector<Tensor> more;
      const Status s = Run(*session, &more);
      EXPECT_TRUE(s.ok()) << s;
    });
    const Status s = Run(*session, &out, &options);
    other.join();
    EXPECT_TRUE(s.ok() || absl::IsDeadlineExceeded(s) || absl::IsCancelled(s)) << s;
    const Status again = Run(*session, &out);
    ASSERT_TRUE(again.ok()) << again;
    ExpectReference(out);
  }
}

// Where a part of a loop may lie: beside the rest, on another device, with another worker.
struct Cut {
  int workers, devices;
  const char* far_device;
};
constexpr Cut kCuts[] = {{1, 1, ""}, {1, 2, "/task:0/device:CPU:1"}, {2, 1, "/task:1/device:CPU:0"}};

void MoveNodes(SharedGraph& shared, absl::string_view ending, const char* device) {
  const GraphLock lock(&shared.mu);
  int moved = 0;
  for (Node* n : shared.graph.nodes()) {
    if (!absl::EndsWith(n->name(), ending)) continue;
    n->set_device(device);
    ++moved;
  }
  EXPECT_EQ(moved, 1) << ending;
}

// A loop that only a deadline ends: collapsed, by readiness, and cut between two devices of one worker or of two.
TEST(EndlessLoopTest, EndsAtTheDeadlineAndTheSessionGoesOn) {
  RefPtr<SharedGraph> shared = MakeRef<SharedGraph>(&System::Default().ops());
  Output endless, limit;
  {
    const GraphLock lock(&shared->mu);
    const GraphBuilder b(&shared->graph);
    const auto body = [](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      return std::vector<Output>{in.WithName("far").Add(v[0], in.Scalar(1.0f))};
    };
    limit = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const auto below = [&](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      return std::vector<Output>{in.Op("Less", {v[0], limit})};
    };
    StatusOr<std::vector<Output>> out = WhileLoop(b, std::vector<Output>{b.Scalar(0.0f)}, below, body);
    ASSERT_TRUE(out.ok()) << out.status();
    endless = (*out)[0];
  }
  for (const Cut& cut : kCuts) {
    MoveNodes(*shared, "far", cut.far_device);
    for (const bool deterministic : {false, true}) {
      SCOPED_TRACE(absl::StrCat("far part on '", cut.far_device, deterministic ? "', deterministic" : "'"));
      wire::ConfigProto config;
      StatusOr<std::unique_ptr<Session>> session =
          OpenWorkers(shared, config, cut.workers, cut.devices, Determinism{deterministic, 1});
      ASSERT_TRUE(session.ok()) << session.status();
      for (int i = 0; i < 5; ++i) {
        wire::RunOptions options;
        options.timeout_in_ms = 5 + 7 * i;
        std::vector<Tensor> out;
        // float32 cannot count beyond 2^24, so this never ends.
        const Status stopped = (*session)->Run(
            &options, std::vector<Output>{limit}, std::vector<Tensor>{Tensor::Scalar(1e9f)},
            std::vector<Output>{endless}, {}, &out, nullptr);
        EXPECT_TRUE(absl::IsDeadlineExceeded(stopped)) << stopped;
        const Status again = (*session)->Run(
            nullptr, std::vector<Output>{limit}, std::vector<Tensor>{Tensor::Scalar(7.0f)},
            std::vector<Output>{endless}, {}, &out, nullptr);
        ASSERT_TRUE(again.ok()) << again;
        EXPECT_EQ(*out[0].data<float>(), 7.0f);
      }
    }
  }
}

// An error in the middle of a loop names the node inside of it; the next step is fine.
TEST(FailingLoopTest, AnErrorInTheMiddleNamesTheNode) {
  RefPtr<SharedGraph> shared = MakeRef<SharedGraph>(&System::Default().ops());
  Output result, size;
  {
    const GraphLock lock(&shared->mu);
    const GraphBuilder b(&shared->graph);
    size = b.Op("Placeholder", {}, {{"dtype", DType::kInt32}});
    const auto below = [](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      return std::vector<Output>{in.Op("Less", {v[0], in.Scalar<int32_t>(10)})};
    };
    const auto body = [&](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      const Output table = in.Op("Range", {in.Scalar<int32_t>(0), size, in.Scalar<int32_t>(1)});
      const Output looked_up = in.WithName("look_up").Op("Gather", {table, v[0]});
      return std::vector<Output>{in.Add(looked_up, in.Scalar<int32_t>(1))};
    };
    StatusOr<std::vector<Output>> out = WhileLoop(b, std::vector<Output>{b.Scalar<int32_t>(0)}, below, body);
    ASSERT_TRUE(out.ok()) << out.status();
    result = (*out)[0];
  }
  for (const Cut& cut : kCuts) {
    MoveNodes(*shared, "look_up", cut.far_device);
    for (const bool deterministic : {false, true}) {
      SCOPED_TRACE(absl::StrCat("far part on '", cut.far_device, deterministic ? "', deterministic" : "'"));
      wire::ConfigProto config;
      config.operation_timeout_in_ms = 20'000;
      StatusOr<std::unique_ptr<Session>> session =
          OpenWorkers(shared, config, cut.workers, cut.devices, Determinism{deterministic, 1});
      ASSERT_TRUE(session.ok()) << session.status();
      for (int rows = 1; rows <= 10; ++rows) {
        std::vector<Tensor> out;
        const Status s = (*session)->Run(
            nullptr, std::vector<Output>{size}, std::vector<Tensor>{Tensor::Scalar<int32_t>(rows)},
            std::vector<Output>{result}, {}, &out, nullptr);
        if (rows == 10) {
          ASSERT_TRUE(s.ok()) << s;
          EXPECT_EQ(*out[0].data<int32_t>(), 10);
        } else {
          EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
          EXPECT_NE(s.message().find("look_up"), absl::string_view::npos) << s;
        }
      }
    }
  }
}

// A loop variable that nothing ever enters, so its Exit never comes. The step says what waits for what; it does not
// wait for ever.
TEST(StuckLoopTest, SaysWhatWaitsForWhat) {
  RefPtr<SharedGraph> shared = MakeRef<SharedGraph>(&System::Default().ops());
  Output result;
  {
    const GraphLock lock(&shared->mu);
    const GraphBuilder b(&shared->graph);
    const Output start = b.Op("Enter", {b.Scalar<int32_t>(0)}, {{"frame_name", absl::string_view("loop")}});
    const Output i = b.Op("Merge", {std::vector<Output>{start, start}});
    const GraphBuilder in = b.WithControl({i.node});
    const Output cond = b.Op("LoopCond", {b.Op("Less", {i, in.Scalar<int32_t>(3)})});
    const Output i_next =
        b.Op("NextIteration", {b.Add(b.OpNode("Switch", {i, cond})->output(1), in.Scalar<int32_t>(1))});
    const Output x = in.Op("Merge", {std::vector<Output>{i_next, i_next}});
    Node* x_switch = b.OpNode("Switch", {x, cond});
    const Output x_next = b.Op("NextIteration", {x_switch->output(1)});
    result = b.WithName("result").Identity(b.WithName("leave").Op("Exit", {x_switch->output(0)}));
    ASSERT_TRUE(b.status().ok()) << b.status();
    ASSERT_TRUE(shared->graph.SetInput(i.node, 1, i_next).ok());
    for (int input : {0, 1}) ASSERT_TRUE(shared->graph.SetInput(x.node, input, x_next).ok());
  }
  for (const bool deterministic : {false, true}) {
    StatusOr<std::unique_ptr<Session>> session =
        System::Default().NewSession(shared, {}, "", Determinism{deterministic, 1});
    ASSERT_TRUE(session.ok()) << session.status();
    std::vector<Tensor> out;
    const Status s = (*session)->Run(nullptr, {}, {}, std::vector<Output>{result}, {}, &out, nullptr);
    EXPECT_NE(s.message().find("result waits for leave"), absl::string_view::npos) << s;
  }
}

INSTANTIATE_TEST_SUITE_P(, SchedulesTest, ::testing::ValuesIn(AllGraphs()), [](const auto& graph) {
  return graph.param->name;
});

}  // namespace
}  // namespace millrace
