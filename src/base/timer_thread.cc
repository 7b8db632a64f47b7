// SPDX-License-Identifier: Apache-2.0
#include "base/timer_thread.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/logging.h"
#include "base/stopwatch.h"

namespace millrace {
namespace {

constexpr int64_t kLongest = int64_t{1} << 61;

bool Call(absl::AnyInvocable<bool()>& fn) {
  try {
    return fn();
  } catch (const std::exception& e) {
    LogError("what a timer calls threw: ", e.what());
    return true;
  }
}

}  // namespace

TimerThread& TimerThread::Get() {
  static TimerThread* timer = new TimerThread();  // lives as long as the process: its thread does
  return *timer;
}

TimerThread::TimerThread() {
  std::thread thread([this] { Loop(); });
  const std::lock_guard<std::mutex> lock(mu_);
  thread_ = thread.get_id();
  thread.detach();
}

int64_t TimerThread::Add(absl::Duration period, absl::AnyInvocable<bool()> fn) {
  const int64_t nanos = std::clamp<int64_t>(absl::ToInt64Nanoseconds(period), 0, kLongest);
  const int64_t at = RealNanos() + nanos;
  const std::lock_guard<std::mutex> lock(mu_);
  const int64_t id = next_id_++;
  const auto timer = timers_.emplace(id, Timer{nanos, std::move(fn), at}).first;
  try {
    const auto place = due_.emplace(at, id).first;
    if (place == due_.begin()) changed_.notify_one();
  } catch (...) {
    timers_.erase(timer);
    throw;
  }
  return id;
}

void TimerThread::Remove(int64_t id) {
  std::map<int64_t, Timer>::node_type doomed;  // destroyed outside of the lock
  std::unique_lock<std::mutex> lock(mu_);
  if (running_ == id) {
    again_ = false;
    if (std::this_thread::get_id() == thread_) return;
    idle_.wait(lock, [&] { return running_ != id; });
  }
  const auto timer = timers_.find(id);
  if (timer == timers_.end()) return;
  due_.erase({timer->second.at, id});
  doomed = timers_.extract(timer);
}

void TimerThread::Loop() {
  std::unique_lock<std::mutex> lock(mu_);
  for (;;) {
    if (due_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const int64_t left = due_.begin()->first - RealNanos();
    if (left > 0) {
      changed_.wait_until(lock, std::chrono::steady_clock::now() + std::chrono::nanoseconds(left));
      continue;
    }
    Due::node_type node = due_.extract(due_.begin());  // goes back in without an allocation
    const int64_t id = node.value().second;
    Timer& timer = timers_.find(id)->second;
    running_ = id;
    again_ = true;
    lock.unlock();
    const bool again = Call(timer.fn);
    if (!again) timer.fn = nullptr;  // here, since it may be the client's to destroy
    lock.lock();
    std::map<int64_t, Timer>::node_type over;
    if (again && again_) {
      timer.at = RealNanos() + timer.period;
      node.value().first = timer.at;
      due_.insert(std::move(node));
    } else {
      over = timers_.extract(id);
    }
    if (!over.empty() && over.mapped().fn) {
      lock.unlock();
      over = {};
      lock.lock();
    }
    running_ = 0;
    idle_.notify_all();
  }
}

}  // namespace millrace
