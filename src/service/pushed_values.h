// SPDX-License-Identifier: Apache-2.0
// What other workers have sent to the steps of a session unasked. Who sends may send too much: what would pass a limit
// is refused, and who needs it asks for it (step_rendezvous.h), so that nothing is lost. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"

namespace millrace {

class PushedValues {
 public:
  static constexpr int64_t kMostValues = 1'000'000;          // of steps that are open: their keys are remembered
  static constexpr int64_t kMostBytes = int64_t{256} << 20;  // that nobody has received

  // One value more; ResourceExhausted, which names the limit.
  Status Add(int64_t bytes) {
    absl::MutexLock lock(&mu_);
    if (values_ >= kMostValues) {
      return ResourceExhausted(
          "other workers have sent ", values_, " values unasked to steps of this session, the most that may be");
    }
    if (bytes > kMostBytes - bytes_) {
      return ResourceExhausted("values that other workers have sent unasked to steps of this session wait in ", bytes_,
                               " bytes; with ", bytes, " more there would be more than ", kMostBytes);
    }
    ++values_;
    bytes_ += bytes;
    return absl::OkStatus();
  }
  void Remove(int64_t values, int64_t bytes) {
    absl::MutexLock lock(&mu_);
    values_ -= values;
    bytes_ -= bytes;
  }

 private:
  absl::Mutex mu_;
  int64_t values_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace millrace
