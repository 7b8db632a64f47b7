// SPDX-License-Identifier: Apache-2.0
// The n-th allocation of a step fails, in every conditional and loop of the suite and of a data set, with one thread
// and with eight: the step ends with a status, and the session's next step is as if nothing had been. So with steps
// that are compiled, that are traced, and that are cancelled while they wait. n takes every value, in steps of many
// allocations about 300 (every one with MILLRACE_EVERY_ALLOCATION in the environment).
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/env.h"
#include "client/local_session.h"
#include "control_flow_graphs.h"
#include "failing_device.h"
#include "system/system.h"

namespace millrace {
namespace {

// Elements of a data set, which a thread of its own reads.
Status TakeBatch(const GraphBuilder& b, FlowStep* step) {
  const AttrMap numbers = {{"output_types", std::vector<DType>{DType::kInt64}},
                           {"output_shapes", std::vector<PartialShape>{PartialShape::UnknownOfRank(1)}}};
  const AttrMap scalars = {{"output_types", std::vector<DType>{DType::kInt64}},
                           {"output_shapes", std::vector<PartialShape>{PartialShape::Scalar()}}};
  AttrMap named = numbers;
  named.emplace("shared_name", "");
  named.emplace("container", "");
  const Output zero = b.Scalar<int64_t>(0), six = b.Scalar<int64_t>(6), one = b.Scalar<int64_t>(1);
  const auto op = [&b](absl::string_view name, std::vector<Arg> inputs, const AttrMap& attrs) {
    return Output{b.OpNode(name, std::move(inputs), attrs), 0};
  };
  const Output range = op("RangeDataset", {zero, six, one}, scalars);
  const Output batches = op("BatchDataset", {range, b.Scalar<int64_t>(3)}, numbers);
  const Output iterator = op("Iterator", {}, named);
  step->init.push_back(b.OpNode("MakeIterator", std::vector<Arg>{batches, iterator}, AttrMap()));
  step->Expect(op("IteratorGetNext", {iterator}, numbers), Tensor::Vector<int64_t>({0, 1, 2}));
  return b.status();
}

std::vector<const FlowGraph*> AllGraphs() {
  static const FlowGraph batches = {"BatchOfDataset", TakeBatch};
  std::vector<const FlowGraph*> all = {&batches};
  for (const FlowGraph& g : FlowGraphs()) all.push_back(&g);
  for (const FlowGraph& g : FlowGradientGraphs()) all.push_back(&g);
  return all;
}

ThreadPool& Pool(int threads) {
  static ThreadPool one(1), eight(8);
  return threads == 1 ? one : eight;
}

class FailingMemoryTest : public ::testing::TestWithParam<const FlowGraph*> {
 protected:
  void SetUp() override {
    const GraphLock lock(&shared_->mu);
    const GraphBuilder b(&shared_->graph);
    Status s = GetParam()->build(b, &step_);
    s.Update(b.status());
    ASSERT_TRUE(s.ok()) << s;
  }

