// SPDX-License-Identifier: Apache-2.0
// What a server bears: so many calls of one task, kernels on all cores; and what it says of itself.
#include <algorithm>
#include <atomic>

#include "absl/strings/match.h"
#include "base/limited_env.h"
#include "base/logging.h"
#include "cluster/held_port.h"
#include "cluster/master_codec.h"
#include "cluster/remote_master.h"
#include "cluster/shm/shm_transport.h"
#include "cluster/transport_loader.h"
#include "cluster/worker_codec.h"
#include "servers_fixture.h"

namespace millrace {
namespace {

// Listens for servers that do the work of a step on the thread that takes their messages.
class DeafWhileItWorks final : public RpcTransport {
 public:
  DeafWhileItWorks(std::unique_ptr<RpcTransport> transport, absl::Duration work)
      : transport_(std::move(transport)), work_(work) {}
  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override {
    absl::MutexLock lock(&mu_);
    return transport_->Listen(options, handlers_.emplace_back(std::make_unique<Handler>(handler, work_)).get());
  }
  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override {
    return transport_->Connect(address);
  }

 private:
  class Handler final : public RpcHandler {
   public:
    Handler(RpcHandler* handler, absl::Duration work) : handler_(handler), work_(work) {}
    void Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) override {
      if (method == "Worker.RunStep") absl::SleepFor(work_);
      handler_->Handle(method, context, std::move(request), std::move(reply));
    }

   private:
    RpcHandler* const handler_;
    const absl::Duration work_;
  };

  const std::unique_ptr<RpcTransport> transport_;
  const absl::Duration work_;
  absl::Mutex mu_;
  std::vector<std::unique_ptr<Handler>> handlers_ ABSL_GUARDED_BY(mu_);
};

// All goes by messages.
class ServerLimitsTest : public ServersTest {
 protected:
  StatusOr<std::unique_ptr<RpcTransport>> NewTransport() override {
    if (!is_real_) return ServersTest::NewTransport();
    StatusOr<std::unique_ptr<RpcTransport>> real =
        NewHostTransport(Env::Default(), {}, Unimplemented("there is shared memory alone"));
    if (!real.ok() || deaf_for_ == absl::ZeroDuration()) return real;
    return std::make_unique<DeafWhileItWorks>(*std::move(real), deaf_for_);
  }
  ServerLimitsTest() {
    SetLogListener([this](LogLevel, const std::string& line) {
      absl::MutexLock lock(&mu_);
      lines_.push_back(line);
    });
  }
  ~ServerLimitsTest() override { SetLogListener(nullptr); }
  int64_t Logged(absl::string_view text) {
    absl::MutexLock lock(&mu_);
    return std::count_if(lines_.begin(), lines_.end(), [&](const auto& l) { return absl::StrContains(l, text); });
  }

  Status RunProducts(absl::Duration time);

