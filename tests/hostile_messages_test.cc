// SPDX-License-Identifier: Apache-2.0
// Messages of peers that mean harm, or are confused: made-up steps, late and repeated messages, foreign handles, wrong
// roles, clusters that make no sense. Each is refused with the right code, nothing of it stays, and good clients go on.
// What harms transports (R03, R04) is in rpc/hostile_test.cc.
#include <atomic>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "cluster/access.h"
#include "cluster/master_codec.h"
#include "cluster/worker_codec.h"
#include "servers_fixture.h"
#include "service/step_table.h"
#include "service/worker_methods.h"

namespace millrace {
namespace {

struct Message {
  std::string method;
  absl::Cord frame;
};

// In front of a server: remembers what it is asked while it is to. Whoever comes by it is a task of the cluster.
class Gate final : public RpcHandler {
 public:
  explicit Gate(RpcHandler* server) : server_(server) {}
  void Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) override {
    {
      absl::MutexLock lock(&mu_);
      if (remembers_) seen_.push_back({std::string(method), request});
    }
    RpcContext named = context;
    named.peer_names = {absl::StrCat(kRoleScheme, "task")};
    server_->Handle(method, named, std::move(request), std::move(reply));
  }
  void Remember(bool does) {
    absl::MutexLock lock(&mu_);
    remembers_ = does;
  }
  std::vector<Message> seen() const {
    absl::MutexLock lock(&mu_);
    return seen_;
  }
  RpcHandler& server() { return *server_; }

 private:
  RpcHandler* const server_;
  mutable absl::Mutex mu_;
  bool remembers_ ABSL_GUARDED_BY(mu_) = true;
  std::vector<Message> seen_ ABSL_GUARDED_BY(mu_);
};

// A network whose servers stand behind gates.
class GatedTransport final : public RpcTransport {
 public:
  using Gates = std::map<std::string, std::unique_ptr<Gate>>;  // by address
  GatedTransport(std::unique_ptr<RpcTransport> network, Gates* gates) : network_(std::move(network)), gates_(gates) {}
  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override {
    std::unique_ptr<Gate>& gate = (*gates_)[options.address];
    gate = std::make_unique<Gate>(handler);
    return network_->Listen(options, gate.get());
  }
  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override {
    return network_->Connect(address);
  }

 private:
  const std::unique_ptr<RpcTransport> network_;
  Gates* const gates_;
};

// A call that somebody has made by hand. Lives until it is answered.
struct Sent {
  CancellationManager cancellation;
  std::atomic<bool> is_answered{false};
  StatusOr<absl::Cord> answer;
};

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096;
}

constexpr char kPsAt[] = "localhost:11", kWorkerAt[] = "localhost:12";

// All goes by messages.
class HostileMessages : public ServersTest {
 protected:
  StatusOr<std::unique_ptr<RpcTransport>> NewTransport() override {
    return std::make_unique<GatedTransport>(network_.NewTransport("here", Env::Default()), &gates_);
  }
  void StartBoth() {
    ps_ = Started("ps");
    worker_ = Started("worker");
  }
  // By somebody whose certificate has these names. The gate does not see it.
  std::unique_ptr<Sent> Send(const std::string& address, const std::string& method, absl::Cord frame,
                             std::vector<std::string> names = {}) {
    auto sent = std::make_unique<Sent>();
    RpcContext context;
    context.peer = "somebody";
    context.cancellation = &sent->cancellation;
    context.peer_names = std::move(names);
    gates_.at(address)->server().Handle(
        method, context, std::move(frame), [s = sent.get()](StatusOr<absl::Cord> answer) {
          s->answer = std::move(answer);
          s->is_answered = true;
        });
    return sent;
  }
  static bool IsAnswered(const Sent& sent, absl::Duration patience = absl::Seconds(30)) {
    const absl::Time end = absl::Now() + patience;
    while (!sent.is_answered && absl::Now() < end) absl::SleepFor(absl::Microseconds(100));
    return sent.is_answered;
  }
  StatusOr<absl::Cord> Ask(const std::string& address, const std::string& method, absl::Cord frame,
                           std::vector<std::string> names = {}) {
    const auto sent = Send(address, method, std::move(frame), std::move(names));
    if (!IsAnswered(*sent)) {
      ADD_FAILURE() << method << " was not answered";
      sent->cancellation.Cancel(Cancelled("the test has waited long enough"));
      IsAnswered(*sent);
    }
    return std::move(sent->answer);
  }
  template <typename Response, typename Request>
  StatusOr<Response> Ask(const std::string& address, const std::string& method, Request request) {
    MR_ASSIGN_OR_RETURN(absl::Cord frame, EncodeMessage(request));
    MR_ASSIGN_OR_RETURN(const absl::Cord answer, Ask(address, method, std::move(frame)));
    Response response;
    MR_RETURN_IF_ERROR(DecodeMessage(answer, nullptr, &response));
    return response;
  }
  // A session on the parameter server, as a master makes it.
  SessionRef NewSession(uint64_t number) {
    CreateWorkerSessionRequest request;
    request.session = number;
    const auto made = Ask<CreateWorkerSessionResponse>(kPsAt, "Worker.CreateSession", std::move(request));
    EXPECT_TRUE(made.ok()) << made.status();
    return {number, made.ok() ? made->incarnation : 0, 0};
  }

