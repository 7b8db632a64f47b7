// SPDX-License-Identifier: Apache-2.0
#include "servers_fixture.h"

#include <algorithm>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "base/logging.h"
#include "cluster/remote_worker.h"

namespace millrace {
namespace {

TEST_P(ServersTest, AStepRunsOnTheTasksThatItNames) {
  const auto ps = Started("ps"), worker = Started("worker");
  Client client = NewClient(worker->target());
  Output sum, fed;
  client.Add([&](const GraphBuilder& b) {
    fed = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    sum = b.WithDevice(kPs).Add(b.WithDevice(kWorker).Mul(fed, fed), b.Scalar(1.0f));
    return 0;
  });
  wire::RunOptions options;
  options.trace_level = wire::RunOptions::kFullTrace;
  wire::RunMetadata metadata;
  EXPECT_EQ(ValueOf(client.Run({sum}, {}, {fed}, {Tensor::Scalar(3.0f)}, &options, &metadata)), 10.0f);
  ASSERT_TRUE(wire::Decode(wire::Encode(metadata), &metadata).ok());
  ASSERT_TRUE(metadata.step_stats);
  std::vector<std::string> devices;
  for (const auto& d : metadata.step_stats->dev_stats) {
    if (d.device != "/host:CPU thread switches") devices.push_back(d.device);
  }
  EXPECT_EQ(
      devices,
      (std::vector<std::string>{"/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"}));
  EXPECT_EQ(network_.num_bytes() > 0, GetParam());
  const auto listed = client.session->ListDevices();
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ(listed->front().name, "/job:worker/replica:0/task:0/device:CPU:0") << "the own task comes first";
}

TEST_P(ServersTest, SessionsShareVariablesAndOutliveTheirClients) {
  const auto ps = Started("ps"), worker = Started("worker");
  const auto build = [](const GraphBuilder& b) {
    const Output v = Variable(b, "v", kPs);
    Node* const init = b.OpNode("Assign", {v, b.Scalar(5.0f)});
    return std::pair(b.Op("AssignAdd", {v, b.Scalar(2.0f)}), init);
  };
  {
    Client first = NewClient(worker->target());
    const auto [add, init] = first.Add(build);
    ASSERT_TRUE(first.Run({}, {init}).ok());
    EXPECT_EQ(ValueOf(first.Run({add})), 7.0f);
  }
  Client second = NewClient(ps->target());
  const auto [add, init] = second.Add(build);
  EXPECT_EQ(ValueOf(second.Run({add})), 9.0f);
  EXPECT_TRUE(ResetRemote(worker->target(), {}, {"other"}, &channels_).ok());
  EXPECT_EQ(ValueOf(second.Run({add})), 11.0f) << "another container was reset, by another master";
  EXPECT_TRUE(ResetRemote(worker->target(), {}, {}, &channels_).ok());
  EXPECT_TRUE(absl::IsAborted(second.Run({add}).status())) << "it is told once that its state is gone";
  EXPECT_TRUE(absl::IsFailedPrecondition(second.Run({add}).status())) << "and goes on without it";
  ASSERT_TRUE(second.Run({}, {init}).ok());
  EXPECT_EQ(ValueOf(second.Run({add})), 7.0f);
  EXPECT_TRUE(ResetRemote(ps->target(), {}, {}, &channels_).ok());
  EXPECT_TRUE(absl::IsAborted(second.Run({add}).status())) << "its own master's sessions are closed";
  EXPECT_TRUE(absl::IsAborted(second.Run({add}).status()));
  Client fourth = NewClient(ps->target());
  EXPECT_TRUE(absl::IsFailedPrecondition(fourth.Run({fourth.Add(build).first}).status()));
}

TEST_P(ServersTest, VariablesWithoutADeviceAreTheSameForTheSessionsOfAllTasks) {
  const auto ps = Started("ps"), worker = Started("worker");
  for (const char* device : {"", "/device:CPU:0"}) {
    const auto build = [&](const GraphBuilder& b) {
      const Output v = Variable(b, absl::StrCat("v", device[0] == 0 ? "" : "_cpu").c_str(), device);
      Node* const init = b.OpNode("Assign", {v, b.Scalar(5.0f)});
      return std::pair(b.Op("AssignAdd", {v, b.Scalar(2.0f)}), init);
    };
    Client at_worker = NewClient(worker->target()), at_ps = NewClient(ps->target());
    const auto [add, init] = at_worker.Add(build);
    ASSERT_TRUE(at_worker.Run({}, {init}).ok());
    EXPECT_EQ(ValueOf(at_ps.Run({at_ps.Add(build).first})), 7.0f);
    EXPECT_EQ(ValueOf(at_worker.Run({add})), 9.0f);
  }
}

TEST_P(ServersTest, TheGraphIsExtendedWhenItHasGrown) {
  const auto ps = Started("ps"), worker = Started("worker");
  Client client = NewClient(worker->target());
  Output y = client.Add([](const GraphBuilder& b) { return b.Identity(b.Scalar(1.0f)); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ValueOf(client.Run({y})), static_cast<float>(1 << i));
    y = client.Add([&](const GraphBuilder& b) { return b.WithDevice(i == 1 ? kPs : kWorker).Add(y, y); });
  }
}

TEST_P(ServersTest, AStepEndsAtItsDeadlineAndWithItsSession) {
  const auto ps = Started("ps"), worker = Started("worker");
  Client client = NewClient(worker->target());
  const Output taken = client.Add([](const GraphBuilder& b) {
    const std::vector<DType> types = {DType::kFloat};
    const Output queue = b.WithDevice(kPs).Op("FIFOQueueV2", {}, {{"component_types", types}});
    return b.WithDevice(kPs).Op("QueueDequeueV2", {queue}, {{"component_types", types}});
  });
  wire::RunOptions options;
  options.timeout_in_ms = 50;
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Run({taken}, {}, {}, {}, &options).status()));
  absl::Notification begun;
  Status s;
  std::thread waiting([&] {
    begun.Notify();
    s = client.Run({taken}).status();
  });
  begun.WaitForNotification();
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE(client.session->Close().ok());
  waiting.join();
  EXPECT_TRUE(absl::IsCancelled(s)) << s;
  EXPECT_TRUE(absl::IsCancelled(client.Run({taken}).status()));
}

