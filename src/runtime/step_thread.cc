// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_thread.h"

#include <utility>

#include "runtime/interrupt.h"

namespace millrace {

void StepThread::Post(Work work) {
  absl::MutexLock lock(&mu_);
  posted_.push_back(std::move(work));
}

bool StepThread::TryPost(Work& work) {
  absl::MutexLock lock(&mu_);
  if (!waits_ || HasNews()) return false;
  posted_.push_back(std::move(work));
  return true;
}

void StepThread::Finish() {
  absl::MutexLock lock(&mu_);
  finished_ = true;
}

bool StepThread::Drive(bool may_be_interrupted) {
  const auto has_news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return HasNews(); };
  absl::MutexLock lock(&mu_);
  for (;;) {
    waits_ = true;
    bool news = true;
    if (may_be_interrupted) {
      news = AwaitUnlessInterrupted(mu_, absl::Condition(&has_news));
    } else {
      mu_.Await(absl::Condition(&has_news));
    }
    waits_ = false;
    if (!news) return false;
    if (posted_.empty()) return true;
    Work work = std::move(posted_.front());
    posted_.pop_front();
    mu_.Unlock();
    work();
    mu_.Lock();
  }
}

}  // namespace millrace
