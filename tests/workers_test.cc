// SPDX-License-Identifier: Apache-2.0
// Steps of masters over two workers: what crosses between them, what happens when it is slow or the other side fails,
// what sessions share, and what is left of them.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/env.h"
#include "device/cpu/cpu_device.h"
#include "graph/control_flow.h"
#include "kernels/cpu/kernel_list.h"
#include "service/coordinator.h"
#include "service/local_directory.h"
#include "service/worker.h"
#include "simulation/forwarding_worker.h"
#include "system/system.h"

namespace millrace {
namespace {

constexpr char kFar[] = "/task:1";

// Counts what other workers ask this one for, and can keep the answers back.
class WatchedWorker final : public ForwardingWorker {
 public:
  using ForwardingWorker::ForwardingWorker;
  void RecvTensor(const CallOptions& call, RecvTensorRequest request, Reply<RecvTensorResponse> reply) override {
    ++asked_;
    ForwardingWorker::RecvTensor(
        call, std::move(request), [this, reply = std::move(reply)](StatusOr<RecvTensorResponse> response) mutable {
          {
            absl::MutexLock lock(&mu_);
            if (holding_) {
              held_.push_back([response = std::move(response), reply = std::move(reply)]() mutable {
                std::move(reply)(std::move(response));
              });
              return;
            }
          }
          std::move(reply)(std::move(response));
        });
  }
  void RegisterPartitions(const CallOptions& call, RegisterPartitionsRequest request,
                          Reply<RegisterPartitionsResponse> reply) override {
    if (!holds_registrations_.load())
      return ForwardingWorker::RegisterPartitions(call, std::move(request), std::move(reply));
    ForwardingWorker::RegisterPartitions(
        call, std::move(request),
        [this, reply = std::move(reply)](StatusOr<RegisterPartitionsResponse> response) mutable {
          absl::MutexLock lock(&mu_);
          held_.push_back([response = std::move(response), reply = std::move(reply)]() mutable {
            std::move(reply)(std::move(response));
          });
        });
  }
  void DeregisterPartitions(const CallOptions& call, DeregisterPartitionsRequest request,
                            Reply<DeregisterPartitionsResponse> reply) override {
    deregistered_ += static_cast<int>(request.handles.size());
    ForwardingWorker::DeregisterPartitions(call, std::move(request), std::move(reply));
  }
  void HoldRegistrations(bool hold) { holds_registrations_.store(hold); }
  int deregistered() const { return deregistered_.load(); }
  // A step of one partition goes by messages here.
  std::shared_ptr<InlinePartition> FindInline(const SessionRef&, int64_t) override { return nullptr; }
  int asked() const { return asked_.load(); }
  void Hold() {
    absl::MutexLock lock(&mu_);
    holding_ = true;
  }
  // Answers what was kept back, and keeps back what comes later if it `goes_on`. Returns how much that was.
  size_t Release(bool goes_on = false) {
    std::vector<absl::AnyInvocable<void()>> held;
    {
      absl::MutexLock lock(&mu_);
      holding_ = goes_on;
      held.swap(held_);
    }
    for (auto& answer : held) answer();
    return held.size();
  }

 private:
  std::atomic<int> asked_{0}, deregistered_{0};
  std::atomic<bool> holds_registrations_{false};
  absl::Mutex mu_;
  bool holding_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<absl::AnyInvocable<void()>> held_ ABSL_GUARDED_BY(mu_);
};

std::string TaskName(int task) { return absl::StrCat("/job:localhost/replica:0/task:", task); }

class WorkersTest : public ::testing::Test {
 protected:
  WorkersTest() {
    for (int task = 0; task < 2; ++task) {
      watched_.push_back(std::make_unique<WatchedWorker>(TaskName(task)));
      directory_.Add(watched_.back().get());
      StartWorker(task);
    }
    coordinator_ = NewCoordinator(1);
  }
  ~WorkersTest() override { coordinator_.reset(); }

