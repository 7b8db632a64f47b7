// SPDX-License-Identifier: Apache-2.0
#include "service/master_session.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "base/stop_scope.h"
#include "service/ask_kernels.h"
#include "service/session_config.h"
#include "simulation/worker_for_tests.h"

namespace millrace {
namespace {

absl::Notification endless_begins;

// Until it is stopped.
class EndlessKernel final : public Kernel {
 public:
  Status Compute(KernelContext&) override {
    endless_begins.Notify();
    for (;;) StopIfAsked();
  }
};

class MasterSessionTest : public ::testing::Test {
 protected:
  MasterSessionTest() {
    ops_.ops.Add("_Retval(input:T) -> () | T:type; index:int>=0 | S")
        .Traits({OpTrait::kResult})
        .Shape([](ShapeContext&) { return absl::OkStatus(); });
  }
  void Open(const wire::ConfigProto& config = {}) {
    {
      const GraphLock lock(&graph_->mu);
      auto node = graph_->graph.AddNode({.name = "n", .op = "Count"});
      ASSERT_TRUE(node.ok()) << node.status();
      count_ = (*node)->output(0);
    }
    StatusOr<CoordinatorOptions> options = OptionsFrom(config);
    ASSERT_TRUE(options.ok()) << options.status();
    options->env = &EnvOf(ProcessThreadPool());
    AskKernels(ops_.kernels, worker_.host(), &options->passes);
    StatusOr<TraceFiles> files = TraceFiles::FromEnvironment();
    ASSERT_TRUE(files.ok());
    session_ = std::make_unique<MasterSession>(
        graph_, config, std::vector<WorkerInterface*>{&worker_}, 17, *std::move(options), *std::move(files));
  }
  Status Run(const wire::RunOptions* options = nullptr, wire::RunMetadata* metadata = nullptr,
             MasterSession::Call call = {}) {
    return session_->Run(call, options, {}, {}, {&count_, 1}, {}, &out_, metadata);
  }

  OpsForTests ops_;
  Worker worker_{OneDeviceForTests(), &ops_.kernels, nullptr, 7};
  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&ops_.ops);
  std::unique_ptr<MasterSession> session_;
  Output count_;
  std::vector<Tensor> out_;
};

TEST_F(MasterSessionTest, StepsShareTheSessionsKernels) {
  Open();
  for (int64_t i = 1; i <= 3; ++i) {
    const Status s = Run();
    ASSERT_TRUE(s.ok()) << s;
    EXPECT_EQ(*out_[0].data<int64_t>(), i);
  }
}

TEST_F(MasterSessionTest, OptionsThatItCannotObeyAreRefusedByName) {
  Open();
  wire::RunOptions options;
  options.inter_op_thread_pool = 1;
  Status s = Run(&options);
  EXPECT_TRUE(absl::IsInvalidArgument(s) && absl::StrContains(s.message(), "inter_op_thread_pool: 1")) << s;
  options.inter_op_thread_pool = -2;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(&options)));
  options.inter_op_thread_pool = -1;
  EXPECT_TRUE(Run(&options).ok());
  wire::DebugTensorWatch& watch = options.debug_options.Ensure().debug_tensor_watch_opts.emplace_back();
  EXPECT_TRUE(Run(&options).ok()) << "it tells nobody";
  watch.debug_urls.push_back("file:///tmp");
  s = Run(&options);
  EXPECT_TRUE(absl::IsUnimplemented(s) && absl::StrContains(s.message(), "debug_tensor_watch_opts")) << s;
}

TEST_F(MasterSessionTest, ATraceIsGivenToWhoAsksForIt) {
  Open();
  wire::RunMetadata metadata;
  wire::RunOptions options;
  ASSERT_TRUE(Run(&options, &metadata).ok());
  EXPECT_EQ(metadata.step_stats.get(), nullptr);
  options.trace_level = wire::RunOptions::kFullTrace;
  ASSERT_TRUE(Run(&options, &metadata).ok());
  ASSERT_TRUE(wire::Decode(wire::Encode(metadata), &metadata).ok());
  ASSERT_NE(metadata.step_stats.get(), nullptr);
  bool found = false;
  for (const wire::DeviceStepStats& d : metadata.step_stats->dev_stats) {
    for (const wire::NodeExecStats& n : d.node_stats) found |= n.node_name == "n";
  }
  EXPECT_TRUE(found);
  options.output_partition_graphs = true;
  ASSERT_TRUE(Run(&options, &metadata).ok());
  EXPECT_EQ(metadata.partition_graphs.size(), 1u);
}

TEST_F(MasterSessionTest, ACallThatIsCancelledRunsNothing) {
  Open();
  CancellationManager cancellation;
  cancellation.Cancel(Cancelled("no longer"));
  EXPECT_EQ(Run(nullptr, nullptr, {.cancellation = &cancellation}), Cancelled("no longer"));
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(*out_[0].data<int64_t>(), 1) << "the first that ran";
}

// A caller that gives up while constants are folded for it, which only kernels can tell of, does not wait for them.
TEST_F(MasterSessionTest, ACallThatIsCancelledStopsTheCompilationThatItBegan) {
  ops_.ops.Add("Const() -> (output:dtype) | value:tensor; dtype:type")
      .Traits({OpTrait::kConstant})
      .Shape([](ShapeContext&) { return absl::OkStatus(); });
  ops_.ops.Add("Endless(x:f32) -> (y:f32)").Shape([](ShapeContext&) { return absl::OkStatus(); });
  ops_.kernels.Add<EndlessKernel>({.op = "Endless"});
  Open();
  Output y;
  {
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    y = b.Op("Endless", {b.Scalar(1.0f)});
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  CancellationManager cancellation;
  std::thread cancels([&] {
    endless_begins.WaitForNotification();
    cancellation.Cancel(Cancelled("no longer"));
  });
  EXPECT_EQ(session_->Run({.cancellation = &cancellation}, nullptr, {}, {}, {&y, 1}, {}, &out_, nullptr),
            Cancelled("no longer"));
  cancels.join();
}

}  // namespace
}  // namespace millrace