  // A client that counts on the parameter server, each time by a value from the worker.
  struct Counter {
    Client client;
    Output value;
    Node* init = nullptr;
    Node* add = nullptr;
    Status Add() { return client.Run({}, {add}).status(); }
    float Value() { return ValueOf(client.Run({value})); }
  };
  Counter NewCounter() {
    Counter c{NewClient(worker_->target())};
    c.client.Add([&](const GraphBuilder& b) {
      const Output v = Variable(b, "counted", kPs);
      c.init = b.WithDevice(kPs).OpNode("Assign", {v, b.Scalar(0.0f)});
      const GraphBuilder far = b.WithDevice(kWorker);
      const Output below_one =
          far.Op("RandomUniform", {far.Const(Tensor::Vector<int32_t>({}))}, {{"dtype", DType::kFloat}});
      c.add = b.WithDevice(kPs).OpNode("AssignAdd", {v, far.Op("Floor", {far.Add(below_one, far.Scalar(1.0f))})});
      c.value = b.WithDevice(kPs).Identity(v);
      return 0;
    });
    EXPECT_TRUE(c.client.Run({}, {c.init}).ok());
    return c;
  }
  std::vector<Message> Seen(const std::string& address) const { return gates_.at(address)->seen(); }
  // What a server has been told comes again. How often each method was obeyed.
  std::map<std::string, int> Obeyed(const std::string& address, const std::vector<Message>& messages) {
    std::map<std::string, int> obeyed;
    for (const Message& m : messages) {
      const auto sent = Send(address, m.method, m.frame);
      if (!IsAnswered(*sent, absl::Milliseconds(200))) sent->cancellation.Cancel(Cancelled("enough"));
      EXPECT_TRUE(IsAnswered(*sent)) << m.method;
      const Status s = sent->answer.status();
      if (s.ok()) ++obeyed[m.method];
      EXPECT_TRUE(s.ok() || absl::IsAborted(s) || absl::IsAlreadyExists(s) || absl::IsCancelled(s)) << m.method << s;
    }
    return obeyed;
  }

  GatedTransport::Gates gates_;
  std::unique_ptr<Server> ps_, worker_;
};

