// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_thread.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/pool_env.h"
#include "runtime/interrupt.h"

namespace millrace {

StepThread::StepThread() : StepThread(EnvOf(ProcessThreadPool())) {}

void StepThread::Post(Work work) {
  absl::MutexLock lock(&mu_);
  posted_.push_back(std::move(work));
  help_.Tell();
}

bool StepThread::TryPost(Work& work) {
  absl::MutexLock lock(&mu_);
  if (!waits_ || HasNews() || help_.is_helping()) return false;
  posted_.push_back(std::move(work));
  help_.Tell();
  return true;
}

void StepThread::Finish() {
  absl::MutexLock lock(&mu_);
  finished_ = true;
  help_.Tell();
}

void StepThread::Tell(std::atomic<bool>& told) {
  absl::MutexLock lock(&mu_);
  told = true;
  help_.Tell();
}

bool StepThread::Drive(bool may_be_interrupted) {
  return DriveUntil(kNever, absl::InfiniteDuration(), may_be_interrupted);
}

bool StepThread::DriveUntil(const std::atomic<bool>& told, absl::Duration patience, bool may_be_interrupted) {
  Interrupt* const interrupt = may_be_interrupted ? CurrentInterrupt() : nullptr;
  const int64_t forever = std::numeric_limits<int64_t>::max();
  const int64_t end =
      patience < absl::InfiniteDuration() ? env_.MonotonicNanos() + absl::ToInt64Nanoseconds(patience) : forever;
  absl::MutexLock lock(&mu_);
  const auto may_go_on = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !is_driven_ || finished_ || told; };
  if (!may_go_on() && !(interrupt ? AwaitUnlessInterrupted(env_, mu_, absl::Condition(&may_go_on))
                                  : env_.Await(mu_, absl::Condition(&may_go_on), patience))) {
    return false;
  }
  if (is_driven_) return true;
  is_driven_ = true;
  const absl::Cleanup leave = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { is_driven_ = false; };
  for (;;) {
    while (!HasNews() && !told) {
      int64_t left = interrupt ? absl::ToInt64Nanoseconds(kInterruptPeriod) : -1;
      if (end != forever) {
        const int64_t until_end = end - env_.MonotonicNanos();
        if (until_end <= 0) return false;
        left = interrupt ? std::min(left, until_end) : until_end;
      }
      waits_ = true;
      const uint32_t seen = help_.seen();
      mu_.Unlock();
      help_.WaitAndHelp(seen, left);
      const bool stop = interrupt && interrupt->IsDue() && interrupt->Look();
      mu_.Lock();
      waits_ = false;
      if (stop && !HasNews() && !told) return false;
    }
    if (told || posted_.empty()) return true;
    Work work = std::move(posted_.front());
    posted_.pop_front();
    mu_.Unlock();
    work();
    work = nullptr;
    mu_.Lock();
  }
}

}  // namespace millrace
