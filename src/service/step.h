// SPDX-License-Identifier: Apache-2.0
// The state of one step in flight.
#pragma once

#include "kernel/kernel.h"

namespace millrace {

struct Step {
  Step(int64_t id, int max_threads) {
    context.step_id = id;
    context.cancellation = &cancellation;
    context.step_resources = &resources;
    context.max_threads = max_threads;
  }
  void UseRendezvous() {
    rendezvous = NewLocalRendezvous();
    context.rendezvous = rendezvous.get();
  }
  // Stops the step from outside: kernels between nodes, waiting receives at once.
  void Stop(const Status& why) {
    cancellation.Cancel();
    if (rendezvous) rendezvous->Abort(why);
  }

  StepContext context;
  CancellationManager cancellation;
  RefPtr<Rendezvous> rendezvous;
  ResourceManager resources;
  // Neighbours among the steps in flight; the coordinator's.
  Step* previous = nullptr;
  Step* next = nullptr;
};

}  // namespace millrace