TEST_P(HostileMessages, R01_MadeUpStepIds) {
  constexpr int64_t kAsked = 1'000'000;
  StartBoth();
  Counter good = NewCounter();
  const SessionRef session = NewSession(5);
  std::mt19937_64 random(1);
  std::vector<std::unique_ptr<Sent>> parked;
  const int64_t before = ResidentBytes();
  int64_t refused = 0;
  for (int64_t i = 0; i < kAsked; ++i) {
    RecvTensorRequest request{{session, static_cast<int64_t>(random() >> 1)}, {4, 0, 0}};
    auto sent = Send(kPsAt, "Worker.RecvTensor", *EncodeMessage(request));
    if (!sent->is_answered) {
      parked.push_back(std::move(sent));
      continue;
    }
    ASSERT_TRUE(absl::IsResourceExhausted(sent->answer.status())) << sent->answer.status();
    ++refused;
  }
  EXPECT_EQ(parked.size(), StepTable::kMostUnbegun);
  EXPECT_EQ(refused, kAsked - static_cast<int64_t>(StepTable::kMostUnbegun));
  EXPECT_LT(ResidentBytes() - before, int64_t{256} << 20);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(good.Add().ok());
  EXPECT_EQ(good.Value(), 3.0f) << "others do not notice";
  for (uint64_t i = 0; i < 1000; ++i) {
    RecvTensorRequest request{{{6 + i, session.incarnation, 0}, 1}, {4, 0, 0}};
    const Status s = Ask<RecvTensorResponse>(kPsAt, "Worker.RecvTensor", request).status();
    ASSERT_TRUE(absl::IsAborted(s)) << "of no session: " << s;
  }
  ASSERT_TRUE(
      Ask<DeleteWorkerSessionResponse>(kPsAt, "Worker.DeleteSession", DeleteWorkerSessionRequest{session}).ok());
  for (const auto& sent : parked) {
    ASSERT_TRUE(IsAnswered(*sent));
    ASSERT_FALSE(sent->answer.ok());
  }
}

TEST_P(HostileMessages, R02_LateMessages) {
  StartBoth();
  Counter good = NewCounter();
  ASSERT_TRUE(good.Add().ok());
  std::map<std::string, std::vector<Message>> late;
  std::set<std::string> methods;
  for (const std::string address : {kPsAt, kWorkerAt}) {
    gates_.at(address)->Remember(false);
    for (const Message& m : Seen(address)) {
      if (m.method != "Worker.RunStep" && m.method != "Worker.SendTensor") continue;
      late[address].push_back(m);
      methods.insert(m.method);
    }
  }
  ASSERT_EQ(methods.size(), 2u);
  for (const char* of : {"a step that is over", "a session that is gone"}) {
    SCOPED_TRACE(of);
    for (const auto& [address, messages] : late) EXPECT_TRUE(Obeyed(address, messages).empty()) << address;
    if (good.client.session == nullptr) break;
    EXPECT_EQ(good.Value(), 1.0f) << "nothing was done twice";
    ASSERT_TRUE(good.client.session->Close().ok());
    good.client.session = nullptr;
  }
  Counter next = NewCounter();
  EXPECT_TRUE(next.Add().ok());
  EXPECT_EQ(next.Value(), 1.0f);
}

TEST_P(HostileMessages, R02_ForeignGraphHandles) {
  StartBoth();
  Counter good = NewCounter();
  ASSERT_TRUE(good.Add().ok());
  const SessionRef session = NewSession(5);
  int64_t step = 0;
  const auto run = [&](int64_t handle, std::vector<Tensor> args = {}) {
    RunStepRequest request;
    request.step = {session, ++step};
    request.parts.push_back({handle, std::move(args)});
    const auto ran = Ask<RunStepResponse>(kPsAt, "Worker.RunStep", std::move(request));
    return ran.ok() ? ran->status : ran.status();
  };
  for (const int64_t handle : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    EXPECT_TRUE(absl::IsNotFound(run(handle))) << "another session's: " << handle;
  }
  // With a graph of its own, and arguments that it does not take.
  for (const Message& m : Seen(kPsAt)) {
    if (m.method != "Worker.RegisterPartitions") continue;
    RegisterPartitionsRequest request;
    ASSERT_TRUE(DecodeMessage(m.frame, &System::Default().ops(), &request).ok());
    request.session = session;
    const auto made = Ask<RegisterPartitionsResponse>(kPsAt, m.method, std::move(request));
    ASSERT_TRUE(made.ok()) << made.status();
    for (const int64_t handle : made->handles) {
      EXPECT_FALSE(run(handle, std::vector<Tensor>(100, Tensor::Scalar(1.0f))).ok());
      EXPECT_TRUE(absl::IsNotFound(run(handle + 1000)));
    }
  }
  EXPECT_EQ(good.Value(), 1.0f);
  EXPECT_TRUE(good.Add().ok());
}

