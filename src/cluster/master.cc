// SPDX-License-Identifier: Apache-2.0
#include "cluster/master.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/exceptions.h"
#include "base/logging.h"
#include "cluster/graph_codec.h"
#include "cluster/once_only.h"
#include "cluster/wait_for_replies.h"
#include "graph/extend_graph.h"
#include "graph/unknown_op.h"
#include "kernel/resource_manager.h"
#include "op/device_name.h"
#include "service/ask_kernels.h"
#include "service/session_config.h"

namespace millrace {
namespace {

struct ResolvedStep {
  std::vector<Output> feeds, fetches;
  std::vector<Node*> targets;
};

StatusOr<Output> FindTensor(const Graph& graph, const std::string& text, const char* what) {
  MR_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(text));
  Node* const node = name.port < 0 ? nullptr : graph.Find(name.node);
  if (node == nullptr) return NotFound(what, " ", text, ": there is no such tensor in the session's graph");
  if (node->op() == nullptr) return Annotate(UnknownOp(*node), absl::StrCat(what, " ", text, ": "));
  if (name.port >= node->num_outputs()) {
    return InvalidArgument(what, " ", text, ": node '", node->name(), "' has ", node->num_outputs(), " outputs");
  }
  return Output{node, name.port};
}

StatusOr<ResolvedStep> Resolve(SharedGraph& shared, const StepSignature& signature) {
  ResolvedStep step;
  const GraphReaderLock lock(&shared.mu);
  for (const std::string& name : signature.feeds) {
    MR_ASSIGN_OR_RETURN(step.feeds.emplace_back(), FindTensor(shared.graph, name, "feed"));
  }
  for (const std::string& name : signature.fetches) {
    MR_ASSIGN_OR_RETURN(step.fetches.emplace_back(), FindTensor(shared.graph, name, "fetch"));
  }
  for (const std::string& name : signature.targets) {
    Node* const node = shared.graph.Find(name);
    if (node == nullptr) return NotFound("target ", name, ": there is no such node in the session's graph");
    step.targets.push_back(node);
  }
  return step;
}

Status Extend(const wire::GraphDef& def, Graph* graph) {
  const int first = graph->num_node_ids();
  MR_RETURN_IF_ERROR(ExtendGraph(def, graph));
  TakeLocations(first, graph);
  return absl::OkStatus();
}

// Whether a filter, "/job:ps" or "/job:worker/task:0", names the task.
StatusOr<bool> Matches(const std::string& filter, const std::string& task) {
  MR_ASSIGN_OR_RETURN(const DeviceName wanted, DeviceName::Parse(filter));
  MR_ASSIGN_OR_RETURN(const DeviceName full, DeviceName::Parse(task));
  DeviceName of_task = wanted;
  of_task.type.clear();
  of_task.id = -1;
  return of_task.Matches(full);
}

// Containers as a worker knows them: in a cluster, what has no container is in one that is called as the task's job.
std::vector<std::string> OnWorker(std::vector<std::string> containers, const WorkerInterface& worker) {
  const StatusOr<DeviceName> task = DeviceName::Parse(worker.task());
  if (task.ok() && std::find(containers.begin(), containers.end(), task->job) != containers.end()) {
    containers.push_back(ResourceManager::kDefaultContainer);
  }
  return containers;
}

absl::Duration TimeoutOf(const MasterCall& call, const wire::ConfigProto& config) {
  const bool is_set = config.operation_timeout_in_ms > 0;
  return std::min(call.timeout, is_set ? absl::Milliseconds(config.operation_timeout_in_ms) : absl::InfiniteDuration());
}

}  // namespace

// A session that is open.
struct Master::Open {
  Open(RefPtr<SharedGraph> graph, const wire::ConfigProto& config, SessionWorkers own, uint64_t id,
       CoordinatorOptions options, TraceFiles trace_files)
      : keep(std::move(own.keep)),
        session(std::move(graph), config, std::move(own.workers), id, std::move(options), std::move(trace_files)) {}

