// SPDX-License-Identifier: Apache-2.0
// Two masters and three workers in one thread: messages take times that a seed draws, overtake each other, and arrive
// as copies, by call or as bytes. Every seed gives the bits of a local session, on any placement, and when workers die,
// the next step that ends well does. MILLRACE_SIMULATIONS says how many seeds of each graph are run (default 12).
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "base/env.h"
#include "client/local_session.h"
#include "cluster/loopback_transport.h"
#include "cluster/remote_worker.h"
#include "cluster/worker_service.h"
#include "control_flow_graphs.h"
#include "device/cpu/cpu_device.h"
#include "graph/control_flow.h"
#include "service/ask_kernels.h"
#include "service/coordinator.h"
#include "service/simulated_network.h"
#include "service/worker.h"
#include "system/system.h"

namespace millrace {
namespace {

constexpr int kWorkers = 3;

uint64_t Simulations() {
  const char* text = std::getenv("MILLRACE_SIMULATIONS");
  return text == nullptr ? 12 : static_cast<uint64_t>(std::atoi(text));
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && IsPlain(a.dtype()) &&
         (a.TotalBytes() == 0 || std::memcmp(a.raw(), b.raw(), a.TotalBytes()) == 0);
}

std::unique_ptr<Device> NewDevice(int task) {
  return NewCpuDevice({.job = "localhost", .replica = 0, .task = task, .type = "CPU", .id = 0},
                      Env::Default().Random64(), ProcessThreadPool());
}

// A graph, with what a local session makes of it.
struct Program {
  RefPtr<SharedGraph> graph = MakeRef<SharedGraph>(&System::Default().ops());
  FlowStep step;
  std::vector<Tensor> reference;

  Status Build(const FlowGraph& flow) {
    {
      const GraphLock lock(&graph->mu);
      const GraphBuilder b(&graph->graph);
      MR_RETURN_IF_ERROR(flow.build(b, &step));
      MR_RETURN_IF_ERROR(b.status());
    }
    wire::ConfigProto config;
    config.allow_soft_placement = true;
    std::vector<DeviceList> lists(1);
    lists[0].push_back(NewDevice(0));
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        NewLocalSession(graph, config, std::move(lists), &System::Default().kernels()));
    std::vector<Tensor> none;
    if (!step.init.empty()) MR_RETURN_IF_ERROR(session->Run(nullptr, {}, {}, {}, step.init, &none, nullptr));
    return session->Run(nullptr, step.feeds, step.values, step.fetches, {}, &reference, nullptr);
  }
  void Scatter(uint64_t seed) {
    std::mt19937_64 random(seed);
    const GraphLock lock(&graph->mu);
    for (Node* n : graph->graph.nodes()) {
      n->set_device(absl::StrCat("/task:", random() % kWorkers));
      // A reference does not travel, and its value would be read too early.
      for (const Output& in : n->inputs()) {
        if (IsRef(in.dtype())) n->set_device(in.node->device());
      }
    }
  }
};

// Time, the network, the workers; one thread.
class World {
 public:
  World(uint64_t seed, bool as_bytes)
      : as_bytes_(as_bytes),
        network_(seed, absl::Milliseconds(10), [this](absl::Duration delay, absl::AnyInvocable<void() &&> fn) {
          events_.emplace(now_ + absl::ToInt64Nanoseconds(delay), std::move(fn));
        }) {
    thread_.Finish();  // so that Drive runs what was posted and comes back
    for (int task = 0; task < kWorkers; ++task) StartWorker(task);
  }
  ~World() {
    while (Next()) {
    }
    for (int task = 0; task < kWorkers; ++task) StopWorker(task);
    while (Next()) {
    }
  }

  void StartWorker(int task) {
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(NewDevice(task));
    workers_[task] = std::make_unique<Worker>(
        std::move(devices), &System::Default().kernels(), network_.directory(), Env::Default().Random64());
    if (!as_bytes_) return network_.Attach(workers_[task].get(), &thread_);
    services_[task] = std::make_unique<WorkerService>(workers_[task].get(), &System::Default().ops(), &thread_);
    servers_[task] = *transport_.Listen({.address = absl::StrCat("host:", 100 + task)}, services_[task].get());
    if (!remote_[task]) {
      remote_[task] = std::make_unique<RemoteWorker>(TaskName(task), servers_[task]->address(), &channels_);
    }
    network_.Attach(remote_[task].get(), &thread_);
  }
  void StopWorker(int task) {
    network_.Detach(workers_[task]->task());
    workers_[task].reset();
    servers_[task].reset();
  }