  // Again: as a process that has been restarted.
  void StartWorker(int task) {
    const auto t = static_cast<size_t>(task);
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(NewCpuDevice({.job = "localhost", .replica = 0, .task = task, .type = "CPU", .id = 0},
                                   Env::Default().Random64(), ProcessThreadPool()));
    workers_.resize(std::max(workers_.size(), t + 1));
    watched_[t]->Forward(nullptr);
    workers_[t] = std::make_unique<Worker>(
        std::move(devices), &System::Default().kernels(), &directory_, Env::Default().Random64());
    watched_[t]->Forward(workers_[t].get());
  }
  std::unique_ptr<Coordinator> NewCoordinator(uint64_t session) {
    const KernelRegistry& kernels = System::Default().kernels();
    CoordinatorOptions options;
    options.passes.has_kernel = [&kernels](const Node& n, const std::string& type) {
      return n.op() && (kernels.Has(*n.op(), n.attrs(), type) || n.op_name() == "_Arg" || n.op_name() == "_Retval");
    };
    std::vector<WorkerInterface*> all;
    for (const auto& w : watched_) all.push_back(w.get());
    return std::make_unique<Coordinator>(graph_, std::move(all), session, std::move(options));
  }
  int Asked() const { return watched_[0]->asked() + watched_[1]->asked(); }
  void Hold() {
    for (const auto& w : watched_) w->Hold();
  }
  size_t Release() { return watched_[0]->Release() + watched_[1]->Release(); }

  template <typename Fn>
  void Build(Fn fn) {
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    fn(b);
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  StatusOr<Tensor> Run(Output feed, Tensor value, Output fetch, absl::Duration timeout = absl::Seconds(20)) {
    std::vector<Tensor> out;
    MR_RETURN_IF_ERROR(coordinator_->Run({.timeout = timeout}, std::vector<Output>{feed}, std::vector<Tensor>{value},
                                         std::vector<Output>{fetch}, {}, &out));
    return out[0];
  }

  static Status RunTarget(Coordinator& coordinator, Node* target) {
    std::vector<Tensor> none;
    return coordinator.Run({.timeout = absl::Seconds(20)}, {}, {}, {}, {&target, 1}, &none);
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  LocalDirectory directory_;
  std::vector<std::unique_ptr<WatchedWorker>> watched_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Coordinator> coordinator_;
};

// x doubles `count` times, on the far worker, while the count is kept here.
struct FarLoop {
  Output count, result;
  void Build(const GraphBuilder& b) {
    count = b.Op("Placeholder", {}, {{"dtype", DType::kInt32}, {"shape", PartialShape(Shape())}});
    const auto below = [&](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      return std::vector<Output>{in.Op("Less", {v[0], count})};
    };
    const auto body = [](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      const GraphBuilder far = in.WithDevice(kFar);
      return std::vector<Output>{in.Add(v[0], in.Scalar<int32_t>(1)), far.Mul(v[1], far.Scalar(2.0f))};
    };
    StatusOr<std::vector<Output>> out =
        WhileLoop(b, std::vector<Output>{b.Scalar<int32_t>(0), b.Scalar(1.0f)}, below, body);
    ASSERT_TRUE(out.ok()) << out.status();
    result = (*out)[1];
  }
};

// White paper 4.4: each iteration costs one predicate beside the values that have to cross.
TEST_F(WorkersTest, AnIterationSendsOnePredicateAndItsValues) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  std::vector<int> asked;
  for (const int count : {0, 5, 10, 30}) {
    const int before = Asked();
    const StatusOr<Tensor> out = Run(loop.count, Tensor::Scalar<int32_t>(count), loop.result);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*out->data<float>(), std::ldexp(1.0f, count));
    asked.push_back(Asked() - before);
  }
  // The value there, the value back, the predicate; the constant in the body waits for what the predicate says.
  EXPECT_EQ(asked[2] - asked[1], 5 * 3);
  EXPECT_EQ(asked[3] - asked[2], 20 * 3);
}

TEST_F(WorkersTest, AFailureOnOneWorkerEndsTheStepOnTheOther) {
  Output size, sum;
  Build([&](const GraphBuilder& b) {
    size = b.Op("Placeholder", {}, {{"dtype", DType::kInt32}});
    const GraphBuilder far = b.WithDevice(kFar);
    const Output table = far.Op("Range", {far.Scalar<int32_t>(0), size, far.Scalar<int32_t>(1)});
    sum = b.Add(far.WithName("look_up").Op("Gather", {table, far.Scalar<int32_t>(4)}), b.Scalar<int32_t>(1));
  });
  const Status s = Run(size, Tensor::Scalar<int32_t>(3), sum).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_NE(s.message().find("look_up"), absl::string_view::npos) << s;
  const StatusOr<Tensor> again = Run(size, Tensor::Scalar<int32_t>(5), sum);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again->data<int32_t>(), 5);
}

// A step does not wait for a transport that does not answer; what it says afterwards is dropped.
TEST_F(WorkersTest, ADeadlineEndsTheWaitForASlowTransport) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  // Compiled before: the deadline covers that too.
  ASSERT_TRUE(Run(loop.count, Tensor::Scalar<int32_t>(1), loop.result).ok());
  Hold();
  const Status s = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result, absl::Milliseconds(30)).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kDeadlineExceeded) << s;
  EXPECT_GT(Release(), 0u);
  const StatusOr<Tensor> again = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again->data<float>(), 8.0f);
}

