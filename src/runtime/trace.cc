// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/current_thread.h"
#include "base/stopwatch.h"
#include "base/thread_switches.h"
#include "runtime/plan_graph.h"

namespace millrace {
namespace {

// The node of `graph` whose description is `info`; null when it is another's.
const PlannedNode* NodeOf(const PlanGraph& graph, const NodeInfo* info) {
  const auto at = reinterpret_cast<uintptr_t>(info), first = reinterpret_cast<uintptr_t>(graph.nodes.data());
  const size_t offset = at - first;  // huge when `at` lies before
  return offset < graph.nodes.size() * sizeof(PlannedNode) ? &graph.nodes[offset / sizeof(PlannedNode)] : nullptr;
}

std::vector<std::string> WaitedFor(const PlanGraph& graph, const PlannedNode& node) {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  };
  for (const PlannedNode::Input& in : node.inputs) add(graph.nodes[static_cast<size_t>(in.node)].info.name);
  for (const int c : node.controls) add(absl::StrCat("^", graph.nodes[static_cast<size_t>(c)].info.name));
  return names;
}

// Constants ran when the plan was made: they have entries of no length, at `nanos`, so that inputs are found.
void AddConstants(const PlanGraph& graph, int64_t nanos, std::vector<NodeTrace>* all) {
  for (const PlannedNode& node : graph.nodes) {
    if (node.kind != PlannedNode::Kind::kOnce) continue;
    NodeTrace& t = all->emplace_back();
    t.node = node.info.name;
    t.op = node.info.op->name;
    t.device = node.info.device->name();
    t.start_nanos = t.end_nanos = nanos;
    t.is_of_this_process = true;
  }
}

}  // namespace

void StepTrace::Watch(const std::shared_ptr<const PlanGraph>& graph) noexcept {
  absl::MutexLock lock(&mu_);
  if (!graphs_.empty() && graphs_.back() == graph) return;  // a loop's body comes again and again
  if (std::find(graphs_.begin(), graphs_.end(), graph) != graphs_.end()) return;
  try {
    graphs_.push_back(graph);
    entries_.reserve(entries_.size() + graph->nodes.size());
    outputs_.reserve(outputs_.size() + graph->nodes.size());
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
  if (std::any_of(threads_.begin(), threads_.end(), [&](const auto& t) { return t.first == thread; })) return;
  char name[16] = {};  // as long as the system's may be
  pthread_getname_np(pthread_self(), name, sizeof(name));
  threads_.emplace_back(thread, name);
  ThreadSwitches::Get().WatchThisThread();
}

void StepTrace::Record(const Run& run, absl::Span<const Slot> outputs, absl::Span<const HelpPart> parts) noexcept {
  const int64_t now = RealNanos();
  absl::MutexLock lock(&mu_);
  const size_t before = outputs_.size(), parts_before = parts_.size();
  try {
    Entry e{run, now, 0, 0};
    if (run.thread == 0) NoteThread(e.run.thread = CurrentThread());
    for (const Slot& slot : outputs) {
      const Tensor& v = slot.tensor;
      if (!v.IsInitialized()) continue;
      outputs_.push_back(
          {.dtype = v.dtype(),
           .shape = v.shape(),
           .bytes = static_cast<int64_t>(v.TotalBytes()),
           .buffer = reinterpret_cast<uintptr_t>(v.buffer()),
           .is_shared = !v.OwnsBufferAlone()});
    }
    e.outputs_end = outputs_.size();
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    e.parts_end = parts_.size();
    entries_.push_back(e);
  } catch (const std::bad_alloc&) {
    outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(before), outputs_.end());
    parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(parts_before), parts_.end());
  }
}

NodeTrace StepTrace::Described(const Entry& e, const PlanGraph& graph) const {
  const PlannedNode& node = *NodeOf(graph, e.run.node);
  NodeTrace t;
  t.node = node.info.name;
  t.op = node.info.op->name;
  t.device = node.info.device->name();
  t.start_nanos = e.run.start_nanos;
  t.end_nanos = e.end_nanos;
  t.thread = e.run.thread;
  for (const auto& [number, name] : threads_) {
    if (number == t.thread) t.thread_name = name;
  }
  t.inputs = WaitedFor(graph, node);
  t.edge = node.edge;
  t.is_asynchronous = e.run.is_asynchronous;
  t.is_of_this_process = true;
  return t;
}

std::vector<NodeTrace> StepTrace::Take() {
  absl::MutexLock lock(&mu_);
  std::vector<NodeTrace> all = std::exchange(taken_, {});
  all.reserve(all.size() + entries_.size());
  size_t output = 0, part = 0;
  std::vector<std::optional<int64_t>> first_starts(graphs_.size());
  for (const Entry& e : entries_) {
    const auto graph =
        std::find_if(graphs_.begin(), graphs_.end(), [&](const auto& g) { return NodeOf(*g, e.run.node) != nullptr; });
    if (graph != graphs_.end()) {
      NodeTrace& t = all.emplace_back(Described(e, **graph));
      for (size_t o = output; o < e.outputs_end; ++o) t.outputs.push_back(outputs_[o]);
      for (size_t p = part; p < e.parts_end; ++p) t.parts.push_back(parts_[p]);
      std::optional<int64_t>& first = first_starts[static_cast<size_t>(graph - graphs_.begin())];
      first = std::min(first.value_or(t.start_nanos), t.start_nanos);
    }
    output = e.outputs_end;
    part = e.parts_end;
  }
  for (size_t g = 0; g < graphs_.size(); ++g) {
    if (first_starts[g]) AddConstants(*graphs_[g], *first_starts[g], &all);
  }
  entries_.clear();
  outputs_.clear();
  parts_.clear();
  graphs_.clear();
  return all;
}

}  // namespace millrace
