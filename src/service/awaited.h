// SPDX-License-Identifier: Apache-2.0
// What a thread waits for and somebody else gives.
#pragma once

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/exceptions.h"

namespace millrace {

// Given once. Who waits may give up, so it is shared with who gives. Thread-safe.
template <typename T>
class Awaited {
 public:
  void Give(StatusOr<T> value) {
    absl::MutexLock lock(&mu_);
    value_ = std::move(value);
    is_there_ = true;
  }
  // Asks `keep_going` every `period` whether to go on; an error of it is the result. Once.
  StatusOr<T> Wait(Env& env, absl::Duration period, absl::FunctionRef<Status()> keep_going) {
    absl::MutexLock lock(&mu_);
    while (!env.Await(mu_, absl::Condition(&is_there_), period)) {
      mu_.Unlock();
      Status s = WithoutExceptions(keep_going);
      mu_.Lock();
      if (!s.ok() && !is_there_) return s;
    }
    return std::move(value_);
  }

 private:
  absl::Mutex mu_;
  bool is_there_ ABSL_GUARDED_BY(mu_) = false;
  StatusOr<T> value_ ABSL_GUARDED_BY(mu_) = T{};
};

}  // namespace millrace
