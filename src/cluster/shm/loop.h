// SPDX-License-Identifier: Apache-2.0
// Threads that wait for descriptors and for moments. There are two, so that one can lend itself to the work that
// messages bring while the other goes on waiting. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "base/env.h"
#include "base/hash_map.h"
#include "base/status.h"

namespace millrace::shm {

class Loop {
 public:
  // Runs on the loop's threads, on one at a time.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual void OnReady(uint32_t events) = 0;
  };
  using Key = uint64_t;

  static StatusOr<std::unique_ptr<Loop>> New(Env& env);
  // Not in a watcher or a timer. On a thread of its own that has lent itself it does not wait for that one: what
  // messages brought may let go of whoever owns the loop. What was not yet called is dropped.
  ~Loop();

  // Calls `watcher` when `fd` is readable, has ended or, while asked, is writable.
  StatusOr<Key> Watch(int fd, std::shared_ptr<Watcher> watcher);
  void AlsoWhenWritable(Key key, bool wanted);
  // It may still be running. Before the descriptor is closed.
  void Forget(Key key);

  // Runs `fn` once on a thread of the loop, at a moment of Env::MonotonicNanos.
  using Timer = std::pair<int64_t, uint64_t>;
  Timer At(int64_t nanos, absl::AnyInvocable<void() &&> fn);
  void Drop(const Timer& timer);

  Env& env() { return env_; }

 private:
  struct Watched {
    int fd = -1;
    std::shared_ptr<Watcher> watcher;
    bool also_when_writable = false;
    bool is_running = false;
  };

  class Lending;
  Loop(Env& env, Descriptor epoll, Descriptor wake) : env_(env), epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  void Run();
  void Serve(Key key, uint32_t events);
  // An event ends the wait for its descriptor, until it has been dealt with.
  void WaitFor(Key key, const Watched& watched) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunTimers();
  int MillisToWait();
  void Wake();

  Env& env_;
  const Descriptor epoll_, wake_;
  std::atomic<int> num_waiting_{0};  // threads that take what comes
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int num_running_ ABSL_GUARDED_BY(mu_) = 0;  // threads
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;    // key; 0 is `wake_`
  HashMap<Key, Watched> watchers_ ABSL_GUARDED_BY(mu_);
  std::map<Timer, absl::AnyInvocable<void() &&>> timers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace::shm
