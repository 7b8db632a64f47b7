// SPDX-License-Identifier: Apache-2.0
#include "client/remote_session.h"

#include <optional>
#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/strip.h"
#include "base/logging.h"
#include "client/interruptible.h"
#include "client/random_state.h"
#include "cluster/graph_codec.h"
#include "cluster/local_servers.h"
#include "cluster/master_codec.h"
#include "cluster/remote_master.h"
#include "graph/graph_def.h"
#include "service/step_horizon.h"

namespace millrace {
namespace {

constexpr char kScheme[] = "grpc://";
constexpr absl::Duration kClosePatience = absl::Seconds(10);
constexpr absl::Duration kMasterPatience = absl::Minutes(10);  // for a server that is not there yet
constexpr absl::Duration kRefusedPatience = absl::Seconds(3);
constexpr absl::Duration kGrace = absl::Seconds(5);

StatusOr<HostPort> ParseTarget(const std::string& target) {
  absl::string_view address = target;
  if (!absl::ConsumePrefix(&address, kScheme)) {
    return InvalidArgument("session target '", target, "', want grpc://host:port");
  }
  return ParseHostPort(std::string(address));
}

absl::Duration TimeoutOf(const wire::ConfigProto& config) {
  return config.operation_timeout_in_ms > 0
             ? absl::Milliseconds(config.operation_timeout_in_ms)
             : absl::InfiniteDuration();
}

// The master at an address, found anew with each call: in this process by call, unless messages are asked for and there
// is a transport, else by messages.
class MasterAt {
 public:
  MasterAt(HostPort address, const wire::ConfigProto& config, Channels* channels)
      : address_(std::move(address)),
        by_messages_(config.rpc_options && config.rpc_options->use_rpc_for_inprocess_master),
        channels_(channels) {}

  template <typename Request, typename Response>
  StatusOr<Response> Call(StatusOr<Response> (MasterInterface::*method)(const MasterCall&, Request),
                          const MasterCall& call, Request request) const {
    {
      const LocalServers::Hold server = LocalServers::Get().Find(address_);
      if (server && !(by_messages_ && channels_->transport().ok())) {
        return (server->master->*method)(call, std::move(request));
      }
    }
    StatusOr<RpcChannel*> channel = channels_->Get(address_.ToString());
    if (!channel.ok()) return Annotated(channel.status());
    RemoteMaster master(*channel, &channels_->env());
    StatusOr<Response> response = (master.*method)(call, std::move(request));
    if (absl::IsUnavailable(response.status())) return Annotated(response.status());
    return response;
  }

  Env& env() const { return channels_->env(); }

  // That the client of a session is there. Does not wait.
  void Keep(const std::string& session) const {
    const StatusOr<RpcChannel*> channel = channels_->Get(address_.ToString());
    StatusOr<absl::Cord> frame = EncodeMessage(PingRequest{session});
    if (channel.ok() && frame.ok()) (*channel)->Tell("Master.Ping", *std::move(frame));
  }

  // Until the master can be reached.
  Status Await(const MasterCall& call) const {
    Env& env = channels_->env();
    const int64_t start = env.MonotonicNanos();
    std::optional<Interrupt> interrupt;
    if (call.interrupt) interrupt.emplace(*call.interrupt, env);
    const InterruptScope scope(interrupt ? &*interrupt : nullptr);
    absl::Duration pause = absl::Milliseconds(10), told = absl::Seconds(10);
    MasterCall ping = call;
    for (;;) {
      const absl::Duration waited = absl::Nanoseconds(env.MonotonicNanos() - start);
      ping.timeout = std::min(call.timeout - waited, absl::Duration(absl::Seconds(10)));
      const Status s = Call(&MasterInterface::Ping, ping, PingRequest{}).status();
      // Certificates that are being replaced may not fit each other for a moment.
      const bool may_pass = absl::IsUnauthenticated(s) && waited < kRefusedPatience;
      if (!absl::IsUnavailable(s) && !absl::IsDeadlineExceeded(s) && !may_pass) return s;
      MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
      if (call.cancellation && call.cancellation->IsCancelled()) return call.cancellation->reason();
      if (waited + pause >= call.timeout) {
        return DeadlineExceeded("waited ", absl::FormatDuration(call.timeout), ": ", s.message());
      }
      if (waited >= kMasterPatience) return s;
      if (waited >= told) {
        LogWarning("still waiting for the server: ", s.message());
        told += absl::Seconds(10);
      }
      absl::Mutex mu;
      absl::MutexLock lock(&mu);
      env.Await(mu, absl::Condition(+[](bool* never) { return *never; }, &never_), pause);
      pause = std::min(2 * pause, absl::Duration(absl::Seconds(1)));
    }
  }

