// SPDX-License-Identifier: Apache-2.0
// A call of a client that a Coordinator runs: for its own files.
#pragma once

#include "service/coordinator.h"

namespace millrace {

// On the stack of the call, or, when nobody waits for it, held by `self`. Guarded by the coordinator's lock but for
// Stop.
struct Coordinator::CallInFlight {
  virtual ~CallInFlight() = default;
  // May be called from any thread, several times, while it is in flight.
  virtual void Stop(const Status& why) = 0;

  Interrupt* interrupt = nullptr;  // null: nothing interrupts it; constant
  std::shared_ptr<CallInFlight> self;
  bool entered = false;
  bool is_being_stopped = false;     // it must not leave
  bool leaves_when_stopped = false;  // it has left meanwhile
  // Neighbours among the calls in flight.
  CallInFlight* previous = nullptr;
  CallInFlight* next = nullptr;
};

}  // namespace millrace