TEST_F(WorkersTest, ClosingEndsAStepThatWaitsForAnotherWorker) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  Hold();
  Status s;
  std::thread runner([&] { s = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result).status(); });
  while (Asked() == 0) std::this_thread::yield();
  EXPECT_TRUE(coordinator_->Close(absl::Seconds(10)).ok());
  runner.join();
  EXPECT_EQ(s.code(), absl::StatusCode::kCancelled) << s;
  Release();
}

TEST_F(WorkersTest, PartialRunsCrossWorkers) {
  Output x, y, far_sum, sum;
  Build([&](const GraphBuilder& b) {
    x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    y = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const GraphBuilder far = b.WithDevice(kFar);
    far_sum = far.Add(x, far.Scalar(1.0f));
    sum = b.Add(far_sum, y);
  });
  StatusOr<std::string> handle = coordinator_->PartialRunSetup({{x, y}, {far_sum, sum}, {}});
  ASSERT_TRUE(handle.ok()) << handle.status();
  std::vector<Tensor> out;
  Status s = coordinator_->PartialRun(
      *handle, std::vector<Output>{x}, std::vector<Tensor>{Tensor::Scalar(2.0f)}, std::vector<Output>{far_sum}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(*out[0].data<float>(), 3.0f);
  s = coordinator_->PartialRun(
      *handle, std::vector<Output>{y}, std::vector<Tensor>{Tensor::Scalar(4.0f)}, std::vector<Output>{sum}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(*out[0].data<float>(), 7.0f);
}

// v on the far worker, 5 at first; `value` is v times what is fed.
struct FarVariable {
  Output factor, value;
  Node* init = nullptr;
  Node* add_one = nullptr;
  void Build(const GraphBuilder& b) {
    factor = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const GraphBuilder far = b.WithDevice(kFar);
    const Output v =
        far.WithName("v").Op("VariableV2", {}, {{"shape", PartialShape(Shape())}, {"dtype", DType::kFloat}});
    init = far.OpNode("Assign", {v, b.Scalar(5.0f)});
    add_one = far.OpNode("AssignAdd", {v, b.Scalar(1.0f)});
    value = b.Mul(far.Identity(v), factor);
  }
};

TEST_F(WorkersTest, VariablesStayWithTheirWorker) {
  FarVariable v;
  Build([&](const GraphBuilder& b) { v.Build(b); });
  ASSERT_TRUE(RunTarget(*coordinator_, v.init).ok());
  const StatusOr<Tensor> out = Run(v.factor, Tensor::Scalar(3.0f), v.value);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out->data<float>(), 15.0f);
}

// White paper 4.7: containers are the worker's, not the session's.
TEST_F(WorkersTest, SessionsOfAWorkerShareItsVariablesUntilAReset) {
  FarVariable v;
  Build([&](const GraphBuilder& b) { v.Build(b); });
  ASSERT_TRUE(RunTarget(*coordinator_, v.init).ok());
  std::unique_ptr<Coordinator> second = NewCoordinator(2);
  ASSERT_TRUE(RunTarget(*second, v.add_one).ok());
  const auto value = [&](Coordinator& c) -> StatusOr<float> {
    std::vector<Tensor> out;
    MR_RETURN_IF_ERROR(c.Run({}, {&v.factor, 1}, std::vector<Tensor>{Tensor::Scalar(2.0f)}, {&v.value, 1}, {}, &out));
    return *out[0].data<float>();
  };
  EXPECT_EQ(*value(*coordinator_), 12.0f);
  coordinator_.reset();
  EXPECT_EQ(*value(*second), 12.0f) << "the state has gone with the session that made it";

  bool is_reset = false;
  workers_[1]->Reset({}, {}, [&](const StatusOr<ResetResponse>& r) { is_reset = r.ok(); });
  EXPECT_TRUE(is_reset);
  const Status closed = value(*second).status();
  EXPECT_TRUE(absl::IsAborted(closed)) << "its state is gone, and it is told so: " << closed;
  second.reset();
  coordinator_ = NewCoordinator(3);
  const Status no_value = value(*coordinator_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(no_value)) << no_value;
  bool is_gone = false;
  workers_[1]->GetStatus(
      {}, {}, [&](const StatusOr<GetStatusResponse>& r) { is_gone = r.ok() && r->num_sessions == 1; });
  EXPECT_TRUE(is_gone) << "sessions that their masters have deleted are still there";
}

// Steps of two masters have the same numbers, at the same time, and other values.
TEST_F(WorkersTest, MastersWithTheSameCountersDoNotMeet) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  const std::unique_ptr<Coordinator> second = NewCoordinator(2);
  std::vector<std::thread> threads;
  for (Coordinator* c : {coordinator_.get(), second.get()}) {
    threads.emplace_back([&loop, c, other = c == second.get()] {
      for (int i = 0; i < 30; ++i) {
        std::vector<Tensor> out;
        const int count = other ? 7 : i % 5;
        const Status s = c->Run({.timeout = absl::Seconds(20)}, {&loop.count, 1},
                                std::vector<Tensor>{Tensor::Scalar<int32_t>(count)}, {&loop.result, 1}, {}, &out);
        ASSERT_TRUE(s.ok()) << s;
        ASSERT_EQ(*out[0].data<float>(), std::ldexp(1.0f, count));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

// The state of a restarted worker is gone, which the client is told once; then the session goes on.
TEST_F(WorkersTest, ARestartedWorkerRefusesWhatWasForTheOneBefore) {
  FarVariable v;
  Build([&](const GraphBuilder& b) { v.Build(b); });
  ASSERT_TRUE(RunTarget(*coordinator_, v.init).ok());
  ASSERT_TRUE(Run(v.factor, Tensor::Scalar(3.0f), v.value).ok());
  StartWorker(1);
  const Status refused = Run(v.factor, Tensor::Scalar(3.0f), v.value).status();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_NE(refused.message().find("was restarted"), absl::string_view::npos) << refused;
  EXPECT_NE(refused.message().find(TaskName(1)), absl::string_view::npos) << refused;
  const Status no_value = Run(v.factor, Tensor::Scalar(3.0f), v.value).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(no_value)) << no_value;
  ASSERT_TRUE(RunTarget(*coordinator_, v.init).ok());
  const StatusOr<Tensor> out = Run(v.factor, Tensor::Scalar(3.0f), v.value);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out->data<float>(), 15.0f);
}

TEST_F(WorkersTest, StepsThatNobodyWaitsForEndToo) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  constexpr int kSteps = 20;
  std::vector<absl::Notification> over(kSteps);
  std::vector<StatusOr<std::vector<Tensor>>> results(kSteps, std::vector<Tensor>());
  for (int i = 0; i < kSteps; ++i) {
    coordinator_->RunAsync(
        {}, {{loop.count}, {loop.result}, {}}, {Tensor::Scalar<int32_t>(i)},
        [&, i](StatusOr<std::vector<Tensor>> result) {
          results[static_cast<size_t>(i)] = std::move(result);
          over[static_cast<size_t>(i)].Notify();
        });
  }
  for (int i = 0; i < kSteps; ++i) {
    over[static_cast<size_t>(i)].WaitForNotification();
    const auto& result = results[static_cast<size_t>(i)];
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(*(*result)[0].data<float>(), std::ldexp(1.0f, i));
  }
  // What is under way when the session is closed ends at once.
  Hold();
  absl::Notification stopped;
  Status why;
  coordinator_->RunAsync(
      {}, {{loop.count}, {loop.result}, {}}, {Tensor::Scalar<int32_t>(3)},
      [&](const StatusOr<std::vector<Tensor>>& result) {
        why = result.status();
        stopped.Notify();
      });
  EXPECT_TRUE(coordinator_->Close(absl::Seconds(10)).ok());
  stopped.WaitForNotification();
  EXPECT_TRUE(absl::IsCancelled(why)) << why;
  Release();
}

// `done` is the last of a step: what it is called from needs the coordinator no more.
TEST_F(WorkersTest, TheEndOfAStepMayBeTheEndOfItsCoordinator) {
  FarLoop loop;
  Output bad;
  Build([&](const GraphBuilder& b) {
    loop.Build(b);
    bad = b.WithDevice("/task:7").Identity(loop.count);
  });
  for (const Output fetch : {loop.result, bad}) {
    for (int round = 0; round < 20; ++round) {
      absl::Notification over;
      Status result;
      std::unique_ptr<Coordinator> mine = NewCoordinator(static_cast<uint64_t>(100 + round));
      mine->RunAsync(
          {}, {{loop.count}, {fetch}, {}}, {Tensor::Scalar<int32_t>(3)}, [&](const StatusOr<std::vector<Tensor>>& r) {
            result = r.status();
            mine.reset();
            over.Notify();
          });
      over.WaitForNotification();
      EXPECT_EQ(result.ok(), fetch == loop.result) << result;
    }
  }
}

// Others that wait for the same plan are stopped with the coordinator then.
TEST_F(WorkersTest, OneOfManyStepsEndsTheCoordinator) {
  Output x, bad;
  Build([&](const GraphBuilder& b) {
    x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    bad = b.WithDevice("/task:7").Identity(x);
  });
  constexpr int kSteps = 8;
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ended{0};
    std::unique_ptr<Coordinator> mine = NewCoordinator(static_cast<uint64_t>(200 + round));
    {
      const GraphLock hold(&graph_->mu);  // nothing is compiled meanwhile
      std::vector<std::thread> threads;
      std::atomic<int> begun{0};
      for (int i = 0; i < kSteps; ++i) {
        threads.emplace_back([&] {
          ++begun;
          mine->RunAsync({}, {{x}, {bad}, {}}, {Tensor::Scalar(1.0f)}, [&](const StatusOr<std::vector<Tensor>>& r) {
            EXPECT_FALSE(r.ok());
            if (++ended == kSteps) mine.reset();
          });
        });
      }
      while (begun < kSteps) std::this_thread::yield();
      graph_->mu.Unlock();
      for (std::thread& t : threads) t.join();
      graph_->mu.Lock();
    }
    EXPECT_EQ(ended, kSteps);
    EXPECT_EQ(mine, nullptr);
  }
}

// A step that is stopped while its plan comes is begun by nobody, and ended by one.
TEST_F(WorkersTest, StepsAndTheEndOfTheirSessionMeetAnywhere) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  for (int round = 0; round < 100; ++round) {
    constexpr int kSteps = 6;
    std::atomic<int> ended{0};
    const std::unique_ptr<Coordinator> mine = NewCoordinator(static_cast<uint64_t>(300 + round));
    std::thread steps([&] {
      for (int i = 0; i < kSteps; ++i) {
        mine->RunAsync({}, {{loop.count}, {loop.result}, {}}, {Tensor::Scalar<int32_t>(i)},
                       [&](const StatusOr<std::vector<Tensor>>& r) {
                         EXPECT_TRUE(r.ok() || absl::IsCancelled(r.status())) << r.status();
                         ++ended;
                       });
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(round * 20));
    EXPECT_TRUE(mine->Close(absl::Seconds(20)).ok());
    steps.join();
    while (ended < kSteps) std::this_thread::yield();
  }
}

// A worker that has registered partitions says so too late: nobody waits for it, and nothing stays registered.
TEST_F(WorkersTest, WhatIsRegisteredTooLateIsDeregistered) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  watched_[1]->HoldRegistrations(true);
  const Status late = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result, absl::Seconds(1)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  Status stopped;
  absl::Notification over;
  std::unique_ptr<Coordinator> other = NewCoordinator(2);
  other->RunAsync(
      {}, {{loop.count}, {loop.result}, {}}, {Tensor::Scalar<int32_t>(3)}, [&](const StatusOr<std::vector<Tensor>>& r) {
        stopped = r.status();
        over.Notify();
      });
  other.reset();  // on the thread that began to compile, which the answer would find gone
  EXPECT_TRUE(over.HasBeenNotified());
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  watched_[1]->HoldRegistrations(false);
  EXPECT_EQ(watched_[0]->deregistered() + watched_[1]->deregistered(), 0);
  EXPECT_EQ(Release(), 2u);
  EXPECT_EQ(watched_[0]->deregistered(), 2);
  EXPECT_EQ(watched_[1]->deregistered(), 2);
  const StatusOr<Tensor> again = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again->data<float>(), 8.0f);
}

