// SPDX-License-Identifier: Apache-2.0
// How a worker gets what a Send on another worker made. In-process here; other backends stand beside it.
#pragma once

#include "kernel/rendezvous.h"

namespace millrace {

class Transport {
 public:
  virtual ~Transport() = default;
  // Asks the worker that owns `device` (full name) for the value of `key` in a step that is open there. `done` runs
  // exactly once, on any thread; Unavailable when there is no such worker, Aborted when the step is not open there.
  virtual void RecvAsync(absl::string_view device, int64_t step_id, absl::string_view key,
                         Rendezvous::DoneCallback done) = 0;
};

}  // namespace millrace
