// SPDX-License-Identifier: Apache-2.0
// A thread that does something every now and then.
#pragma once

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"

namespace millrace {

class Keeper {
 public:
  // ResourceExhausted when there can be no further thread.
  static StatusOr<std::unique_ptr<Keeper>> Start(Env* env, absl::Duration period, std::function<void()> work) {
    auto keeper = std::unique_ptr<Keeper>(new Keeper(env));
    MR_RETURN_IF_ERROR(env->StartThread([k = keeper.get(), period, work = std::move(work)] { k->Run(period, work); }));
    keeper->runs_ = true;
    return keeper;
  }
  // Returns when the work does not run and never will.
  ~Keeper() {
    absl::MutexLock lock(&mu_);
    stops_ = true;
    if (runs_) env_->Await(mu_, absl::Condition(&has_ended_));
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

 private:
  explicit Keeper(Env* env) : env_(env) {}
  void Run(absl::Duration period, const std::function<void()>& work) {
    absl::MutexLock lock(&mu_);
    while (!env_->Await(mu_, absl::Condition(&stops_), period)) {
      mu_.Unlock();
      work();
      mu_.Lock();
    }
    has_ended_ = true;
  }

  Env* const env_;
  bool runs_ = false;
  absl::Mutex mu_;
  bool stops_ ABSL_GUARDED_BY(mu_) = false, has_ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace millrace