// One deadline for a call: what compilation took is not given again.
TEST_F(WorkersTest, ADeadlineCountsFromTheCall) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  watched_[1]->HoldRegistrations(true);
  Hold();
  std::thread answer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
    watched_[1]->HoldRegistrations(false);
    watched_[1]->Release(/*goes_on=*/true);
  });
  const absl::Time start = absl::Now();
  const Status s = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result, absl::Milliseconds(1000)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
  EXPECT_LT(absl::Now() - start, absl::Milliseconds(1700));
  answer.join();
  Release();
}

TEST_F(WorkersTest, ARestartIsNoticedByWhateverMeetsIt) {
  FarVariable v;
  Build([&](const GraphBuilder& b) { v.Build(b); });
  ASSERT_TRUE(RunTarget(*coordinator_, v.init).ok());
  StartWorker(1);
  Status refused = coordinator_->GetRandomPositions().status();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_TRUE(coordinator_->GetRandomPositions().ok());
  StartWorker(1);
  refused = coordinator_->SetRandomPositions({});
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_TRUE(coordinator_->SetRandomPositions({}).ok());
  // Of partial runs.
  const std::vector<Output> feeds = {v.factor}, fetches = {v.value};
  const auto partial = [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const std::string handle, coordinator_->PartialRunSetup({feeds, fetches, {}}));
    std::vector<Tensor> out;
    return coordinator_->PartialRun(handle, feeds, std::vector<Tensor>{Tensor::Scalar(2.0f)}, fetches, &out);
  };
  ASSERT_TRUE(RunTarget(*coordinator_, v.init).ok());
  EXPECT_TRUE(partial().ok());
  StartWorker(1);
  refused = partial();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  const Status no_value = partial();
  EXPECT_TRUE(absl::IsFailedPrecondition(no_value)) << no_value;
}