  // What a client is told whose step was ended by the end of its session, or else `s`.
  Status Told(const Status& s) const ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    return absl::IsCancelled(s) && !closed.ok() ? closed : s;
  }

  Status Admit(const RunSessionStepRequest& request) ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    if (request.call <= 0 || calls.Admit(request.call, request.oldest_call)) return absl::OkStatus();
    return Aborted(
        "call ", request.call, " of the session has come before: its step runs, or ran, and is not run again");
  }

  // For how long nobody has called for it.
  absl::Duration Silence(int64_t now) const {
    return calls_under_way.load() > 0 ? absl::ZeroDuration() : absl::Nanoseconds(now - heard_nanos.load());
  }

  const std::shared_ptr<void> keep;  // the workers
  MasterSession session;
  std::string client;      // who made it
  bool has_lease = false;  // whether it ends with its client
  std::atomic<int64_t> heard_nanos{0};
  std::atomic<int64_t> calls_under_way{0};  // grows under the master's lock
  absl::Mutex extending;
  mutable absl::Mutex mu;
  int64_t version ABSL_GUARDED_BY(extending) = 0;
  Status closed ABSL_GUARDED_BY(mu);  // not OK: it was closed
  OnceOnly calls ABSL_GUARDED_BY(mu);
  int64_t next_callable ABSL_GUARDED_BY(mu) = 1;
  std::map<int64_t, std::shared_ptr<const ResolvedStep>> callables ABSL_GUARDED_BY(mu);
};

// A session that a call is for: its client is there.
class Master::Using {
 public:
  Using(OpenPtr open, Env* env) : open_(std::move(open)), env_(env) { open_->calls_under_way.fetch_add(1); }
  Using(Using&&) noexcept = default;
  Using& operator=(Using&&) = delete;
  ~Using() {
    if (!open_) return;
    open_->heard_nanos.store(env_->MonotonicNanos());
    open_->calls_under_way.fetch_sub(1);
  }
  Open* operator->() const { return open_.get(); }

 private:
  OpenPtr open_;
  Env* env_;
};

// A session that is being made: its workers are looked after already.
class Master::Connecting {
 public:
  Connecting(Master& master, OpenPtr open) : master_(master), open_(std::move(open)) {
    absl::MutexLock lock(&master_.mu_);
    master_.connecting_.insert(open_);
  }
  ~Connecting() {
    absl::MutexLock lock(&master_.mu_);
    master_.connecting_.erase(open_);
  }
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

 private:
  Master& master_;
  const OpenPtr open_;
};

Master::Master(std::vector<WorkerInterface*> workers, MasterOptions options)
    : workers_(std::move(workers)), options_(std::move(options)), monitor_(options_.env, options_.liveness) {}

Master::~Master() { Shutdown().IgnoreError(); }

Status Master::Shutdown() {
  {
    absl::MutexLock lock(&mu_);
    is_down_ = true;
  }
  return CloseAll(Unavailable("the server was stopped"));
}

std::vector<Master::OpenPtr> Master::Sessions() {
  absl::MutexLock lock(&mu_);
  std::vector<OpenPtr> all(connecting_.begin(), connecting_.end());
  for (const auto& [handle, session] : sessions_) all.push_back(session);
  return all;
}

std::vector<std::string> Master::DescribeSteps() {
  std::vector<std::string> lines;
  for (const OpenPtr& o : Sessions()) o->session.coordinator().DescribeSteps(&lines);
  return lines;
}

void Master::Beat() {
  TaskMonitor::Watched watched;
  for (const OpenPtr& o : Sessions()) {
    for (const auto& [worker, session] : o->session.coordinator().Sessions()) {
      std::vector<SessionRef>& sessions = watched[worker];
      if (session.incarnation != 0) sessions.push_back(session);
    }
  }
  watched.erase(workers_.front());  // which is of this process
  monitor_.Beat(watched);
  EndUnheard();
  std::vector<OpenPtr> unended;
  {
    absl::MutexLock lock(&mu_);
    unended.swap(unended_);
  }
  std::erase_if(unended, [](const OpenPtr& o) { return o->session.coordinator().Close(absl::ZeroDuration()).ok(); });
  absl::MutexLock lock(&mu_);
  unended_.insert(unended_.end(), unended.begin(), unended.end());
}

