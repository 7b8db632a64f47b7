// SPDX-License-Identifier: Apache-2.0
#include "frames/frame_fuzzer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "autodiff/gradients.h"
#include "base/env.h"
#include "cluster/master_codec.h"
#include "cluster/remote_master.h"
#include "cluster/server.h"
#include "cluster/worker_codec.h"
#include "device/cpu/cpu_device.h"
#include "graph/graph_builder.h"
#include "graph/graph_def.h"
#include "service/worker_methods.h"
#include "system/system.h"

namespace millrace {
namespace {

constexpr int64_t kBatch = 500;  // frames that are under way at once
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kPs[] = "/job:ps/task:0", kWorker[] = "/job:worker/task:0";

using Corpus = std::map<std::string, std::vector<std::string>>;  // frames by method

// Calls handlers, by address, and remembers what it has carried while it is asked to.
class CallTransport final : public RpcTransport {
 public:
  struct State {
    absl::Mutex mu;
    std::map<std::string, RpcHandler*> handlers ABSL_GUARDED_BY(mu);
    Corpus* recorded ABSL_GUARDED_BY(mu) = nullptr;
  };
  explicit CallTransport(std::shared_ptr<State> state) : state_(std::move(state)) {}

  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override {
    absl::MutexLock lock(&state_->mu);
    state_->handlers[options.address] = handler;
    return std::make_unique<Listener>(state_, options.address);
  }
  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override {
    return std::make_unique<Channel>(state_, address);
  }

 private:
  class Listener final : public RpcServer {
   public:
    Listener(std::shared_ptr<State> state, std::string address)
        : state_(std::move(state)), address_(std::move(address)) {}
    ~Listener() override {
      absl::MutexLock lock(&state_->mu);
      state_->handlers.erase(address_);
    }
    std::string address() const override { return address_; }

   private:
    const std::shared_ptr<State> state_;
    const std::string address_;
  };

  class Channel final : public RpcChannel {
   public:
    Channel(std::shared_ptr<State> state, std::string address)
        : state_(std::move(state)), address_(std::move(address)) {}
    void Call(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply) override {
      RpcHandler* handler = nullptr;
      {
        absl::MutexLock lock(&state_->mu);
        if (const auto at = state_->handlers.find(address_); at != state_->handlers.end()) handler = at->second;
        if (state_->recorded) (*state_->recorded)[std::string(method)].push_back(std::string(request));
      }
      if (handler == nullptr) return std::move(reply)(Unavailable("nobody listens at ", address_));
      // Lives as long as the call, also when its caller has none.
      const auto own = std::make_shared<CancellationManager>();
      RpcContext context;
      context.peer = "a client";
      context.timeout = options.timeout;
      context.cancellation = options.cancellation ? options.cancellation : own.get();
      handler->Handle(
          method, context, std::move(request), [own, reply = std::move(reply)](StatusOr<absl::Cord> answer) mutable {
            std::move(reply)(std::move(answer));
          });
    }

   private:
    const std::shared_ptr<State> state_;
    const std::string address_;
  };

  const std::shared_ptr<State> state_;
};

wire::ClusterDef TwoTasks() {
  wire::ClusterDef def;
  for (const auto& [job, address] : {std::pair("ps", "localhost:11"), std::pair("worker", "localhost:12")}) {
    wire::JobDef& j = def.job.emplace_back();
    j.name = job;
    j.tasks[0] = address;
  }
  return def;
}

// A variable and a queue on the one task, work on the other, collective ops over both.
struct Names {
  std::string x, y, draw, put, taken, init, add;
  std::vector<std::string> sums;
};
StatusOr<wire::GraphDef> BuildGraph(Names* names) {
  Graph graph(&System::Default().ops());
  const GraphBuilder b(&graph);
  const GraphBuilder ps = b.WithDevice(kPs), worker = b.WithDevice(kWorker);
  const auto name = [](Output o) { return absl::StrCat(o.node->name(), ":", o.index); };
  const Output w =
      ps.WithName("w").Op("VariableV2", {}, {{"shape", PartialShape(Shape::Vector(3))}, {"dtype", DType::kFloat}});
  const Output x = worker.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape::Vector(3))}});
  const Output y = worker.Mul(worker.Op("Tanh", {ps.Identity(w)}), x);
  names->x = name(x);
  names->y = name(y);
  names->init = ps.OpNode("Assign", {w, ps.Vector<float>({1, 2, 3})})->name();
  names->add = ps.OpNode("AssignAdd", {w, y})->name();
  names->draw = name(worker.Op("RandomUniform", {worker.Vector<int32_t>({2})}, {{"dtype", DType::kFloat}}));
  const std::vector<DType> types = {DType::kFloat};
  const Output queue = ps.Op("FIFOQueueV2", {}, {{"component_types", types}});
  names->put = ps.OpNode("QueueEnqueueV2", std::vector<Arg>{queue, std::vector<Output>{y}}, AttrMap())->name();
  names->taken = name(ps.Op("QueueDequeueV2", {queue}, {{"component_types", types}}));
  for (const GraphBuilder& here : {ps, worker}) {
    names->sums.push_back(name(here.Op(
        "CollectiveReduce", {here.Op("Neg", {here.Vector<float>({1, 2})})},
        {{"group_size", int64_t{2}},
         {"group_key", int64_t{1}},
         {"instance_key", int64_t{1}},
         {"merge_op", "Add"},
         {"final_op", "Id"},
         {"subdiv_offsets", std::vector<int64_t>{0}}})));
  }
  MR_RETURN_IF_ERROR(b.status());
  return GraphToProto(graph);
}

}  // namespace

