// SPDX-License-Identifier: Apache-2.0
// Steps over two workers and whatever transport lies between them: what crosses it, and what happens when it is slow or
// the other side fails.
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "base/env.h"
#include "device/cpu/cpu_device.h"
#include "graph/control_flow.h"
#include "kernels/cpu/kernel_list.h"
#include "service/coordinator.h"
#include "service/in_process_transport.h"
#include "service/local_worker.h"
#include "system/system.h"

namespace millrace {
namespace {

constexpr char kFar[] = "/task:1";

// Counts what is asked for, and can keep the answers back.
class WatchedTransport : public InProcessTransport {
 public:
  void RecvAsync(absl::string_view device, int64_t step_id, absl::string_view key,
                 Rendezvous::DoneCallback done) override {
    ++asked_;
    InProcessTransport::RecvAsync(
        device, step_id, key, [this, done = std::move(done)](const Status& s, Tensor value, bool is_dead) mutable {
          {
            absl::MutexLock lock(&mu_);
            if (holding_) {
              held_.push_back([s, value = std::move(value), is_dead, done = std::move(done)]() mutable {
                std::move(done)(s, std::move(value), is_dead);
              });
              return;
            }
          }
          std::move(done)(s, std::move(value), is_dead);
        });
  }
  int asked() const { return asked_.load(); }
  void Hold() {
    absl::MutexLock lock(&mu_);
    holding_ = true;
  }
  // Answers what was kept back. Returns how much that was.
  size_t Release() {
    std::vector<absl::AnyInvocable<void()>> held;
    {
      absl::MutexLock lock(&mu_);
      holding_ = false;
      held.swap(held_);
    }
    for (auto& answer : held) answer();
    return held.size();
  }

 private:
  std::atomic<int> asked_{0};
  absl::Mutex mu_;
  bool holding_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<absl::AnyInvocable<void()>> held_ ABSL_GUARDED_BY(mu_);
};

class WorkersTest : public ::testing::Test {
 protected:
  WorkersTest() {
    const KernelRegistry& kernels = System::Default().kernels();
    CoordinatorOptions options;
    std::vector<Worker*> all;
    for (int task = 0; task < 2; ++task) {
      std::vector<std::unique_ptr<Device>> devices;
      devices.push_back(NewCpuDevice({.job = "localhost", .replica = 0, .task = task, .type = "CPU", .id = 0},
                                     Env::Default().Random64(), ProcessThreadPool()));
      options.passes.devices.push_back(devices[0]->parsed_name());
      options.passes.incarnations.push_back(devices[0]->incarnation());
      workers_.push_back(std::make_unique<LocalWorker>(std::move(devices), &kernels, false, &transport_));
      transport_.Add(workers_.back().get());
      all.push_back(workers_.back().get());
    }
    options.passes.has_kernel = [&kernels](const Node& n, const std::string& type) {
      return n.op() && (kernels.Has(*n.op(), n.attrs(), type) || n.op_name() == "_Arg" || n.op_name() == "_Retval");
    };
    coordinator_ = std::make_unique<Coordinator>(graph_, std::move(all), std::move(options));
  }
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

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  WatchedTransport transport_;
  std::vector<std::unique_ptr<LocalWorker>> workers_;
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
    const int before = transport_.asked();
    const StatusOr<Tensor> out = Run(loop.count, Tensor::Scalar<int32_t>(count), loop.result);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*out->data<float>(), std::ldexp(1.0f, count));
    asked.push_back(transport_.asked() - before);
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
  transport_.Hold();
  const Status s = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result, absl::Milliseconds(30)).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kDeadlineExceeded) << s;
  EXPECT_GT(transport_.Release(), 0u);
  const StatusOr<Tensor> again = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again->data<float>(), 8.0f);
}

TEST_F(WorkersTest, ClosingEndsAStepThatWaitsForAnotherWorker) {
  FarLoop loop;
  Build([&](const GraphBuilder& b) { loop.Build(b); });
  transport_.Hold();
  Status s;
  std::thread runner([&] { s = Run(loop.count, Tensor::Scalar<int32_t>(3), loop.result).status(); });
  while (transport_.asked() == 0) std::this_thread::yield();
  EXPECT_TRUE(coordinator_->Close(absl::Seconds(10)).ok());
  runner.join();
  EXPECT_EQ(s.code(), absl::StatusCode::kCancelled) << s;
  transport_.Release();
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

TEST_F(WorkersTest, VariablesStayWithTheirWorker) {
  Output value, nothing;
  Node* init = nullptr;
  Build([&](const GraphBuilder& b) {
    nothing = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const GraphBuilder far = b.WithDevice(kFar);
    const Output v = far.Op("VariableV2", {}, {{"shape", PartialShape(Shape())}, {"dtype", DType::kFloat}});
    init = far.OpNode("Assign", {v, b.Scalar(5.0f)});
    value = b.Mul(far.Identity(v), nothing);
  });
  std::vector<Tensor> none;
  ASSERT_TRUE(coordinator_->Run({}, {}, {}, {}, std::vector<Node*>{init}, &none).ok());
  const StatusOr<Tensor> out = Run(nothing, Tensor::Scalar(3.0f), value);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out->data<float>(), 15.0f);
}

TEST_F(WorkersTest, ATransportSaysWhatItCannotReach) {
  const std::string near = workers_[0]->devices()[0].name;
  for (const auto& [device, code] :
       {std::pair<std::string, absl::StatusCode>(
            "/job:x/replica:0/task:7/device:CPU:0", absl::StatusCode::kUnavailable),
        std::pair<std::string, absl::StatusCode>(near, absl::StatusCode::kAborted)}) {
    Status s;
    transport_.RecvAsync(device, 1234, Rendezvous::Key(device, 1, near, "edge", 0, 0),
                         [&](const Status& answer, Tensor, bool) { s = answer; });
    EXPECT_EQ(s.code(), code) << s;
    EXPECT_NE(s.message().find("edge"), absl::string_view::npos) << s;
  }
}

}  // namespace
}  // namespace millrace
