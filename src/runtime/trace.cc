// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/current_thread.h"
#include "base/logging.h"
#include "base/thread_switches.h"
#include "runtime/plan_graph.h"

namespace millrace {
namespace {

// Constants ran when the plan was made: they have entries of no length, when the first node of their plan began, so
// that inputs are found.
void AddConstants(const PlanGraph& graph, int32_t plan, int64_t nanos, StepRecord* record) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind != PlannedNode::Kind::kOnce) continue;
    record->runs.push_back(
        {.plan = plan,
         .node = static_cast<int32_t>(i),
         .start_nanos = nanos,
         .end_nanos = nanos,
         .outputs_end = static_cast<uint32_t>(record->outputs.size()),
         .parts_end = static_cast<uint32_t>(record->parts.size())});
  }
}

// What other threads did of a node lies within its time, although they read another clock.
void ToNanos(TickScale& scale, StepRecord* record) {
  scale.Stop();
  uint32_t part = 0;
  for (StepRecord::Run& run : record->runs) {
    run.start_nanos = scale.ToNanos(run.start_nanos);
    run.end_nanos = scale.ToNanos(run.end_nanos);
    for (; part < run.parts_end; ++part) {
      for (int64_t HelpPart::* time : {&HelpPart::asked_nanos, &HelpPart::start_nanos, &HelpPart::end_nanos}) {
        int64_t& t = record->parts[part].*time;
        t = std::clamp(t, run.start_nanos, run.end_nanos);
      }
    }
  }
}

}  // namespace

void StepTrace::Watch(const std::shared_ptr<const PlanGraph>& graph) noexcept {
  absl::MutexLock lock(&mu_);
  if (!graphs_.empty() && graphs_.back() == graph) return;  // a loop's body comes again and again
  if (std::find(graphs_.begin(), graphs_.end(), graph) != graphs_.end()) return;
  try {
    graphs_.push_back(graph);
    record_.runs.reserve(record_.runs.size() + graph->nodes.size());
    record_.outputs.reserve(record_.outputs.size() + graph->nodes.size());
  } catch (const std::bad_alloc&) {
    // What is recorded of it may be left out.
  }
}

uint32_t StepTrace::NoteThread() noexcept {
  const uint32_t thread = CurrentThread();
  absl::MutexLock lock(&mu_);
  try {
    NoteThread(thread);
  } catch (const std::bad_alloc&) {
    // It has no name.
  }
  return thread;
}

void StepTrace::NoteThread(uint32_t thread) {
  for (const StepRecord::Thread& t : record_.threads) {
    if (t.number == thread) return;
  }
  char name[16] = {};  // as long as the system's may be
  pthread_getname_np(pthread_self(), name, sizeof(name));
  record_.threads.push_back({thread, name});
  ThreadSwitches::Get().WatchThisThread();
}

bool StepTrace::Find(const NodeInfo* node, StepRecord::Run* run) {
  const auto at = reinterpret_cast<uintptr_t>(node);
  for (size_t tried = 0; tried < graphs_.size(); ++tried) {
    const std::vector<PlannedNode>& nodes = graphs_[last_found_]->nodes;
    const size_t offset = at - reinterpret_cast<uintptr_t>(nodes.data());  // huge when `at` lies before
    if (offset < nodes.size() * sizeof(PlannedNode)) {
      run->plan = static_cast<int32_t>(last_found_);
      run->node = static_cast<int32_t>(offset / sizeof(PlannedNode));
      return true;
    }
    last_found_ = (last_found_ + 1) % graphs_.size();
  }
  return false;
}

void StepTrace::Record(const Run& run, absl::Span<const Slot> outputs, absl::Span<const HelpPart> parts) noexcept {
  const int64_t now = TicksNow();
  absl::MutexLock lock(&mu_);
  if (record_.runs.size() >= kMostRuns) {
    ++left_out_;
    return;
  }
  StepRecord::Run r;
  if (!Find(run.node, &r)) return;
  r.start_nanos = run.start_ticks;
  r.end_nanos = now;
  r.thread = run.thread != 0 ? run.thread : CurrentThread();
  r.is_asynchronous = run.is_asynchronous;
  const size_t before = record_.outputs.size(), parts_before = record_.parts.size();
  try {
    if (run.thread == 0) NoteThread(r.thread);
    for (const Slot& slot : outputs) {
      const Tensor& v = slot.tensor;
      if (!v.IsInitialized()) continue;
      record_.outputs.push_back(
          {.dtype = v.dtype(),
           .shape = v.shape(),
           .bytes = static_cast<int64_t>(v.TotalBytes()),
           .buffer = reinterpret_cast<uintptr_t>(v.buffer()),
           .is_shared = !v.OwnsBufferAlone()});
    }
    record_.parts.insert(record_.parts.end(), parts.begin(), parts.end());
    r.outputs_end = static_cast<uint32_t>(record_.outputs.size());
    r.parts_end = static_cast<uint32_t>(record_.parts.size());
    record_.runs.push_back(r);
  } catch (const std::bad_alloc&) {
    record_.outputs.erase(record_.outputs.begin() + static_cast<std::ptrdiff_t>(before), record_.outputs.end());
    record_.parts.erase(record_.parts.begin() + static_cast<std::ptrdiff_t>(parts_before), record_.parts.end());
  }
}

std::vector<StepRecord> StepTrace::Take() {
  absl::MutexLock lock(&mu_);
  if (left_out_ > 0) LogWarning("a step's trace has its first ", kMostRuns, " runs of nodes; left out: ", left_out_);
  left_out_ = 0;
  std::vector<StepRecord> all = std::exchange(others_, {});
  if (!record_.runs.empty()) {
    record_.plans.reserve(graphs_.size());
    std::vector<int64_t> first_starts(graphs_.size(), INT64_MAX);
    ToNanos(scale_, &record_);
    for (const StepRecord::Run& run : record_.runs) {
      int64_t& first = first_starts[static_cast<size_t>(run.plan)];
      first = std::min(first, run.start_nanos);
    }
    for (size_t g = 0; g < graphs_.size(); ++g) {
      record_.plans.push_back(graphs_[g]->Traced());
      if (first_starts[g] != INT64_MAX) AddConstants(*graphs_[g], static_cast<int32_t>(g), first_starts[g], &record_);
    }
    record_.is_of_this_process = true;
    all.push_back(std::exchange(record_, {}));
  }
  graphs_.clear();
  last_found_ = 0;
  return all;
}

}  // namespace millrace
