// SPDX-License-Identifier: Apache-2.0
#include "service/deadline.h"

#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace millrace {
namespace {

class Timer {
 public:
  static Timer& Get() {
    static Timer* timer = new Timer();  // lives as long as the process: its thread does
    return *timer;
  }

  // `callback` returns whether it wants to be called again.
  int64_t Add(absl::Duration after, absl::AnyInvocable<bool()> callback) {
    absl::MutexLock lock(&mu_);
    const int64_t id = next_++;
    Insert(id, {std::move(callback), after});
    changed_ = true;
    return id;
  }

  void Remove(int64_t id) {
    absl::MutexLock lock(&mu_);
    if (running_ == id) again_ = false;
    auto it = times_.find(id);
    if (it != times_.end()) {
      entries_.erase({it->second, id});
      times_.erase(it);
      return;
    }
    auto idle = [this, id]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return running_ != id; };
    mu_.Await(absl::Condition(&idle));
  }

 private:
  struct Entry {
    absl::AnyInvocable<bool()> callback;
    absl::Duration period;
  };

  Timer() {
    std::thread([this] { Loop(); }).detach();
  }

  void Insert(int64_t id, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::Time when = absl::Now() + entry.period;
    entries_.emplace(std::make_pair(when, id), std::move(entry));
    times_.emplace(id, when);
  }

  void Loop() {
    absl::MutexLock lock(&mu_);
    for (;;) {
      changed_ = false;
      const absl::Time next = entries_.empty() ? absl::InfiniteFuture() : entries_.begin()->first.first;
      mu_.AwaitWithDeadline(absl::Condition(&changed_), next);
      while (!entries_.empty() && entries_.begin()->first.first <= absl::Now()) {
        auto node = entries_.extract(entries_.begin());
        running_ = node.key().second;
        times_.erase(running_);
        again_ = true;
        mu_.Unlock();
        const bool again = node.mapped().callback();
        mu_.Lock();
        if (again && again_) Insert(running_, std::move(node.mapped()));
        running_ = -1;
      }
    }
  }

  absl::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t running_ ABSL_GUARDED_BY(mu_) = -1;
  bool again_ ABSL_GUARDED_BY(mu_) = false;  // the one that is running has not been removed
  bool changed_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::pair<absl::Time, int64_t>, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, absl::Time> times_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

Deadline::Deadline(absl::Duration after, absl::AnyInvocable<void()> callback)
    : id_(Timer::Get().Add(after, [callback = std::move(callback)]() mutable {
        callback();
        return false;
      })) {}

Deadline::~Deadline() {
  if (id_ >= 0) Timer::Get().Remove(id_);
}

Ticks::Ticks(absl::Duration period, absl::AnyInvocable<bool()> callback)
    : id_(Timer::Get().Add(period, std::move(callback))) {}

Ticks::~Ticks() { Timer::Get().Remove(id_); }

}  // namespace millrace
