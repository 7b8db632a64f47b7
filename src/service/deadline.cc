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

  int64_t Add(absl::Time when, absl::AnyInvocable<void()> callback) {
    absl::MutexLock lock(&mu_);
    const int64_t id = next_++;
    entries_.emplace(std::make_pair(when, id), std::move(callback));
    times_.emplace(id, when);
    changed_ = true;
    return id;
  }

  void Remove(int64_t id) {
    absl::MutexLock lock(&mu_);
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
  Timer() {
    std::thread([this] { Loop(); }).detach();
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
        mu_.Unlock();
        node.mapped()();
        mu_.Lock();
        running_ = -1;
      }
    }
  }

  absl::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t running_ ABSL_GUARDED_BY(mu_) = -1;
  bool changed_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::pair<absl::Time, int64_t>, absl::AnyInvocable<void()>> entries_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, absl::Time> times_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

Deadline::Deadline(absl::Duration after, absl::AnyInvocable<void()> callback)
    : id_(Timer::Get().Add(absl::Now() + after, std::move(callback))) {}

Deadline::~Deadline() {
  if (id_ >= 0) Timer::Get().Remove(id_);
}

}  // namespace millrace
