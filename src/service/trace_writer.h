// SPDX-License-Identifier: Apache-2.0
// Writes the traces of a session's steps to files, behind the steps: a step hands over what it recorded and goes on,
// and a thread that lives while there are traces brings them into their form and to the disk, in the order in which
// they came. What comes faster than it is written waits, up to kMostBytes of it; what would be more is dropped, and the
// log says how many. A trace that cannot be written is a warning. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "base/env.h"

namespace millrace {

class TraceWriter {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;

  explicit TraceWriter(Env& env);
  // Writes what it has, as Flush does.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // `encode` gives what goes into the file `path`, whose folder is made; of nothing there is no file. `bytes`: what it
  // holds until then, about. It runs on another thread, or on this one where the system has no other. The file appears
  // when it is whole.
  void Write(std::string path, size_t bytes, absl::AnyInvocable<std::string() &&> encode);

  // Returns when all that was handed over is written or given up, or when `patience` has passed: whether it is. At the
  // end of the process (exit, not a signal) it happens by itself, with ten seconds of patience.
  bool Flush(absl::Duration patience);

 private:
  class Queue;
  const std::shared_ptr<Queue> queue_;  // the thread's too: it may outlive the writer when the disk is stuck
};

}  // namespace millrace
