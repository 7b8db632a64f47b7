// SPDX-License-Identifier: Apache-2.0
// The rendezvous of one worker's part of a step that several workers take part in.
#pragma once

#include <functional>

#include "kernel/rendezvous.h"
#include "service/worker_interface.h"

namespace millrace {

// Who sends an edge.
struct EdgeSource {
  WorkerInterface* worker = nullptr;
  uint64_t incarnation = 0;
};

// For the kernels of this worker. Keys are texts of EdgeKey. What is sent waits in `here`, where other workers find it
// too; what comes over an edge with a source is asked for there, by RecvTensor. `source_of`, which gives null for edges
// within the worker, is called by RecvAsync only. Abort aborts `here` too, and does not wait for answers of others.
RefPtr<Rendezvous> NewStepRendezvous(RefPtr<Rendezvous> here, uint64_t session, int64_t step,
                                     std::function<const EdgeSource*(int64_t edge)> source_of);

}  // namespace millrace