Status Master::Close(OpenPtr open, const Status& why) {
  {
    absl::MutexLock lock(&open->mu);
    open->closed = why;
  }
  const Status s = open->session.coordinator().Close(options_.close_patience);
  open->session.FlushTraces(options_.close_patience);
  absl::MutexLock lock(&mu_);
  if (!s.ok()) unended_.push_back(std::move(open));  // its end would wait for its steps
  return s;
}

Status Master::CloseAll(const Status& why) {
  std::map<std::string, OpenPtr> sessions;
  {
    absl::MutexLock lock(&mu_);
    sessions.swap(sessions_);
  }
  Status first;
  for (auto& [handle, open] : sessions) first.Update(Close(std::move(open), why));
  return first;
}

StatusOr<Master::Using> Master::Find(const std::string& session) {
  absl::MutexLock lock(&mu_);
  if (is_down_) return Unavailable("the server was stopped");
  const auto at = sessions_.find(session);
  if (at != sessions_.end()) return Using(at->second, options_.env);
  const bool has_leases = options_.session_lease < absl::InfiniteDuration();
  return Aborted(
      "Session ", session, " is not found. It was closed, ",
      has_leases ? absl::StrCat("its client was not heard for ", absl::FormatDuration(options_.session_lease), ", ")
                 : "",
      "or the server was restarted.");
}

void Master::EndUnheard(const std::string& handle, absl::Duration silence) {
  const auto at = sessions_.find(handle);
  const OpenPtr open = std::move(at->second);
  sessions_.erase(at);
  {
    absl::MutexLock lock(&open->mu);
    open->closed = Aborted("the session was ended: its client was not heard for ", absl::FormatDuration(silence));
  }
  LogWarning(workers_.front()->task(), ": ended session ", handle, " of ", open->client, ", which was not heard for ",
             absl::FormatDuration(absl::Trunc(silence, absl::Seconds(1))));
  unended_.push_back(open);
}

void Master::EndUnheard() {
  const int64_t now = options_.env->MonotonicNanos();
  absl::MutexLock lock(&mu_);
  std::vector<std::pair<std::string, absl::Duration>> unheard;
  for (const auto& [handle, open] : sessions_) {
    const absl::Duration silence = open->Silence(now);
    if (open->has_lease && silence >= options_.session_lease) unheard.emplace_back(handle, silence);
  }
  for (const auto& [handle, silence] : unheard) EndUnheard(handle, silence);
}

bool Master::MakesRoom() {
  if (sessions_.size() < options_.max_sessions) return true;
  const int64_t now = options_.env->MonotonicNanos();
  std::string longest;
  absl::Duration silence = std::min(options_.least_silence, options_.session_lease);
  for (const auto& [handle, open] : sessions_) {
    if (!open->has_lease || open->Silence(now) < silence) continue;
    silence = open->Silence(now);
    longest = handle;
  }
  if (longest.empty()) return false;
  EndUnheard(longest, silence);
  return true;
}

StatusOr<PingResponse> Master::Ping(const MasterCall&, PingRequest request) {
  if (!request.session.empty()) MR_RETURN_IF_ERROR(Find(request.session).status());
  return PingResponse{};
}

StatusOr<SessionWorkers> Master::WorkersFor(const wire::ConfigProto& config) const {
  SessionWorkers all{workers_, nullptr};
  if (config.cluster_def && !config.cluster_def->job.empty()) {
    if (!options_.workers_of) return Unimplemented("ConfigProto.cluster_def: this master has no server");
    MR_ASSIGN_OR_RETURN(all, options_.workers_of(*config.cluster_def));
  }
  if (config.device_filters.empty()) return all;
  std::vector<WorkerInterface*> chosen = {all.workers.front()};
  for (WorkerInterface* w : absl::MakeConstSpan(all.workers).subspan(1)) {
    bool is_wanted = false;
    for (const std::string& filter : config.device_filters) {
      MR_ASSIGN_OR_RETURN(const bool matches, Matches(filter, w->task()));
      is_wanted |= matches;
    }
    if (is_wanted) chosen.push_back(w);
  }
  return SessionWorkers{std::move(chosen), std::move(all.keep)};
}