TEST_P(HostileMessages, R05_ClustersThatMakeNoSense) {
  struct Case {
    const char* what;
    std::vector<std::pair<std::string, std::map<int32_t, std::string>>> jobs;
    std::string job = "ps";
    int32_t task = 0;
    std::string told;
  };
  const std::map<int32_t, std::string> one = {{0, "localhost:11"}};
  const std::vector<Case> cases = {
      {"no job", {}, "ps", 0, "no tasks"},
      {"no task", {{"ps", {}}}, "ps", 0, "no tasks"},
      {"a job twice", {{"ps", one}, {"ps", {{1, "localhost:12"}}}}, "ps", 0, "job 'ps' is given twice"},
      {"an empty address", {{"ps", {{0, ""}}}}, "ps", 0, "task 0 of job 'ps'"},
      {"another's empty address", {{"ps", one}, {"worker", {{3, ""}}}}, "ps", 0, "task 3 of job 'worker'"},
      {"the own address twice", {{"ps", one}, {"worker", one}}, "ps", 0, "have the address localhost:11"},
      {"twice by other names", {{"ps", one}, {"worker", {{0, "127.0.0.1:11"}}}}, "ps", 0, "have the address"},
      {"others' address twice",
       {{"ps", one}, {"worker", {{0, "host:12"}, {1, "HOST:12"}}}},
       "ps",
       0,
       "/job:worker/replica:0/task:0 and /job:worker/replica:0/task:1 have the address"},
      {"a task below zero", {{"ps", {{-1, "localhost:11"}}}}, "ps", -1, "has a task -1"},
      {"to be a task below zero", {{"ps", one}}, "ps", -1, "task -1 of job 'ps' is not in the cluster"},
      {"to be a task that is not there", {{"ps", one}}, "ps", 7, "task 7 of job 'ps' is not in the cluster"},
      {"to be of an unknown job", {{"ps", one}}, "chief", 0, "task 0 of job 'chief' is not in the cluster"},
      {"a job without a name", {{"", one}}, "", 0, "is no name of a job"},
      {"a job with a path for a name", {{"ps/task:1", one}}, "ps/task:1", 0, "is no name of a job"},
  };
  const auto cluster_of = [](const Case& c) {
    wire::ClusterDef def;
    for (const auto& [name, tasks] : c.jobs) {
      wire::JobDef& job = def.job.emplace_back();
      job.name = name;
      for (const auto& [index, address] : tasks) job.tasks[index] = address;
    }
    return def;
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    wire::ServerDef def;
    def.protocol = "grpc";
    def.cluster.Ensure() = cluster_of(c);
    def.job_name = c.job;
    def.task_index = c.task;
    const Status s = NewServer(def).status();
    EXPECT_TRUE(absl::IsInvalidArgument(s) && absl::StrContains(s.message(), c.told)) << s;
  }
  // The same in a session's configuration: the server refuses it, and serves others.
  allows_any_cluster_ = true;
  StartBoth();
  for (const Case& c : cases) {
    if (c.jobs.empty()) continue;  // then the session has the server's
    SCOPED_TRACE(c.what);
    wire::ConfigProto config;
    config.cluster_def.Ensure() = cluster_of(c);
    Client client = NewClient(worker_->target(), config);
    const Status s = client.Run({client.Add([](const GraphBuilder& b) { return b.Scalar(1.0f); })}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  }
  // And in devices of nodes.
  for (const char* device : {"/job:chief/task:0", "/job:ps/task:7", "/job:ps/task:-1", "/job:/task:0"}) {
    SCOPED_TRACE(device);
    Client client = NewClient(worker_->target());
    const Output x = client.Add([&](const GraphBuilder& b) { return b.WithDevice(device).Identity(b.Scalar(1.0f)); });
    EXPECT_TRUE(absl::IsInvalidArgument(client.Run({x}).status())) << client.Run({x}).status();
  }
  Counter good = NewCounter();
  EXPECT_TRUE(good.Add().ok());
}

TEST_P(HostileMessages, R06_WrongRole) {
  change_parts_ = [](ServerParts& parts) { parts.roles_by_certificate = true; };
  StartBoth();
  const auto role = [](const char* name) { return std::vector<std::string>{absl::StrCat(kRoleScheme, name)}; };
  std::vector<std::string> of_workers, of_masters;
#define MR_ADD(Method, Request, Response) of_workers.push_back("Worker." #Method);
  MR_WORKER_METHODS(MR_ADD)
#undef MR_ADD
#define MR_ADD(Method, Request, Response) of_masters.push_back("Master." #Method);
  MR_MASTER_METHODS(MR_ADD)
#undef MR_ADD
  const auto is_refused = [&](const std::string& method, const std::vector<std::string>& names) {
    return absl::IsPermissionDenied(Ask(kPsAt, method, {}, names).status());
  };
  for (const std::string& method : of_workers) {
    EXPECT_TRUE(is_refused(method, role("client"))) << method << " is between tasks";
  }
  for (const auto* methods : {&of_workers, &of_masters}) {
    for (const std::string& method : *methods) {
      EXPECT_TRUE(is_refused(method, role("monitor"))) << method;
      EXPECT_TRUE(is_refused(method, {"host.test"})) << method << " by nobody in particular";
    }
  }
  EXPECT_FALSE(is_refused("Master.ListDevices", role("client")));
  EXPECT_FALSE(is_refused("Server.GetStatus", role("monitor")));
  EXPECT_FALSE(is_refused("Worker.GetStatus", role("task")));
  Counter good = NewCounter();
  EXPECT_TRUE(good.Add().ok());
}

TEST_P(HostileMessages, R06_Replayed) {
  StartBoth();
  Counter good = NewCounter();
  ASSERT_TRUE(good.Add().ok());
  const std::vector<Message> to_master = Seen(kWorkerAt), to_ps = Seen(kPsAt);
  for (const std::string address : {kPsAt, kWorkerAt}) gates_.at(address)->Remember(false);
  // Each message to the master that came once for the step comes again and again.
  int steps = 0;
  for (int i = 0; i < 3; ++i) {
    for (const Message& m : to_master) {
      if (m.method != "Master.RunStep" && m.method != "Master.ExtendSession") continue;
      const Status s = Ask(kWorkerAt, m.method, m.frame).status();
      EXPECT_TRUE(absl::IsAborted(s)) << m.method << ": " << s;
      ++steps;
    }
  }
  EXPECT_GE(steps, 3);
  EXPECT_EQ(good.Value(), 1.0f);
  ASSERT_TRUE(good.client.session->Close().ok());
  // When the session has ended nothing that was for it is obeyed: it is not made again either.
  const std::map<std::string, int> obeyed = Obeyed(kPsAt, to_ps);
  for (const auto& [method, times] : obeyed) {
    EXPECT_TRUE(method == "Worker.GetStatus" || method == "Worker.Heartbeat") << method;  // which change nothing
  }
  const auto status = Ask<GetStatusResponse>(kPsAt, "Worker.GetStatus", GetStatusRequest{});
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->num_sessions, 0);
}

TEST_P(HostileMessages, R06_StaleIncarnation) {
  StartBoth();
  {
    Counter good = NewCounter();
    ASSERT_TRUE(good.Add().ok());
    ASSERT_TRUE(good.client.session->Close().ok());
  }
  std::vector<Message> of_the_first;
  for (const Message& m : Seen(kPsAt)) {
    if (m.method != "Worker.CreateSession") of_the_first.push_back(m);  // which is for any incarnation
  }
  ps_.reset();
  ps_ = Started("ps");
  Counter good = NewCounter();
  ASSERT_TRUE(good.Add().ok());
  const std::map<std::string, int> obeyed = Obeyed(kPsAt, of_the_first);
  for (const auto& [method, times] : obeyed) {
    const bool is_harmless =
        method == "Worker.GetStatus" || method == "Worker.Heartbeat" || method == "Worker.DeleteSession";
    EXPECT_TRUE(is_harmless) << method;
  }
  EXPECT_TRUE(good.Add().ok());
  EXPECT_EQ(good.Value(), 2.0f);
}

INSTANTIATE_TEST_SUITE_P(, HostileMessages, ::testing::Values(true), [](const auto&) { return "ByMessages"; });

}  // namespace
}  // namespace millrace
