// SPDX-License-Identifier: Apache-2.0
// A completion queue and the threads that serve it: they move the bytes, and run what is to follow.
#pragma once

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/status.h"

namespace millrace::grpc_transport {

// What follows an operation. Given to gRPC as the operation's tag, it is run once.
class Completion {
 public:
  void* Tag() {
    given_.store(true, std::memory_order_release);
    return this;
  }
  void Run(bool ok) {
    static_cast<void>(given_.load(std::memory_order_acquire));  // what was before Tag() is before Done()
    Done(ok);
  }

 protected:
  ~Completion() = default;
  virtual void Done(bool ok) = 0;

 private:
  std::atomic<bool> given_{false};
};

class Poller {
 public:
  Poller(Env& env, std::unique_ptr<grpc::CompletionQueue> queue) : env_(env), queue_(std::move(queue)) {}
  // REQUIRES: no operation is started any more. Runs what is under way to its end, and ends the threads.
  ~Poller();

  // `threads` = 0: by the number of processors.
  Status Start(int threads);
  grpc::CompletionQueue* queue() { return queue_.get(); }

  // Waits for `condition` under `mu`, which the caller holds. On a thread of this poller it serves meanwhile.
  void Await(absl::Mutex& mu, const absl::Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

 private:
  void Serve();

  Env& env_;
  const std::unique_ptr<grpc::CompletionQueue> queue_;
  absl::Mutex mu_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace millrace::grpc_transport
