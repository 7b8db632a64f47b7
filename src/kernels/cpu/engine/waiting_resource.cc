// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/waiting_resource.h"

#include <algorithm>
#include <limits>

#include "base/exceptions.h"

namespace millrace {

struct WaitingResource::Waiter {
  Line line = Line::kNone;
  Attempt attempt;
  DoneCallback done;
  Status status;
  bool ended = false;  // guarded by the resource's lock
  CancellationManager* cancellation = nullptr;
  CancellationManager::Token token = CancellationManager::kInvalid;
};

void WaitingResource::Call(Line line, Attempt attempt, CancellationManager* cancellation, DoneCallback done) {
  auto waiter = std::make_shared<Waiter>();
  waiter->line = line;
  waiter->attempt = std::move(attempt);
  waiter->done = std::move(done);
  waiter->cancellation = cancellation;
  std::vector<WaiterPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    waiters_.push_back(waiter);
    Serve(&ended);
    if (!waiter->ended && cancellation != nullptr) {
      // Under the lock, since the step may be over as soon as it is released.
      waiter->token =
          cancellation->Register([self = RefPtr<WaitingResource>::Share(this), waiter] { self->Cancel(waiter); });
      if (waiter->token == CancellationManager::kInvalid) {
        std::erase(waiters_, waiter);
        waiter->ended = true;
        waiter->status = cancellation->reason();
        ended.push_back(std::move(waiter));
        Serve(&ended);
      }
    }
  }
  for (const WaiterPtr& w : ended) End(*w);
}

void WaitingResource::Serve(std::vector<WaiterPtr>* ended) {
  ended->reserve(ended->size() + waiters_.size());  // what has ended must find its place
  bool blocked[3] = {};                             // by line
  for (size_t i = 0; i < waiters_.size();) {
    const WaiterPtr waiter = waiters_[i];
    bool& line_blocked = blocked[static_cast<size_t>(waiter->line)];
    if (line_blocked || !waiter->attempt(&waiter->status)) {
      line_blocked = waiter->line != Line::kNone;
      ++i;
      continue;
    }
    waiter->ended = true;
    waiters_.erase(waiters_.begin() + static_cast<std::ptrdiff_t>(i));
    ended->push_back(waiter);
    i = 0;  // those before it may be able to go on now
    std::fill(std::begin(blocked), std::end(blocked), false);
  }
}

// The waiter ends, with less of a message and perhaps alone, where there is no memory.
void WaitingResource::Cancel(const WaiterPtr& waiter) {
  std::vector<WaiterPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    if (waiter->ended) return;
    std::erase(waiters_, waiter);
    waiter->ended = true;
    waiter->status = waiter->cancellation->reason();
    WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      waiter->status = Annotate(
          waiter->status, absl::StrCat("The operation was cancelled while it waited at ", DebugString(), ": "));
      Serve(&ended);  // those behind it in its line
      return absl::OkStatus();
    }).IgnoreError();
  }
  End(*waiter);
  for (const WaiterPtr& w : ended) End(*w);
}

// A registration whose step is being cancelled stays, as in queue.cc.
void WaitingResource::End(Waiter& w) {
  if (w.token != CancellationManager::kInvalid && !w.cancellation->IsCancelled()) w.cancellation->Deregister(w.token);
  w.attempt = nullptr;
  DoneCallback done = std::move(w.done);
  std::move(done)(std::move(w.status));
}

Status OutputSize(KernelContext& ctx, int o, int64_t size) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape()));
  *out->mutable_data<int32_t>() = static_cast<int32_t>(std::min<int64_t>(size, std::numeric_limits<int32_t>::max()));
  return absl::OkStatus();
}

}  // namespace millrace
