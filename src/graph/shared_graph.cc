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
  for (;;) {
    const void* claimant = claimant_.load(std::memory_order_relaxed);
    if (claimant == nullptr || claimant == Me()) return;
    released_.Wait(&mu_);
  }
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
