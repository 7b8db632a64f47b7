// SPDX-License-Identifier: Apache-2.0
// A step on all workers that take part in it.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "service/worker.h"

namespace millrace {

// Thread-safe. Destroyed when all partitions are done.
class JointStep {
 public:
  // Opens the step on `workers[i]` for each i that takes part; the first to fail closes it everywhere.
  Status Open(absl::Span<Worker* const> workers, const std::vector<bool>& takes_part, const StepSpec& spec);
  WorkerStep& On(size_t worker) const { return *parts_[worker]; }
  // The first call stops it on every worker, also when it is not open yet; later ones do nothing.
  void Stop(const Status& why);
  Status stopped() const {
    absl::MutexLock lock(&mu_);
    return stopped_;
  }

 private:
  std::vector<std::unique_ptr<WorkerStep>> parts_;  // by worker; null: takes no part; constant once open
  mutable absl::Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  Status stopped_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
