// SPDX-License-Identifier: Apache-2.0
// Traces of a program that knows nothing of them: with MILLRACE_TRACE=DIR in the environment every session writes some
// of its steps as DIR/trace-PROCESS-SESSION-STEP.pb, RunMetadata messages, which `millrace trace DIR` reads. Steps
// count from 0 in each session; MILLRACE_TRACE_STEPS says which, as "0-9,100" (default: 0-49). Here are the names and
// the numbers; TraceWriter writes. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace millrace {

class TraceFiles {
 public:
  // As the environment says: off without MILLRACE_TRACE. InvalidArgument when the list of steps is none.
  static StatusOr<TraceFiles> FromEnvironment();

  TraceFiles() = default;
  TraceFiles(TraceFiles&& other) noexcept
      : folder_(std::move(other.folder_)), steps_(std::move(other.steps_)), session_(other.session_) {}

  bool is_on() const { return !folder_.empty(); }
  // The number of the step that begins, or -1 when it is not to be written.
  int64_t Next();
  std::string PathOf(int64_t step) const;

 private:
  std::string folder_;
  std::vector<std::pair<int64_t, int64_t>> steps_;  // from, to
  int64_t session_ = 0;
  std::atomic<int64_t> next_{0};
};

}  // namespace millrace
