// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/rpc.h"

namespace millrace {

// The reply of one call, which may outlive who asked.
class Pending {
 public:
  RpcReply Reply() {
    return [state = state_](StatusOr<absl::Cord> result) {
      absl::MutexLock lock(&state->mu);
      state->replies++;
      state->result = std::move(result);
    };
  }
  bool Wait(absl::Duration patience = absl::Seconds(30)) {
    absl::MutexLock lock(&state_->mu);
    return Env::Default().Await(
        state_->mu, absl::Condition(+[](int* replies) { return *replies > 0; }, &state_->replies), patience);
  }
  bool done() { return Wait(absl::ZeroDuration()); }
  StatusOr<absl::Cord> Result() {
    if (!Wait()) return DeadlineExceeded("the test's patience is at its end: there is no reply");
    absl::MutexLock lock(&state_->mu);
    if (state_->replies != 1) return Internal(state_->replies, " replies to one call");
    return state_->result;
  }

 private:
  struct State {
    absl::Mutex mu;
    int replies = 0;
    StatusOr<absl::Cord> result;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

inline StatusOr<absl::Cord> CallAndWait(RpcChannel& channel, absl::string_view method, absl::Cord request,
                                        const RpcOptions& options = {}) {
  Pending pending;
  channel.Call(method, options, std::move(request), pending.Reply());
  return pending.Result();
}

}  // namespace millrace
