// SPDX-License-Identifier: Apache-2.0
#include "cluster/server.h"

#include <atomic>

#include "absl/base/call_once.h"
#include "absl/strings/match.h"
#include "base/logging.h"
#include "cluster/master_service.h"
#include "cluster/wait_for_replies.h"
#include "cluster/worker_service.h"
#include "tensor/prepared.h"

namespace millrace {
namespace {

constexpr absl::Duration kStopPatience = absl::Seconds(10);

}  // namespace

// What comes from other processes, while the server is started.
class Server::Handler final : public RpcHandler {
 public:
  Handler(Master* master, Worker* worker, const MasterOptions& options)
      : master_(master, options.env), worker_(worker, options.ops, options.env), task_(worker->task()) {}
  void SetOpen(bool is_open) { is_open_.store(is_open); }

  void Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) override {
    if (!is_open_.load()) return std::move(reply)(Unavailable("the server of ", task_, " is not started, or stopped"));
    const bool is_for_worker = absl::StartsWith(method, "Worker.");
    RpcHandler& service = is_for_worker ? static_cast<RpcHandler&>(worker_) : master_;
    service.Handle(method, context, std::move(request), std::move(reply));
  }

 private:
  MasterService master_;
  WorkerService worker_;
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

  env_ = parts.master.env;
  tasks_ = std::make_unique<TaskDirectory>(cluster, own, parts.channels, parts.all_by_messages);
  worker_ = std::make_unique<Worker>(std::move(devices), parts.master.kernels, tasks_.get(), env_->Random64());
  tasks_->SetOwn(worker_.get());
  MasterOptions options = parts.master;
  options.host = &worker_->host();
  options.default_config = config;
  master_ = std::make_unique<Master>(tasks_->All(), std::move(options));

  handler_ = std::make_unique<Handler>(master_.get(), worker_.get(), parts.master);
  MR_RETURN_IF_ERROR(TakeAddress({own, master_.get(), worker_.get()}, parts.channels));
  target_ = absl::StrCat("grpc://", address_.ToString());
  return absl::OkStatus();
}

Status Server::TakeAddress(const LocalServer& mine, Channels* channels) {
  constexpr char kCannot[] = "Could not start gRPC server: ";
  const auto claim = [&] {
    has_address_ = LocalServers::Get().Add(address_, mine);
    if (has_address_) return absl::OkStatus();
    return Unknown(kCannot, address_.ToString(), " is taken by another server of this process");
  };
  if (address_.port != 0) MR_RETURN_IF_ERROR(claim());
  const StatusOr<RpcTransport*> transport = channels->transport();
  if (absl::IsUnimplemented(transport.status())) {
    static absl::once_flag told;
    absl::call_once(
        told, [&] { LogInfo("servers can be reached from this process only: ", transport.status().message()); });
    if (!has_address_) address_ = LocalServers::Get().AddAnywhere(address_.host, mine);
    has_address_ = true;
    return absl::OkStatus();
  }
  MR_RETURN_IF_ERROR(transport.status());
  RpcServerOptions options;
  options.address = address_.ToString();
  StatusOr<std::unique_ptr<RpcServer>> rpc = (*transport)->Listen(options, handler_.get());
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
  rpc_.reset();
  handler_.reset();
  master_.reset();
  if (tasks_) tasks_->Close();
  worker_.reset();
  if (tasks_) DropUnusedPreparedForms();  // of what went with the worker
}

Status Server::Start() {
  absl::MutexLock lock(&mu_);
  if (state_ == State::kStarted) return absl::OkStatus();
  if (state_ != State::kNew || !may_start_) return FailedPrecondition("Server has stopped.");
  state_ = State::kStarted;
  LocalServers::Get().Open(address_);
  handler_->SetOpen(true);
  return absl::OkStatus();
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
  Status s;
  if (has_address_) {
    LocalServers::Get().Withdraw(address_);
    handler_->SetOpen(false);
    master_->Shutdown();
    Replies<ResetResponse> reset(1);
    worker_->Reset({}, {}, reset.For(0));
    s = reset.Wait(*env_, kStopPatience).front().status();
    rpc_.reset();
    LocalServers::Get().Remove(address_, *env_);
  }
  absl::MutexLock lock(&mu_);
  state_ = State::kStopped;
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
