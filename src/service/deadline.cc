// SPDX-License-Identifier: Apache-2.0
#include "service/deadline.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/env.h"
#include "base/logging.h"

namespace millrace {

// `callback` returns whether it wants to be called again.
struct TimerEntry {
  TimerEntry(absl::Duration after, absl::AnyInvocable<bool()> fn)
      : period(std::clamp<int64_t>(absl::ToInt64Nanoseconds(after), 0, kLongest)), callback(std::move(fn)) {}

  static constexpr int64_t kLongest = int64_t{1} << 61;
  const int64_t period;
  absl::AnyInvocable<bool()> callback;
  std::multimap<int64_t, TimerEntry*>::iterator at;  // while it waits
  bool waits = false;
};

namespace {

// On the monotonic clock: setting the machine's time neither fires nor delays it. Entries belong to who added them.
class Timer {
 public:
  static Timer& Get() {
    static Timer* timer = new Timer();  // lives as long as the process: its thread does
    return *timer;
  }

  void Add(TimerEntry& entry) {
    const std::lock_guard<std::mutex> lock(mu_);
    entry.at = entries_.emplace(Env::Default().MonotonicNanos() + entry.period, &entry);
    entry.waits = true;
    if (entry.at == entries_.begin()) changed_.notify_one();
  }

  // Then the callback does not run and is not running.
  void Remove(TimerEntry& entry) {
    std::unique_lock<std::mutex> lock(mu_);
    if (running_ == &entry) again_ = false;
    idle_.wait(lock, [&] { return running_ != &entry; });
    if (entry.waits) entries_.erase(entry.at);
  }

 private:
  Timer() {
    std::thread([this] { Loop(); }).detach();
  }

  void Loop() {
    std::unique_lock<std::mutex> lock(mu_);
    for (;;) {
      if (entries_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const int64_t left = entries_.begin()->first - Env::Default().MonotonicNanos();
      if (left > 0) {
        changed_.wait_until(lock, std::chrono::steady_clock::now() + std::chrono::nanoseconds(left));
        continue;
      }
      auto node = entries_.extract(entries_.begin());  // goes back in without an allocation
      running_ = node.mapped();
      running_->waits = false;
      again_ = true;
      lock.unlock();
      const bool again = Call(*node.mapped());
      lock.lock();
      if (again && again_) {
        node.key() = Env::Default().MonotonicNanos() + running_->period;
        running_->at = entries_.insert(std::move(node));
        running_->waits = true;
      }
      running_ = nullptr;
      idle_.notify_all();
    }
  }

  static bool Call(TimerEntry& entry) {
    try {
      return entry.callback();
    } catch (const std::exception& e) {
      LogError("what a clock calls threw: ", e.what());
      return true;
    }
  }

  std::mutex mu_;
  std::condition_variable changed_, idle_;
  TimerEntry* running_ = nullptr;
  bool again_ = false;  // the one that is running has not been removed
  std::multimap<int64_t, TimerEntry*> entries_;
};

}  // namespace

Ticks::Ticks(absl::Duration period, absl::AnyInvocable<bool()> callback)
    : entry_(std::make_unique<TimerEntry>(period, std::move(callback))) {
  Timer::Get().Add(*entry_);
}

Ticks::~Ticks() { Timer::Get().Remove(*entry_); }

Deadline::Deadline(absl::Duration after, absl::AnyInvocable<void()> callback)
    : once_(after, [callback = std::move(callback)]() mutable {
        callback();
        return false;
      }) {}

}  // namespace millrace
