// SPDX-License-Identifier: Apache-2.0
// Whether the tasks of a master's sessions are alive.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/liveness.h"
#include "service/worker_interface.h"

namespace millrace {

// Sends heartbeats, and says of a worker that answers none that it is dead (WorkerInterface::SetDead), until it answers
// again. Time in which this process does not run itself does not count against others. Thread-safe.
class TaskMonitor {
 public:
  TaskMonitor(Env* env, const Liveness& liveness);
  // Gives up the heartbeats under way; their answers may come later.
  ~TaskMonitor();

  // In the order of their names, so that a simulated world is the same each time.
  struct ByTask {
    bool operator()(const WorkerInterface* a, const WorkerInterface* b) const { return a->task() < b->task(); }
  };
  // To be called each period: the workers that are needed now, one a task, and the sessions that they have.
  using Watched = std::map<WorkerInterface*, std::vector<SessionRef>, ByTask>;
  void Beat(const Watched& watched);

 private:
  struct Task;
  static void Tell(Task& task);
  static void Send(const std::shared_ptr<Task>& task, std::vector<SessionRef> sessions);
  static void Answer(const std::shared_ptr<Task>& task, const StatusOr<HeartbeatResponse>& response);
  void Judge(Task& task, absl::Duration elapsed);

  Env* const env_;
  const Liveness liveness_;
  absl::Mutex mu_;
  int64_t last_beat_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<WorkerInterface*, std::shared_ptr<Task>, ByTask> tasks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
