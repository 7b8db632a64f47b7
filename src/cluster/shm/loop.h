// SPDX-License-Identifier: Apache-2.0
// One thread that waits for descriptors and for moments. Thread-safe.
#pragma once

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
  // Runs on the loop's thread.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual void OnReady(uint32_t events) = 0;
  };
  using Key = uint64_t;

  static StatusOr<std::unique_ptr<Loop>> New(Env& env);
  // Not on its own thread. What was not yet called is dropped.
  ~Loop();

  // Calls `watcher` when `fd` is readable, has ended or, while asked, is writable.
  StatusOr<Key> Watch(int fd, std::shared_ptr<Watcher> watcher);
  void AlsoWhenWritable(Key key, int fd, bool wanted);
  // It may still be running. Before the descriptor is closed.
  void Forget(Key key, int fd);

  // Runs `fn` once on this thread, at a moment of Env::MonotonicNanos.
  using Timer = std::pair<int64_t, uint64_t>;
  Timer At(int64_t nanos, absl::AnyInvocable<void() &&> fn);
  void Drop(const Timer& timer);

  Env& env() { return env_; }

 private:
  Loop(Env& env, Descriptor epoll, Descriptor wake) : env_(env), epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  void Run();
  void RunTimers();
  int MillisToWait();
  void Wake();

  Env& env_;
  const Descriptor epoll_, wake_;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;  // key; 0 is `wake_`
  HashMap<Key, std::shared_ptr<Watcher>> watchers_ ABSL_GUARDED_BY(mu_);
  std::map<Timer, absl::AnyInvocable<void() &&>> timers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace::shm
