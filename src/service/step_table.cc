// SPDX-License-Identifier: Apache-2.0
#include "service/step_table.h"

#include <utility>

namespace millrace {

StatusOr<StepTable::StepPtr> StepTable::Find(int64_t step, absl::FunctionRef<StepPtr()> make) {
  if (!closed_.ok()) return closed_;
  if (const auto at = open_.find(step); at != open_.end()) return at->second;
  if (horizon_.IsOver(step)) return Aborted("step ", step, " is over");
  StepPtr made = make();
  open_.emplace(step, made);
  return made;
}

StatusOr<StepTable::StepPtr> StepTable::FindOrMake(int64_t step, absl::FunctionRef<StepPtr()> make) {
  absl::MutexLock lock(&mu_);
  return Find(step, make);
}

StatusOr<StepTable::StepPtr> StepTable::Begin(int64_t step, absl::FunctionRef<StepPtr()> make) {
  absl::MutexLock lock(&mu_);
  StatusOr<StepPtr> found = Find(step, make);
  running_ += found.ok();
  return found;
}

StepTable::Callbacks StepTable::End(int64_t step, bool is_over) {
  StepPtr ended;  // freed outside of the lock
  Callbacks idle;
  absl::MutexLock lock(&mu_);
  if (const auto at = open_.find(step); is_over && at != open_.end()) {
    ended = std::move(at->second);
    open_.erase(at);
  }
  if (--running_ == 0) idle.swap(when_idle_);
  return idle;
}

std::vector<StepTable::StepPtr> StepTable::Drop(StepHorizon horizon) {
  std::vector<StepPtr> over;
  absl::MutexLock lock(&mu_);
  if (!horizon_.IsOlderThan(horizon)) return over;
  horizon_ = std::move(horizon);
  for (auto at = open_.begin(); at != open_.end() && at->first < horizon_.next;) {
    if (!horizon_.IsOver(at->first)) {
      ++at;
      continue;
    }
    over.push_back(std::move(at->second));
    at = open_.erase(at);
  }
  return over;
}

std::vector<StepTable::StepPtr> StepTable::Close(const Status& why) {
  std::vector<StepPtr> open;
  absl::MutexLock lock(&mu_);
  if (closed_.ok()) closed_ = why;
  for (auto& [id, step] : open_) open.push_back(std::move(step));
  open_.clear();
  return open;
}

Status StepTable::closed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}

void StepTable::WhenIdle(absl::AnyInvocable<void() &&> callback) {
  {
    absl::MutexLock lock(&mu_);
    if (running_ > 0) {
      when_idle_.push_back(std::move(callback));
      return;
    }
  }
  std::move(callback)();
}

size_t StepTable::size() const {
  absl::MutexLock lock(&mu_);
  return open_.size();
}

}  // namespace millrace
