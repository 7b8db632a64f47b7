// SPDX-License-Identifier: Apache-2.0
// The workers of a cluster as one of its tasks reaches them: its own and those of servers of the same process by call,
// all others by messages.
#pragma once

#include <map>
#include <memory>
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
  StatusOr<WorkerDirectory*> Of(const wire::ClusterDef& cluster, const std::string& own_task) override;
  // The same for a session of this task's master, which listens at `own`: all its workers, the own first.
  StatusOr<std::vector<WorkerInterface*>> AllOf(const wire::ClusterDef& cluster, const HostPort& own);

 private:
  class TaskWorker;
  StatusOr<TaskDirectory*> Find(const wire::ClusterDef& cluster, const std::string& own_task);

  const std::string own_task_;
  Channels* const channels_;
  const bool all_by_messages_;
  std::string leader_;
  WorkerInterface* own_ = nullptr;
  std::vector<std::unique_ptr<TaskWorker>> others_;
  absl::Mutex mu_;
  // By cluster and own task. They last, since workers' sessions and calls under way refer to them.
  std::map<std::string, std::unique_ptr<TaskDirectory>> of_sessions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
