// SPDX-License-Identifier: Apache-2.0
// Threads of a program that stop together.
//
//   millrace::Coordinator coordinator;
//   coordinator.Start([&] { while (!coordinator.ShouldStop()) ...; return millrace::Status(); });
//   ...
//   coordinator.RequestStop();
//   auto status = coordinator.Join();   // the first error of a thread, once
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "millrace/status.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// Thread-safe. Whoever fails stops all; the first error is kept for Join. TF_OUT_OF_RANGE is the end of the data: it
// stops all, but is no error. Outlives its threads: the destructor stops and joins them.
class Coordinator {
 public:
  Coordinator() = default;
  ~Coordinator() {
    RequestStop();
    JoinThreads();
  }
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Runs `work` on a thread of its own. An error that it returns (or throws, as Error) stops all.
  void Start(std::function<Status()> work) {
    const std::lock_guard<std::mutex> lock(mu_);
    threads_.emplace_back([this, work = std::move(work)] {
      const Status s = Caught(work);
      if (!s.ok()) RequestStop(s);
      const std::lock_guard<std::mutex> end(mu_);
      --running_;
      changed_.notify_all();
    });
    ++running_;
  }

  // Asks all threads to stop. `why` is kept when it is an error, and the first request.
  void RequestStop(const Status& why = Status()) {
    std::vector<std::function<void()>> on_stop;
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (stopped_) return;
      stopped_ = true;
      if (why.code() != TF_OUT_OF_RANGE) error_ = why;
      on_stop.swap(on_stop_);
      changed_.notify_all();
    }
    for (const std::function<void()>& call : on_stop) call();
  }
  // Whether somebody has asked all threads to stop.
  bool ShouldStop() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return stopped_;
  }
  // Called once, when a stop is asked for, on the thread that asks; at once when it has been.
  void OnStop(std::function<void()> call) {
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (!stopped_) {
        on_stop_.push_back(std::move(call));
        return;
      }
    }
    call();
  }
  // Whether a stop was asked for within `patience`.
  bool WaitForStop(std::chrono::milliseconds patience) const {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, patience, [this] { return stopped_; });
  }

  // Waits until all threads have ended, after a stop at most `grace`. Gives the first error, unless an earlier Join
  // did; TF_DEADLINE_EXCEEDED when threads go on.
  Done Join(std::chrono::milliseconds grace = std::chrono::minutes(2)) {
    Status s;
    {
      std::unique_lock<std::mutex> lock(mu_);
      changed_.wait(lock, [this] { return running_ == 0 || stopped_; });
      const bool all = changed_.wait_for(lock, grace, [this] { return running_ == 0; });
      std::swap(s, error_);
      if (!all && s.ok()) {
        s = Status(TF_DEADLINE_EXCEEDED,
                   std::to_string(running_) + " threads did not stop within " + std::to_string(grace.count()) + " ms");
      }
      if (!all) return internal::Finish(s);
    }
    JoinThreads();
    return internal::Finish(s);
  }

 private:
  static Status Caught(const std::function<Status()>& work) {
#if MILLRACE_EXCEPTIONS
    try {
      return work();
    } catch (const Error& e) {
      return Status(e.code(), e.what());
    } catch (const std::exception& e) {
      return Status(TF_UNKNOWN, e.what());
    }
#else
    return work();
#endif
  }
  void JoinThreads() {
    std::vector<std::thread> threads;
    {
      const std::lock_guard<std::mutex> lock(mu_);
      threads.swap(threads_);
    }
    for (std::thread& t : threads) t.join();
  }

  mutable std::mutex mu_;
  mutable std::condition_variable changed_;
  int running_ = 0;
  bool stopped_ = false;
  Status error_;
  std::vector<std::function<void()>> on_stop_;
  std::vector<std::thread> threads_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
