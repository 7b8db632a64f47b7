// SPDX-License-Identifier: Apache-2.0
// Waiting, for what reads data sets: on threads that may wait, and no longer than the step lasts.
#pragma once

#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/exceptions.h"
#include "kernel/cancellation.h"
#include "kernel/device_env.h"
#include "kernel/kernel.h"
#include "kernel/step_threads.h"
#include "kernel/wake_on_cancel.h"
#include "kernels/cpu/data/dataset.h"

namespace millrace {

// The cancellation of a step, or one of its own for a step that has none.
class StepCancellation {
 public:
  explicit StepCancellation(const KernelContext& ctx) : step_(ctx.step().cancellation) {}
  CancellationManager& get() { return step_ != nullptr ? *step_ : own_; }

 private:
  CancellationManager* const step_;
  CancellationManager own_;
};

// Runs `work` on a thread that may wait, then `done` with what it returns.
template <typename Work>
void RunOnWaitingThread(Env& env, AsyncKernel::DoneCallback done, Work work) {
  auto shared_done = std::make_shared<AsyncKernel::DoneCallback>(std::move(done));
  const Status s = env.StartThread([shared_done, work = std::move(work)]() mutable {
    const Status result = WithoutExceptions(work);
    std::move (*shared_done)(result);
  });
  if (!s.ok()) std::move (*shared_done)(s);
}

// The same with what reading data sets needs: work(data).
template <typename Work>
void ReadOnWaitingThread(const KernelContext& ctx, AsyncKernel::DoneCallback done, Work work) {
  RunOnWaitingThread(EnvOf(ctx.device()), std::move(done), [&ctx, work = std::move(work)]() mutable -> Status {
    StepCancellation cancellation(ctx);
    DataContext data{cancellation.get(), EnvOf(ctx.device()), StepThreads::Of(ctx.step()), ctx.step().trace};
    return work(data);
  });
}

}  // namespace millrace
