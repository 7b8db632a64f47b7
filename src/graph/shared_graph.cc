// SPDX-License-Identifier: Apache-2.0
#include "graph/shared_graph.h"

namespace millrace {

namespace {

// An address that is this thread's own.
const void* Me() {
  static thread_local char me;
  return &me;
}

}  // namespace

void GraphMutex::Lock() {
  mu_.Lock();
  while (ClaimedElsewhere()) released_.Wait(&mu_);
}

Status GraphMutex::LockWhile(absl::FunctionRef<Status()> keep_going) {
  constexpr absl::Duration kPatience = absl::Milliseconds(10);  // between questions
  mu_.Lock();
  while (ClaimedElsewhere()) {
    released_.WaitWithTimeout(&mu_, kPatience);
    if (Status s = keep_going(); !s.ok()) {
      mu_.Unlock();
      return Annotate(s, "while another thread builds a conditional or loop in the graph: ");
    }
  }
  return absl::OkStatus();
}

bool GraphMutex::ClaimedElsewhere() const {
  const void* claimant = claimant_.load(std::memory_order_relaxed);
  return claimant != nullptr && claimant != Me();
}

void GraphMutex::Claim() {
  claimant_.store(Me(), std::memory_order_relaxed);
  ++claims_;
}

void GraphMutex::ReleaseClaim() {
  if (--claims_ > 0) return;
  claimant_.store(nullptr, std::memory_order_relaxed);
  released_.SignalAll();
}

bool GraphMutex::ClaimedHere() const { return claimant_.load(std::memory_order_relaxed) == Me(); }

}  // namespace millrace
