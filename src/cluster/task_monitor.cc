// SPDX-License-Identifier: Apache-2.0
#include "cluster/task_monitor.h"

#include <algorithm>
#include <utility>

#include "base/exceptions.h"
#include "base/logging.h"
#include "kernel/cancellation.h"

namespace millrace {

// A worker that is watched. Held by the heartbeat that is under way too.
struct TaskMonitor::Task {
  explicit Task(WorkerInterface* w) : worker(w) {}
  WorkerInterface* const worker;
  CancellationManager gives_up;  // with the monitor, or when nobody needs the worker any more
  absl::Mutex mu;
  bool is_asked ABSL_GUARDED_BY(mu) = false;  // a heartbeat is under way
  absl::Duration silence ABSL_GUARDED_BY(mu) = absl::ZeroDuration();
  bool is_suspect ABSL_GUARDED_BY(mu) = false;
  Status dead ABSL_GUARDED_BY(mu);               // not OK: it is
  uint64_t incarnation ABSL_GUARDED_BY(mu) = 0;  // 0: not known yet
};

TaskMonitor::TaskMonitor(Env* env, const Liveness& liveness) : env_(env), liveness_(liveness) {}

TaskMonitor::~TaskMonitor() { Beat({}); }

void TaskMonitor::Beat(const Watched& watched) {
  if (liveness_.dead == absl::InfiniteDuration()) return;
  std::vector<std::shared_ptr<Task>> dropped, asked;
  absl::Duration elapsed;
  {
    absl::MutexLock lock(&mu_);
    const int64_t now = env_->MonotonicNanos();
    elapsed = std::min(absl::Nanoseconds(now - std::exchange(last_beat_, now)), 2 * liveness_.period);
    for (auto at = tasks_.begin(); at != tasks_.end();) {
      if (watched.contains(at->first)) {
        ++at;
        continue;
      }
      dropped.push_back(std::move(at->second));
      at = tasks_.erase(at);
    }
    for (const auto& [worker, sessions] : watched) {
      std::shared_ptr<Task>& task = tasks_[worker];
      if (!task) {
        task = std::make_shared<Task>(worker);
        const absl::MutexLock its(&task->mu);
        task->silence = -elapsed;  // it is asked now for the first time
      }
      asked.push_back(task);
    }
  }
  for (const auto& task : dropped) {
    task->gives_up.Cancel(Cancelled("nobody needs task ", task->worker->task(), " any more"));
    task->worker->SetDead(absl::OkStatus());
  }
  for (const auto& task : asked) {
    Judge(*task, elapsed);
    Send(task, watched.at(task->worker));
  }
}

void TaskMonitor::Judge(Task& task, absl::Duration elapsed) {
  absl::Duration silence;
  bool is_suspect = false, is_dead = false;
  {
    absl::MutexLock lock(&task.mu);
    task.silence += elapsed;
    silence = task.silence;
    is_suspect = silence >= liveness_.suspect && !std::exchange(task.is_suspect, silence >= liveness_.suspect);
    // Where nobody can be reached the transport says so by itself, and at once.
    is_dead = silence >= liveness_.dead && task.is_asked && task.dead.ok();
    if (is_dead) {
      task.dead = WithoutExceptions([&] {
        return Unavailable("it is dead: it has answered no heartbeat for ", absl::FormatDuration(silence));
      });
    }
  }
  if (is_suspect || is_dead) {
    LogWarning("task ", task.worker->task(), " has answered no heartbeat for ", absl::FormatDuration(silence),
               is_dead ? ": it counts as dead" : "");
  }
  if (!is_dead) return;
  Tell(task);
}

// The last to tell has told what holds, whoever else tells meanwhile.
void TaskMonitor::Tell(Task& task) {
  for (bool holds = false; !holds;) {
    Status told;
    {
      absl::MutexLock lock(&task.mu);
      told = task.dead;
    }
    task.worker->SetDead(told);
    absl::MutexLock lock(&task.mu);
    holds = task.dead == told;
  }
}

void TaskMonitor::Send(const std::shared_ptr<Task>& task, std::vector<SessionRef> sessions) {
  {
    absl::MutexLock lock(&task->mu);
    if (std::exchange(task->is_asked, true)) return;
  }
  CallOptions call;
  call.cancellation = &task->gives_up;
  task->worker->Heartbeat(
      call, {std::move(sessions)}, [task](const StatusOr<HeartbeatResponse>& response) { Answer(task, response); });
}

void TaskMonitor::Answer(const std::shared_ptr<Task>& task, const StatusOr<HeartbeatResponse>& response) {
  bool was_dead = false, was_suspect = false, was_restarted = false;
  {
    absl::MutexLock lock(&task->mu);
    task->is_asked = false;
    was_dead = !task->dead.ok();
    if (!absl::IsDeadlineExceeded(response.status())) task->dead = absl::OkStatus();
    if (response.ok()) {
      task->silence = absl::ZeroDuration();
      was_suspect = std::exchange(task->is_suspect, false);
      const uint64_t before = std::exchange(task->incarnation, response->incarnation);
      was_restarted = before != 0 && before != response->incarnation;
    }
  }
  if (task->gives_up.IsCancelled()) return;
  if (response.ok() && (was_dead || was_suspect)) LogInfo("task ", task->worker->task(), " answers again");
  // What waits for an answer of the process that was there before gets none.
  if (was_restarted) task->worker->SetDead(Unavailable("it was restarted"));
  if (was_dead || was_restarted) Tell(*task);
}

}  // namespace millrace