StatusOr<CreateSessionResponse> Master::CreateSession(const MasterCall& call, CreateSessionRequest request) {
  const wire::ConfigProto config = WithDefaults(request.config, options_.default_config);
  MR_ASSIGN_OR_RETURN(CoordinatorOptions options, OptionsFrom(config));
  MR_ASSIGN_OR_RETURN(TraceFiles trace_files, TraceFiles::FromEnvironment());
  options.env = options_.env;
  if (options_.liveness.dead < absl::InfiniteDuration()) options.lease = options_.liveness.dead;
  options.isolates_state = config.isolate_session_state;
  options.calls.differentiate = options_.differentiate;
  AskKernels(*options_.kernels, *options_.host, &options.passes);
  MR_ASSIGN_OR_RETURN(SessionWorkers workers, WorkersFor(config));
  auto graph = MakeRef<SharedGraph>(options_.ops);
  {
    const GraphLock lock(&graph->mu);
    MR_RETURN_IF_ERROR(Extend(request.graph, &graph->graph));
  }
  request.graph = {};
  const auto open = std::make_shared<Open>(
      std::move(graph), config, std::move(workers), options_.env->Random64(), std::move(options),
      std::move(trace_files));
  {
    const Connecting connecting(*this, open);
    MR_RETURN_IF_ERROR(Connect(call, open->session, config));
  }
  CreateSessionResponse response;
  response.session = absl::StrFormat("%016x%016x", options_.env->Random64(), options_.env->Random64());
  absl::MutexLock lock(&mu_);
  if (is_down_) return Unavailable("the server was stopped");
  if (!MakesRoom()) {
    return ResourceExhausted("the master has ", sessions_.size(), " open sessions, its limit (MILLRACE_MAX_SESSIONS), ",
                             "and has heard all of their clients lately; close some, or reset it");
  }
  open->client = call.peer != nullptr ? *call.peer : "this process";
  open->has_lease = request.pings && call.peer != nullptr && options_.session_lease < absl::InfiniteDuration();
  open->heard_nanos.store(options_.env->MonotonicNanos());
  if (open->has_lease) {
    const absl::Duration often = std::min(options_.session_lease, options_.least_silence) / 4;
    response.ping_millis = std::max<int64_t>(1, absl::ToInt64Milliseconds(often));
  }
  sessions_.emplace(response.session, open);
  return response;
}

Status Master::Connect(const MasterCall& call, MasterSession& session, const wire::ConfigProto& config) {
  Env& env = *options_.env;
  std::optional<Interrupt> interrupt;
  if (call.interrupt) interrupt.emplace(*call.interrupt, env);
  const InterruptScope scope(interrupt ? &*interrupt : nullptr);
  const int64_t start = env.MonotonicNanos();
  const absl::Duration timeout = TimeoutOf(call, config);
  absl::Duration pause = absl::Milliseconds(20), told = absl::Seconds(10);
  for (;;) {
    const Status s = session.coordinator().Connect();
    if (!absl::IsUnavailable(s)) return s;
    MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
    if (call.cancellation && call.cancellation->IsCancelled()) return call.cancellation->reason();
    const absl::Duration waited = absl::Nanoseconds(env.MonotonicNanos() - start);
    if (waited >= timeout)
      return DeadlineExceeded("CreateSession waited ", absl::FormatDuration(waited), ": ", s.message());
    if (waited >= options_.connect_patience) return s;
    if (waited >= told) {
      LogWarning("CreateSession still waiting: ", s.message());
      told += absl::Seconds(10);
    }
    absl::MutexLock lock(&mu_);
    // Not all at once, when many wait for the same task.
    const double jitter = 0.5 + 0.5 * static_cast<double>(env.Random64() >> 11) / 9007199254740992.0;
    if (env.Await(mu_, absl::Condition(&is_down_), std::min(pause * jitter, timeout - waited))) {
      return Unavailable("the server was stopped");
    }
    pause = std::min(2 * pause, absl::Duration(absl::Seconds(1)));
  }
}

