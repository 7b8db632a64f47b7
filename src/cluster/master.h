// SPDX-License-Identifier: Apache-2.0
// Master: what a server is to clients. It has sessions, each over the workers of all tasks of the cluster that its
// configuration's filters leave, its own task first. State is the workers', so that sessions share it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/liveness.h"
#include "cluster/master_interface.h"
#include "cluster/task_monitor.h"
#include "kernel/kernel_registry.h"
#include "service/master_session.h"

namespace millrace {

// Held by those who use them.
struct SessionWorkers {
  std::vector<WorkerInterface*> workers;  // the master's own first
  std::shared_ptr<void> keep;             // null: they outlive the master
};

struct MasterOptions {
  Env* env = nullptr;
  const OpRegistry* ops = nullptr;
  const KernelRegistry* kernels = nullptr;
  Device* host = nullptr;  // where constants are folded
  Differentiate differentiate;
  wire::ConfigProto default_config;  // for what the configuration of a session leaves unset
  size_t max_sessions = 1000;
  absl::Duration connect_patience = absl::Minutes(10);  // of a new session, for workers that are not there yet
  absl::Duration close_patience = absl::Seconds(10);
  // A session is ended when its client, another process, has not been heard for so long; infinite: never. Where there
  // are too many sessions a new one takes the place of that which has been silent longest, from `least_silence` on.
  absl::Duration session_lease = absl::Minutes(10), least_silence = absl::Minutes(1);
  Liveness liveness;
  // Of a session with a cluster of its own (ConfigProto.cluster_def). Null: there are no such sessions.
  std::function<StatusOr<SessionWorkers>(const wire::ClusterDef&)> workers_of;
};

class Master final : public MasterInterface {
 public:
  // The workers are those of all tasks, the master's own first. They outlive it, as does what `options` points to.
  Master(std::vector<WorkerInterface*> workers, MasterOptions options);
  // Closes its sessions. REQUIRES: no call is under way.
  ~Master() override;

#define MR_DECLARE(Method, Request, Response) \
  StatusOr<Response> Method(const MasterCall& call, Request request) override;
  MR_MASTER_METHODS(MR_DECLARE)
#undef MR_DECLARE

  // Closes its sessions, so that calls come back, and refuses new ones. DeadlineExceeded when steps do not end: who
  // owns the master must not destroy it then.
  Status Shutdown();
  // Looks after the tasks of its sessions, and ends those whose clients are gone. To be called each period of the
  // liveness.
  void Beat();
  // Which tasks the steps of its sessions wait for, line by line.
  std::vector<std::string> DescribeSteps();

 private:
  struct Open;
  using OpenPtr = std::shared_ptr<Open>;
  class Connecting;
  class Using;
  std::vector<OpenPtr> Sessions();                   // also those that are being made
  StatusOr<Using> Find(const std::string& session);  // for a call
  Status Connect(const MasterCall& call, MasterSession& session, const wire::ConfigProto& config);
  // `why` is what clients are told whose steps this ends.
  Status Close(OpenPtr open, const Status& why);
  Status CloseAll(const Status& why);
  void EndUnheard();
  // Of a session whose client has not been heard for `silence`: the beat ends its steps, if there are any.
  void EndUnheard(const std::string& handle, absl::Duration silence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MakesRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of the master's own cluster, or of that which the session's configuration has.
  StatusOr<SessionWorkers> WorkersFor(const wire::ConfigProto& config) const;

  const std::vector<WorkerInterface*> workers_;
  const MasterOptions options_;
  absl::Mutex mu_;
  bool is_down_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, OpenPtr> sessions_ ABSL_GUARDED_BY(mu_);
  std::set<OpenPtr> connecting_ ABSL_GUARDED_BY(mu_);  // sessions that wait for their workers
  std::vector<OpenPtr> unended_ ABSL_GUARDED_BY(mu_);  // closed ones, with steps that do not end
  TaskMonitor monitor_;
};

}  // namespace millrace
