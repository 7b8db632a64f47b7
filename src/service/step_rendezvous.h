// SPDX-License-Identifier: Apache-2.0
// The rendezvous of one worker's part of a step that several workers take part in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel/rendezvous.h"
#include "service/worker_interface.h"

namespace millrace {

// The worker at the other end of an edge.
struct EdgePeer {
  WorkerInterface* worker = nullptr;
  SessionRef session;      // there
  bool is_pushed = false;  // see PartitionToRegister
};

// For the kernels of this worker. Keys are texts of EdgeKey. What is sent waits in `here`, where other workers find it
// too, and, where it is pushed, is sent to the other end as well, for which `here` keeps it, since it may be lost. What
// comes over an edge from another worker is asked for there, by RecvTensor; if it is pushed, it is waited for in
// `here`, and asked for when it is late. `peer_of`, which gives null for edges within the worker and for what waits to
// be asked for, is called by Send and RecvAsync only. Abort aborts `here` too, and does not wait for answers of others.
// `failed` is told why another worker does not send something, before who waits for it is; `got_pushed` of each pushed
// value that no longer waits in `here`.
class StepRendezvous : public Rendezvous {
 public:
  // What other workers have not sent yet.
  virtual void Describe(std::vector<std::string>* lines) = 0;
  // For what is pushed and was missing already at an earlier call.
  virtual void AskForMissing() = 0;
};
RefPtr<StepRendezvous> NewStepRendezvous(
    RefPtr<Rendezvous> here, int64_t step, std::function<const EdgePeer*(int64_t edge)> peer_of,
    std::function<void(const Status&)> failed, std::function<void(const Tensor&)> got_pushed);

}  // namespace millrace