StatusOr<ExtendSessionResponse> Master::ExtendSession(const MasterCall&, ExtendSessionRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  absl::MutexLock extending(&open->extending);
  if (request.graph_version != open->version) {
    return Aborted("the session's graph has version ", open->version, ", the extension is for ", request.graph_version,
                   ": another client has extended it");
  }
  SharedGraph& shared = open->session.graph();
  const GraphLock lock(&shared.mu);
  MR_RETURN_IF_ERROR(Extend(request.graph, &shared.graph));
  return ExtendSessionResponse{++open->version};
}

StatusOr<RunSessionStepResponse> Master::RunStep(const MasterCall& call, RunSessionStepRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  MR_RETURN_IF_ERROR(open->Admit(request));
  MR_ASSIGN_OR_RETURN(const ResolvedStep step, Resolve(open->session.graph(), request.signature));
  RunSessionStepResponse response;
  if (!request.partial_run.empty()) {
    if (!step.targets.empty()) return InvalidArgument("a partial run gets its targets when it is set up");
    response.status = open->session.coordinator().PartialRun(
        request.partial_run, step.feeds, request.feed_values, step.fetches, &response.fetches, call.cancellation);
  } else {
    response.status = open->session.Run(
        {call.cancellation, call.interrupt}, request.has_options ? &request.options : nullptr, step.feeds,
        request.feed_values, step.fetches, step.targets, &response.fetches,
        request.wants_metadata ? &response.metadata : nullptr);
  }
  response.status = open->Told(response.status);
  if (!response.status.ok()) response.fetches.clear();
  return response;
}

StatusOr<SetUpPartialRunResponse> Master::SetUpPartialRun(const MasterCall&, SetUpPartialRunRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  MR_ASSIGN_OR_RETURN(ResolvedStep step, Resolve(open->session.graph(), request.signature));
  StatusOr<std::string> handle = open->session.coordinator().PartialRunSetup(
      {std::move(step.feeds), std::move(step.fetches), std::move(step.targets)});
  if (!handle.ok()) return open->Told(handle.status());
  return SetUpPartialRunResponse{*std::move(handle)};
}

StatusOr<ReleasePartialRunResponse> Master::ReleasePartialRun(const MasterCall&, ReleasePartialRunRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  MR_RETURN_IF_ERROR(open->session.coordinator().ReleasePartialRun(request.partial_run));
  return ReleasePartialRunResponse{};
}

StatusOr<MakeCallableResponse> Master::MakeCallable(const MasterCall&, MakeCallableRequest request) {
  constexpr size_t kMostCallables = 100'000;
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  MR_ASSIGN_OR_RETURN(ResolvedStep step, Resolve(open->session.graph(), request.signature));
  auto callable = std::make_shared<const ResolvedStep>(std::move(step));
  absl::MutexLock lock(&open->mu);
  if (open->callables.size() >= kMostCallables) {
    return ResourceExhausted("the session has ", open->callables.size(), " callables; release some");
  }
  open->callables.emplace(open->next_callable, std::move(callable));
  return MakeCallableResponse{open->next_callable++};
}

StatusOr<RunCallableResponse> Master::RunCallable(const MasterCall& call, RunCallableRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  std::shared_ptr<const ResolvedStep> step;
  {
    absl::MutexLock lock(&open->mu);
    const auto at = open->callables.find(request.callable);
    if (at == open->callables.end()) return InvalidArgument("the session has no callable ", request.callable);
    step = at->second;
  }
  RunCallableResponse response;
  const Status s = open->session.Run({call.cancellation, call.interrupt}, nullptr, step->feeds, request.feed_values,
                                     step->fetches, step->targets, &response.fetches, nullptr);
  if (!s.ok()) return open->Told(s);
  return response;
}

