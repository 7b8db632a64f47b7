// SPDX-License-Identifier: Apache-2.0
#include "cluster/server.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "absl/base/call_once.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/logging.h"
#include "cluster/caller_limits.h"
#include "cluster/master_service.h"
#include "cluster/wait_for_replies.h"
#include "cluster/worker_service.h"
#include "tensor/prepared.h"

namespace millrace {
namespace {

constexpr absl::Duration kStopPatience = absl::Seconds(10);

// What others under way may wait for: it must come through when they are too many.
bool EndsSomething(absl::string_view method) {
  constexpr absl::string_view kAll[] = {
      "Worker.AbortStep", "Worker.CleanUpSteps", "Worker.DeleteSession",     "Worker.DeregisterPartitions",
      "Worker.Heartbeat", "Worker.GetStatus",    "Worker.AbortCollective",   "Worker.Reset",
      "Master.Reset",     "Master.CloseSession", "Master.ReleasePartialRun", "Master.ReleaseCallable",
      "Master.Ping",
  };
  return std::find(std::begin(kAll), std::end(kAll), method) != std::end(kAll);
}

// Whose requests are as large as tensors and graphs are.
bool CarriesMuch(absl::string_view method) {
  constexpr absl::string_view kAll[] = {
      "Master.CreateSession", "Master.ExtendSession",   "Master.RunStep",    "Master.RunCallable",
      "Worker.RunStep",       "Worker.ExchangeTensors", "Worker.SendTensor", "Worker.RegisterPartitions",
  };
  return std::find(std::begin(kAll), std::end(kAll), method) != std::end(kAll);
}

}  // namespace

// What comes from other processes, while the server is started.
class Server::Handler final : public RpcHandler {
 public:
  Handler(MasterInterface* master, Worker* worker, ServerMeter* meter, const ServerParts& parts)
      : master_(master, parts.master.env),
        worker_(worker, parts.master.ops, parts.master.env),
        own_worker_(worker),
        meter_(meter),
        by_certificate_(parts.roles_by_certificate),
        max_control_bytes_(parts.max_control_bytes),
        of_tasks_("MILLRACE_MAX_CALLS", parts.max_calls),
        // The steps that it may run, and as many calls that make, change and end sessions; each has a thread.
        of_clients_("MILLRACE_MAX_STEPS", parts.max_steps, CallerLimits::kReserve),
        guard_(parts.master.env, worker->task()),
        task_(worker->task()) {}
  void SetOpen(bool is_open) { is_open_.store(is_open); }

  void Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) override {
    if (by_certificate_) {
      if (Status s = guard_.Check(method, context); !s.ok()) return std::move(reply)(std::move(s));
    }
    if (!is_open_.load()) return std::move(reply)(Unavailable("the server of ", task_, " is not started, or stopped"));
    if (method == kGetStatusMethod) return std::move(reply)(absl::Cord(StatusAsJson()));
    const auto bytes_in = static_cast<int64_t>(request.size());
    if (bytes_in > max_control_bytes_ && !CarriesMuch(method)) {
      return std::move(reply)(ResourceExhausted(
          task_, ": a request of ", bytes_in, " bytes for ", method.substr(0, 100), "; the server takes ",
          max_control_bytes_, " where no graph and no tensor is in it (MILLRACE_MAX_CONTROL_BYTES)"));
    }
    const bool is_of_task = absl::StartsWith(method, "Worker.");
    StatusOr<CallerLimits::Hold> place =
        (is_of_task ? of_tasks_ : of_clients_).Begin(context.peer, EndsSomething(method));
    if (!place.ok()) return std::move(reply)(Annotate(place.status(), absl::StrCat(task_, ": ")));
    if (!is_of_task) {
      return master_.Handle(
          method, context, std::move(request),
          [meter = meter_, bytes_in, place = *std::move(place),
           reply = std::move(reply)](StatusOr<absl::Cord> answer) mutable {
            place.Over();
            meter->CountBytes(bytes_in, answer.ok() ? static_cast<int64_t>(answer->size()) : 0);
            std::move(reply)(std::move(answer));
          });
    }
    const auto kind = method == "Worker.RunStep" ? ServerMeter::Kind::kPartOfStep : ServerMeter::Kind::kOther;
    const int64_t call = meter_->Begin(method, context.peer, kind);
    worker_.Handle(
        method, context, std::move(request),
        [meter = meter_, bytes_in, call, place = *std::move(place),
         reply = std::move(reply)](StatusOr<absl::Cord> answer) mutable {
          place.Over();
          meter->CountBytes(bytes_in, answer.ok() ? static_cast<int64_t>(answer->size()) : 0);
          meter->End(call, answer.ok());
          std::move(reply)(std::move(answer));
        });
  }

  std::string StatusAsJson() {
    GetStatusResponse worker;  // which answers at once
    own_worker_->GetStatus({}, {}, [&](StatusOr<GetStatusResponse> got) {
      if (got.ok()) worker = *std::move(got);
    });
    return meter_->Json(worker, guard_.refused());
  }

