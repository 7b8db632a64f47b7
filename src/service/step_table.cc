// SPDX-License-Identifier: Apache-2.0
#include "service/step_table.h"

#include <iterator>
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

void StepTable::BeginInline() {
  absl::MutexLock lock(&mu_);
  ++running_;
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

StepTable::Steps StepTable::Drop(StepHorizon horizon) {
  Steps over;
  absl::MutexLock lock(&mu_);
  if (!horizon_.IsOlderThan(horizon)) return over;
  horizon_ = std::move(horizon);
  for (auto at = open_.begin(); at != open_.end() && at->first < horizon_.next;) {
    const auto next = std::next(at);
    if (horizon_.IsOver(at->first)) over.insert(open_.extract(at));
    at = next;
  }
  return over;
}

StepTable::Steps StepTable::Close(const Status& why) {
  absl::MutexLock lock(&mu_);
  if (closed_.ok()) closed_ = why;
  return std::exchange(open_, {});
}

Status StepTable::closed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}

StepTable::Callbacks StepTable::WhenIdle(absl::AnyInvocable<void() &&> callback) {
  Callbacks idle;
  absl::MutexLock lock(&mu_);
  when_idle_.push_back(std::move(callback));
  if (running_ == 0) idle.swap(when_idle_);
  return idle;
}

size_t StepTable::size() const {
  absl::MutexLock lock(&mu_);
  return open_.size();
}

}  // namespace millrace
