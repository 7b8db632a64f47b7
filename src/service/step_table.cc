// SPDX-License-Identifier: Apache-2.0
#include "service/step_table.h"

#include <iterator>
#include <utility>

namespace millrace {

StatusOr<StepTable::StepPtr> StepTable::Find(int64_t step) const {
  if (!closed_.ok()) return closed_;
  if (const auto at = open_.find(step); at != open_.end()) return at->second;
  if (horizon_.IsOver(step) || ended_.Has(step)) return Aborted("step ", step, " is over");
  return nullptr;
}

StatusOr<StepTable::StepPtr> StepTable::FindOrMake(int64_t step, int64_t now, absl::FunctionRef<StepPtr()> make) {
  absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(StepPtr found, Find(step));
  if (found) return found;
  if (unbegun_.size() >= kMostUnbegun) {
    return ResourceExhausted(
        "step ", step, " is not known, and ", unbegun_.size(), " others wait already to be begun by their master");
  }
  unbegun_.emplace(step, now);
  return open_.emplace(step, make()).first->second;
}

StatusOr<StepTable::StepPtr> StepTable::Begin(int64_t step, absl::FunctionRef<StepPtr()> make) {
  absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(StepPtr found, Find(step));
  room_.emplace(step, 0);
  if (!found) found = open_.emplace(step, make()).first->second;
  unbegun_.erase(step);
  ++running_;
  return found;
}

StepTable::StepPtr StepTable::FindOpen(int64_t step) const {
  absl::MutexLock lock(&mu_);
  const auto at = open_.find(step);
  return at == open_.end() ? nullptr : at->second;
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
    ended_.Add(step, room_.extract(step));
  }
  if (--running_ == 0) idle.swap(when_idle_);
  return idle;
}

StepTable::Steps StepTable::Drop(StepHorizon horizon) {
  Steps over;
  absl::MutexLock lock(&mu_);
  if (!horizon_.IsOlderThan(horizon)) return over;
  horizon_ = std::move(horizon);
  ended_.DropBefore(horizon_.next);
  for (auto at = open_.begin(); at != open_.end() && at->first < horizon_.next;) {
    const auto next = std::next(at);
    if (horizon_.IsOver(at->first)) {
      unbegun_.erase(at->first);
      room_.erase(at->first);
      over.insert(open_.extract(at));
    }
    at = next;
  }
  return over;
}

StepTable::Steps StepTable::DropUnbegun(int64_t time) {
  Steps dropped;
  absl::MutexLock lock(&mu_);
  for (auto at = unbegun_.begin(); at != unbegun_.end();) {
    if (at->second >= time) {
      ++at;
      continue;
    }
    dropped.insert(open_.extract(at->first));
    at = unbegun_.erase(at);
  }
  return dropped;
}

StepTable::Steps StepTable::Open() const {
  absl::MutexLock lock(&mu_);
  return open_;
}

StepTable::Steps StepTable::Close(const Status& why) {
  absl::MutexLock lock(&mu_);
  if (closed_.ok()) closed_ = why;
  unbegun_.clear();
  room_.clear();
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

int64_t StepTable::num_running() const {
  absl::MutexLock lock(&mu_);
  return running_;
}

size_t StepTable::size() const {
  absl::MutexLock lock(&mu_);
  return open_.size();
}

}  // namespace millrace
