// SPDX-License-Identifier: Apache-2.0
// Two masters and three workers in a simulated world: messages take times that a seed draws, and overtake each other.
// Every seed gives the bits of a local session, on any placement, and when workers die, the next step that ends well
// does. MILLRACE_SIMULATIONS says how many seeds of each graph are run (default 12).
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "base/pool_env.h"
#include "client/local_session.h"
#include "cluster/remote_worker.h"
#include "cluster/worker_service.h"
#include "control_flow_graphs.h"
#include "device/cpu/cpu_device.h"
#include "graph/control_flow.h"
#include "service/ask_kernels.h"
#include "service/coordinator.h"
#include "service/local_directory.h"
#include "service/worker.h"
#include "simulation/fake_env.h"
#include "simulation/sim_network.h"
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

std::unique_ptr<Device> NewDevice(int task, ThreadPool& pool = ProcessThreadPool()) {
  return NewCpuDevice(
      {.job = "localhost", .replica = 0, .task = task, .type = "CPU", .id = 0}, EnvOf(pool).Random64(), pool);
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

// Time, the network, the workers.
class World {
 public:
  explicit World(uint64_t seed) : env_(seed), network_(env_, seed) {
    network_.SetWeather({.min_delay = absl::ZeroDuration(), .max_delay = absl::Milliseconds(10)});
    for (int task = 0; task < kWorkers; ++task) {
      remote_[task] = std::make_unique<RemoteWorker>(TaskName(task), AddressOf(task), &channels_);
      directory_.Add(remote_[task].get());
      StartWorker(task);
    }
  }
  ~World() {
    for (int task = 0; task < kWorkers; ++task) StopWorker(task);
  }

  void StartWorker(int task) {
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(NewDevice(task, *pool_));
    workers_[task] =
        std::make_unique<Worker>(std::move(devices), &System::Default().kernels(), &directory_, env_.Random64());
    services_[task] = std::make_unique<WorkerService>(workers_[task].get(), &System::Default().ops(), &env_);
    transports_[task] = network_.NewTransport(TaskName(task), env_);
    servers_[task] = *transports_[task]->Listen({.address = AddressOf(task)}, services_[task].get());
  }
  // Nothing of it is heard any more.
  void StopWorker(int task) {
    network_.Kill(TaskName(task));
    bool is_idle = false;
    workers_[task]->Reset(
        {}, {.containers = {}, .closes_all = true}, [&is_idle](const StatusOr<ResetResponse>&) { is_idle = true; });
    EXPECT_TRUE(env_.RunUntil([&is_idle] { return is_idle; }));
    servers_[task].reset();
    services_[task].reset();
    workers_[task].reset();
  }

  FakeEnv& env() { return env_; }

  std::unique_ptr<Coordinator> NewMaster(const Program& program, uint64_t session, uint64_t order_seed) {
    CoordinatorOptions options;
    options.passes.soft_placement = true;
    options.env = &env_;
    options.max_threads = 1;
    options.inter_op_threads = 1;
    options.deterministic = order_seed != 0;
    options.order_seed = order_seed;
    AskKernels(System::Default().kernels(), *client_device_, &options.passes);
    std::vector<WorkerInterface*> all;
    for (const auto& w : remote_) all.push_back(w.get());
    return std::make_unique<Coordinator>(program.graph, std::move(all), session, std::move(options));
  }

  int64_t num_calls() const { return network_.num_calls(); }

 private:
  static std::string TaskName(int task) { return absl::StrCat("/job:localhost/replica:0/task:", task); }
  static std::string AddressOf(int task) { return absl::StrCat("host:", 100 + task); }

  FakeEnv env_;
  const std::unique_ptr<ThreadPool> pool_ = NewThreadPool(env_);
  const std::unique_ptr<Device> client_device_ = NewDevice(99, *pool_);
  SimNetwork network_;
  Channels channels_{env_, [this] {
                       return StatusOr<std::unique_ptr<RpcTransport>>(network_.NewTransport("masters and peers", env_));
                     }};
  std::unique_ptr<RemoteWorker> remote_[kWorkers];
  LocalDirectory directory_;
  std::unique_ptr<Worker> workers_[kWorkers];
  std::unique_ptr<WorkerService> services_[kWorkers];
  std::unique_ptr<RpcTransport> transports_[kWorkers];
  std::unique_ptr<RpcServer> servers_[kWorkers];
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

class SimulatedWorkersTest : public ::testing::TestWithParam<const FlowGraph*> {
 protected:
  void SetUp() override {
    Status s = mine_.Build(*GetParam());
    ASSERT_TRUE(s.ok()) << s;
    // State is the workers' and not the sessions', so the second master runs a graph without.
    s = other_.Build(FlowGraphs()[2]);
    ASSERT_TRUE(s.ok()) << s;
    ASSERT_TRUE(other_.step.init.empty());
  }

  // What happened, in numbers.
  struct History {
    uint64_t events;
    int64_t now, num_calls;
    bool operator==(const History&) const = default;
  };
  History RunBoth(uint64_t seed) {
    mine_.Scatter(seed);
    other_.Scatter(seed + 1000);
    World world(seed);
    const uint64_t order_seed = seed % 2 == 0 ? seed : 0;
    const std::unique_ptr<Coordinator> masters[] = {
        world.NewMaster(mine_, 1, order_seed), world.NewMaster(other_, 2, order_seed)};
    Steps init, steps, other_steps;
    if (!mine_.step.init.empty()) {
      init.Begin(*masters[0], {{}, {}, mine_.step.init}, {});
      EXPECT_TRUE(world.env().RunUntil([&] { return init.left == 0; }) && init.results[0].ok())
          << init.results[0].status();
    }
    const int rounds = mine_.step.init.empty() ? 3 : 1;
    for (int i = 0; i < rounds; ++i) steps.Begin(*masters[0], mine_);
    for (int i = 0; i < 3; ++i) other_steps.Begin(*masters[1], other_);
    EXPECT_TRUE(world.env().RunUntil([&] { return steps.left + other_steps.left == 0; }))
        << "nothing can happen any more, and steps have not ended";
    steps.ExpectReference(mine_);
    other_steps.ExpectReference(other_);
    return {world.env().history(), world.env().MonotonicNanos(), world.num_calls()};
  }

  Program mine_, other_;
};

TEST_P(SimulatedWorkersTest, TwoMastersAndThreeWorkersGiveTheBitsOfALocalSession) {
  for (uint64_t seed = 1; seed <= Simulations() && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const History history = RunBoth(seed);
    EXPECT_GT(history.num_calls, 20);
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
    World world(seed);
    const std::unique_ptr<Coordinator> master = world.NewMaster(mine_, 1, 0);
    Steps first;
    for (int i = 0; i < 3; ++i) first.Begin(*master, mine_);
    world.env().RunFor(absl::Microseconds(random() % 100'000));
    const int task = static_cast<int>(random() % kWorkers);
    world.StopWorker(task);
    world.env().RunFor(absl::Microseconds(random() % 10'000));
    world.StartWorker(task);
    ASSERT_TRUE(world.env().RunUntil([&] { return first.left == 0; })) << "steps wait for a worker that is gone";
    for (const auto& r : first.results) {
      if (r.ok()) continue;
      const Status& s = r.status();
      EXPECT_TRUE(absl::IsUnavailable(s) || absl::IsAborted(s) || absl::IsCancelled(s)) << s;
    }
    bool is_well = false;
    for (int attempt = 0; attempt < 4 && !is_well; ++attempt) {
      Steps again;
      again.Begin(*master, mine_);
      ASSERT_TRUE(world.env().RunUntil([&] { return again.left == 0; }));
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

INSTANTIATE_TEST_SUITE_P(, SimulatedWorkersTest, ::testing::ValuesIn(AllGraphs()), [](const auto& graph) {
  return graph.param->name;
});

}  // namespace
}  // namespace millrace