  std::unique_ptr<Session> Open(int devices, int threads, bool by_readiness) {
    wire::ConfigProto config;
    config.allow_soft_placement = true;
    config.operation_timeout_in_ms = 5'000;
    std::vector<DeviceList> lists(1);
    for (int d = 0; d < devices; ++d) {
      const DeviceName name{.job = "localhost", .replica = 0, .task = 0, .type = "CPU", .id = d};
      lists[0].push_back(std::make_unique<FailingDevice>(name, Pool(threads)));
    }
    auto session = NewLocalSession(
        shared_, config, std::move(lists), &System::Default().kernels(), Determinism{by_readiness && threads == 1, 0});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  Status Initialise(Session& session) {
    if (step_.init.empty()) return absl::OkStatus();
    std::vector<Tensor> none;
    return session.Run(nullptr, {}, {}, {}, step_.init, &none, nullptr);
  }
  Status Run(Session& session, std::vector<Tensor>* out) {
    return session.Run(nullptr, step_.feeds, step_.values, step_.fetches, {}, out, nullptr);
  }
  Status RunTraced(Session& session, std::vector<Tensor>* out) {
    wire::RunOptions options;
    options.trace_level = wire::RunOptions::kFullTrace;
    wire::RunMetadata metadata;
    return session.Run(&options, step_.feeds, step_.values, step_.fetches, {}, out, &metadata);
  }
  // How many allocations there are between the numbers that are tried.
  static int64_t Stride(int64_t allocations, int64_t numbers) {
    return std::getenv("MILLRACE_EVERY_ALLOCATION") ? 1 : allocations / numbers + 1;
  }
  void Spread(int devices) {
    const GraphLock lock(&shared_->mu);
    uint64_t random = 1;
    for (Node* n : shared_->graph.nodes()) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      n->set_device(devices == 1 ? "" : absl::StrCat("/device:CPU:", (random >> 33) % static_cast<uint64_t>(devices)));
      for (const Output& in : n->inputs()) {
        // What names something of a device stays on it.
        if (IsRef(in.dtype()) || in.dtype() == DType::kResource || in.dtype() == DType::kVariant)
          n->set_device(in.node->device());
      }
    }
  }
  void ExpectGoesOn(Session& session, const std::vector<Tensor>& reference) {
    std::vector<Tensor> out;
    Status s = Initialise(session);
    if (s.ok()) s = Run(session, &out);
    ASSERT_TRUE(s.ok()) << s;
    ASSERT_EQ(out.size(), reference.size());
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_TRUE(out[i].shape() == reference[i].shape() &&
                  (!IsPlain(out[i].dtype()) || std::memcmp(out[i].raw(), reference[i].raw(), out[i].TotalBytes()) == 0))
          << "fetch " << i;
    }
  }

