// SPDX-License-Identifier: Apache-2.0
// How compilations end with the session that they are for, when workers are slow or silent.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "device/cpu/cpu_device.h"
#include "service/coordinator.h"
#include "service/worker.h"
#include "simulation/forwarding_worker.h"
#include "system/system.h"

namespace millrace {
namespace {

// Keeps answers back, as it is told.
class SlowWorker final : public ForwardingWorker {
 public:
  using ForwardingWorker::ForwardingWorker;
  void CreateSession(const CallOptions& call, CreateWorkerSessionRequest request,
                     Reply<CreateWorkerSessionResponse> reply) override {
    ++asked_for_sessions;
    if (!is_silent) return ForwardingWorker::CreateSession(call, std::move(request), std::move(reply));
    absl::MutexLock lock(&mu_);
    unanswered_.push_back(std::move(reply));
  }
  void RegisterPartitions(const CallOptions& call, RegisterPartitionsRequest request,
                          Reply<RegisterPartitionsResponse> reply) override {
    ForwardingWorker::RegisterPartitions(
        call, std::move(request), [&](StatusOr<RegisterPartitionsResponse> r) { registered_ = std::move(r); });
    registration_ = std::move(reply);
  }
  void AnswerRegistration() { std::move(registration_)(std::move(registered_)); }
  // The step ends when it is aborted; this returns when it may.
  void RunStep(const CallOptions&, RunStepRequest, Reply<RunStepResponse> reply) override {
    step_ = std::move(reply);
    has_step.Notify();
    may_return.WaitForNotification();
  }
  void AbortStep(const CallOptions&, AbortStepRequest request, Reply<AbortStepResponse> reply) override {
    std::move(step_)(request.why);
    std::move(reply)(AbortStepResponse{});
  }
  void DeregisterPartitions(const CallOptions& call, DeregisterPartitionsRequest request,
                            Reply<DeregisterPartitionsResponse> reply) override {
    ++deregistered;
    ForwardingWorker::DeregisterPartitions(call, std::move(request), std::move(reply));
  }
  std::shared_ptr<InlinePartition> FindInline(const SessionRef&, int64_t) override { return nullptr; }

  std::atomic<bool> is_silent{false};
  std::atomic<int> asked_for_sessions{0}, deregistered{0};
  absl::Notification has_step, may_return;

 private:
  StatusOr<RegisterPartitionsResponse> registered_ = Internal("not registered");
  Reply<RegisterPartitionsResponse> registration_;
  Reply<RunStepResponse> step_;
  absl::Mutex mu_;
  std::vector<Reply<CreateWorkerSessionResponse>> unanswered_ ABSL_GUARDED_BY(mu_);
};

class CompilationsTest : public ::testing::Test {
 protected:
  CompilationsTest() {
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(NewCpuDevice({.job = "localhost", .replica = 0, .task = 0, .type = "CPU", .id = 0},
                                   Env::Default().Random64(), ProcessThreadPool()));
    worker_ = std::make_unique<Worker>(std::move(devices), &System::Default().kernels(), nullptr, 1);
    slow_.Forward(worker_.get());
    const KernelRegistry& kernels = System::Default().kernels();
    CoordinatorOptions options;
    options.passes.has_kernel = [&kernels](const Node& n, const std::string& type) {
      return n.op() && (kernels.Has(*n.op(), n.attrs(), type) || n.op_name() == "_Arg" || n.op_name() == "_Retval");
    };
    master_ = std::make_unique<Coordinator>(graph_, std::vector<WorkerInterface*>{&slow_}, 1, std::move(options));
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    x_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y_ = b.Neg(x_);
    EXPECT_TRUE(b.status().ok()) << b.status();
  }
  // A step that nobody waits for.
  struct Ending {
    Status with;
    absl::Notification is_there;
  };
  void RunAsync(Ending* ending) {
    master_->RunAsync({}, {{x_}, {y_}, {}}, {Tensor::Scalar(1.0f)}, [ending](const StatusOr<std::vector<Tensor>>& r) {
      ending->with = r.status();
      ending->is_there.Notify();
    });
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  SlowWorker slow_{"/job:localhost/replica:0/task:0"};
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Coordinator> master_;
  Output x_, y_;
};

// The thread that has compiled for two goes on with the first of them, while the session ends with both: it must not be
// who has the partitions last, since nothing waits for it.
TEST_F(CompilationsTest, WhatWasCompiledIsGoneWhenTheSessionIs) {
  Ending first, second;
  RunAsync(&first);
  RunAsync(&second);
  std::thread compiles([&] { slow_.AnswerRegistration(); });
  slow_.has_step.WaitForNotification();
  EXPECT_EQ(slow_.deregistered, 0);
  master_.reset();
  EXPECT_EQ(slow_.deregistered, 1) << "later the workers may be gone";
  for (Ending* e : {&first, &second}) {
    e->is_there.WaitForNotification();
    EXPECT_TRUE(absl::IsCancelled(e->with)) << e->with;
  }
  slow_.may_return.Notify();
  compiles.join();
}

// The compilation that a step waited for was given up by who began it: nobody would end one that the step begins after
// the session was closed.
TEST_F(CompilationsTest, NothingIsCompiledForAStepOfASessionThatWasClosed) {
  slow_.is_silent = true;
  const auto threads_are_free = std::make_shared<absl::Notification>();  // threads may still wake when the test is over
  for (int i = 0; i < ProcessThreadPool().parallelism(); ++i) {
    ProcessThreadPool().Schedule([threads_are_free] { threads_are_free->WaitForNotification(); });
  }
  std::thread begins([&] {
    std::vector<Tensor> out;
    const Status s = master_->Run({.timeout = absl::Milliseconds(300)}, std::vector<Output>{x_},
                                  std::vector<Tensor>{Tensor::Scalar(1.0f)}, std::vector<Output>{y_}, {}, &out);
    EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
  });
  while (slow_.asked_for_sessions == 0) std::this_thread::yield();
  Ending ending;
  RunAsync(&ending);
  begins.join();  // the step is to begin anew, on a thread of the pool
  Status closed = Internal("not yet");
  std::thread closes([&] { closed = master_->Close(absl::Seconds(20)); });
  while (!absl::IsCancelled(master_->Connect())) std::this_thread::yield();
  threads_are_free->Notify();
  closes.join();
  EXPECT_TRUE(closed.ok()) << closed;
  ending.is_there.WaitForNotification();  // a step that has left the session answers behind that
  EXPECT_TRUE(absl::IsCancelled(ending.with)) << ending.with;
  EXPECT_EQ(slow_.asked_for_sessions, 2) << "by the first compilation and by Connect";
}

}  // namespace
}  // namespace millrace
