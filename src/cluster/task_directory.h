// SPDX-License-Identifier: Apache-2.0
// The workers of a cluster as one of its tasks reaches them: its own and those of servers of the same process by call,
// all others by messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/channels.h"
#include "cluster/cluster_spec.h"
#include "service/worker_interface.h"

namespace millrace {

class TaskDirectory final : public WorkerDirectory {
 public:
  // `channels` outlives it. `all_by_messages`: also to servers of this process.
  TaskDirectory(const ClusterSpec& cluster, const std::string& own_task, Channels* channels, bool all_by_messages);
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

 private:
  class TaskWorker;
  const std::string own_task_;
  std::string leader_;
  WorkerInterface* own_ = nullptr;
  std::vector<std::unique_ptr<TaskWorker>> others_;
};

}  // namespace millrace
