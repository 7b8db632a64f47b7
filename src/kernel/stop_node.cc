// SPDX-License-Identifier: Apache-2.0
#include "kernel/stop_node.h"

#include <utility>

#include "absl/strings/match.h"

namespace millrace {

// Delegates, so that a throw here unregisters.
StopNode::StopNode(StopNode& session, CancellationManager& caller) : StopNode() {
  above_.reserve(2);  // what is registered must find its place
  const auto follow = [this](CancellationManager& above, auto why) {
    const auto stop = [this, why] { Stop(why()); };
    const Token token = above.Register(stop);
    token == kInvalid ? stop() : static_cast<void>(above_.emplace_back(&above, token));
  };
  follow(session, [&session] { return session.reason(); });
  follow(caller, [] { return Cancelled("the step was cancelled"); });
}

StopNode::~StopNode() {
  for (const auto& [above, token] : above_) above->Deregister(token);
}

void StopNode::Stop(const Status& why) {
  {
    absl::MutexLock lock(&mu_);
    if (!reason_.ok()) return;
    reason_ = why;
  }
  Cancel();
}

Status StopNode::reason() const {
  absl::MutexLock lock(&mu_);
  return reason_;
}

Status CausedBy(const Status& cause, const Status& consequence) {
  if (cause.code() == consequence.code() && absl::StrContains(consequence.message(), cause.message())) {
    return consequence;
  }
  try {
    return Status(cause.code(), absl::StrCat(cause.message(), ": ", consequence.message()));
  } catch (...) {  // for want of memory
    return cause;
  }
}

}  // namespace millrace
