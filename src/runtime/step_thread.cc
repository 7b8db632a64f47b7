// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_thread.h"

#include <utility>

#include "base/pool_env.h"
#include "runtime/interrupt.h"

namespace millrace {

StepThread::StepThread() : help_(EnvOf(ProcessThreadPool())) {}

void StepThread::Post(Work work) {
  absl::MutexLock lock(&mu_);
  posted_.push_back(std::move(work));
  help_.Tell();
}

bool StepThread::TryPost(Work& work) {
  absl::MutexLock lock(&mu_);
  if (!waits_ || HasNews()) return false;
  posted_.push_back(std::move(work));
  help_.Tell();
  return true;
}

void StepThread::Finish() {
  absl::MutexLock lock(&mu_);
  finished_ = true;
  help_.Tell();
}

bool StepThread::Drive(bool may_be_interrupted) {
  Interrupt* const interrupt = may_be_interrupted ? CurrentInterrupt() : nullptr;
  const int64_t patience = interrupt ? absl::ToInt64Nanoseconds(kInterruptPeriod) : -1;
  absl::MutexLock lock(&mu_);
  for (;;) {
    while (!HasNews()) {
      waits_ = true;
      const uint32_t seen = help_.seen();
      mu_.Unlock();
      help_.WaitAndHelp(seen, patience);
      const bool stop = interrupt && interrupt->IsDue() && interrupt->Look();
      mu_.Lock();
      waits_ = false;
      if (stop && !HasNews()) return false;
    }
    if (posted_.empty()) return true;
    Work work = std::move(posted_.front());
    posted_.pop_front();
    mu_.Unlock();
    work();
    work = nullptr;
    mu_.Lock();
  }
}

}  // namespace millrace
