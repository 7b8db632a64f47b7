// SPDX-License-Identifier: Apache-2.0
// A node of the tree of what can be stopped: a session, its steps, the calls within these. Thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "base/status.h"
#include "kernel/cancellation.h"

namespace millrace {

// What kernels poll and register with is the cancellation; whoever stops it says why, and the first reason is kept. It
// stops when one of those above it does, with that one's reason, and does not outlive them.
class StopNode final : public CancellationManager {
 public:
  StopNode() = default;
  // Below a session and within what `caller`, one of its steps or another call, cancels.
  StopNode(StopNode& session, CancellationManager& caller);
  ~StopNode();
  StopNode(const StopNode&) = delete;
  StopNode& operator=(const StopNode&) = delete;

  // `why` is not OK. Callbacks run, without a lock, before this returns; later calls do nothing.
  void Stop(const Status& why);
  // OK: it goes on.
  Status reason() const;

 private:
  std::vector<std::pair<CancellationManager*, Token>> above_;
  mutable absl::Mutex mu_;
  Status reason_ ABSL_GUARDED_BY(mu_);
};

// `consequence` under its cause: that one's code, and both messages where the cause says something else.
Status CausedBy(const Status& cause, const Status& consequence);

}  // namespace millrace
