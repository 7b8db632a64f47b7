// SPDX-License-Identifier: Apache-2.0
// The n-th allocation of a message to a worker fails, or of a step that nobody waits for: there is one answer, and what
// comes next is as if nothing had been.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/env.h"
#include "failing_device.h"
#include "service/coordinator.h"
#include "service/local_directory.h"
#include "service/worker.h"
#include "system/system.h"

namespace millrace {
namespace {

// Its first worker leads collective ops.
class Directory final : public WorkerDirectory {
 public:
  WorkerInterface* Find(absl::string_view task) override { return workers.Find(task); }
  std::string CollectiveLeader() const override { return "/job:localhost/replica:0/task:0"; }
  LocalDirectory workers;
};

class FailingMessagesTest : public ::testing::Test {
 protected:
  FailingMessagesTest() {
    for (int task = 0; task < 2; ++task) {
      std::vector<std::unique_ptr<Device>> devices;
      devices.push_back(std::make_unique<FailingDevice>(
          DeviceName{.job = "localhost", .replica = 0, .task = task, .type = "CPU", .id = 0}, ProcessThreadPool()));
      workers_.push_back(std::make_unique<Worker>(
          std::move(devices), &System::Default().kernels(), &directory_, static_cast<uint64_t>(task) + 1));
      directory_.workers.Add(workers_.back().get());
    }
  }
  ~FailingMessagesTest() override { StopFailing(); }

  // `send` sends `request`, which is as `prepare` made it; `settle` then brings answers that are still to come.
  template <typename Prepare, typename Send, typename Settle>
  void EveryAllocation(Prepare prepare, Send send, Settle settle) {
    for (int64_t n = 1;; ++n) {
      SCOPED_TRACE(absl::StrCat("allocation ", n));
      Worker& w = *workers_[0];
      int answers = 0;
      w.CreateSession(
          {}, {7, session_.epoch}, [](const StatusOr<CreateWorkerSessionResponse>& r) { ASSERT_TRUE(r.ok()); });
      auto request = prepare();
      FailAllocation(n);
      send(w, std::move(request), [&answers](const auto&) { ++answers; });
      const bool is_past = CountedAllocations() < n;
      StopFailing();
      settle(w);
      ASSERT_EQ(answers, 1);
      if (is_past) return;
    }
  }

