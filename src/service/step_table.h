// SPDX-License-Identifier: Apache-2.0
// The steps that are open on a worker for one session. Any message may be the first to name a step. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "service/step_horizon.h"

namespace millrace {

class WorkerStep;

class StepTable {
 public:
  using StepPtr = std::shared_ptr<WorkerStep>;
  using Callbacks = std::vector<absl::AnyInvocable<void() &&>>;

  // The step, made when this is the first to name it. Aborted when it is over; what Close said, once that was called.
  StatusOr<StepPtr> FindOrMake(int64_t step, absl::FunctionRef<StepPtr()> make);
  // The same for who will run it: it counts as running until End.
  StatusOr<StepPtr> Begin(int64_t step, absl::FunctionRef<StepPtr()> make);
  // A step that is in no table runs too, until End.
  void BeginInline();
  // It has run here. `is_over`: everywhere. Returns what waited for the last one to end, to be called by who holds
  // nothing of the session any more.
  [[nodiscard]] Callbacks End(int64_t step, bool is_over);
  using Steps = std::map<int64_t, StepPtr>;
  // Forgets what is over. Returns it, to be aborted and freed where no lock is held.
  [[nodiscard]] Steps Drop(StepHorizon horizon);
  // Refuses all that comes later. Returns what is open, to be aborted. The first call counts.
  [[nodiscard]] Steps Close(const Status& why);
  Status closed() const;
  // `callback` is called when nothing runs: by who ends the last one. What is idle now is returned, as End does.
  [[nodiscard]] Callbacks WhenIdle(absl::AnyInvocable<void() &&> callback);
  size_t size() const;

 private:
  StatusOr<StepPtr> Find(int64_t step, absl::FunctionRef<StepPtr()> make) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  Status closed_ ABSL_GUARDED_BY(mu_);
  Steps open_ ABSL_GUARDED_BY(mu_);
  StepHorizon horizon_ ABSL_GUARDED_BY(mu_);
  int64_t running_ ABSL_GUARDED_BY(mu_) = 0;
  Callbacks when_idle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
