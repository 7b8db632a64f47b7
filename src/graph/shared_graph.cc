// SPDX-License-Identifier: Apache-2.0
#include "graph/shared_graph.h"

#include "base/this_world.h"

namespace millrace {

namespace {

// An address that is this thread's own.
const void* Me() {
  static thread_local char me;
  return &me;
}

}  // namespace

bool GraphMutex::AwaitRelease(absl::Duration patience) {
  const auto is_free = [this, me = Me()] {  // another thread may ask
    const void* claimant = claimant_.load(std::memory_order_relaxed);
    return claimant == nullptr || claimant == me;
  };
  return AwaitInThisWorld(mu_, absl::Condition(&is_free), patience);
}

void GraphMutex::Lock() {
  mu_.Lock();
  while (!AwaitRelease(absl::InfiniteDuration())) {
  }
}

Status GraphMutex::LockWhile(absl::FunctionRef<Status()> keep_going) {
  constexpr absl::Duration kPatience = absl::Milliseconds(10);  // between questions
  for (;;) {
    mu_.Lock();
    if (AwaitRelease(kPatience)) return absl::OkStatus();
    mu_.Unlock();
    Status s = keep_going();
    if (!s.ok()) return Annotate(s, "while another thread builds a conditional or loop in the graph: ");
  }
}

void GraphMutex::Claim() {
  claimant_.store(Me(), std::memory_order_relaxed);
  ++claims_;
}

void GraphMutex::ReleaseClaim() {
  if (--claims_ > 0) return;
  claimant_.store(nullptr, std::memory_order_relaxed);
}

bool GraphMutex::ClaimedHere() const { return claimant_.load(std::memory_order_relaxed) == Me(); }

}  // namespace millrace
