// SPDX-License-Identifier: Apache-2.0
// A node of the tree of what can be stopped: a session, its steps, the calls within these. Thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "base/status.h"
#include "kernel/cancellation.h"

namespace millrace {

// Is cancelled when one of those above it is, with that one's reason, and does not outlive them.
class StopNode final : public CancellationManager {
 public:
  StopNode() = default;
  // Below a session and within what `caller`, one of its steps or another call, cancels.
  StopNode(StopNode& session, CancellationManager& caller);
  ~StopNode();
  StopNode(const StopNode&) = delete;
  StopNode& operator=(const StopNode&) = delete;

 private:
  std::vector<std::pair<CancellationManager*, Token>> above_;
};

// `s` with a prefix before its message; as it is where there is no memory for that.
Status WithPrefix(absl::string_view prefix, const Status& s) noexcept;

// `consequence` under its cause: that one's code, and both messages where the cause says something else.
Status CausedBy(const Status& cause, const Status& consequence);

}  // namespace millrace