  Directory directory_;
  std::vector<std::unique_ptr<Worker>> workers_;
  SessionRef session_{7, 1};  // a session that has ended is made again in another epoch
};

TEST_F(FailingMessagesTest, EachIsAnsweredOnce) {
  const SessionRef& session = session_;
  const auto nothing = [](Worker&) {};
  int64_t step = 0;
  const auto abort = [&](Worker& w) {
    w.AbortStep({}, {{session, step}, Cancelled("enough")}, [](const StatusOr<AbortStepResponse>&) {});
  };
  EveryAllocation([&] { return RecvTensorRequest{{session, ++step}, {5}}; },
                  [](Worker& w, RecvTensorRequest r, auto count) { w.RecvTensor({}, std::move(r), count); }, abort);
  EveryAllocation(
      [&] { return ExchangeTensorsRequest{{session, ++step}, {}, {1, 2}}; },
      [](Worker& w, ExchangeTensorsRequest r, auto count) { w.ExchangeTensors({}, std::move(r), count); }, abort);
  EveryAllocation(
      [&] {
        RunStepRequest request;
        request.step = {session, ++step};
        request.is_alone = true;
        return request;
      },
      [](Worker& w, RunStepRequest r, auto count) { w.RunStep({}, std::move(r), count); }, nothing);
  const auto send = [](auto method) {
    return [method](Worker& w, auto request, auto count) { (w.*method)({}, std::move(request), count); };
  };
  EveryAllocation([] { return GetStatusRequest{}; }, send(&Worker::GetStatus), nothing);
  EveryAllocation([&] { return HeartbeatRequest{{session, {8, 1}}}; }, send(&Worker::Heartbeat), nothing);
  EveryAllocation([&] { return CreateWorkerSessionRequest{7, session.epoch}; }, send(&Worker::CreateSession), nothing);
  EveryAllocation(
      [&] { return DeregisterPartitionsRequest{session, {1}}; }, send(&Worker::DeregisterPartitions), nothing);
  EveryAllocation(
      [&] { return AbortStepRequest{{session, ++step}, Cancelled("enough")}; }, send(&Worker::AbortStep), nothing);
  EveryAllocation(
      [&] {
        StepHorizon horizon;
        horizon.next = ++step;
        return CleanUpStepsRequest{session, std::move(horizon)};
      },
      send(&Worker::CleanUpSteps), nothing);
  EveryAllocation([&] { return GetRandomPositionsRequest{session}; }, send(&Worker::GetRandomPositions), nothing);
  EveryAllocation([&] { return SetRandomPositionsRequest{session, {}}; }, send(&Worker::SetRandomPositions), nothing);
  const auto end = [&](Worker& w) {  // which it has already, perhaps
    w.DeleteSession({}, {session}, [](const StatusOr<DeleteWorkerSessionResponse>&) {});
    ++session_.epoch;
  };
  EveryAllocation([&] { return DeleteWorkerSessionRequest{session}; },
                  [](Worker& w, DeleteWorkerSessionRequest r, auto count) { w.DeleteSession({}, r, count); }, end);
  EveryAllocation([] { return ResetRequest{}; },
                  [](Worker& w, ResetRequest r, auto count) { w.Reset({}, std::move(r), count); }, end);
}

JoinCollectiveRequest JoinOf(uint64_t member, int64_t task, int64_t group_size, int64_t instance) {
  JoinCollectiveRequest request;
  request.member = member;
  request.device = absl::StrCat("/job:localhost/replica:0/task:", task, "/device:CPU:0");
  request.incarnation = static_cast<uint64_t>(task) + 1;
  request.session = 7;
  request.group_key = 1;
  request.instance_key = instance;
  request.group_size = group_size;
  request.claim = "CollectiveReduce of nothing much, which takes more than a few bytes to say";
  request.timeout_millis = 600'000;
  return request;
}

TEST_F(FailingMessagesTest, MembersOfCollectiveOpsAreAnsweredOnce) {
  uint64_t number = 1;
  int64_t instance = 0;
  const auto leave = [&](uint64_t id) {
    return [this, &number, id](Worker& w) {
      w.AbortCollective({}, {id ? id : number, Aborted("enough")}, [](const StatusOr<AbortCollectiveResponse>&) {});
    };
  };
  const auto join = [](Worker& w, JoinCollectiveRequest r, auto count) { w.JoinCollective({}, std::move(r), count); };
  // Alone; and one that waits.
  EveryAllocation([&] { return JoinOf(++number, 0, 1, ++instance); }, join, [](Worker&) {});
  EveryAllocation([&] { return JoinOf(++number, 0, 2, ++instance); }, join, leave(0));
  // The last of a group: the other has the same answer.
  int waiting = 0;
  Status others;
  uint64_t round = 0;
  EveryAllocation(
      [&] {
        EXPECT_EQ(waiting, 0) << "the first of a group has no answer";
        ++waiting;
        workers_[0]->JoinCollective(
            {}, JoinOf(++number, 1, 2, ++instance), [&](const StatusOr<JoinCollectiveResponse>& r) {
              --waiting;
              others = r.status();
              if (r.ok()) round = r->round;
            });
        return JoinOf(++number, 0, 2, instance);
      },
      [](Worker& w, JoinCollectiveRequest r, auto count) {
        // A caller that can go away.
        CancellationManager cancellation;
        CallOptions call;
        call.cancellation = &cancellation;
        w.JoinCollective(call, std::move(r), count);
      },
      [&](Worker& w) {
        if (waiting > 0) leave(number - 1)(w);
      });
  EXPECT_EQ(waiting, 0);
  EXPECT_TRUE(others.ok()) << others;
  EXPECT_NE(round, 0u);
  EveryAllocation(
      [&] { return RecvCollectiveRequest{++number, 1, "a piece with a name that is long enough to want memory"}; },
      [](Worker& w, RecvCollectiveRequest r, auto count) { w.RecvCollective({}, std::move(r), count); }, leave(0));
  EveryAllocation(
      [&] {
        workers_[0]->JoinCollective(
            {}, JoinOf(++number, 1, 2, ++instance), [](const StatusOr<JoinCollectiveResponse>&) {});
        return AbortCollectiveRequest{number, Aborted("enough of this, which takes more than a few bytes to say")};
      },
      [](Worker& w, AbortCollectiveRequest r, auto count) { w.AbortCollective({}, std::move(r), count); }, leave(0));
}

// One after the other fails, and the step ends each time; the next one is right.
TEST_F(FailingMessagesTest, StepsOfCollectiveOpsEnd) {
  const auto graph = MakeRef<SharedGraph>(&System::Default().ops());
  std::vector<Output> sums;
  {
    const GraphLock lock(&graph->mu);
    const GraphBuilder b(&graph->graph);
    for (int task = 0; task < 2; ++task) {
      const GraphBuilder here = b.WithDevice(absl::StrCat("/task:", task));
      const Output input = here.Op("Neg", {here.Vector<float>({1.0f + static_cast<float>(task), 5.0f})});
      sums.push_back(here.Op(
          "CollectiveReduce", {input},
          {{"group_size", int64_t{2}},
           {"group_key", int64_t{1}},
           {"instance_key", int64_t{1}},
           {"merge_op", "Add"},
           {"final_op", "Id"},
           {"subdiv_offsets", std::vector<int64_t>{0}}}));
    }
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  const KernelRegistry& kernels = System::Default().kernels();
  CoordinatorOptions options;
  options.passes.has_kernel = [&kernels](const Node& n, const std::string& type) {
    return n.op() && (kernels.Has(*n.op(), n.attrs(), type) || n.op_name() == "_Arg" || n.op_name() == "_Retval");
  };
  Coordinator master(graph, {workers_[0].get(), workers_[1].get()}, 1, options);
  const auto run = [&](int64_t n) {
    struct {
      std::atomic<int> answers{0};
      StatusOr<std::vector<Tensor>> got = std::vector<Tensor>();
    } ran;
    RunSignature signature{{}, {sums[0], sums[1]}, {}};
    const int64_t start = Env::Default().MonotonicNanos();
    if (n > 0) FailAllocation(n);
    master.RunAsync({}, std::move(signature), {}, [&ran](StatusOr<std::vector<Tensor>> r) {
      ran.got = std::move(r);
      ++ran.answers;
    });
    while (ran.answers == 0) std::this_thread::yield();
    const bool is_past = n > 0 && CountedAllocations() < n;
    StopFailing();
    EXPECT_EQ(ran.answers, 1);
    if (n == 0) {
      EXPECT_TRUE(ran.got.ok()) << ran.got.status();
    }
    if (ran.got.ok()) {
      EXPECT_EQ((*ran.got)[0].data<float>()[0], -3.0f);
      EXPECT_EQ((*ran.got)[1].data<float>()[1], -10.0f);
    }
    EXPECT_LT(Env::Default().MonotonicNanos() - start, 20'000'000'000) << "ended by a timeout alone";
    return is_past;
  };
  run(0);
  for (int64_t n = 1; n < 5000; ++n) {
    SCOPED_TRACE(absl::StrCat("allocation ", n));
    const bool is_past = run(n);
    run(0);
    if (is_past || HasFailure()) break;
  }
  EXPECT_TRUE(master.Close(absl::Seconds(20)).ok());
}

TEST_F(FailingMessagesTest, StepsThatNobodyWaitsForEndOnce) {
  const auto graph = MakeRef<SharedGraph>(&System::Default().ops());
  Output x, y;
  {
    const GraphLock lock(&graph->mu);
    const GraphBuilder b(&graph->graph);
    x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const GraphBuilder far = b.WithDevice("/task:1");
    y = b.Add(far.Mul(x, far.Scalar(2.0f)), b.Scalar(1.0f));
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  const KernelRegistry& kernels = System::Default().kernels();
  CoordinatorOptions options;
  options.passes.has_kernel = [&kernels](const Node& n, const std::string& type) {
    return n.op() && (kernels.Has(*n.op(), n.attrs(), type) || n.op_name() == "_Arg" || n.op_name() == "_Retval");
  };
  Coordinator master(graph, {workers_[0].get(), workers_[1].get()}, 1, options);
  const auto run = [&](int64_t n) {
    std::atomic<int> answers{0};
    std::atomic<bool> is_right{false};
    RunSignature signature{{x}, {y}, {}};
    std::vector<Tensor> values = {Tensor::Scalar(3.0f)};
    if (n > 0) FailAllocation(n);
    master.RunAsync({}, std::move(signature), std::move(values), [&](const StatusOr<std::vector<Tensor>>& r) {
      is_right = !r.ok() || *(*r)[0].data<float>() == 7.0f;
      ++answers;
    });
    while (answers == 0) std::this_thread::yield();
    const bool is_past = n > 0 && CountedAllocations() < n;
    StopFailing();
    EXPECT_EQ(answers, 1);
    EXPECT_TRUE(is_right);
    return is_past;
  };
  for (const bool compiles : {true, false}) {
    // A plan takes some thousand allocations; a step a few.
    for (int64_t n = 1; n < 20000; n += compiles ? 1 + n / 20 : 1) {
      SCOPED_TRACE(absl::StrCat(compiles ? "compilation and step" : "step", ", allocation ", n));
      if (compiles) master.ForgetCompiled();
      const bool is_past = run(n);
      run(0);
      if (is_past || HasFailure()) break;
    }
  }
  EXPECT_TRUE(master.Close(absl::Seconds(20)).ok());
}

}  // namespace
}  // namespace millrace
