// SPDX-License-Identifier: Apache-2.0
// What steps over several tasks cost in messages.
#include <gtest/gtest.h>

#include <map>

#include "device/cpu/cpu_device.h"
#include "service/ask_kernels.h"
#include "service/coordinator.h"
#include "service/local_directory.h"
#include "service/worker.h"
#include "simulation/forwarding_worker.h"
#include "system/system.h"

namespace millrace {
namespace {

using Counts = std::map<std::string, int>;  // by method

class CountingWorker final : public ForwardingWorker {
 public:
  using ForwardingWorker::ForwardingWorker;
#define MR_COUNT(Method, Request, Response)                                               \
  void Method(const CallOptions& call, Request request, Reply<Response> reply) override { \
    {                                                                                     \
      absl::MutexLock lock(&mu_);                                                         \
      ++counts_[#Method];                                                                 \
    }                                                                                     \
    ForwardingWorker::Method(call, std::move(request), std::move(reply));                 \
  }
  MR_WORKER_METHODS(MR_COUNT)
#undef MR_COUNT
  std::shared_ptr<InlinePartition> FindInline(const SessionRef&, int64_t) override { return nullptr; }
  Counts counts() const {
    absl::MutexLock lock(&mu_);
    return counts_;
  }

 private:
  mutable absl::Mutex mu_;
  Counts counts_ ABSL_GUARDED_BY(mu_);
};

// A value that goes from task to task, and comes back: the session and its partition are registered once, a step is a
// message, another when it is over, which nobody waits for, and one for each value, which is asked for unless its size
// is known and small.
class MessagesTest : public ::testing::TestWithParam<bool> {};

TEST_P(MessagesTest, AStepIsOneMessageToEachTask) {
  constexpr int kTasks = 5, kSteps = 10;
  const PartialShape shape = GetParam() ? PartialShape::Scalar() : PartialShape::Unknown();
  LocalDirectory directory;
  std::vector<std::unique_ptr<CountingWorker>> counting;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<WorkerInterface*> all;
  for (int task = 0; task < kTasks; ++task) {
    counting.push_back(std::make_unique<CountingWorker>(absl::StrCat("/job:localhost/replica:0/task:", task)));
    all.push_back(counting.back().get());
    directory.Add(counting.back().get());
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(NewCpuDevice({.job = "localhost", .replica = 0, .task = task, .type = "CPU", .id = 0},
                                   Env::Default().Random64(), ProcessThreadPool()));
    workers.push_back(std::make_unique<Worker>(
        std::move(devices), &System::Default().kernels(), &directory, Env::Default().Random64()));
    counting.back()->Forward(workers.back().get());
  }
  const RefPtr<SharedGraph> graph = MakeRef<SharedGraph>(&System::Default().ops());
  Output x, y;
  {
    const GraphLock lock(&graph->mu);
    const GraphBuilder b(&graph->graph);
    x = b.WithDevice("/task:0").Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", shape}});
    y = x;
    for (int task = 0; task <= kTasks; ++task) y = b.WithDevice(absl::StrCat("/task:", task % kTasks)).Neg(y);
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  CoordinatorOptions options;
  AskKernels(System::Default().kernels(), workers[0]->host(), &options.passes);
  auto master = std::make_unique<Coordinator>(graph, std::move(all), 1, std::move(options));
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> out;
    const Status s = master->Run(
        {.timeout = absl::Seconds(20)}, {&x, 1}, std::vector<Tensor>{Tensor::Scalar(3.0f)}, {&y, 1}, {}, &out);
    ASSERT_TRUE(s.ok()) << s;
    EXPECT_EQ(*out[0].data<float>(), 3.0f);
  }
  for (const auto& w : counting) {
    EXPECT_EQ(w->counts(),
              (Counts{{"CreateSession", 1},
                      {"RegisterPartitions", 1},
                      {"RunStep", kSteps},
                      {"CleanUpSteps", kSteps},
                      {GetParam() ? "SendTensor" : "RecvTensor", kSteps}}))
        << w->task();
  }
  master.reset();
}
INSTANTIATE_TEST_SUITE_P(SizeIsKnown, MessagesTest, ::testing::Bool());

}  // namespace
}  // namespace millrace
