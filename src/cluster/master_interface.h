// SPDX-License-Identifier: Apache-2.0
// A master as its clients see it, in this process or elsewhere.
#pragma once

#include "absl/time/time.h"
#include "cluster/master_messages.h"
#include "kernel/cancellation.h"
#include "runtime/interrupt.h"

namespace millrace {

// Of one call; no part of the message.
struct MasterCall {
  absl::Duration timeout = absl::InfiniteDuration();
  CancellationManager* cancellation = nullptr;  // may be null; lives until the call returns
  const InterruptCheck* interrupt = nullptr;    // may be null; looked at on the calling thread
  const std::string* peer = nullptr;            // who calls; null: somebody of this process
};

// The methods: name, request, response.
#define MR_MASTER_METHODS(X)                                                \
  X(CreateSession, CreateSessionRequest, CreateSessionResponse)             \
  X(Ping, PingRequest, PingResponse)                                        \
  X(ExtendSession, ExtendSessionRequest, ExtendSessionResponse)             \
  X(RunStep, RunSessionStepRequest, RunSessionStepResponse)                 \
  X(SetUpPartialRun, SetUpPartialRunRequest, SetUpPartialRunResponse)       \
  X(ReleasePartialRun, ReleasePartialRunRequest, ReleasePartialRunResponse) \
  X(MakeCallable, MakeCallableRequest, MakeCallableResponse)                \
  X(RunCallable, RunCallableRequest, RunCallableResponse)                   \
  X(ReleaseCallable, ReleaseCallableRequest, ReleaseCallableResponse)       \
  X(CloseSession, CloseSessionRequest, CloseSessionResponse)                \
  X(ListDevices, ListDevicesRequest, ListDevicesResponse)                   \
  X(Reset, ResetMasterRequest, ResetMasterResponse)                         \
  X(ExplainStep, ExplainStepRequest, ExplainStepResponse)                   \
  X(GetSessionRandom, GetSessionRandomRequest, GetSessionRandomResponse)    \
  X(SetSessionRandom, SetSessionRandomRequest, SetSessionRandomResponse)

// May be called concurrently. A call waits until it is obeyed, on the thread of its caller, which helps to run steps of
// this process. Errors beside those of what is asked for: Aborted when there is no such session (the master was
// restarted, or somebody has closed it), Unavailable, DeadlineExceeded, Cancelled.
class MasterInterface {
 public:
  virtual ~MasterInterface() = default;
#define MR_DECLARE(Method, Request, Response) \
  virtual StatusOr<Response> Method(const MasterCall& call, Request request) = 0;
  MR_MASTER_METHODS(MR_DECLARE)
#undef MR_DECLARE
};

}  // namespace millrace