  RefPtr<SharedGraph> shared_ = MakeRef<SharedGraph>(&System::Default().ops());
  FlowStep step_;
};

TEST_P(FailingMemoryTest, AStepWithoutMemoryEndsInAStatusAndTheSessionGoesOn) {
  struct Way {
    int devices, threads;
    bool by_readiness;
  };
  for (const Way way : {Way{1, 1, false}, Way{1, 1, true}, Way{3, 8, false}}) {
    SCOPED_TRACE(absl::StrCat(way.devices, " devices, ", way.threads, " threads"));
    Spread(way.devices);
    const std::unique_ptr<Session> session = Open(way.devices, way.threads, way.by_readiness);
    ASSERT_NE(session, nullptr);
    std::vector<Tensor> reference;
    Status s = Initialise(*session);
    if (s.ok()) s = Run(*session, &reference);
    ASSERT_TRUE(s.ok()) << s;
    ExpectGoesOn(*session, reference);
    ASSERT_TRUE(Initialise(*session).ok());
    std::vector<Tensor> out;
    FailAllocation(0);
    s = Run(*session, &out);
    StopFailing();
    ASSERT_TRUE(s.ok()) << s;
    const int64_t allocations = CountedAllocations();
    const int64_t stride = Stride(allocations, 300);
    int failed = 0;
    for (const bool all_after : {false, true}) {
      for (int64_t n = 1; n <= allocations && !HasFailure(); n += stride) {
        SCOPED_TRACE(absl::StrCat("allocation ", n, " of ", allocations, all_after ? " and all after it" : ""));
        ASSERT_TRUE(Initialise(*session).ok());
        std::vector<Tensor> made;
        FailAllocation(n, all_after);
        s = Run(*session, &made);
        StopFailing();
        if (!s.ok()) {
          ++failed;
          EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
        }
        ExpectGoesOn(*session, reference);
      }
    }
    // What is only for speed may do without: the others must all have been noticed.
    EXPECT_TRUE(failed > 0 || allocations == 0);
    RecordProperty(absl::StrCat("allocations_", way.devices, "_", way.by_readiness), static_cast<int>(allocations));
  }
}

TEST_P(FailingMemoryTest, AFirstStepWithoutMemoryIsAsIfItHadNotBeen) {
  Spread(3);
  std::vector<Tensor> reference;
  int64_t allocations = 0;
  for (int64_t n = 0, stride = 1; n <= allocations && !HasFailure(); n += stride) {  // 0: all are counted
    SCOPED_TRACE(absl::StrCat("allocation ", n, " of ", allocations));
    const std::unique_ptr<Session> session = Open(3, 8, false);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(Initialise(*session).ok());
    std::vector<Tensor> made;
    FailAllocation(n);
    const Status s = Run(*session, &made);
    StopFailing();
    if (n == 0) {
      ASSERT_TRUE(s.ok()) << s;
      reference = made;
      allocations = CountedAllocations();
      stride = Stride(allocations, 60);
    }
    EXPECT_TRUE(s.ok() || absl::IsResourceExhausted(s)) << s;
    ExpectGoesOn(*session, reference);
  }
}

TEST_P(FailingMemoryTest, ATraceThatThereIsNoMemoryForHarmsNoStep) {
  Spread(3);
  const std::unique_ptr<Session> session = Open(3, 8, false);
  ASSERT_NE(session, nullptr);
  std::vector<Tensor> reference;
  ASSERT_TRUE(Initialise(*session).ok());
  FailAllocation(0);
  const Status s = RunTraced(*session, &reference);
  StopFailing();
  ASSERT_TRUE(s.ok()) << s;
  const int64_t allocations = CountedAllocations();
  for (int64_t n = 1; n <= allocations && !HasFailure(); n += Stride(allocations, 60)) {
    SCOPED_TRACE(absl::StrCat("allocation ", n, " of ", allocations, " and all after it"));
    ASSERT_TRUE(Initialise(*session).ok());
    std::vector<Tensor> made;
    FailAllocation(n, true);
    const Status failed = RunTraced(*session, &made);
    StopFailing();
    EXPECT_TRUE(failed.ok() || absl::IsResourceExhausted(failed)) << failed;
    ExpectGoesOn(*session, reference);
  }
}

INSTANTIATE_TEST_SUITE_P(, FailingMemoryTest, ::testing::ValuesIn(AllGraphs()), [](const auto& graph) {
  return graph.param->name;
});

// What waits is told that its step is over, whatever there is no memory for while it is told.
TEST(FailingCancellationTest, StepsThatWaitEnd) {
  const RefPtr<SharedGraph> shared = MakeRef<SharedGraph>(&System::Default().ops());
  std::vector<Output> waits;
  {
    const GraphLock lock(&shared->mu);
    const GraphBuilder b(&shared->graph);
    const AttrMap types = {{"component_types", std::vector<DType>{DType::kInt64}}};
    const Output queue{b.OpNode("FIFOQueueV2", {}, types), 0};
    waits.push_back({b.OpNode("QueueDequeueV2", std::vector<Arg>{queue}, types), 0});
    waits.push_back({b.OpNode("Unstage", {}, {{"dtypes", std::vector<DType>{DType::kInt64}}}), 0});
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  std::vector<DeviceList> lists(1);
  const DeviceName name{.job = "localhost", .replica = 0, .task = 0, .type = "CPU", .id = 0};
  lists[0].push_back(std::make_unique<FailingDevice>(name, Pool(8)));
  auto session = NewLocalSession(shared, {}, std::move(lists), &System::Default().kernels(), Determinism{});
  ASSERT_TRUE(session.ok()) << session.status();
  wire::RunOptions options;
  options.timeout_in_ms = 40;
  for (const Output wait : waits) {
    for (int64_t n = 0; n <= 30; ++n) {
      SCOPED_TRACE(absl::StrCat(wait.node->name(), ", allocation ", n, " and all after it"));
      std::thread failing([n] {
        absl::SleepFor(absl::Milliseconds(20));
        if (n > 0) FailAllocation(n, true);
      });
      std::vector<Tensor> out;
      const Status s = (*session)->Run(&options, {}, {}, {wait}, {}, &out, nullptr);
      failing.join();
      StopFailing();
      EXPECT_TRUE(absl::IsDeadlineExceeded(s) || absl::IsResourceExhausted(s)) << s;
    }
  }
}

}  // namespace
}  // namespace millrace