 private:
  MasterService master_;
  WorkerService worker_;
  Worker* const own_worker_;
  ServerMeter* const meter_;
  const bool by_certificate_;
  const int64_t max_control_bytes_;
  CallerLimits of_tasks_, of_clients_;
  AccessGuard guard_;
  const std::string task_;
  std::atomic<bool> is_open_{false};
};

Server::Server() = default;

StatusOr<std::unique_ptr<Server>> Server::New(const wire::ServerDef& def, const ServerParts& parts) {
  auto server = std::unique_ptr<Server>(new Server());
  MR_RETURN_IF_ERROR(server->Build(def, parts));
  return server;
}

Status Server::Build(const wire::ServerDef& def, const ServerParts& parts) {
  if (def.protocol != "grpc") {
    return NotFound(
        "No server factory registered for the given ServerDef: protocol is \"", def.protocol, "\", want \"grpc\"");
  }
  MR_ASSIGN_OR_RETURN(ClusterSpec cluster, ClusterSpec::Make(def.cluster ? *def.cluster : wire::ClusterDef()));
  const ClusterTask* const task = cluster.Find(def.job_name, def.task_index);
  if (task == nullptr) {
    return InvalidArgument("task ", def.task_index, " of job '", def.job_name, "' is not in the cluster");
  }
  const std::string own = task->name();
  MR_ASSIGN_OR_RETURN(address_, ParseHostPort(task->address));
  const wire::ConfigProto config = def.default_session_config ? *def.default_session_config : wire::ConfigProto();
  MR_ASSIGN_OR_RETURN(
      std::vector<std::unique_ptr<Device>> devices,
      parts.make_devices({.job = def.job_name, .replica = 0, .task = def.task_index, .type = "", .id = -1}, config));
  if (devices.empty()) return InvalidArgument("task ", own, " has no devices");

  keep_ = parts.keep;
  env_ = parts.master.env;
  liveness_ = parts.master.liveness;
  if (parts.is_insecure_remote) reminder_period_ = parts.reminder_period;
  tasks_ = std::make_unique<TaskDirectory>(cluster, own, parts.channels, parts.all_by_messages);
  worker_ = std::make_unique<Worker>(std::move(devices), parts.master.kernels, tasks_.get(), env_->Random64());
  worker_->OutliveSessions();
  tasks_->SetOwn(worker_.get());
  MasterOptions options = parts.master;
  options.host = &worker_->host();
  options.default_config = config;
  options.workers_of = [this](const wire::ClusterDef& of) -> StatusOr<SessionWorkers> {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<TaskDirectory> tasks, tasks_->AllOf(of, address_));
    std::vector<WorkerInterface*> workers = tasks->All();
    return SessionWorkers{std::move(workers), std::move(tasks)};
  };
  master_ = std::make_unique<Master>(tasks_->All(), std::move(options));

  meter_ = std::make_unique<ServerMeter>(env_, cluster, own);
  metered_ = std::make_unique<MeteredMaster>(master_.get(), meter_.get(), parts.max_steps);
  handler_ = std::make_unique<Handler>(metered_.get(), worker_.get(), meter_.get(), parts);
  MR_RETURN_IF_ERROR(TakeAddress({own, metered_.get(), worker_.get()}, parts));
  if (!parts.allows_any_cluster) tasks_->KeepSessionsWithin(address_);
  target_ = absl::StrCat("grpc://", address_.ToString());
  return absl::OkStatus();
}

std::string Server::StatusAsJson() const { return handler_->StatusAsJson(); }

Status Server::TakeAddress(const LocalServer& mine, const ServerParts& parts) {
  constexpr char kCannot[] = "Could not start gRPC server: ";
  const auto claim = [&] {
    has_address_ = LocalServers::Get().Add(address_, mine);
    if (has_address_) return absl::OkStatus();
    return Unknown(kCannot, address_.ToString(), " is taken by another server of this process");
  };
  if (address_.port != 0) MR_RETURN_IF_ERROR(claim());
  RpcServerOptions options;
  options.address = address_.ToString();
  if (!parts.bind.empty()) {
    const bool has_port = parts.bind.rfind(':') != std::string::npos && parts.bind.back() != ']';
    options.address = has_port ? parts.bind : HostPort{parts.bind, address_.port}.ToString();
  }
  options.max_message_bytes = parts.max_message_bytes;
  options.max_connections = parts.max_connections;
  options.max_connection_bytes = parts.max_connection_bytes;
  const auto listen = [&]() -> StatusOr<std::unique_ptr<RpcServer>> {
    MR_ASSIGN_OR_RETURN(RpcTransport * transport, parts.channels->transport());
    return transport->Listen(options, handler_.get());
  };
  StatusOr<std::unique_ptr<RpcServer>> rpc = listen();
  if (absl::IsUnimplemented(rpc.status())) {
    static absl::once_flag told;
    absl::call_once(
        told, [&] { LogWarning("servers can be reached from this process only: ", rpc.status().message()); });
    if (!has_address_) address_ = LocalServers::Get().AddAnywhere(address_.host, mine);
    has_address_ = true;
    return absl::OkStatus();
  }
  if (absl::IsUnavailable(rpc.status()) || absl::IsAlreadyExists(rpc.status())) {
    return Unknown(kCannot, rpc.status().message());
  }
  MR_RETURN_IF_ERROR(Annotate(rpc.status(), kCannot));
  rpc_ = *std::move(rpc);
  if (has_address_) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const HostPort got, ParseHostPort(rpc_->address()));
  address_.port = got.port;
  return claim();
}

