// SPDX-License-Identifier: Apache-2.0
// The workers of a cluster as one of its tasks reaches them: its own and those of servers of the same process by call,
// all others by messages.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/channels.h"
#include "cluster/cluster_spec.h"
#include "service/worker_interface.h"

namespace millrace {

class TaskDirectory final : public WorkerDirectory {
 public:
  // `channels` outlives it. `all_by_messages`: also to servers of this process. `of_sessions` (may have no jobs): what
  // servers are to know of a cluster that is that of sessions alone; then the own task is reached like others, too.
  TaskDirectory(const ClusterSpec& cluster, const std::string& own_task, Channels* channels, bool all_by_messages,
                const wire::ClusterDef& of_sessions = {});
  ~TaskDirectory() override;

  // Before the first call of another method.
  void SetOwn(WorkerInterface* worker) { own_ = worker; }
  // Gives up all calls to other tasks, whose replies may need any of the workers, and refuses others.
  void Close();
  WorkerInterface* Find(absl::string_view task) override;
  // Task 0 of the first job of: chief, master, worker, any.
  std::string CollectiveLeader() const override { return leader_; }
  // Of all tasks, the own first.
  std::vector<WorkerInterface*> All() const;
  // Of a cluster in which whoever listens at an address is what the cluster calls it. Its sessions are told of it.
  // PermissionDenied: see KeepSessionsWithin. ResourceExhausted when 100 such clusters are in use.
  StatusOr<std::shared_ptr<WorkerDirectory>> Of(const wire::ClusterDef& cluster, const std::string& own_task) override;
  // The same for a session of this task's master, which listens at `own`.
  StatusOr<std::shared_ptr<TaskDirectory>> AllOf(const wire::ClusterDef& cluster, const HostPort& own);
  // From now on such clusters may have the addresses of this one's tasks, and `own`, but no others: sessions make
  // servers connect to them.
  void KeepSessionsWithin(const HostPort& own);
  // Ends those that nobody has asked for since the last call and nobody holds: their last messages are on their way
  // before that. Waits for replies: not to be called by one.
  void EndUnused();

 private:
  class TaskWorker;
  struct OfSessions {
    std::shared_ptr<TaskDirectory> directory;
    bool is_new = true;  // since the last EndUnused
  };
  StatusOr<std::shared_ptr<TaskDirectory>> Find(const wire::ClusterDef& cluster, const std::string& own_task);

  const std::string own_task_;
  Channels* const channels_;
  const bool all_by_messages_;
  std::string leader_;
  WorkerInterface* own_ = nullptr;
  std::vector<std::unique_ptr<TaskWorker>> others_;
  absl::Mutex mu_;
  std::map<std::string, OfSessions> of_sessions_ ABSL_GUARDED_BY(mu_);  // by cluster and own task
  bool keeps_within_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::string> addresses_ ABSL_GUARDED_BY(mu_);  // that clusters of sessions may have then
};

}  // namespace millrace
