// SPDX-License-Identifier: Apache-2.0
// A step on all workers that take part in it, as its master sees it.
#pragma once

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "service/worker_interface.h"

namespace millrace {

// Thread-safe. REQUIRES: once started, it lives until `done` runs, and as long as Stop is being called.
class JointStep {
 public:
  // The part of one worker.
  struct Part {
    WorkerInterface* worker = nullptr;
    RunStepRequest request;
    // Once the step is done.
    Status refusal;  // of the message
    RunStepResponse response;
    bool is_answered = false;
  };

  // Sends one message to each worker; `done` runs once all have answered. Its failure has the first cause: what stopped
  // it, or who failed first, and not in consequence of another's failure. `call` is of the caller, which may work for
  // the first of `parts`, or in turn for all if the step has but one thread.
  void Start(std::vector<Part> parts, const CallOptions& call, absl::AnyInvocable<void(Status) &&> done);
  // The first call stops it on every worker, also before it is started; later ones do nothing.
  void Stop(const Status& why);
  // Once it is done: tells the workers which steps are over, unless they know it by themselves.
  void CleanUp(const StepHorizon& horizon);

  // While it is under way: which workers have not answered.
  void Describe(std::vector<std::string>* lines) const;

  std::vector<Part>& parts() { return parts_; }
  // The first cause: what it was stopped with, or the first failure. OK: neither.
  Status stopped() const;

 private:
  void Answer(size_t p, StatusOr<RunStepResponse> response);
  void AbortAll(const Status& why);

  std::vector<Part> parts_;
  absl::AnyInvocable<void(Status) &&> done_;
  mutable absl::Mutex mu_;
  Status stopped_ ABSL_GUARDED_BY(mu_);
  bool is_stopped_from_outside_ ABSL_GUARDED_BY(mu_) = false;
  bool is_stopped_by_consequence_ ABSL_GUARDED_BY(mu_) = false;  // the cause is yet to come
  Status result_ ABSL_GUARDED_BY(mu_);
  bool was_aborted_ ABSL_GUARDED_BY(mu_) = false;
  size_t left_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace millrace