  bool is_real_ = false;     // with a transport that has threads of its own
  absl::Duration deaf_for_;  // with each step, see DeafWhileItWorks
  absl::Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

// A call of a worker, which may be answered later.
struct Waiting {
  CancellationManager cancellation;
  std::atomic<bool> is_answered{false};
  StatusOr<absl::Cord> answer;
};

// A pull waits for what its step does, and the step for messages that come by the same way: at the limit it is refused,
// and what ends the step comes through.
TEST_P(ServerLimitsTest, PullsOfOneTaskAreLimitedAndWhatEndsThemIsNot) {
  constexpr int kMost = 3;
  change_parts_ = [](ServerParts& parts) { parts.max_calls = kMost; };
  const auto ps = Started("ps");
  std::vector<std::unique_ptr<Waiting>> sent;
  const auto call = [&](const char* method, auto request) -> Waiting& {
    Waiting& w = *sent.emplace_back(std::make_unique<Waiting>());
    RpcChannel* const channel = channels_.Get("localhost:11").value();
    RpcOptions options;
    options.cancellation = &w.cancellation;
    channel->Call(method, options, EncodeMessage(request).value(), [&w](StatusOr<absl::Cord> answer) {
      w.answer = std::move(answer);
      w.is_answered = true;
    });
    return w;
  };
  const auto await = [](const Waiting& w) {
    for (int i = 0; i < 3000 && !w.is_answered; ++i) absl::SleepFor(absl::Milliseconds(10));
    return w.is_answered.load();
  };
  CreateWorkerSessionRequest create;
  create.session = 5;
  Waiting& created = call("Worker.CreateSession", create);
  ASSERT_TRUE(await(created) && created.answer.ok());
  CreateWorkerSessionResponse made;
  ASSERT_TRUE(DecodeMessage(*created.answer, nullptr, &made).ok());
  const StepRef step{{5, made.incarnation, 0}, 1};
  std::vector<Waiting*> pulls;
  for (int64_t edge = 0; edge < kMost; ++edge) {
    pulls.push_back(&call("Worker.RecvTensor", RecvTensorRequest{step, {edge, 0, 0}}));
  }
  Waiting* one_more = nullptr;
  for (int i = 0; i < 100 && one_more == nullptr; ++i) {  // the network may bring it first
    Waiting& w = call("Worker.RecvTensor", RecvTensorRequest{step, {kMost, 0, 0}});
    absl::SleepFor(absl::Milliseconds(20));
    if (w.is_answered) one_more = &w;
  }
  ASSERT_NE(one_more, nullptr);
  const Status s = one_more->answer.status();
  EXPECT_TRUE(absl::IsResourceExhausted(s) && absl::StrContains(s.message(), "MILLRACE_MAX_CALLS")) << s;
  Waiting& abort = call("Worker.AbortStep", AbortStepRequest{step, Cancelled("enough")});
  ASSERT_TRUE(await(abort));
  EXPECT_TRUE(abort.answer.ok()) << abort.answer.status();
  for (Waiting* w : pulls) EXPECT_TRUE(await(*w)) << "the step has ended";
  Waiting& after = call("Worker.RecvTensor", RecvTensorRequest{{step.session, 2}, {0, 0, 0}});
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(after.is_answered) << "there is room again: " << after.answer.status();
  for (const auto& w : sent) w->cancellation.Cancel(Cancelled("the test is over"));
  for (const auto& w : sent) EXPECT_TRUE(await(*w));
}

TEST_P(ServerLimitsTest, MessagesWithoutGraphsAndTensorsAreShort) {
  change_parts_ = [](ServerParts& parts) { parts.max_control_bytes = 1000; };
  const auto ps = Started("ps"), worker = Started("worker");
  RemoteMaster master(channels_.Get("localhost:11").value(), &Env::Default());
  const StatusOr<CreateSessionResponse> made = master.CreateSession({}, {});
  ASSERT_TRUE(made.ok()) << made.status();
  PingRequest ping{std::string(970, 'x')};
  const auto size = static_cast<int64_t>(EncodeMessage(ping)->size());
  ASSERT_LE(size, 1000);
  ping.session.append(static_cast<size_t>(1000 - size), 'x');
  ASSERT_EQ(EncodeMessage(ping)->size(), 1000u);
  EXPECT_TRUE(absl::IsAborted(master.Ping({}, ping).status())) << "at the limit it is read";
  ping.session.push_back('x');
  const Status s = master.Ping({}, ping).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s) && absl::StrContains(s.message(), "MILLRACE_MAX_CONTROL_BYTES")) << s;
  RunSessionStepRequest step;
  step.session = made->session;
  step.signature.targets = {std::string(5000, 'x')};
  EXPECT_TRUE(absl::IsNotFound(master.RunStep({}, step).status())) << "steps may be long";
}

