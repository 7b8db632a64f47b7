// SPDX-License-Identifier: Apache-2.0
// Collects what a traced step does: a run of each node, and one of each constant. Thread-safe. Without memory the step
// goes on, and the trace lacks what cannot be recorded. It has the first kMostRuns: a loop, or a data set of functions,
// may go on for ever.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/tick_clock.h"
#include "kernel/kernel.h"
#include "runtime/step_record.h"

namespace millrace {

struct PlanGraph;

class StepTrace {
 public:
  static constexpr size_t kMostRuns = 1'000'000;

  // Nodes of `graph` will be recorded. It lives as long as they are in the trace.
  void Watch(const std::shared_ptr<const PlanGraph>& graph) noexcept;
  // The number of this thread, whose name the trace has from now on.
  uint32_t NoteThread() noexcept;

  struct Run {
    const NodeInfo* node;  // of a watched graph
    int64_t start_ticks;
    uint32_t thread = 0;  // 0: this one
    bool is_asynchronous = false;
  };
  // It has ended now. `parts`: what other threads did of it.
  void Record(const Run& run, absl::Span<const Slot> outputs, absl::Span<const HelpPart> parts = {}) noexcept;
  // What another trace had.
  void Add(StepRecord record) {
    absl::MutexLock lock(&mu_);
    others_.push_back(std::move(record));
  }
  // What was added, then its own. Once. Logs how many runs are left out.
  std::vector<StepRecord> Take();

 private:
  void NoteThread(uint32_t thread) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets run->plan and run->node; false: it is nobody's who is watched.
  bool Find(const NodeInfo* node, StepRecord::Run* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  std::vector<std::shared_ptr<const PlanGraph>> graphs_ ABSL_GUARDED_BY(mu_);
  size_t last_found_ ABSL_GUARDED_BY(mu_) = 0;  // in graphs_
  StepRecord record_ ABSL_GUARDED_BY(mu_);      // its plans are made by Take, and its runs' times are ticks until then
  TickScale scale_ ABSL_GUARDED_BY(mu_);
  int64_t left_out_ ABSL_GUARDED_BY(mu_) = 0;  // runs behind the first kMostRuns
  std::vector<StepRecord> others_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