class FrameFuzzer::Impl {
 public:
  explicit Impl(uint64_t seed)
      : random_(seed),
        state_(std::make_shared<CallTransport::State>()),
        channels_(Env::Default(), [this]() -> StatusOr<std::unique_ptr<RpcTransport>> {
          return std::make_unique<CallTransport>(state_);
        }) {
    StatusOr<wire::GraphDef> graph = BuildGraph(&names_);
    if (!graph.ok()) failure_ = graph.status().ToString();
    if (graph.ok()) graph_ = *std::move(graph);
    for (const char* job : {"ps", "worker"}) {
      const StatusOr<std::unique_ptr<Server>> made = NewServer(job);
      if (!made.ok()) failure_ = absl::StrCat("no server: ", made.status().ToString());
    }
  }
  ~Impl() { servers_.clear(); }

  std::string Run(const std::string& method, int64_t frames, FrameCounts* counts) {
    for (int64_t sent = 0; sent < frames && failure_.empty(); sent += kBatch) {
      if (sent % (8 * kBatch) == 0) {
        if (const Status s = RecordAtLast(); !s.ok()) return Told(method, "a client that does nothing wrong", s);
      }
      SendBatch(method, std::min(kBatch, frames - sent), counts);
    }
    if (failure_.empty()) {
      if (const Status s = RecordAtLast(); !s.ok())
        return Told(method, "a client that does nothing wrong, afterwards", s);
    }
    return failure_;
  }

 private:
  struct Sent {
    CancellationManager cancellation;
    std::atomic<int> answers{0};
    std::atomic<bool> is_accepted{false};
  };

  static std::string Told(const std::string& method, const char* who, const Status& s) {
    return absl::StrCat(method, ": ", who, ": ", s.ToString());
  }
  uint64_t Below(uint64_t n) { return random_() % n; }

