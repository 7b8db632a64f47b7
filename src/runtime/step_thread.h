// SPDX-License-Identifier: Apache-2.0
// The thread that waits for a step, and meanwhile runs what becomes ready in it, or helps kernels of it that other
// threads run.
#pragma once

#include <atomic>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/help_point.h"

namespace millrace {

// Thread-safe. Of several threads that drive one works, and the next when that one leaves.
class StepThread {
 public:
  StepThread();  // of the process
  explicit StepThread(Env& env) : env_(env), help_(env) {}
  using Work = absl::AnyInvocable<void()>;
  // Runs `work` on the thread that drives, in the order of posting.
  void Post(Work work);
  // The same, if that thread waits and has nothing to do, nor helps; else false, and `work` is as it was.
  bool TryPost(Work& work);
  // The step is over: nothing is posted any more.
  void Finish();
  // Runs what is posted until Finish: true. False when this thread's interrupt says stop before, unless it may not
  // interrupt; then the caller stops the step and drives on.
  bool Drive(bool may_be_interrupted);
  // The same, but it ends also when it is told (which Tell sets), or, with false, after `patience` without work.
  bool DriveUntil(const std::atomic<bool>& told, absl::Duration patience, bool may_be_interrupted);
  static constexpr std::atomic<bool> kNever{false};  // for DriveUntil
  void Tell(std::atomic<bool>& told);
  // For kernels of the step on other threads.
  HelpPoint* help_point() { return &help_; }

 private:
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return finished_ || !posted_.empty(); }

  Env& env_;
  HelpPoint help_;  // told under the lock, so that this object is not gone before
  absl::Mutex mu_;
  bool is_driven_ ABSL_GUARDED_BY(mu_) = false;
  bool waits_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Work> posted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
