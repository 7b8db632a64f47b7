// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dataflow/batch_queue.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {

// The work on a batch.
class BatchQueue::Run {
 public:
  CancellationManager& cancellation() const { return cancellation_; }

 private:
  mutable CancellationManager cancellation_;
};

StatusOr<Tensor> JoinRowsOf(const std::vector<Tensor>& parts, int64_t padding) {
  const Tensor& first = parts.front();
  int64_t rows = padding;
  for (const Tensor& part : parts) {
    if (part.dtype() != first.dtype() || part.rank() != first.rank() ||
        part.shape().dims().subspan(1) != first.shape().dims().subspan(1)) {
      return InvalidArgument("rows of one batch need one shape, got tensors of shapes ", first.shape().ToString(),
                             " and ", part.shape().ToString());
    }
    if (!CheckedAdd(rows, part.dim(0), &rows)) return InvalidArgument("a batch has too many rows");
  }
  if (parts.size() == 1 && padding == 0) return first;
  if (padding > 0 && first.dim(0) == 0) {
    return InvalidArgument(
        "Cannot use an empty tensor with zero rows as padding when batching, got shape ", first.shape().ToString());
  }
  std::vector<int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  dims[0] = rows;
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  MR_ASSIGN_OR_RETURN(Tensor joined, Tensor::Make(first.dtype(), shape));
  int64_t at = 0;
  const auto append = [&](const Tensor& from, int64_t elements) {
    CopyElements(nullptr, from.dtype(), ElementAt(joined.mutable_raw(), from.dtype(), at), from.raw(), elements);
    at += elements;
  };
  for (const Tensor& part : parts) append(part, part.num_elements());
  for (int64_t i = 0; i < padding; ++i) append(first, first.num_elements() / first.dim(0));
  return joined;
}

BatchQueue::~BatchQueue() {
  std::vector<Env::TimerId> timers;
  {
    absl::MutexLock lock(&tasks_mu_);
    for (const auto& [name, line] : lines_) {
      for (const Batch& batch : line) {
        if (batch.timer) timers.push_back(*batch.timer);
      }
    }
    lines_.clear();
  }
  for (const Env::TimerId timer : timers) env_.StopTimer(timer);
  std::set<std::shared_ptr<Run>> runs;
  {
    absl::MutexLock lock(&tasks_mu_);
    runs = runs_;
  }
  for (const auto& run : runs) run->cancellation().Cancel(Cancelled(DebugString(), " has ended"));
  absl::MutexLock lock(&tasks_mu_);
  env_.Await(tasks_mu_, absl::Condition(this, &BatchQueue::IsIdle));
}

Status BatchQueue::Add(const std::string& line, const std::shared_ptr<Task>& task) {
  if (task->share.rows > options_.max_batch_size) {
    return InvalidArgument(
        "Task size ", task->share.rows, " is larger than maximum batch size ", options_.max_batch_size);
  }
  {
    absl::MutexLock lock(&tasks_mu_);
    MR_RETURN_IF_ERROR(AddLocked(lines_[line], task));
  }
  Dispatch();
  return absl::OkStatus();
}

Status BatchQueue::AddLocked(Line& line, const std::shared_ptr<Task>& task) {
  if (!line.empty()) RemoveEnded(line.back());
  if (!line.empty() && line.back().rows + task->share.rows > options_.max_batch_size) line.back().is_closed = true;
  if (line.empty() || line.back().is_closed) {
    if (static_cast<int64_t>(line.size()) >= options_.max_batches) {
      return Unavailable("The batch scheduling queue to which this task was submitted is full: ", line.size(),
                         " batches wait at ", DebugString());
    }
    Batch& batch = line.emplace_back();
    batch.number = batches_++;
    batch.is_due = options_.timeout <= absl::ZeroDuration();
    if (!batch.is_due) {
      batch.timer = env_.ScheduleAfter(options_.timeout, [this, number = batch.number] { SetDue(number); });
    }
  }
  Batch& batch = line.back();
  batch.tasks.push_back(task);
  batch.rows += task->share.rows;
  batch.is_closed = batch.rows == options_.max_batch_size;
  return absl::OkStatus();
}

void BatchQueue::RemoveEnded(Batch& batch) {
  std::erase_if(batch.tasks, [](const std::weak_ptr<Task>& task) { return task.expired(); });
  batch.rows = 0;
  for (const auto& weak : batch.tasks) {
    if (const auto task = weak.lock()) batch.rows += task->share.rows;
  }
}

void BatchQueue::SetDue(int64_t number) {
  {
    absl::MutexLock lock(&tasks_mu_);
    ++dues_;
    for (auto& [name, line] : lines_) {
      for (Batch& batch : line) batch.is_due |= batch.number == number;
    }
  }
  Dispatch();
  absl::MutexLock lock(&tasks_mu_);
  --dues_;
}

std::optional<BatchQueue::Batch> BatchQueue::TakeReady() {
  Line* oldest = nullptr;
  for (auto& [name, line] : lines_) {
    if (line.empty() || !(line.front().is_closed || line.front().is_due)) continue;
    if (oldest == nullptr || line.front().number < oldest->front().number) oldest = &line;
  }
  if (oldest == nullptr) return std::nullopt;
  Batch batch = std::move(oldest->front());
  oldest->pop_front();
  return batch;
}