TEST_P(ServersTest, ASessionHasTheConfigurationOfItsServerWhereItHasNone) {
  wire::ConfigProto config;
  config.operation_timeout_in_ms = 100;
  config.device_filters = {"/job:ps"};
  const auto ps = Started("ps", TwoTasks(), config);  // the worker never comes
  const auto blocked = [](const GraphBuilder& b) {
    const std::vector<DType> types = {DType::kFloat};
    return b.Op(
        "QueueDequeueV2", {b.Op("FIFOQueueV2", {}, {{"component_types", types}})}, {{"component_types", types}});
  };
  Client client = NewClient(ps->target());
  const Output taken = client.Add(blocked);
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Run({taken}).status()));
  EXPECT_EQ(client.session->ListDevices()->size(), 1u);
  // A step's own deadline counts, even a later one.
  wire::RunOptions options;
  options.timeout_in_ms = 600;
  const absl::Time start = absl::Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Run({taken}, {}, {}, {}, &options).status()));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(550));
  // So does a session's own list, which is not joined with the server's.
  wire::ConfigProto own;
  own.device_filters = {"/job:worker"};
  Client other = NewClient(ps->target(), own);
  const Status s = other.Run({other.Add(blocked)}).status();
  EXPECT_TRUE(absl::StrContains(s.message(), "/job:worker/replica:0/task:0")) << s;
}

