// SPDX-License-Identifier: Apache-2.0
// The n-th allocation of a message to a worker fails, or of a step that nobody waits for: there is one answer, and what
// comes next is as if nothing had been.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/env.h"
#include "failing_memory.h"
#include "kernel/resource_manager.h"
#include "service/coordinator.h"
#include "service/local_directory.h"
#include "service/worker.h"
#include "system/system.h"

namespace millrace {
namespace {

class TestDevice final : public Device {
 public:
  explicit TestDevice(int task)
      : Device({.job = "localhost", .replica = 0, .task = task, .type = "CPU", .id = 0}, 1, FailingAllocator()) {}
  ThreadPool& thread_pool() override { return ProcessThreadPool(); }
  int64_t memory_limit() const override { return 0; }
  ResourceManager& resources() override { return resources_; }

 private:
  ResourceManager resources_;
};

class FailingMessagesTest : public ::testing::Test {
 protected:
  FailingMessagesTest() {
    for (int task = 0; task < 2; ++task) {
      std::vector<std::unique_ptr<Device>> devices;
      devices.push_back(std::make_unique<TestDevice>(task));
      workers_.push_back(std::make_unique<Worker>(
          std::move(devices), &System::Default().kernels(), &directory_, static_cast<uint64_t>(task) + 1));
      directory_.Add(workers_.back().get());
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
      w.CreateSession({}, {7, false}, [](const StatusOr<CreateWorkerSessionResponse>& r) { ASSERT_TRUE(r.ok()); });
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

  LocalDirectory directory_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(FailingMessagesTest, EachIsAnsweredOnce) {
  const SessionRef session{7, 1};
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
  EveryAllocation(
      [&] { return DeleteWorkerSessionRequest{session}; },
      [](Worker& w, DeleteWorkerSessionRequest r, auto count) { w.DeleteSession({}, r, count); },
      // Closed already, perhaps.
      [&](Worker& w) { w.DeleteSession({}, {session}, [](const StatusOr<DeleteWorkerSessionResponse>&) {}); });
  EveryAllocation(
      [] { return ResetRequest{}; }, [](Worker& w, ResetRequest r, auto count) { w.Reset({}, std::move(r), count); },
      [&](Worker& w) { w.DeleteSession({}, {session}, [](const StatusOr<DeleteWorkerSessionResponse>&) {}); });
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