TEST_P(ServerLimitsTest, AServerThatAnybodyMayUseSaysSoAgainAndAgain) {
  liveness_.period = absl::Milliseconds(5);
  const auto quiet = Started("worker");
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(Logged("INSECURE"), 0);
  change_parts_ = [](ServerParts& parts) {
    EXPECT_EQ(parts.reminder_period, absl::Minutes(1));
    parts.is_insecure_remote = true;
    parts.reminder_period = absl::Milliseconds(50);
  };
  const auto ps = Started("ps");
  for (int i = 0; i < 1000 && Logged("INSECURE") < 3; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_GE(Logged("INSECURE: whoever reaches localhost:11"), 3);
  EXPECT_LE(Logged("INSECURE"), 1000) << "not with each beat";
}

// Eight workers, each with a pool as processes have, run products that want all cores, and more of them than there are.
// The first failure ends it.
Status ServerLimitsTest::RunProducts(absl::Duration time) {
  constexpr int kWorkers = 8;
  wire::ClusterDef cluster;
  wire::JobDef& job = cluster.job.emplace_back();
  job.name = "worker";
  {
    std::vector<HeldPort> free;
    for (int i = 0; i < kWorkers; ++i) {
      free.push_back(HeldPort::Take({"localhost", 0}).value());
      job.tasks[i] = free.back().address().ToString();
    }
  }
  std::vector<std::unique_ptr<ThreadPool>> pools;
  change_parts_ = [&](ServerParts& parts) {
    ThreadPool& pool = *pools.emplace_back(NewThreadPool(Env::Default(), 2));
    parts.make_devices = [&pool](DeviceName name, const wire::ConfigProto&) {
      name.type = "CPU";
      name.id = 0;
      std::vector<std::unique_ptr<Device>> devices;
      devices.push_back(NewCpuDevice(name, Env::Default().Random64(), pool));
      return StatusOr<std::vector<std::unique_ptr<Device>>>(std::move(devices));
    };
  };
  std::vector<std::unique_ptr<Server>> servers;
  for (int i = 0; i < kWorkers; ++i) {
    wire::ServerDef def;
    def.cluster.Ensure() = cluster;
    def.job_name = "worker";
    def.task_index = i;
    def.protocol = "grpc";
    servers.push_back(NewServer(def).value());
    MR_RETURN_IF_ERROR(servers.back()->Start());
  }
  Client client = NewClient(servers.front()->target());
  const Output sum = client.Add([&](const GraphBuilder& b) {
    std::vector<Output> all;
    for (int i = 0; i < kWorkers; ++i) {
      const GraphBuilder on = b.WithDevice(absl::StrCat("/job:worker/task:", i));
      const Output side = on.Const(Tensor::Vector<int32_t>({1500, 1500}));
      const Output y = on.Op("RandomUniform", {side}, {{"dtype", DType::kFloat}});  // which no compiler folds
      Output x = y;
      for (int k = 0; k < 8; ++k) x = on.Op("MatMul", {x, y});
      all.push_back(on.Op("Max", {x, on.Vector<int32_t>({0, 1})}));
    }
    return b.Op("AddN", {all});
  });
  Status s;
  for (const absl::Time start = absl::Now(); s.ok() && absl::Now() - start < time;) s = client.Run({sum}).status();
  client.session.reset();
  return s;
}

TEST_P(ServerLimitsTest, HeartbeatsHoldWhileKernelsRun) {
  is_real_ = true;
  liveness_ = {.period = absl::Milliseconds(200), .suspect = absl::Seconds(1), .dead = absl::Seconds(4)};
  const Status s = RunProducts(absl::Seconds(6));
  EXPECT_TRUE(s.ok()) << s;
  EXPECT_EQ(Logged("counts as dead"), 0);
  EXPECT_EQ(Logged("nothing was heard of its master"), 0);
}

// What the test above would see if it were otherwise.
TEST_P(ServerLimitsTest, HeartbeatsAreMissedWhereStepsHoldTheThreadsThatHearThem) {
  is_real_ = true;
  liveness_ = {.period = absl::Milliseconds(100), .suspect = absl::Milliseconds(500), .dead = absl::Seconds(1)};
  deaf_for_ = absl::Seconds(3);
  const Status s = RunProducts(absl::Seconds(30));
  EXPECT_TRUE(absl::IsUnavailable(s) && absl::StrContains(s.message(), "it is dead")) << s;
  EXPECT_GT(Logged("counts as dead"), 0);
}

INSTANTIATE_TEST_SUITE_P(, ServerLimitsTest, ::testing::Values(true), [](const auto&) { return "ByMessages"; });

}  // namespace
}  // namespace millrace