void BatchQueue::Dispatch() {
  std::vector<Env::TimerId> timers;
  struct Start {
    std::vector<std::shared_ptr<Task>> tasks;  // whose ends may do much, and must not under the lock
    Status status;
  };
  std::vector<Start> starts;
  {
    absl::MutexLock lock(&tasks_mu_);
    while (busy_ < options_.threads) {
      std::optional<Batch> batch = TakeReady();
      if (!batch) break;
      if (batch->timer) timers.push_back(*batch->timer);
      auto run = std::make_shared<Run>();
      const std::shared_ptr<void> wanted(
          nullptr, [run](void*) { run->cancellation().Cancel(Cancelled("nobody waits for the batch any more")); });
      std::vector<std::shared_ptr<Task>> tasks;
      for (const auto& weak : batch->tasks) {
        if (auto task = weak.lock()) {
          task->wanted = wanted;
          tasks.push_back(std::move(task));
        }
      }
      if (tasks.empty()) continue;
      ++busy_;
      runs_.insert(run);
      Status started = env_.StartThread([this, run, tasks]() mutable { WorkOn(run, std::move(tasks)); });
      if (!started.ok()) {
        --busy_;
        runs_.erase(run);
      }
      starts.push_back({std::move(tasks), std::move(started)});
    }
  }
  for (const Env::TimerId timer : timers) env_.StopTimer(timer);
  for (const Start& start : starts) {
    if (!start.status.ok()) Deliver({start.tasks.begin(), start.tasks.end()}, start.status);
  }
}

void BatchQueue::WorkOn(const std::shared_ptr<Run>& run, std::vector<std::shared_ptr<Task>> tasks) {
  const std::vector<std::weak_ptr<Task>> who(tasks.begin(), tasks.end());
  Deliver(who, Outputs(*run, std::move(tasks)));
  {
    absl::MutexLock lock(&tasks_mu_);
    --busy_;
  }
  Dispatch();
  absl::MutexLock lock(&tasks_mu_);
  runs_.erase(run);  // until here it keeps the queue from its end
}

StatusOr<std::vector<std::vector<Tensor>>> BatchQueue::Outputs(
    const Run& run, std::vector<std::shared_ptr<Task>> tasks) const {
  MR_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, Join(tasks));
  std::vector<Share> shares;
  for (const auto& task : tasks) shares.push_back(task->share);
  const Work work = tasks.back()->work;
  tasks.clear();  // from here on the steps alone keep them
  return work(run.cancellation(), std::move(inputs), shares);
}

StatusOr<std::vector<Tensor>> BatchQueue::Join(const std::vector<std::shared_ptr<Task>>& tasks) const {
  int64_t rows = 0, wanted = 0;
  for (const auto& task : tasks) rows += task->share.rows;
  const auto size = std::lower_bound(options_.sizes.begin(), options_.sizes.end(), rows);
  wanted = size == options_.sizes.end() ? rows : *size;
  std::vector<Tensor> joined;
  for (size_t i = 0; i < tasks.front()->inputs.size(); ++i) {
    std::vector<Tensor> parts;
    for (const auto& task : tasks) {
      if (task->inputs.size() != tasks.front()->inputs.size()) {
        return InvalidArgument(
            "tasks of one batch have ", tasks.front()->inputs.size(), " and ", task->inputs.size(), " inputs");
      }
      parts.push_back(task->inputs[i]);
    }
    MR_ASSIGN_OR_RETURN(Tensor all, JoinRowsOf(parts, wanted - rows));
    joined.push_back(std::move(all));
  }
  return joined;
}

void BatchQueue::Deliver(const std::vector<std::weak_ptr<Task>>& tasks,
                         StatusOr<std::vector<std::vector<Tensor>>> outputs) {
  std::vector<std::shared_ptr<Task>> ended;
  {
    absl::MutexLock lock(&tasks_mu_);
    for (size_t i = 0; i < tasks.size(); ++i) {
      std::shared_ptr<Task> task = tasks[i].lock();
      if (!task) continue;
      task->is_over = true;
      task->status = outputs.status();
      if (outputs.ok()) task->outputs = std::move((*outputs)[i]);
      ended.push_back(std::move(task));
    }
  }
  // A call that ends at once lets the others look whether theirs is over.
  Call(WaitingResource::Line::kNone, [](Status*) { return true; }, nullptr, [](Status) {});
}

void BatchQueue::WhenOver(std::shared_ptr<Task> task, absl::AnyInvocable<Status(std::vector<Tensor>)> deliver,
                          CancellationManager* cancellation, DoneCallback done) {
  Call(
      WaitingResource::Line::kNone,
      [this, task = std::move(task), deliver = std::move(deliver)](Status* status) mutable {
        absl::MutexLock lock(&tasks_mu_);
        if (!task->is_over) return false;
        *status = task->status.ok() ? deliver(std::move(task->outputs)) : task->status;
        return true;
      },
      cancellation, std::move(done));
}

}  // namespace millrace