 private:
  Status Annotated(const Status& s) const { return Annotate(s, absl::StrCat("server ", address_.ToString(), ": ")); }

  const HostPort address_;
  const bool by_messages_;
  Channels* const channels_;
  mutable bool never_ = false;
};

std::string NameOf(const Output& o) { return absl::StrCat(o.node->name(), ":", o.index); }

StatusOr<StepSignature> SignatureOf(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                    absl::Span<Node* const> targets) {
  StepSignature s;
  for (const Output& o : feeds) {
    MR_RETURN_IF_ERROR(o ? absl::OkStatus() : InvalidArgument("a feed is null"));
    s.feeds.push_back(NameOf(o));
  }
  for (const Output& o : fetches) {
    MR_RETURN_IF_ERROR(o ? absl::OkStatus() : InvalidArgument("a fetch is null"));
    s.fetches.push_back(NameOf(o));
  }
  for (const Node* n : targets) s.targets.push_back(n->name());
  return s;
}

class RemoteSession final : public Session, public Interruptible {
 public:
  RemoteSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config, HostPort address, Channels* channels)
      : graph_(std::move(graph)), config_(config), master_(std::move(address), config, channels) {}
  ~RemoteSession() override { Close().IgnoreError(); }

  Status Run(const wire::RunOptions* options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
             absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs,
             wire::RunMetadata* metadata) override {
    RunSessionStepRequest request;
    MR_ASSIGN_OR_RETURN(request.signature, SignatureOf(feeds, fetches, targets));
    const bool has_timeout = options && options->timeout_in_ms > 0;
    MR_ASSIGN_OR_RETURN(
        request.session,
        SessionWithWholeGraph(has_timeout ? absl::Milliseconds(options->timeout_in_ms) : TimeoutOf(config_)));
    request.feed_values.assign(feed_values.begin(), feed_values.end());
    request.has_options = options != nullptr;
    if (options) request.options = *options;
    request.wants_metadata = metadata != nullptr;
    return RunStep(std::move(request), fetches.size(), outputs, metadata);
  }

  StatusOr<std::string> PartialRunSetup(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                        absl::Span<Node* const> targets) override {
    SetUpPartialRunRequest request;
    MR_ASSIGN_OR_RETURN(request.signature, SignatureOf(feeds, fetches, targets));
    MR_ASSIGN_OR_RETURN(request.session, SessionWithWholeGraph(TimeoutOf(config_)));
    MR_ASSIGN_OR_RETURN(SetUpPartialRunResponse response,
                        master_.Call(&MasterInterface::SetUpPartialRun, NewCall(), std::move(request)));
    return std::move(response.partial_run);
  }
  Status PartialRun(const std::string& handle, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                    absl::Span<const Output> fetches, std::vector<Tensor>* outputs) override {
    RunSessionStepRequest request;
    MR_ASSIGN_OR_RETURN(request.signature, SignatureOf(feeds, fetches, {}));
    MR_ASSIGN_OR_RETURN(request.session, OpenSession());
    request.partial_run = handle;
    if (handle.empty()) return InvalidArgument("there is no partial run ''");
    request.feed_values.assign(feed_values.begin(), feed_values.end());
    return RunStep(std::move(request), fetches.size(), outputs, nullptr);
  }
  Status ReleasePartialRun(const std::string& handle) override {
    MR_ASSIGN_OR_RETURN(const std::string session, OpenSession());
    return master_.Call(&MasterInterface::ReleasePartialRun, NewCall(), {session, handle}).status();
  }