Server::~Server() {
  Stop().IgnoreError();
  if (is_left_behind_) {
    LeaveBehind();
    return;
  }
  rpc_.reset();
  handler_.reset();
  metered_.reset();
  master_.reset();
  if (tasks_) tasks_->Close();
  worker_.reset();
  if (tasks_) DropUnusedPreparedForms();  // of what went with the worker
}

// A kernel that never returns goes on using all of it, until the process ends: waiting for it would hang as it does.
void Server::LeaveBehind() {
  static_cast<void>(rpc_.release());
  static_cast<void>(handler_.release());
  static_cast<void>(metered_.release());
  static_cast<void>(meter_.release());
  static_cast<void>(master_.release());
  static_cast<void>(worker_.release());
  static_cast<void>(tasks_.release());
  static_cast<void>(new std::shared_ptr<void>(std::move(keep_)));
}

Status Server::Start() {
  absl::MutexLock lock(&mu_);
  if (state_ == State::kStarted) return absl::OkStatus();
  if (state_ != State::kNew || !may_start_) return FailedPrecondition("Server has stopped.");
  MR_ASSIGN_OR_RETURN(keeper_, Keeper::Start(env_, liveness_.period, [this] {
                        worker_->EndLost();
                        master_->Beat();
                        tasks_->EndUnused();  // behind the beat, which lets go of their tasks
                        ReportStalledSteps();
                        RemindOfInsecurity();
                      }));
  state_ = State::kStarted;
  LocalServers::Get().Open(address_);
  handler_->SetOpen(true);
  return absl::OkStatus();
}

StatusOr<std::string> Server::DescribeSteps() {
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kStopping || state_ == State::kStopped) return FailedPrecondition("Server has stopped.");
  }
  std::vector<std::string> lines = master_->DescribeSteps(), here = worker_->DescribeSteps();
  lines.insert(lines.end(), here.begin(), here.end());
  return absl::StrCat(
      worker_->task(), lines.empty() ? ": no step is under way" : ":\n  ", absl::StrJoin(lines, "\n  "));
}

void Server::RemindOfInsecurity() {
  const int64_t now = env_->MonotonicNanos();
  const bool is_time = reminded_nanos_ == 0 || absl::Nanoseconds(now - reminded_nanos_) >= reminder_period_;
  if (reminder_period_ == absl::InfiniteDuration() || !is_time) return;
  reminded_nanos_ = now;
  LogWarning(worker_->task(), ": INSECURE: whoever reaches ", address_.ToString(),
             " may run graphs here, unencrypted and without a certificate (MILLRACE_ALLOW_INSECURE_REMOTE)");
}

void Server::ReportStalledSteps() {
  if (liveness_.stalled == absl::InfiniteDuration()) return;
  const std::vector<std::string> lines = worker_->DescribeStalledSteps(liveness_.stalled);
  if (lines.empty()) return;
  const std::vector<std::string> waiting = master_->DescribeSteps();
  LogWarning(worker_->task(), ": nothing has happened for ", absl::FormatDuration(liveness_.stalled), " in:\n  ",
             absl::StrJoin(lines, "\n  "), waiting.empty() ? "" : "\n  and at its master:\n  ",
             absl::StrJoin(waiting, "\n  "));
}

Status Server::Stop() {
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kStopped) return absl::OkStatus();
    if (state_ == State::kStopping) {
      env_->Await(mu_, absl::Condition(+[](State* s) { return *s == State::kStopped; }, &state_));
      return absl::OkStatus();
    }
    state_ = State::kStopping;
  }
  const Status s = has_address_ ? End() : absl::OkStatus();
  absl::MutexLock lock(&mu_);
  state_ = State::kStopped;
  return s;
}

Status Server::End() {
  keeper_.reset();
  LocalServers::Get().Withdraw(address_);
  handler_->SetOpen(false);
  Status s = master_->Shutdown();
  Replies<ResetResponse> reset(1);
  worker_->Reset({}, {.containers = {}, .closes_all = true}, reset.For(0));
  s.Update(reset.Wait(*env_, kStopPatience).front().status());
  if (absl::IsDeadlineExceeded(s)) {
    LogWarning("the server at ", address_.ToString(), " leaves behind steps that do not end");
    is_left_behind_ = true;
    return Annotate(s, absl::StrCat("the server at ", address_.ToString(), " was stopped, but not all of its steps: "));
  }
  rpc_.reset();
  LocalServers::Get().Remove(address_, *env_);
  return s;
}

Status Server::Join() {
  absl::MutexLock lock(&mu_);
  if (state_ == State::kNew) {
    may_start_ = false;
    return absl::OkStatus();
  }
  env_->Await(mu_, absl::Condition(+[](State* s) { return *s == State::kStopped; }, &state_));
  return absl::OkStatus();
}

}  // namespace millrace