  StatusOr<std::unique_ptr<Server>> NewServer(const std::string& job) {
    wire::ServerDef def;
    def.cluster.Ensure() = TwoTasks();
    def.job_name = job;
    def.protocol = "grpc";
    ServerParts parts;
    parts.make_devices = [](const DeviceName& task, const wire::ConfigProto&) {
      DeviceName name = task;
      name.type = "CPU";
      name.id = 0;
      std::vector<std::unique_ptr<Device>> devices;
      devices.push_back(NewCpuDevice(name, Env::Default().Random64(), ProcessThreadPool()));
      return StatusOr<std::vector<std::unique_ptr<Device>>>(std::move(devices));
    };
    parts.master.env = &Env::Default();
    parts.master.ops = &System::Default().ops();
    parts.master.kernels = &System::Default().kernels();
    parts.master.differentiate = AddDenseGradients;
    parts.master.connect_patience = absl::Seconds(10);
    parts.channels = &channels_;
    parts.all_by_messages = true;
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::New(def, parts));
    MR_RETURN_IF_ERROR(server->Start());
    servers_.push_back(std::move(server));
    return std::unique_ptr<Server>();
  }

  // A group of collective ops that messages have disturbed fails, and may do so once more for what is left of them.
  Status RecordAtLast() {
    Status s = Record();
    for (int i = 0; i < 3 && (absl::IsUnavailable(s) || absl::IsAborted(s)); ++i) s = Record();
    return s;
  }

  // Everything that a client may do, on the worker's master; its messages, and those of both servers, are the corpus.
  Status Record() {
    Corpus fresh;
    {
      absl::MutexLock lock(&state_->mu);
      state_->recorded = &fresh;
    }
    const Status s = BeAClient();
    {
      absl::MutexLock lock(&state_->mu);
      state_->recorded = nullptr;
    }
    MR_RETURN_IF_ERROR(s);
    AddWorkerFrames(fresh);
    corpus_ = std::move(fresh);
    return s;
  }

  Status BeAClient() {
    MR_ASSIGN_OR_RETURN(RpcChannel* const channel, channels_.Get("localhost:12"));
    RemoteMaster master(channel, &Env::Default());
    MasterCall call;
    call.timeout = kPatience;
    MR_RETURN_IF_ERROR(master.ListDevices(call, {}).status());
    StatusOr<CreateSessionResponse> created = master.CreateSession(call, {graph_, {}, true});
    if (absl::IsResourceExhausted(created.status())) {  // of sessions, which good frames have made
      MR_RETURN_IF_ERROR(master.Reset(call, {}).status());
      last_session_.clear();
      created = master.CreateSession(call, {graph_, {}, true});
    }
    MR_ASSIGN_OR_RETURN(const CreateSessionResponse made, std::move(created));
    const std::string session = made.session;
    MR_RETURN_IF_ERROR(master.Ping(call, {session}).status());
    const Tensor x = Tensor::Vector<float>({1, 2, 3});
    int64_t number = 0;
    const auto run =
        [&](StepSignature signature, std::vector<Tensor> values, bool trace) -> StatusOr<std::vector<Tensor>> {
      RunSessionStepRequest request;
      request.session = session;
      request.signature = std::move(signature);
      request.feed_values = std::move(values);
      request.call = ++number;
      request.oldest_call = number;
      request.has_options = request.wants_metadata = trace;
      if (trace) request.options.trace_level = wire::RunOptions::kFullTrace;
      MR_ASSIGN_OR_RETURN(RunSessionStepResponse response, master.RunStep(call, std::move(request)));
      MR_RETURN_IF_ERROR(response.status);
      return std::move(response.fetches);
    };
    MR_RETURN_IF_ERROR(run({{}, {}, {names_.init}}, {}, false).status());
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> got, run({{names_.x}, {names_.y}, {names_.add}}, {x}, true));
    const float first = got.size() == 1 && got[0].num_elements() == 3 ? got[0].data<float>()[0] : -1;
    if (first < 0.7f || first > 0.8f) return Internal("tanh(1) is ", first);
    MR_RETURN_IF_ERROR(run({{names_.x}, {}, {names_.put}}, {x}, false).status());
    MR_RETURN_IF_ERROR(run({{}, {names_.taken}, {}}, {}, false).status());
    MR_RETURN_IF_ERROR(run({{}, {names_.draw}, {}}, {}, false).status());
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> sums, run({{}, names_.sums, {}}, {}, false));
    if (sums.size() != 2 || sums[0].data<float>()[1] != -4) return Internal("the sum is wrong");
    MR_ASSIGN_OR_RETURN(
        const SetUpPartialRunResponse partial, master.SetUpPartialRun(call, {session, {{names_.x}, {names_.y}, {}}}));
    RunSessionStepRequest part;
    part.session = session;
    part.signature = {{names_.x}, {names_.y}, {}};
    part.feed_values = {x};
    part.partial_run = partial.partial_run;
    MR_ASSIGN_OR_RETURN(const RunSessionStepResponse parted, master.RunStep(call, part));
    MR_RETURN_IF_ERROR(parted.status);
    MR_RETURN_IF_ERROR(master.ReleasePartialRun(call, {session, partial.partial_run}).status());
    MR_ASSIGN_OR_RETURN(
        const MakeCallableResponse callable, master.MakeCallable(call, {session, {{names_.x}, {names_.y}, {}}}));
    MR_RETURN_IF_ERROR(master.RunCallable(call, {session, callable.callable, {x}}).status());
    MR_RETURN_IF_ERROR(master.ReleaseCallable(call, {session, callable.callable}).status());
    MR_RETURN_IF_ERROR(master.ExplainStep(call, {session, {{names_.x}, {names_.y}, {}}}).status());
    MR_ASSIGN_OR_RETURN(const GetSessionRandomResponse positions, master.GetSessionRandom(call, {session}));
    MR_RETURN_IF_ERROR(master.SetSessionRandom(call, {session, positions.positions}).status());
    wire::GraphDef more;
    more.node.push_back(graph_.node.front());
    more.node.back().name = "more";
    more.versions = graph_.versions;
    MR_RETURN_IF_ERROR(master.ExtendSession(call, {session, more, made.graph_version}).status());
    MR_RETURN_IF_ERROR(master.ListDevices(call, {session}).status());
    MR_ASSIGN_OR_RETURN(
        const MakeCallableResponse kept, master.MakeCallable(call, {session, {{names_.x}, {names_.y}, {}}}));
    // The last two stay, for the frames that name it.
    const auto remember = [&](const char* method, const StatusOr<absl::Cord>& frame) {
      absl::MutexLock lock(&state_->mu);
      if (frame.ok() && state_->recorded) (*state_->recorded)[method].push_back(std::string(*frame));
    };
    more.node.back().name = "still_more";
    remember("Master.ExtendSession", EncodeMessage(ExtendSessionRequest{session, more, made.graph_version + 1}));
    remember("Master.RunCallable", EncodeMessage(RunCallableRequest{session, kept.callable, {x}}));
    remember("Master.CloseSession", EncodeMessage(CloseSessionRequest{session}));
    remember("Master.Reset", EncodeMessage(ResetMasterRequest{{"a container"}, {kPs}}));
    if (!last_session_.empty()) MR_RETURN_IF_ERROR(master.CloseSession(call, {last_session_}).status());
    last_session_ = session;
    return absl::OkStatus();
  }

  // What workers are told that no client asks for.
  void AddWorkerFrames(Corpus& corpus) {
    RunStepRequest step;
    if (corpus["Worker.RunStep"].empty() ||
        !DecodeMessage(absl::Cord(corpus["Worker.RunStep"].back()), nullptr, &step).ok()) {
      return;
    }
    const SessionRef session = step.step.session;
    const StepRef next{session, step.step.step + 1};
    const auto add = [&](const char* method, auto request) {
      StatusOr<absl::Cord> frame = EncodeMessage(request);
      if (frame.ok()) corpus[absl::StrCat("Worker.", method)].push_back(std::string(*frame));
    };
    // Those that were seen are over, as the later ones say: the same once more, under numbers that come after.
    for (size_t i = 0, seen = corpus["Worker.RunStep"].size(); i < seen; ++i) {
      RunStepRequest again;
      if (!DecodeMessage(absl::Cord(corpus["Worker.RunStep"][i]), nullptr, &again).ok()) continue;
      again.step.step = next.step + 1 + static_cast<int64_t>(i);
      again.over = {};
      add("RunStep", std::move(again));
    }
    add("DeleteSession", DeleteWorkerSessionRequest{session});
    add("DeregisterPartitions", DeregisterPartitionsRequest{session, {1, 2}});
    add("AbortStep", AbortStepRequest{next, Cancelled("enough")});
    add("CleanUpSteps", CleanUpStepsRequest{session, {next.step, {}}});
    add("ExchangeTensors", ExchangeTensorsRequest{next, {{3, Tensor::Scalar(1.0f)}}, {4}});
    add("ExchangeTensors", ExchangeTensorsRequest{next, {{6, Tensor::Scalar(1.0f)}}, {}});
    add("RecvTensor", RecvTensorRequest{next, {5}});
    add("SendTensor", SendTensorRequest{next, {7}, {Tensor::Vector<float>({1, 2}), false}});
    add("SendTensor", SendTensorRequest{next, {8}, {Tensor(), true}});
    add("GetStatus", GetStatusRequest{});
    add("Heartbeat", HeartbeatRequest{{session, session}});
    add("Reset", ResetRequest{{"a container"}});
    add("GetRandomPositions", GetRandomPositionsRequest{session});
    add("SetRandomPositions", SetRandomPositionsRequest{session, {{"draw", {1, 2, 3, 4}}}});
    JoinCollectiveRequest join;
    join.member = random_();
    join.device = "/job:ps/replica:0/task:0/device:CPU:0";
    join.group_size = 2;
    join.claim = "CollectiveReduce";
    join.timeout_millis = 100;
    add("JoinCollective", join);
    join.member = random_();
    join.group_size = 1;
    add("JoinCollective", join);
    add("RecvCollective", RecvCollectiveRequest{random_(), session.incarnation, "whole 0"});
    add("AbortCollective", AbortCollectiveRequest{random_(), Aborted("enough")});
  }

  std::string Changed(std::string frame, const std::vector<std::string>& others) {
    if (Below(16) == 0) return frame;  // as it was, again
    if (Below(16) == 0) {
      frame.resize(Below(200));
      for (char& c : frame) c = static_cast<char>(random_());
      return frame;
    }
    constexpr char kTelling[] = {0, 1, 2, 8, 10, 18, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff)};
    for (uint64_t n = 1 + Below(3); n > 0; --n) {
      const size_t at = frame.empty() ? 0 : static_cast<size_t>(Below(frame.size()));
      switch (Below(7)) {
        case 0:
        case 1:
          if (!frame.empty()) frame[at] = static_cast<char>(frame[at] ^ (1 << Below(8)));
          break;
        case 2:
          if (!frame.empty()) frame[at] = kTelling[Below(sizeof kTelling)];
          break;
        case 3: frame.resize(at); break;
        case 4: frame.insert(at, static_cast<size_t>(1 + Below(8)), kTelling[Below(sizeof kTelling)]); break;
        case 5: frame.erase(at, static_cast<size_t>(1 + Below(8))); break;
        default: {
          const std::string& other = others[Below(others.size())];
          const auto from = static_cast<size_t>(Below(other.size() + 1));
          frame = frame.substr(0, at) + other.substr(from);
        }
      }
    }
    return frame;
  }

  void SendBatch(const std::string& method, int64_t n, FrameCounts* counts) {
    std::vector<std::string> none = {""};
    const auto known = corpus_.find(method);
    const std::vector<std::string>& frames = known == corpus_.end() || known->second.empty() ? none : known->second;
    RpcHandler* handlers[2] = {};
    {
      absl::MutexLock lock(&state_->mu);
      handlers[0] = state_->handlers["localhost:11"];
      handlers[1] = state_->handlers["localhost:12"];
    }
    std::vector<std::unique_ptr<Sent>> batch;
    for (int64_t i = 0; i < n; ++i) {
      Sent& sent = *batch.emplace_back(std::make_unique<Sent>());
      RpcContext context;
      context.peer = "somebody";
      context.timeout = kPatience;
      context.cancellation = &sent.cancellation;
      // Masters get them where the session is.
      RpcHandler* const to = handlers[absl::StartsWith(method, "Master.") ? 1 : Below(2)];
      to->Handle(method, context, absl::Cord(Changed(frames[Below(frames.size())], frames)),
                 [&sent](const StatusOr<absl::Cord>& answer) {
                   sent.is_accepted = answer.ok();
                   ++sent.answers;
                 });
    }
    Env& env = Env::Default();
    // The first batch has time to be obeyed.
    const auto is_answered = [](const auto& sent) { return sent->answers > 0; };
    for (int i = 0; i < 100 && counts->frames == 0 && !std::all_of(batch.begin(), batch.end(), is_answered); ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    for (const auto& sent : batch) {
      if (sent->answers == 0) sent->cancellation.Cancel(Cancelled("enough"));
    }
    const int64_t start = env.MonotonicNanos();
    for (const auto& sent : batch) {
      while (sent->answers == 0) {
        if (env.MonotonicNanos() - start > absl::ToInt64Nanoseconds(kPatience)) {
          failure_ = absl::StrCat(method, ": a message was not answered for ", absl::FormatDuration(kPatience));
          for (auto& left : batch) static_cast<void>(left.release());  // they may be answered yet
          return;
        }
        absl::SleepFor(absl::Microseconds(100));
      }
      if (sent->answers != 1)
        failure_ = absl::StrCat(method, ": a message was answered ", sent->answers.load(), " times");
      ++counts->frames;
      ++(sent->is_accepted ? counts->accepted : counts->refused);
    }
  }

  std::mt19937_64 random_;
  const std::shared_ptr<CallTransport::State> state_;
  Channels channels_;
  wire::GraphDef graph_;
  Names names_;
  Corpus corpus_;
  std::string last_session_, failure_;
  std::vector<std::unique_ptr<Server>> servers_;
};

FrameFuzzer::FrameFuzzer(uint64_t seed) : impl_(std::make_unique<Impl>(seed)) {}
FrameFuzzer::~FrameFuzzer() = default;

std::vector<std::string> FrameFuzzer::Methods() {
  std::vector<std::string> all = {kGetStatusMethod, "Server.Else"};
#define MR_ADD(Method, Request, Response) all.push_back("Worker." #Method);
  MR_WORKER_METHODS(MR_ADD)
#undef MR_ADD
#define MR_ADD(Method, Request, Response) all.push_back("Master." #Method);
  MR_MASTER_METHODS(MR_ADD)
#undef MR_ADD
  return all;
}

std::string FrameFuzzer::Run(const std::string& method, int64_t frames, FrameCounts* counts) {
  return impl_->Run(method, frames, counts);
}

}  // namespace millrace