  StatusOr<Explanation> Explain(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                absl::Span<Node* const> targets) override {
    ExplainStepRequest request;
    MR_ASSIGN_OR_RETURN(request.signature, SignatureOf(feeds, fetches, targets));
    MR_ASSIGN_OR_RETURN(request.session, SessionWithWholeGraph(TimeoutOf(config_)));
    MR_ASSIGN_OR_RETURN(
        ExplainStepResponse response, master_.Call(&MasterInterface::ExplainStep, NewCall(), std::move(request)));
    return Explanation{std::move(response.text), std::move(response.json)};
  }

  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    MR_ASSIGN_OR_RETURN(const std::string session, OpenSession());
    MR_ASSIGN_OR_RETURN(
        ListDevicesResponse response, master_.Call(&MasterInterface::ListDevices, NewCall(), {session}));
    return std::move(response.devices);
  }

  StatusOr<std::string> RandomState() override {
    MR_ASSIGN_OR_RETURN(const std::string session, OpenSession());
    MR_ASSIGN_OR_RETURN(const GetSessionRandomResponse response,
                        master_.Call(&MasterInterface::GetSessionRandom, NewCall(), {session}));
    return EncodeRandomPositions(response.positions);
  }
  Status SetRandomState(absl::string_view state) override {
    SetSessionRandomRequest request;
    MR_ASSIGN_OR_RETURN(request.positions, DecodeRandomPositions(state));
    MR_ASSIGN_OR_RETURN(request.session, OpenSession());
    return master_.Call(&MasterInterface::SetSessionRandom, NewCall(), std::move(request)).status();
  }

  void SetInterruptCheck(const InterruptCheck& check) override { interrupt_ = check; }

  Status Close() override {
    closing_.Cancel(Cancelled("the session is closed"));
    std::string session;
    std::optional<Env::TimerId> pings;
    {
      absl::MutexLock lock(&mu_);
      is_closed_ = true;
      pings.swap(pings_);
      if (!is_sending_) session.swap(session_);  // or else who sends the graph closes it
    }
    if (pings) master_.env().StopTimer(*pings);
    return CloseOnMaster(std::move(session));
  }

