// SPDX-License-Identifier: Apache-2.0
// Batches that several steps fill. A step gives a task, some rows; tasks of one line become a batch when it is full or
// its time is over, and as soon as one of the queue's threads is free. The queue joins the rows, lets the batch be
// worked on, and hands each step its share. Thread-safe.
//
// A task lives as long as its step waits: those of steps that have ended take no part. When nobody waits for a batch
// any more, the work on it is cancelled.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "kernels/cpu/engine/waiting_resource.h"

namespace millrace {

class BatchQueue final : public WaitingResource {
 public:
  struct Options {
    int64_t threads = 1;         // that work on batches at once
    int64_t max_batch_size = 1;  // rows
    int64_t max_batches = 1;     // of a line, which wait
    absl::Duration timeout;      // how long a batch waits for more tasks
    std::vector<int64_t> sizes;  // ascending; batches are filled up to one of them; none: as they are
  };
  struct Share {
    int64_t id = 0;
    int64_t rows = 0;
  };
  // Works on the joined inputs of a batch: the outputs of each task. On a thread that may wait; whatever it uses it
  // must own, since the kernel of a step that has ended may be gone.
  using Work = std::function<StatusOr<std::vector<std::vector<Tensor>>>(
      CancellationManager& cancellation, std::vector<Tensor> inputs, const std::vector<Share>& shares)>;
  struct Task {
    std::vector<Tensor> inputs;  // fit to outlive the step, with as many rows each
    Share share;
    Work work;  // that of a batch is its last task's

    // The queue's.
    bool is_over = false;
    Status status;
    std::vector<Tensor> outputs;
    std::shared_ptr<void> wanted;  // keeps the work on its batch going
  };

  BatchQueue(Env& env, std::string name, Options options)
      : env_(env), name_(std::move(name)), options_(std::move(options)) {}
  ~BatchQueue() override;  // waits for the threads, whose work it cancels
  std::string DebugString() const override { return absl::StrCat("batches '", name_, "'"); }

  // Puts a task into the open batch of a line. InvalidArgument: it is larger than a batch. Unavailable: as many batches
  // wait as may. After it the step waits with WhenOver.
  Status Add(const std::string& line, const std::shared_ptr<Task>& task);
  // `deliver` takes the task's outputs, if that succeeded, when its batch is over.
  void WhenOver(std::shared_ptr<Task> task, absl::AnyInvocable<Status(std::vector<Tensor>)> deliver,
                CancellationManager* cancellation, DoneCallback done);

 private:
  struct Batch {
    int64_t number = 0;  // in the order in which they began
    std::vector<std::weak_ptr<Task>> tasks;
    int64_t rows = 0;
    bool is_closed = false;  // takes no more tasks
    bool is_due = false;
    std::optional<Env::TimerId> timer;
  };
  using Line = std::deque<Batch>;
  class Run;

  Status AddLocked(Line& line, const std::shared_ptr<Task>& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(tasks_mu_);
  void RemoveEnded(Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(tasks_mu_);
  void SetDue(int64_t number);
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(tasks_mu_) { return runs_.empty() && dues_ == 0; }
  // Starts work on what is ready, as far as there are threads.
  void Dispatch();
  std::optional<Batch> TakeReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tasks_mu_);
  void WorkOn(const std::shared_ptr<Run>& run, std::vector<std::shared_ptr<Task>> tasks);
  StatusOr<std::vector<std::vector<Tensor>>> Outputs(const Run& run, std::vector<std::shared_ptr<Task>> tasks) const;
  StatusOr<std::vector<Tensor>> Join(const std::vector<std::shared_ptr<Task>>& tasks) const;
  // Ends tasks, and the waits of their steps.
  void Deliver(const std::vector<std::weak_ptr<Task>>& tasks, StatusOr<std::vector<std::vector<Tensor>>> outputs);

  Env& env_;
  const std::string name_;
  const Options options_;
  absl::Mutex tasks_mu_;  // behind the lock of attempts
  std::map<std::string, Line> lines_ ABSL_GUARDED_BY(tasks_mu_);
  int64_t batches_ ABSL_GUARDED_BY(tasks_mu_) = 0;  // that have begun
  int64_t busy_ ABSL_GUARDED_BY(tasks_mu_) = 0;     // threads that work on a batch
  int64_t dues_ ABSL_GUARDED_BY(tasks_mu_) = 0;     // timers in SetDue, whose batch another thread may have ended
  std::set<std::shared_ptr<Run>> runs_ ABSL_GUARDED_BY(tasks_mu_);
};

// The rows of all parts, of which there is one at least, one after another; then `padding` times the first row.
StatusOr<Tensor> JoinRowsOf(const std::vector<Tensor>& parts, int64_t padding);

}  // namespace millrace
