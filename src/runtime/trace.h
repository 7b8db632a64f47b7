// SPDX-License-Identifier: Apache-2.0
// What a traced step records: one entry a node run, and one for each constant. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/help_point.h"
#include "kernel/kernel.h"

namespace millrace {

struct PlanGraph;

struct NodeTrace {
  std::string node;
  std::string op;
  std::string device;
  int64_t start_nanos = 0;  // as RealNanos says
  int64_t end_nanos = 0;
  uint32_t thread = 0;  // that began it
  struct OutputTrace {
    DType dtype;
    Shape shape;
    int64_t bytes;
    uint64_t buffer = 0;     // its address: outputs with the same one share their bytes
    bool is_shared = false;  // somebody else held the buffer, too: a variable, or who reads it already
  };
  std::vector<OutputTrace> outputs;
  std::string thread_name;
  std::vector<std::string> inputs;  // the nodes of the compiled step that it waited for, "^node" for an order alone
  int64_t edge = -1;                // of a Send or Recv: the same number on both sides
  std::vector<HelpPart> parts;      // what other threads did of its ParallelFor calls
  bool is_asynchronous = false;     // its thread did something else before it ended
  bool is_of_this_process = false;  // messages do not say it
};

class StepTrace {
 public:
  // Without memory the step goes on, and the trace lacks what cannot be recorded.

  // Nodes of `graph` will be recorded. It lives as long as they are in the trace.
  void Watch(const std::shared_ptr<const PlanGraph>& graph) noexcept;
  // The number of this thread, whose name the trace has from now on.
  uint32_t NoteThread() noexcept;

  struct Run {
    const NodeInfo* node;  // of a watched graph
    int64_t start_nanos;
    uint32_t thread = 0;  // 0: this one
    bool is_asynchronous = false;
  };
  // It has ended now. `parts`: what other threads did of it.
  void Record(const Run& run, absl::Span<const Slot> outputs, absl::Span<const HelpPart> parts = {}) noexcept;
  void Add(NodeTrace t) {  // that another trace had
    absl::MutexLock lock(&mu_);
    taken_.push_back(std::move(t));
  }
  std::vector<NodeTrace> Take();

 private:
  // As little as can be done while the step runs; Take makes the rest of it.
  struct Entry {
    Run run;
    int64_t end_nanos;
    size_t outputs_end;  // in outputs_
    size_t parts_end;    // in parts_
  };
  void NoteThread(uint32_t thread) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  NodeTrace Described(const Entry& e, const PlanGraph& graph) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  std::vector<std::shared_ptr<const PlanGraph>> graphs_ ABSL_GUARDED_BY(mu_);
  std::vector<std::pair<uint32_t, std::string>> threads_ ABSL_GUARDED_BY(mu_);
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::vector<NodeTrace::OutputTrace> outputs_ ABSL_GUARDED_BY(mu_);
  std::vector<HelpPart> parts_ ABSL_GUARDED_BY(mu_);
  std::vector<NodeTrace> taken_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
