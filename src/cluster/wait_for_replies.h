// SPDX-License-Identifier: Apache-2.0
// Waits for the replies to messages that were sent to several workers.
#pragma once

#include <memory>
#include <vector>

#include "base/env.h"
#include "service/worker_interface.h"

namespace millrace {

template <typename Response>
class Replies {
 public:
  explicit Replies(size_t n) : shared_(std::make_shared<Shared>(n)) {}

  // The reply to message i; may come when this object is gone.
  Reply<Response> For(size_t i) {
    return [shared = shared_, i](StatusOr<Response> response) {
      absl::MutexLock lock(&shared->mu);
      shared->responses[i] = std::move(response);
      shared->is_complete = --shared->left == 0;
    };
  }
  // All of them; DeadlineExceeded in place of those that have not come in time.
  std::vector<StatusOr<Response>> Wait(Env& env, absl::Duration patience) {
    absl::MutexLock lock(&shared_->mu);
    env.Await(shared_->mu, absl::Condition(&shared_->is_complete), patience);
    return shared_->responses;
  }

 private:
  struct Shared {
    explicit Shared(size_t n)
        : left(n), is_complete(n == 0), responses(n, DeadlineExceeded("no answer has come in time")) {}
    absl::Mutex mu;
    size_t left ABSL_GUARDED_BY(mu);
    bool is_complete ABSL_GUARDED_BY(mu);
    std::vector<StatusOr<Response>> responses ABSL_GUARDED_BY(mu);
  };
  const std::shared_ptr<Shared> shared_;
};

}  // namespace millrace
