// SPDX-License-Identifier: Apache-2.0
// Sessions in a simulated world: clients, workers and deadlines of one seed and one thread at a time.
#include <gtest/gtest.h>

#include <set>

#include "base/pool_env.h"
#include "base/stopwatch.h"
#include "client/local_session.h"
#include "device/cpu/cpu_device.h"
#include "simulation/fake_env.h"
#include "system/system.h"

namespace millrace {
namespace {

using Types = std::vector<DType>;

// Two tasks of one CPU each. A queue of one place is on the far one.
class World {
 public:
  explicit World(uint64_t seed) : env_(seed), pool_(NewThreadPool(env_)) {
    {
      const GraphLock lock(&graph_->mu);
      const GraphBuilder b(&graph_->graph);
      const GraphBuilder far = b.WithDevice("/task:1");
      const Output queue = far.Op(
          "FIFOQueueV2", {},
          {{"component_types", Types{DType::kInt64}},
           {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}},
           {"capacity", int64_t{1}}});
      value_ = b.Op("Placeholder", {}, {{"dtype", DType::kInt64}, {"shape", PartialShape::Scalar()}});
      enqueue_ = far.OpNode(
          "QueueEnqueueV2", {queue, b.Add(value_, b.Scalar<int64_t>(1))}, {{"Tcomponents", Types{DType::kInt64}}});
      const Output taken = far.Op("QueueDequeueV2", {queue}, {{"component_types", Types{DType::kInt64}}});
      dequeue_ = b.Mul(taken, b.Scalar<int64_t>(10));
      EXPECT_TRUE(b.status().ok()) << b.status();
    }
    std::vector<DeviceList> workers(2);
    for (int task = 0; task < 2; ++task) {
      workers[static_cast<size_t>(task)].push_back(NewCpuDevice(
          {.job = "localhost", .replica = 0, .task = task, .type = "CPU", .id = 0}, env_.Random64(), *pool_));
    }
    auto session = NewLocalSession(graph_, {}, std::move(workers), &System::Default().kernels());
    EXPECT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }

  FakeEnv& env() { return env_; }
  Status Enqueue(int64_t value, int64_t timeout_ms = 0) {
    std::vector<Tensor> none;
    wire::RunOptions options;
    options.timeout_in_ms = timeout_ms;
    return session_->Run(&options, std::vector<Output>{value_}, std::vector<Tensor>{Tensor::Scalar(value)}, {},
                         std::vector<Node*>{enqueue_}, &none, nullptr);
  }
  StatusOr<int64_t> Dequeue(int64_t timeout_ms = 0) {
    std::vector<Tensor> out;
    wire::RunOptions options;
    options.timeout_in_ms = timeout_ms;
    MR_RETURN_IF_ERROR(session_->Run(&options, {}, {}, std::vector<Output>{dequeue_}, {}, &out, nullptr));
    return *out[0].data<int64_t>();
  }
  Status Close() { return session_->Close(); }

 private:
  FakeEnv env_;
  const std::unique_ptr<ThreadPool> pool_;
  const RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  Output value_, dequeue_;
  Node* enqueue_ = nullptr;
  std::unique_ptr<Session> session_;
};

// Clients that wait for each other's steps. What each took, in the order of its taking.
std::vector<int64_t> TakenIn(uint64_t seed, uint64_t* history) {
  constexpr int kClients = 3, kSteps = 5;
  World world(seed);
  std::vector<int64_t> taken;
  int ended = 0;
  for (int client = 0; client < kClients; ++client) {
    EXPECT_TRUE(world.env()
                    .StartThread([&world, &ended, client] {
                      for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(world.Enqueue(client * kSteps + i).ok());
                      ++ended;
                    })
                    .ok());
    EXPECT_TRUE(world.env()
                    .StartThread([&] {
                      for (int i = 0; i < kSteps; ++i) {
                        const StatusOr<int64_t> value = world.Dequeue();
                        EXPECT_TRUE(value.ok()) << value.status();
                        if (value.ok()) taken.push_back(*value);
                      }
                      ++ended;
                    })
                    .ok());
  }
  EXPECT_TRUE(world.env().RunUntil([&] { return ended == 2 * kClients; }));
  *history = world.env().history();
  return taken;
}

TEST(SimulatedSessionTest, TheSeedDecidesWhoTakesWhat) {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    uint64_t history = 0, again = 0;
    std::vector<int64_t> taken = TakenIn(seed, &history);
    EXPECT_EQ(TakenIn(seed, &again), taken);
    EXPECT_EQ(history, again) << seed;
    orders.insert(taken);
    std::sort(taken.begin(), taken.end());
    for (size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], static_cast<int64_t>(i + 1) * 10);
    EXPECT_EQ(taken.size(), 15u);
  }
  EXPECT_GT(orders.size(), 5u);
}

TEST(SimulatedSessionTest, DeadlinesPassInVirtualTime) {
  World world(1);
  const int64_t real = RealNanos(), start = world.env().MonotonicNanos();
  constexpr int64_t kHour = 3'600'000;
  EXPECT_EQ(world.Dequeue(kHour).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(world.env().MonotonicNanos() - start, kHour * 1'000'000);
  EXPECT_LT(RealNanos() - real, 30'000'000'000);
  // A jump of the clock on the wall ends nothing.
  world.env().ScheduleAfter(absl::Minutes(1), [&] { world.env().SetWallClock(world.env().Now() + absl::Hours(24)); });
  Status given;
  world.env().ScheduleAfter(
      absl::Minutes(30), [&] { EXPECT_TRUE(world.env().StartThread([&] { given = world.Enqueue(6); }).ok()); });
  const StatusOr<int64_t> value = world.Dequeue(kHour);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 70);
  EXPECT_TRUE(given.ok()) << given;
}

TEST(SimulatedSessionTest, CloseEndsWhatWaits) {
  World world(2);
  Status ended;
  EXPECT_TRUE(world.env().StartThread([&] { ended = world.Dequeue().status(); }).ok());
  world.env().RunFor(absl::Hours(100));
  EXPECT_TRUE(ended.ok());  // it waits still
  EXPECT_TRUE(world.Close().ok());
  EXPECT_TRUE(world.env().RunUntil([&] { return !ended.ok(); }));
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
}

}  // namespace
}  // namespace millrace
