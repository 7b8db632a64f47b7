// SPDX-License-Identifier: Apache-2.0
// Base of resources whose users wait for each other without a thread: barriers, staging areas, accumulators.
//
// A call is an attempt: a function that runs under the resource's lock, and says whether the call has ended. An attempt
// that cannot end yet changes nothing, and is made again after every other call's end and every change, in the order of
// arrival, until it ends or its step is cancelled.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {

class WaitingResource : public Resource {
 public:
  using DoneCallback = AsyncKernel::DoneCallback;
  using Attempt = absl::AnyInvocable<bool(Status*)>;
  enum class Line : uint8_t { kNone, kPut, kTake };

  // Makes the attempt, now or later; then `done`, not under the lock, perhaps inside this call or on the thread of
  // whoever made it possible. `cancellation` may be null; it lives until then.
  void Call(Line line, Attempt attempt, CancellationManager* cancellation, DoneCallback done);

  // For what never waits.
  template <typename Fn>
  auto Locked(Fn fn) const {
    absl::MutexLock lock(&mu_);
    return fn();
  }

 private:
  struct Waiter;
  using WaiterPtr = std::shared_ptr<Waiter>;
  void Serve(std::vector<WaiterPtr>* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Cancel(const WaiterPtr& waiter);
  static void End(Waiter& w);

  mutable absl::Mutex mu_;
  std::deque<WaiterPtr> waiters_ ABSL_GUARDED_BY(mu_);
};

// Base of the kernels that take the handle of a T as input 0.
template <typename T>
class CallKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, DoneCallback done) final {
    StatusOr<RefPtr<T>> resource = FindResource<T>(ctx, 0);
    if (!resource.ok()) return std::move(done)(resource.status());
    StatusOr<WaitingResource::Attempt> attempt = Prepare(ctx, **resource);
    if (!attempt.ok()) return std::move(done)(attempt.status());
    (*resource)->Call(line(), *std::move(attempt), ctx.step().cancellation, std::move(done));
  }
  bool IsExpensive() const final { return false; }

 protected:
  // Checks what can be checked without the resource's lock. The attempt may use `ctx` and `resource`.
  virtual StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, T& resource) = 0;
  virtual WaitingResource::Line line() const { return WaitingResource::Line::kNone; }
};

// Sets output o to an integer scalar.
Status OutputSize(KernelContext& ctx, int o, int64_t size);

}  // namespace millrace