// It is no message, but ends with its session on the worker like one: what waits for the end of steps waits for it.
TEST_F(WorkersTest, AStepThatRunsInlineIsStoppedAndAwaited) {
  Output limit, sum;
  Build([&](const GraphBuilder& b) {
    limit = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const auto below = [&](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      return std::vector<Output>{in.Op("Less", {v[0], limit})};
    };
    const auto body = [](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      return std::vector<Output>{in.Mul(v[0], in.Scalar(1.0f))};
    };
    StatusOr<std::vector<Output>> out = WhileLoop(b, std::vector<Output>{b.Scalar(0.0f)}, below, body);
    ASSERT_TRUE(out.ok()) << out.status();
    sum = (*out)[0];
  });
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(
      NewCpuDevice({.job = "localhost", .replica = 0, .task = 0, .type = "CPU", .id = 0}, 1, ProcessThreadPool()));
  const auto worker = std::make_unique<Worker>(std::move(devices), &System::Default().kernels(), nullptr, 1);
  const KernelRegistry& kernels = System::Default().kernels();
  CoordinatorOptions options;
  options.passes.has_kernel = [&kernels](const Node& n, const std::string& type) {
    return n.op() && (kernels.Has(*n.op(), n.attrs(), type) || n.op_name() == "_Arg" || n.op_name() == "_Retval");
  };
  Coordinator master(graph_, {worker.get()}, 5, options);
  const std::vector<Output> feeds = {limit}, fetches = {sum};
  std::vector<Tensor> out;
  const std::vector<Tensor> none = {Tensor::Scalar(0.0f)}, endless = {Tensor::Scalar(1.0f)};
  ASSERT_TRUE(master.Run({}, feeds, none, fetches, {}, &out).ok());
  Status s;
  std::atomic<bool> is_over{false};
  std::thread runner([&] {
    std::vector<Tensor> never;
    s = master.Run({}, feeds, endless, fetches, {}, &never);
    is_over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(is_over);
  absl::Notification is_reset;
  worker->Reset({}, {.containers = {}, .closes_all = true}, [&](const StatusOr<ResetResponse>& r) {
    EXPECT_TRUE(r.ok());
    is_reset.Notify();
  });
  is_reset.WaitForNotification();
  runner.join();
  EXPECT_TRUE(absl::IsCancelled(s)) << s;
  EXPECT_NE(s.message().find("were reset"), absl::string_view::npos) << s;
  const Status refused = master.Run({}, feeds, none, fetches, {}, &out);
  EXPECT_TRUE(absl::IsCancelled(refused)) << refused;
}

TEST_F(WorkersTest, WhatIsAskedOfAStepThatIsOverIsRefused) {
  ASSERT_TRUE(coordinator_->Connect().ok());
  CreateWorkerSessionResponse here;
  workers_[0]->CreateSession({}, {1, false}, [&](StatusOr<CreateWorkerSessionResponse> r) { here = *std::move(r); });
  const SessionRef session{1, here.incarnation};
  Status s;
  const auto recv = [&](const SessionRef& from, int64_t step) {
    s = Internal("no answer");
    workers_[0]->RecvTensor(
        {}, {{from, step}, {7, 0, 0}}, [&](const StatusOr<RecvTensorResponse>& r) { s = r.status(); });
    return s.code();
  };
  EXPECT_EQ(recv({1, here.incarnation + 1}, 1), absl::StatusCode::kAborted) << s;
  EXPECT_EQ(recv({99, here.incarnation}, 1), absl::StatusCode::kAborted) << s;
  EXPECT_EQ(recv(session, 4), absl::StatusCode::kInternal) << "step 4 may begin later: " << s;
  workers_[0]->CleanUpSteps({}, {session, {5, {}}}, [](const StatusOr<CleanUpStepsResponse>&) {});
  EXPECT_EQ(s.code(), absl::StatusCode::kAborted) << s;
  EXPECT_EQ(recv(session, 4), absl::StatusCode::kAborted) << s;
  EXPECT_NE(s.message().find("edge 7"), absl::string_view::npos) << s;
}

// An abort overtakes the message that begins the step.
TEST_F(WorkersTest, AStepThatWasAbortedBeforeItCameDoesNotRun) {
  CreateWorkerSessionResponse here;
  workers_[0]->CreateSession({}, {1, false}, [&](StatusOr<CreateWorkerSessionResponse> r) { here = *std::move(r); });
  const StepRef step{{1, here.incarnation}, 3};
  workers_[0]->AbortStep({}, {step, DeadlineExceeded("too late")}, [](const StatusOr<AbortStepResponse>&) {});
  RunStepRequest request;
  request.step = step;
  Status s;
  workers_[0]->RunStep(
      {}, std::move(request), [&](const StatusOr<RunStepResponse>& r) { s = r.ok() ? r->status : r.status(); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
}

}  // namespace
}  // namespace millrace