  // Lets the next thing happen. False: nothing is left to happen.
  bool Next() {
    if (events_.empty()) return false;
    auto event = events_.extract(events_.begin());
    now_ = event.key();
    std::move(event.mapped())();
    thread_.Drive(/*may_be_interrupted=*/false);
    ++num_events_;
    return true;
  }

  std::unique_ptr<Coordinator> NewMaster(const Program& program, uint64_t session, uint64_t order_seed) {
    CoordinatorOptions options;
    options.passes.soft_placement = true;
    options.max_threads = 1;
    options.inter_op_threads = 1;
    options.deterministic = order_seed != 0;
    options.order_seed = order_seed;
    AskKernels(System::Default().kernels(), *client_device_, &options.passes);
    std::vector<WorkerInterface*> all;
    for (int task = 0; task < kWorkers; ++task) all.push_back(network_.Stub(TaskName(task)));
    return std::make_unique<Coordinator>(program.graph, std::move(all), session, std::move(options));
  }
  static std::string TaskName(int task) { return absl::StrCat("/job:localhost/replica:0/task:", task); }

  int64_t now() const { return now_; }
  int64_t num_events() const { return num_events_; }
  int64_t num_messages() const { return network_.num_messages(); }
  int64_t num_bytes() const { return transport_.num_bytes(); }

 private:
  const std::unique_ptr<Device> client_device_ = NewDevice(99);
  int64_t now_ = 0, num_events_ = 0;
  std::multimap<int64_t, absl::AnyInvocable<void() &&>> events_;
  StepThread thread_;
  const bool as_bytes_;
  SimulatedNetwork network_;
  // Between the network and the workers, when messages are bytes.
  LoopbackTransport transport_{nullptr};
  Channels channels_{[this]() -> StatusOr<std::unique_ptr<RpcTransport>> {
    return std::unique_ptr<RpcTransport>(std::make_unique<LoopbackTransport>(transport_));
  }};
  std::unique_ptr<RemoteWorker> remote_[kWorkers];
  std::unique_ptr<WorkerService> services_[kWorkers];
  std::unique_ptr<RpcServer> servers_[kWorkers];
  std::unique_ptr<Worker> workers_[kWorkers];
};

// One master's steps.
struct Steps {
  int left = 0;
  std::vector<StatusOr<std::vector<Tensor>>> results;

  void Begin(Coordinator& master, RunSignature signature, const std::vector<Tensor>& values) {
    ++left;
    StepOptions options;
    options.inter_op_threads = 1;
    master.RunAsync(options, std::move(signature), values, [this](StatusOr<std::vector<Tensor>> result) {
      results.push_back(std::move(result));
      --left;
    });
  }
  void Begin(Coordinator& master, const Program& p) {
    Begin(master, {p.step.feeds, p.step.fetches, {}}, p.step.values);
  }
  void ExpectReference(const Program& p) const {
    for (const StatusOr<std::vector<Tensor>>& r : results) {
      ASSERT_TRUE(r.ok()) << r.status();
      ASSERT_EQ(r->size(), p.reference.size());
      for (size_t i = 0; i < r->size(); ++i) EXPECT_TRUE(SameBits((*r)[i], p.reference[i])) << "fetch " << i;
    }
  }
};

class SimulatedWorkersTest : public ::testing::TestWithParam<std::tuple<const FlowGraph*, bool>> {
 protected:
  void SetUp() override {
    Status s = mine_.Build(*std::get<0>(GetParam()));
    ASSERT_TRUE(s.ok()) << s;
    // State is the workers' and not the sessions', so the second master runs a graph without.
    s = other_.Build(FlowGraphs()[2]);
    ASSERT_TRUE(s.ok()) << s;
    ASSERT_TRUE(other_.step.init.empty());
  }

  static bool as_bytes() { return std::get<1>(GetParam()); }

