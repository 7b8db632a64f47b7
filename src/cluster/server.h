// SPDX-License-Identifier: Apache-2.0
// Server: what a process that is a task of a cluster has: a Worker with the task's devices, a Master for clients, and
// an address. Where no transport can be loaded, those of other processes cannot reach it. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cluster/access.h"
#include "cluster/channels.h"
#include "cluster/keeper.h"
#include "cluster/local_servers.h"
#include "cluster/master.h"
#include "cluster/server_status.h"
#include "cluster/task_directory.h"
#include "service/worker.h"

namespace millrace {

// What a server is made of.
struct ServerParts {
  // The task's devices; their names begin with `task`, which has job, replica and task.
  std::function<StatusOr<std::vector<std::unique_ptr<Device>>>(const DeviceName& task, const wire::ConfigProto& config)>
      make_devices;
  MasterOptions master;               // without `host` and `default_config`
  Channels* channels = nullptr;       // outlives the server
  bool all_by_messages = false;       // also to tasks of this process
  std::string bind;                   // "host" or "host:port" to listen at, instead of the task's address
  bool allows_any_cluster = false;    // whether clusters that sessions bring may have addresses of others than its own
  bool roles_by_certificate = false;  // whether callers are what their certificates say, or everybody everything
  int64_t max_steps = 1000;           // of clients, under way at once
  int64_t max_calls = 20'000;         // of one task, under way at once: pulls of tensors and parts of steps
  int64_t max_message_bytes = int64_t{4} << 30;
  int64_t max_control_bytes = int64_t{16} << 20;  // of a message that carries no graph and no tensor
  int64_t max_connections = 0;                    // RpcServerOptions::max_connections
  int64_t max_connection_bytes = 0;               // RpcServerOptions::max_connection_bytes
  bool is_insecure_remote = false;  // whoever reaches it may run graphs; then the log says so, again and again
  absl::Duration reminder_period = absl::Minutes(1);
  std::shared_ptr<void> keep;  // what the devices live on; dropped behind them
};

class Server {
 public:
  // Takes the task's address; nobody is answered before Start. InvalidArgument for a definition that makes no sense,
  // NotFound for a protocol other than "grpc", Unknown when the address is taken.
  static StatusOr<std::unique_ptr<Server>> New(const wire::ServerDef& def, const ServerParts& parts);
  // Stops it. When steps do not end, what they use is left behind.
  ~Server();

  // FailedPrecondition once it was stopped or, before its start, joined.
  Status Start();
  // Ends its sessions, and those of other masters on its worker, and drops all state. Idempotent. DeadlineExceeded when
  // a step does not end.
  Status Stop();
  // Returns when it is stopped; at once if it was not started, and then it cannot be any more.
  Status Join();
  // Which steps are under way here, and what each waits for, for people. FailedPrecondition once it is stopped.
  StatusOr<std::string> DescribeSteps();
  const std::string& target() const { return target_; }  // "grpc://host:port", with the port that was got
  std::string StatusAsJson() const;                      // ServerMeter::Json

 private:
  enum class State : uint8_t { kNew, kStarted, kStopping, kStopped };
  class Handler;
  Server();
  Status End();
  void ReportStalledSteps();
  void RemindOfInsecurity();
  void LeaveBehind();
  Status TakeAddress(const LocalServer& mine, const ServerParts& parts);
  Status Build(const wire::ServerDef& def, const ServerParts& parts);

  std::shared_ptr<void> keep_;
  Env* env_ = nullptr;
  Liveness liveness_;
  absl::Duration reminder_period_ = absl::InfiniteDuration();  // of its insecurity
  int64_t reminded_nanos_ = 0;                                 // the keeper's
  HostPort address_;
  std::string target_;
  std::unique_ptr<TaskDirectory> tasks_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<ServerMeter> meter_;
  std::unique_ptr<Master> master_;
  std::unique_ptr<MeteredMaster> metered_;  // what callers see
  std::unique_ptr<Handler> handler_;
  std::unique_ptr<RpcServer> rpc_;  // null: there is no transport
  std::unique_ptr<Keeper> keeper_;  // null: it is not started
  bool has_address_ = false;
  bool is_left_behind_ = false;  // set by End
  absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kNew;
  bool may_start_ ABSL_GUARDED_BY(mu_) = true;
};

}  // namespace millrace
