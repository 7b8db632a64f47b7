// SPDX-License-Identifier: Apache-2.0
// The steps that are open on a worker for one session. Any message may be the first to name a step. Thread-safe.
//
// One that was named but not begun waits for its master's message: so many at most, and so long as DropUnbegun lets it.
// What is over stays over, and a message that comes again finds nothing: the horizon is the tombstone of what its
// master says is over, and what was over by itself is remembered until the horizon has passed it.
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

  static constexpr size_t kMostUnbegun = 1000;

  // The step, made when this is the first to name it. Aborted when it is over; what Close said, once that was called;
  // ResourceExhausted when too many wait to be begun. `now`: on a monotonic clock, in nanoseconds.
  StatusOr<StepPtr> FindOrMake(int64_t step, int64_t now, absl::FunctionRef<StepPtr()> make);
  // Null: it is not open.
  StepPtr FindOpen(int64_t step) const;
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
  // Forgets what was first named before `time` and has not begun; as Drop.
  [[nodiscard]] Steps DropUnbegun(int64_t time);
  // All that is open, which stays.
  Steps Open() const;
  // Refuses all that comes later. Returns what is open, to be aborted. The first call counts.
  [[nodiscard]] Steps Close(const Status& why);
  Status closed() const;
  // `callback` is called when nothing runs: by who ends the last one. What is idle now is returned, as End does.
  [[nodiscard]] Callbacks WhenIdle(absl::AnyInvocable<void() &&> callback);
  size_t size() const;
  int64_t num_running() const;

 private:
  // Not OK, or null: it may be made.
  StatusOr<StepPtr> Find(int64_t step) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  Status closed_ ABSL_GUARDED_BY(mu_);
  Steps open_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, int64_t> unbegun_ ABSL_GUARDED_BY(mu_);  // of these: when each was first named
  StepHorizon horizon_ ABSL_GUARDED_BY(mu_);
  StepSet ended_ ABSL_GUARDED_BY(mu_);       // beyond it
  StepSet::Runs room_ ABSL_GUARDED_BY(mu_);  // in `ended_` for what has begun, which ends even without memory
  int64_t running_ ABSL_GUARDED_BY(mu_) = 0;
  Callbacks when_idle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