 private:
  // So that the master keeps the session while this process lives, also when nothing is asked of it for hours.
  void StartPings(absl::Duration period) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    pings_ = master_.env().StartTimer(period, [this, session = session_] {
      master_.Keep(session);
      return true;
    });
  }

  MasterCall NewCall() const {
    MasterCall call;
    call.timeout = TimeoutOf(config_) + kGrace;  // the master, which knows what it waits for, says it first
    if (interrupt_.check) call.interrupt = &interrupt_;
    return call;
  }

  // Gives a call its number, which is in use as long as somebody waits for the call.
  class NumberedCall {
   public:
    NumberedCall(RemoteSession& session, RunSessionStepRequest* request) : session_(session) {
      absl::MutexLock lock(&session_.mu_);
      request->oldest_call = session_.calls_.oldest();
      request->call = number_ = session_.calls_.Begin();
    }
    ~NumberedCall() {
      absl::MutexLock lock(&session_.mu_);
      session_.calls_.End(number_);
    }
    NumberedCall(const NumberedCall&) = delete;
    NumberedCall& operator=(const NumberedCall&) = delete;

   private:
    RemoteSession& session_;
    int64_t number_ = 0;
  };

  Status RunStep(RunSessionStepRequest request, size_t num_fetches, std::vector<Tensor>* outputs,
                 wire::RunMetadata* metadata) {
    MasterCall call = NewCall();
    if (request.options.timeout_in_ms > 0) call.timeout = absl::Milliseconds(request.options.timeout_in_ms) + kGrace;
    const NumberedCall number(*this, &request);
    MR_ASSIGN_OR_RETURN(
        RunSessionStepResponse response, master_.Call(&MasterInterface::RunStep, call, std::move(request)));
    if (metadata) *metadata = std::move(response.metadata);
    MR_RETURN_IF_ERROR(response.status);
    if (response.fetches.size() != num_fetches) {
      return Internal("the master gave ", response.fetches.size(), " fetches, want ", num_fetches);
    }
    *outputs = std::move(response.fetches);
    return absl::OkStatus();
  }

  // The session as it is, made if there is none yet.
  StatusOr<std::string> OpenSession() {
    {
      absl::MutexLock lock(&mu_);
      MR_RETURN_IF_ERROR(CheckOpen());
      if (!session_.empty()) return session_;
    }
    return SessionWithWholeGraph(TimeoutOf(config_));
  }
  // The session once it has all nodes that the graph has now.
  StatusOr<std::string> SessionWithWholeGraph(absl::Duration timeout) {
    {
      absl::MutexLock lock(&mu_);
      MR_RETURN_IF_ERROR(CheckOpen());
      const absl::Condition nobody_sends(+[](bool* sending) { return !*sending; }, &is_sending_);
      if (!master_.env().Await(mu_, nobody_sends, timeout)) {
        return DeadlineExceeded("waited ", absl::FormatDuration(timeout),
                                " for another call, which makes the session or extends its graph");
      }
      MR_RETURN_IF_ERROR(CheckOpen());
      is_sending_ = true;
    }
    // Without the lock, since it may wait, and come back here by the interrupt check.
    const Status s = SendGraph(timeout);
    std::string orphan;
    absl::MutexLock lock(&mu_);
    is_sending_ = false;
    MR_RETURN_IF_ERROR(s);
    if (!is_closed_) return session_;
    orphan.swap(session_);
    mu_.Unlock();
    CloseOnMaster(std::move(orphan)).IgnoreError();
    mu_.Lock();
    return CheckOpen();
  }
  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_closed_ ? Cancelled("the session is closed") : absl::OkStatus();
  }
  Status CloseOnMaster(std::string session) {
    if (session.empty()) return absl::OkStatus();
    MasterCall call;
    call.timeout = std::min(kClosePatience, TimeoutOf(config_));
    const Status s = master_.Call(&MasterInterface::CloseSession, call, {std::move(session)}).status();
    const bool is_gone = absl::IsUnavailable(s) || absl::IsUnimplemented(s);  // there is nothing left to close
    return is_gone ? absl::OkStatus() : s;
  }

  // What the graph has gained: nodes from the id `sent_nodes_` on, and functions.
  struct Growth {
    wire::GraphDef def;
    int end = 0;
    std::vector<std::string> functions;
    size_t gradients = 0;
    bool is_empty() const { return def.node.empty() && functions.empty() && !def.library; }
  };
  // The analysis cannot follow LockWhile.
  StatusOr<Growth> FindGrowth() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Growth growth;
    MR_RETURN_IF_ERROR(graph_->mu.LockWhile([] { return KeepGoingUnlessInterrupted(); }));
    const absl::Cleanup unlock = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { graph_->mu.Unlock(); };
    const Graph& graph = graph_->graph;
    growth.end = graph.num_node_ids();
    growth.gradients = graph.gradient_defs().size();
    const auto functions = graph.Functions();
    if (growth.end == sent_nodes_ && functions.size() == sent_functions_.size() &&
        growth.gradients == sent_gradients_) {
      return growth;
    }
    if (graph_->mu.ClaimedHere()) {
      return FailedPrecondition("the graph cannot run while a conditional or loop is being built in it");
    }
    growth.def.versions.Ensure() = graph.versions();
    for (const Node* n : graph.nodes()) {
      if (n->id() < sent_nodes_) continue;
      MR_ASSIGN_OR_RETURN(growth.def.node.emplace_back(), NodeToProto(*n));
      PutLocation(*n, &growth.def.node.back());
    }
    for (const wire::FunctionDef* f : functions) {
      if (sent_functions_.contains(f->signature->name)) continue;
      growth.def.library.Ensure().function.push_back(*f);
      growth.functions.push_back(f->signature->name);
    }
    for (size_t i = sent_gradients_; i < growth.gradients; ++i) {
      growth.def.library.Ensure().gradient.push_back(graph.gradient_defs()[i]);
    }
    return growth;
  }

  // REQUIRES: is_sending_, by this thread.
  Status SendGraph(absl::Duration timeout) {
    MR_ASSIGN_OR_RETURN(Growth growth, FindGrowth());
    MasterCall call = NewCall();
    call.cancellation = &closing_;
    std::string session;
    {
      absl::MutexLock lock(&mu_);
      session = session_;
    }
    if (session.empty()) {
      MasterCall wait = call;
      wait.timeout = timeout;  // nobody is there who would say it first
      MR_RETURN_IF_ERROR(master_.Await(wait));
      // Not of an extension, which may have been made when it is given up: the server would have another graph.
      call.timeout = timeout + kGrace;
      MR_ASSIGN_OR_RETURN(
          CreateSessionResponse response,
          master_.Call(
              &MasterInterface::CreateSession, call, CreateSessionRequest{std::move(growth.def), config_, true}));
      version_ = response.graph_version;
      absl::MutexLock lock(&mu_);
      session_ = std::move(response.session);
      if (response.ping_millis > 0 && !is_closed_) StartPings(absl::Milliseconds(response.ping_millis));
    } else {
      if (growth.is_empty()) return absl::OkStatus();
      MR_ASSIGN_OR_RETURN(const ExtendSessionResponse response,
                          master_.Call(&MasterInterface::ExtendSession, call,
                                       ExtendSessionRequest{std::move(session), std::move(growth.def), version_}));
      version_ = response.graph_version;
    }
    sent_nodes_ = growth.end;
    sent_functions_.insert(growth.functions.begin(), growth.functions.end());
    sent_gradients_ = growth.gradients;
    return absl::OkStatus();
  }

  const RefPtr<SharedGraph> graph_;
  const wire::ConfigProto config_;
  const MasterAt master_;
  InterruptCheck interrupt_;
  CancellationManager closing_;  // of the session's making and extending
  mutable absl::Mutex mu_;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  bool is_sending_ ABSL_GUARDED_BY(mu_) = false;  // a thread makes the session, or extends its graph
  std::string session_ ABSL_GUARDED_BY(mu_);      // empty: not made yet
  std::optional<Env::TimerId> pings_ ABSL_GUARDED_BY(mu_);
  StepIds calls_ ABSL_GUARDED_BY(mu_);  // steps that are under way
  // Of who sends.
  int64_t version_ = 0;
  int sent_nodes_ = 0;
  std::set<std::string> sent_functions_;
  size_t sent_gradients_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<Session>> NewRemoteSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config,
                                                    const std::string& target, Channels* channels) {
  MR_ASSIGN_OR_RETURN(HostPort address, ParseTarget(target));
  return std::unique_ptr<Session>(
      std::make_unique<RemoteSession>(std::move(graph), config, std::move(address), channels));
}

Status ResetRemote(const std::string& target, const wire::ConfigProto& config,
                   const std::vector<std::string>& containers, Channels* channels) {
  MR_ASSIGN_OR_RETURN(HostPort address, ParseTarget(target));
  MasterCall call;
  call.timeout = TimeoutOf(config);
  const MasterAt master(std::move(address), config, channels);
  MR_RETURN_IF_ERROR(master.Await(call));
  return master.Call(&MasterInterface::Reset, call, ResetMasterRequest{containers, config.device_filters}).status();
}

}  // namespace millrace
