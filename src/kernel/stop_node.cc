// SPDX-License-Identifier: Apache-2.0
#include "kernel/stop_node.h"

#include <utility>

#include "absl/strings/match.h"

namespace millrace {

// Delegates, so that a throw here unregisters.
StopNode::StopNode(StopNode& session, CancellationManager& caller) : StopNode() {
  above_.reserve(2);  // what is registered must find its place
  for (CancellationManager* const above : {static_cast<CancellationManager*>(&session), &caller}) {
    const auto stop = [this, above] { Cancel(above->reason()); };
    const Token token = above->Register(stop);
    token == kInvalid ? stop() : static_cast<void>(above_.emplace_back(above, token));
  }
}

StopNode::~StopNode() {
  for (const auto& [above, token] : above_) above->Deregister(token);
}

Status WithPrefix(absl::string_view prefix, const Status& s) noexcept {
  try {
    return Annotate(s, prefix);
  } catch (...) {
    return s;
  }
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
