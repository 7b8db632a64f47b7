// SPDX-License-Identifier: Apache-2.0
// Calls of a function at once, each on a thread of its own, whose results come in the order in which they were started,
// or in which they are ready.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "base/exceptions.h"
#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/dataset_wait.h"

namespace millrace {

inline constexpr int64_t kAutotune = -1;
inline constexpr int64_t kAutotunedCalls = 4;
inline constexpr int64_t kMaxCalls = 256;

// Used by one thread at a time. What it calls outlives it.
class ParallelCalls {
 public:
  struct Call {
    bool over = false;
    Status status;
    Element results;
  };

  ParallelCalls(Env& env, const CapturedFunction& function) : env_(env), function_(function) {}
  // Cancels what runs, and waits for its end.
  ~ParallelCalls() {
    stop_.Cancel(WithoutExceptions([] { return Cancelled("the iterator has ended"); }));
    absl::MutexLock lock(&mu_);
    env_.Await(mu_, absl::Condition(+[](size_t* running) { return *running == 0; }, &running_));
  }

  size_t size() const { return calls_.size(); }
  bool empty() const { return calls_.empty(); }
  // In the place of a call.
  void Push(Status status) { calls_.push_back(std::make_shared<Call>(Call{true, std::move(status), {}})); }
  Status Start(Element args) {
    auto call = std::make_shared<Call>();
    {
      absl::MutexLock lock(&mu_);
      ++running_;
    }
    const Status s = env_.StartThread([this, call, args = std::move(args)]() mutable {
      DataContext ctx{stop_, env_};
      Element results;
      const Status status = WithoutExceptions([&] { return function_.Run(ctx, std::move(args), &results); });
      absl::MutexLock lock(&mu_);
      call->status = status;
      call->results = std::move(results);
      call->over = true;
      --running_;
    });
    if (s.ok()) {
      calls_.push_back(std::move(call));
    } else {
      absl::MutexLock lock(&mu_);
      --running_;
    }
    return s;
  }
  // Reads elements and starts their calls while fewer than `limit` are there. An error of the input takes the place of
  // a call. Resets the input at its end.
  Status Fill(DataContext& ctx, size_t limit, DataIteratorPtr* input) {
    while (*input && calls_.size() < limit) {
      Element args;
      const StatusOr<bool> found = (*input)->Next(ctx, &args);
      if (!found.ok()) {
        Push(found.status());
        break;
      }
      if (*found) {
        MR_RETURN_IF_ERROR(Start(std::move(args)));
      } else {
        input->reset();
      }
    }
    return absl::OkStatus();
  }
  // Waits for the first call, of which there is one, and takes it away; Cancelled with the context. With `any`, the
  // first of those that are over.
  StatusOr<std::shared_ptr<Call>> Take(DataContext& ctx, bool any = false) {
    auto taken = calls_.end();
    {
      const WakeOnCancel wake(ctx.cancellation, mu_);
      absl::MutexLock lock(&mu_);
      const auto last = any ? calls_.end() : calls_.begin() + 1;
      const auto ready = [&] {
        taken = std::find_if(calls_.begin(), last, [](const std::shared_ptr<Call>& c) { return c->over; });
        return taken != last || ctx.cancellation.IsCancelled();
      };
      env_.Await(mu_, absl::Condition(&ready));
      if (taken == last) return ctx.KeepGoing();
    }
    std::shared_ptr<Call> call = std::move(*taken);
    calls_.erase(taken);
    return call;
  }

 private:
  Env& env_;
  const CapturedFunction& function_;
  CancellationManager stop_;
  std::deque<std::shared_ptr<Call>> calls_;
  absl::Mutex mu_;
  size_t running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace millrace