StatusOr<ReleaseCallableResponse> Master::ReleaseCallable(const MasterCall&, ReleaseCallableRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  absl::MutexLock lock(&open->mu);
  open->callables.erase(request.callable);
  return ReleaseCallableResponse{};
}

StatusOr<CloseSessionResponse> Master::CloseSession(const MasterCall&, CloseSessionRequest request) {
  OpenPtr open;
  {
    absl::MutexLock lock(&mu_);
    const auto at = sessions_.find(request.session);
    if (at == sessions_.end()) return CloseSessionResponse{};  // it is closed, which is what was asked for
    open = std::move(at->second);
    sessions_.erase(at);
  }
  MR_RETURN_IF_ERROR(
      Close(std::move(open), Cancelled("Step was cancelled by an explicit call to `Session::Close()`.")));
  return CloseSessionResponse{};
}

StatusOr<ListDevicesResponse> Master::ListDevices(const MasterCall& call, ListDevicesRequest request) {
  ListDevicesResponse response;
  if (!request.session.empty()) {
    MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
    response.devices = open->session.coordinator().ListDevices();
    return response;
  }
  Replies<GetStatusResponse> replies(workers_.size());
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i]->GetStatus({}, {}, replies.For(i));
  const auto answers = replies.Wait(*options_.env, call.timeout);
  MR_RETURN_IF_ERROR(answers.front().status());
  for (const StatusOr<GetStatusResponse>& r : answers) {
    if (!r.ok()) continue;  // it is not there
    response.devices.insert(response.devices.end(), r->devices.begin(), r->devices.end());
  }
  return response;
}

StatusOr<ResetMasterResponse> Master::Reset(const MasterCall& call, ResetMasterRequest request) {
  wire::ConfigProto of_tasks;
  of_tasks.device_filters = request.device_filters;
  MR_ASSIGN_OR_RETURN(const SessionWorkers of_filters, WorkersFor(of_tasks));
  const std::vector<WorkerInterface*>& workers = of_filters.workers;
  Status first = CloseAll(Aborted("the session was closed: the server was reset"));
  Replies<ResetResponse> replies(workers.size());
  for (size_t i = 0; i < workers.size(); ++i)
    workers[i]->Reset({}, {OnWorker(request.containers, *workers[i])}, replies.For(i));
  const auto answers = replies.Wait(*options_.env, call.timeout);
  for (size_t i = 0; i < workers.size(); ++i) {
    first.Update(Annotate(answers[i].status(), absl::StrCat("worker ", workers[i]->task(), ": ")));
  }
  if (!first.ok()) return first;
  return ResetMasterResponse{};
}

StatusOr<ExplainStepResponse> Master::ExplainStep(const MasterCall&, ExplainStepRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  MR_ASSIGN_OR_RETURN(ResolvedStep step, Resolve(open->session.graph(), request.signature));
  MR_ASSIGN_OR_RETURN(
      Explanation told,
      open->session.coordinator().Explain({std::move(step.feeds), std::move(step.fetches), std::move(step.targets)}));
  return ExplainStepResponse{std::move(told.text), std::move(told.json)};
}

StatusOr<GetSessionRandomResponse> Master::GetSessionRandom(const MasterCall&, GetSessionRandomRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  MR_ASSIGN_OR_RETURN(RandomPositions positions, open->session.coordinator().GetRandomPositions());
  return GetSessionRandomResponse{std::move(positions)};
}

StatusOr<SetSessionRandomResponse> Master::SetSessionRandom(const MasterCall&, SetSessionRandomRequest request) {
  MR_ASSIGN_OR_RETURN(const Using open, Find(request.session));
  MR_RETURN_IF_ERROR(open->session.coordinator().SetRandomPositions(request.positions));
  return SetSessionRandomResponse{};
}

}  // namespace millrace
