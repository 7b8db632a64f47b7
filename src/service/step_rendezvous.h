// SPDX-License-Identifier: Apache-2.0
// The rendezvous of one worker's part of a step that several workers take part in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel/rendezvous.h"
#include "service/worker_interface.h"

namespace millrace {

// Who sends an edge.
struct EdgeSource {
  WorkerInterface* worker = nullptr;
  SessionRef session;  // there
};

// For the kernels of this worker. Keys are texts of EdgeKey. What is sent waits in `here`, where other workers find it
// too; what comes over an edge with a source is asked for there, by RecvTensor. `source_of`, which gives null for edges
// within the worker, is called by RecvAsync only. Abort aborts `here` too, and does not wait for answers of others.
// `failed` is told why another worker does not send something, before who waits for it is.
class StepRendezvous : public Rendezvous {
 public:
  // What other workers were asked for and have not answered.
  virtual void Describe(std::vector<std::string>* lines) = 0;
};
RefPtr<StepRendezvous> NewStepRendezvous(
    RefPtr<Rendezvous> here, int64_t step, std::function<const EdgeSource*(int64_t edge)> source_of,
    std::function<void(const Status&)> failed);

}  // namespace millrace