TEST_P(ServersTest, PartialRunsGoOverTasks) {
  const auto ps = Started("ps"), worker = Started("worker");
  Client client = NewClient(worker->target());
  Output a, b2, first, second;
  client.Add([&](const GraphBuilder& b) {
    a = b.WithName("a").Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    b2 = b.WithName("b").Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    first = b.WithDevice(kPs).Mul(a, b.Scalar(2.0f));
    second = b.WithDevice(kWorker).Add(first, b2);
    return 0;
  });
  const Output feeds[] = {a, b2}, fetches[] = {first, second};
  const auto handle = client.session->PartialRunSetup(feeds, fetches, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  std::vector<Tensor> got;
  const Tensor three = Tensor::Scalar(3.0f), one = Tensor::Scalar(1.0f);
  ASSERT_TRUE(client.session->PartialRun(*handle, {&a, 1}, {&three, 1}, {&first, 1}, &got).ok());
  EXPECT_EQ(*got[0].ScalarValue<float>(), 6.0f);
  ASSERT_TRUE(client.session->PartialRun(*handle, {&b2, 1}, {&one, 1}, {&second, 1}, &got).ok());
  EXPECT_EQ(*got[0].ScalarValue<float>(), 7.0f);
}

TEST_P(ServersTest, ErrorsNameTheirNodeAndTask) {
  const auto ps = Started("ps"), worker = Started("worker");
  Client client = NewClient(worker->target());
  const Output v = client.Add([](const GraphBuilder& b) {
    return b.At("user.py:7").WithDevice(kPs).Identity(Variable(b, "missing", kPs));
  });
  const Status s = client.Run({v}).status();
  EXPECT_TRUE(absl::StrContains(s.message(), "user.py:7")) << s;
  EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
  EXPECT_TRUE(absl::StrContains(s.message(), "missing")) << s;
  Client nowhere = NewClient(worker->target());
  const Output x =
      nowhere.Add([](const GraphBuilder& b) { return b.WithDevice("/job:ps/task:7").Identity(b.Scalar(1.0f)); });
  EXPECT_TRUE(absl::StrContains(nowhere.Run({x}).status().message(), "task:7"));
}

TEST_P(ServersTest, ANewSessionWaitsForTasksNoLongerThanItMay) {
  const auto worker = Started("worker");
  wire::ConfigProto config;
  config.operation_timeout_in_ms = 100;
  Client client = NewClient(worker->target(), config);
  const Output x = client.Add([](const GraphBuilder& b) { return b.Scalar(4.0f); });
  const Status s = client.Run({x}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
  EXPECT_TRUE(absl::StrContains(s.message(), "/job:ps/replica:0/task:0")) << s;
  // A task that its filters leave out is not waited for.
  config.device_filters = {"/job:worker"};
  Client alone = NewClient(worker->target(), config);
  EXPECT_EQ(ValueOf(alone.Run({alone.Add([](const GraphBuilder& b) { return b.Scalar(4.0f); })})), 4.0f);
  // One that comes later is found.
  config = {};
  Client patient = NewClient(worker->target(), config);
  const Output y = patient.Add([](const GraphBuilder& b) { return b.WithDevice(kPs).Identity(b.Scalar(6.0f)); });
  std::unique_ptr<Server> ps;
  std::thread late([&] {
    absl::SleepFor(absl::Milliseconds(100));
    ps = Started("ps");
  });
  EXPECT_EQ(ValueOf(patient.Run({y})), 6.0f);
  late.join();
}

TEST_P(ServersTest, StoppingATaskEndsTheStepsThatNeedIt) {
  auto ps = Started("ps");
  const auto worker = Started("worker");
  Client client = NewClient(worker->target());
  const Output taken = client.Add([](const GraphBuilder& b) {
    const std::vector<DType> types = {DType::kFloat};
    const Output queue = b.WithDevice(kPs).Op("FIFOQueueV2", {}, {{"component_types", types}});
    return b.WithDevice(kWorker).Identity(
        b.WithDevice(kPs).Op("QueueDequeueV2", {queue}, {{"component_types", types}}));
  });
  absl::Notification begun;
  Status s;
  std::thread waiting([&] {
    begun.Notify();
    s = client.Run({taken}).status();
  });
  begun.WaitForNotification();
  absl::SleepFor(absl::Milliseconds(100));
  std::thread joined([&] { EXPECT_TRUE(ps->Join().ok()); });
  EXPECT_TRUE(ps->Stop().ok());
  waiting.join();
  joined.join();
  EXPECT_FALSE(s.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ps->Start()));
  ps.reset();
  ps = Started("ps");  // it comes again, and the session goes on after the first error
  const Output x = client.Add([](const GraphBuilder& b) { return b.WithDevice(kPs).Identity(b.Scalar(2.0f)); });
  float got = ValueOf(client.Run({x}));
  if (got != 2.0f) got = ValueOf(client.Run({x}));
  EXPECT_EQ(got, 2.0f);
}

// What the worker does not get is a consequence, and known before its cause is.
TEST_P(ServersTest, AFailureIsReportedAsItsCause) {
  const auto ps = Started("ps"), worker = Started("worker");
  Client client = NewClient(worker->target());
  const Output sum = client.Add([](const GraphBuilder& b) {
    const Output index = b.WithDevice(kPs).WithName("index").Op("Placeholder", {}, {{"dtype", DType::kInt32}});
    const Output table = b.WithDevice(kPs).Const(Tensor::Vector<float>({1, 2, 3}));
    const Output row = b.WithDevice(kPs).WithName("the_cause").At("user.py:9").Op("Gather", {table, index});
    return b.WithDevice(kWorker).Add(row, b.Scalar(1.0f));
  });
  const Output index = {client.graph->graph.Find("index"), 0};
  for (int i = 0; i < 50; ++i) {
    const Status s = client.Run({sum}, {}, {index}, {Tensor::Scalar<int32_t>(7)}).status();
    ASSERT_TRUE(absl::IsInvalidArgument(s) || absl::IsOutOfRange(s)) << s;
    EXPECT_TRUE(absl::StrContains(s.message(), "[[node the_cause (Gather) defined at user.py:9")) << s;
  }
}

TEST_P(ServersTest, TasksTellWhatTheirStepsWaitFor) {
  liveness_.period = absl::Milliseconds(20);
  liveness_.stalled = absl::Milliseconds(100);
  absl::Mutex mu;
  std::string logged;
  SetLogListener([&](LogLevel, const std::string& line) {
    absl::MutexLock lock(&mu);
    absl::StrAppend(&logged, line, "\n");
  });
  {
    const auto ps = Started("ps"), worker = Started("worker");
    EXPECT_TRUE(absl::StrContains(*ps->DescribeSteps(), "no step is under way"));
    Client client = NewClient(worker->target());
    const Output taken = client.Add([](const GraphBuilder& b) {
      const std::vector<DType> types = {DType::kFloat};
      const Output queue = b.WithDevice(kPs).Op("FIFOQueueV2", {}, {{"component_types", types}});
      const Output value =
          b.WithDevice(kPs).WithName("take").Op("QueueDequeueV2", {queue}, {{"component_types", types}});
      return b.WithDevice(kWorker).WithName("last").Identity(value);
    });
    std::thread waiting([&] { EXPECT_TRUE(absl::IsCancelled(client.Run({taken}).status())); });
    const auto has = [&](const char* text) {
      absl::MutexLock lock(&mu);
      return absl::StrContains(logged, text);
    };
    for (int i = 0; i < 500 && !(has("take (QueueDequeueV2) is under way") && has("waits for edge")); ++i) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    EXPECT_TRUE(has("take (QueueDequeueV2) is under way") && has("waits for edge"));
    EXPECT_TRUE(has("from /job:ps/replica:0/task:0") && has("nothing has happened"));
    EXPECT_TRUE(absl::StrContains(*ps->DescribeSteps(), "take (QueueDequeueV2) is under way")) << *ps->DescribeSteps();
    EXPECT_TRUE(absl::StrContains(*worker->DescribeSteps(), "waits for /job:ps/replica:0/task:0"))
        << *worker->DescribeSteps();
    EXPECT_TRUE(client.session->Close().ok());
    waiting.join();
    EXPECT_TRUE(absl::StrContains(*ps->DescribeSteps(), "no step is under way")) << *ps->DescribeSteps();
  }
  SetLogListener(nullptr);
}

// The gradient of rows has the table's shape beside them, which is taken where the table is.
TEST_P(ServersTest, GradientsOfATableMoveRowsAlone) {
  if (!GetParam()) return;  // nothing can be counted
  const auto ps = Started("ps"), worker = Started("worker");
  constexpr int32_t kRows = 100'000, kColumns = 10;
  Client client = NewClient(worker->target());
  Node* init = nullptr;
  Output shape, sum;
  client.Add([&](const GraphBuilder& builder) {
    const GraphBuilder b = builder.WithDevice(kWorker), on_ps = builder.WithDevice(kPs);
    const Output table =
        on_ps.WithName("table").Op("VariableV2", {}, {{"shape", PartialShape::Unknown()}, {"dtype", DType::kFloat}});
    const Output ones = on_ps.Op("Fill", {on_ps.Vector<int32_t>({kRows, kColumns}), on_ps.Scalar(1.0f)});
    init = on_ps.OpNode("Assign", {table, ones}, {{"validate_shape", false}});
    const Output rows = on_ps.Op("Gather", {table, b.Vector<int32_t>({5, 7, 5})});
    const Output loss = b.Op("L2Loss", {b.Identity(rows)});
    const StatusOr<std::vector<Gradient>> gradients = AddGradients(b, {loss}, {table});
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    shape = b.Identity(gradients->front().sparse->dense_shape);
    sum = b.Sum(gradients->front().sparse->values, b.Vector<int32_t>({0, 1}));
    return 0;
  });
  ASSERT_TRUE(client.Run({}, {init}).ok());
  const int64_t before = network_.num_bytes();
  const auto got = client.Run({sum, shape});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*(*got)[0].data<float>(), 30.0f);
  EXPECT_EQ((*got)[1].num_elements(), 2);
  EXPECT_LT(network_.num_bytes() - before, 100'000) << "of a table of 4 MB";
}

// Keeps what it is asked.
class SilentHandler final : public RpcHandler {
 public:
  void Handle(absl::string_view method, const RpcContext&, absl::Cord, RpcReply reply) override {
    absl::MutexLock lock(&mu_);
    asked_.emplace_back(method);
    replies_.push_back(std::move(reply));
  }
  void AnswerAll() {
    std::vector<RpcReply> replies;
    {
      absl::MutexLock lock(&mu_);
      replies.swap(replies_);
    }
    for (RpcReply& reply : replies) std::move(reply)(Internal("too late"));
  }
  std::vector<std::string> asked() {
    absl::MutexLock lock(&mu_);
    return asked_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> asked_ ABSL_GUARDED_BY(mu_);
  std::vector<RpcReply> replies_ ABSL_GUARDED_BY(mu_);
};

TEST(RemoteWorkerTest, CallsToADeadWorkerEndAtOnce) {
  SimNetwork network(Env::Default(), 1);
  const auto there = network.NewTransport("there", Env::Default());
  SilentHandler handler;
  const auto server = there->Listen({"localhost:1"}, &handler);
  ASSERT_TRUE(server.ok()) << server.status();
  Channels channels(Env::Default(), [&] {
    return StatusOr<std::unique_ptr<RpcTransport>>(network.NewTransport("here", Env::Default()));
  });
  absl::Mutex mu;
  std::vector<Status> ended;
  bool is_heard = false;
  {
    RemoteWorker worker("/job:ps/replica:0/task:0", "localhost:1", &channels);
    const auto run = [&] {
      worker.RunStep({}, {}, [&](const StatusOr<RunStepResponse>& r) {
        absl::MutexLock lock(&mu);
        ended.push_back(r.status());
      });
    };
    const auto await_ended = [&](size_t n) {
      const auto are_there = [&] { return ended.size() >= n; };
      absl::MutexLock lock(&mu);
      return mu.AwaitWithTimeout(absl::Condition(&are_there), absl::Seconds(10));
    };
    run();
    run();
    worker.Heartbeat({}, {}, [&](const StatusOr<HeartbeatResponse>&) {
      absl::MutexLock lock(&mu);
      is_heard = true;
    });
    worker.SetDead(Unavailable("it is dead"));
    ASSERT_TRUE(await_ended(2));
    run();
    ASSERT_TRUE(await_ended(3));
    for (const Status& s : ended) {
      EXPECT_EQ(s, Unavailable("task /job:ps/replica:0/task:0 at localhost:1: it is dead"));
    }
    {
      absl::MutexLock lock(&mu);
      EXPECT_FALSE(is_heard) << "it tells when the worker is there again";
    }
    worker.Heartbeat({}, {}, [](const StatusOr<HeartbeatResponse>&) {});
    worker.SetDead(absl::OkStatus());
    run();
    for (int i = 0; i < 500 && handler.asked().size() < 5; ++i) absl::SleepFor(absl::Milliseconds(10));
    const std::vector<std::string> asked = handler.asked();
    EXPECT_EQ(std::count(asked.begin(), asked.end(), "Worker.Heartbeat"), 2);
    EXPECT_EQ(std::count(asked.begin(), asked.end(), "Worker.RunStep"), 3);
    handler.AnswerAll();
  }
  handler.AnswerAll();
}

TEST_P(ServersTest, BadDefinitionsAreRefused) {
  wire::ServerDef def;
  def.protocol = "grpc";
  def.job_name = "ps";
  EXPECT_TRUE(absl::IsInvalidArgument(NewServer(def).status())) << "no tasks";
  def.cluster.Ensure() = TwoTasks();
  def.task_index = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(NewServer(def).status())) << "no such task";
  def.task_index = 0;
  def.protocol = "carrier pigeon";
  EXPECT_TRUE(absl::IsNotFound(NewServer(def).status()));
  def.protocol = "grpc";
  for (const char* address : {"localhost", "localhost:x", "localhost:70000", ":11", "a b:11", ""}) {
    def.cluster->job[0].tasks[0] = address;
    EXPECT_TRUE(absl::IsInvalidArgument(NewServer(def).status())) << address;
  }
  def.cluster->job[0].tasks[0] = "localhost:11";
  def.cluster->job[0].name = "a b";
  EXPECT_TRUE(absl::IsInvalidArgument(NewServer(def).status()));
  const auto ps = Started("ps");
  def.cluster.Ensure() = TwoTasks();
  EXPECT_TRUE(absl::IsUnknown(NewServer(def).status())) << "the address is taken";
}

INSTANTIATE_TEST_SUITE_P(, ServersTest, ::testing::Bool(), [](const auto& param) {
  return param.param ? "ByMessages" : "ByCall";
});

}  // namespace
}  // namespace millrace