  // What happened, in numbers.
  struct History {
    int64_t now, num_events, num_messages;
    bool operator==(const History&) const = default;
  };
  History RunBoth(uint64_t seed) {
    mine_.Scatter(seed);
    other_.Scatter(seed + 1000);
    World world(seed, as_bytes());
    const uint64_t order_seed = seed % 2 == 0 ? seed : 0;
    const std::unique_ptr<Coordinator> masters[] = {
        world.NewMaster(mine_, 1, order_seed), world.NewMaster(other_, 2, order_seed)};
    Steps init, steps, other_steps;
    if (!mine_.step.init.empty()) {
      init.Begin(*masters[0], {{}, {}, mine_.step.init}, {});
      while (init.left > 0 && world.Next()) {
      }
      EXPECT_TRUE(init.left == 0 && init.results[0].ok()) << init.results[0].status();
    }
    const int rounds = mine_.step.init.empty() ? 3 : 1;
    for (int i = 0; i < rounds; ++i) steps.Begin(*masters[0], mine_);
    for (int i = 0; i < 3; ++i) other_steps.Begin(*masters[1], other_);
    while (steps.left + other_steps.left > 0 && world.Next()) {
    }
    EXPECT_EQ(steps.left + other_steps.left, 0) << "nothing can happen any more, and steps have not ended";
    steps.ExpectReference(mine_);
    other_steps.ExpectReference(other_);
    EXPECT_EQ(world.num_bytes() > 10'000, as_bytes());
    return {world.now(), world.num_events(), world.num_messages()};
  }

  Program mine_, other_;
};

TEST_P(SimulatedWorkersTest, TwoMastersAndThreeWorkersGiveTheBitsOfALocalSession) {
  for (uint64_t seed = 1; seed <= Simulations() && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const History history = RunBoth(seed);
    EXPECT_GT(history.num_messages, 20);
    if (seed > 2) continue;
    EXPECT_TRUE(history == RunBoth(seed)) << "the same seed gave another history";
  }
}

TEST_P(SimulatedWorkersTest, StepsEndWhenAWorkerDiesAndTheSessionGoesOn) {
  if (!mine_.step.init.empty()) GTEST_SKIP() << "what the dead worker knew is gone";
  for (uint64_t seed = 1; seed <= Simulations() / 2 + 1 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    mine_.Scatter(seed);
    std::mt19937_64 random(seed);
    World world(seed, as_bytes());
    const std::unique_ptr<Coordinator> master = world.NewMaster(mine_, 1, 0);
    Steps first;
    for (int i = 0; i < 3; ++i) first.Begin(*master, mine_);
    for (uint64_t n = random() % 100; n > 0 && world.Next(); --n) {
    }
    const int task = static_cast<int>(random() % kWorkers);
    world.StopWorker(task);
    for (uint64_t n = random() % 10; n > 0 && world.Next(); --n) {
    }
    world.StartWorker(task);
    while (first.left > 0 && world.Next()) {
    }
    ASSERT_EQ(first.left, 0) << "steps wait for a worker that is gone";
    for (const auto& r : first.results) {
      if (r.ok()) continue;
      const Status& s = r.status();
      EXPECT_TRUE(absl::IsUnavailable(s) || absl::IsAborted(s) || absl::IsCancelled(s)) << s;
    }
    bool is_well = false;
    for (int attempt = 0; attempt < 4 && !is_well; ++attempt) {
      Steps again;
      again.Begin(*master, mine_);
      while (again.left > 0 && world.Next()) {
      }
      ASSERT_EQ(again.left, 0);
      is_well = again.results[0].ok();
      if (is_well) again.ExpectReference(mine_);
    }
    EXPECT_TRUE(is_well) << "the session does not go on";
  }
}

std::vector<const FlowGraph*> AllGraphs() {
  std::vector<const FlowGraph*> all;
  for (const FlowGraph& g : FlowGraphs()) all.push_back(&g);
  for (const FlowGraph& g : VariableFlowGraphs()) all.push_back(&g);
  for (const FlowGraph& g : FlowGradientGraphs()) all.push_back(&g);
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    , SimulatedWorkersTest, ::testing::Combine(::testing::ValuesIn(AllGraphs()), ::testing::Bool()),
    [](const auto& param) {
      return std::get<0>(param.param)->name + (std::get<1>(param.param) ? "AsBytes" : "ByCall");
    });

}  // namespace
}  // namespace millrace
