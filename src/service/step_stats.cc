// SPDX-License-Identifier: Apache-2.0
#include "service/step_stats.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "base/stopwatch.h"
#include "op/device_name.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

constexpr char kSource[] = "_SOURCE", kSink[] = "_SINK", kSwitches[] = "/host:CPU thread switches",
               kParts[] = " pool threads";

// The runs of each node, by the time of their end: nodes of loops have several.
class RunsOfNodes {
 public:
  explicit RunsOfNodes(const std::vector<NodeTrace>& nodes) {
    for (const NodeTrace& t : nodes) runs_[t.node].push_back(&t);
    for (auto& [name, runs] : runs_) {
      std::sort(runs.begin(), runs.end(), [](const auto* a, const auto* b) { return a->end_nanos < b->end_nanos; });
    }
  }
  // The last that had ended at `nanos`; null: none.
  const NodeTrace* Before(absl::string_view name, int64_t nanos) const {
    const auto found = runs_.find(name);
    if (found == runs_.end()) return nullptr;
    const auto after = std::upper_bound(found->second.begin(), found->second.end(), nanos,
                                        [](int64_t t, const NodeTrace* run) { return t < run->end_nanos; });
    return after == found->second.begin() ? nullptr : *(after - 1);
  }

 private:
  HashMap<absl::string_view, std::vector<const NodeTrace*>> runs_;
};

// Each Recv waits for the Send of its edge.
void JoinEdges(std::vector<NodeTrace>& nodes) {
  HashMap<int64_t, std::string> sends;
  for (const NodeTrace& t : nodes) {
    if (t.edge >= 0 && !t.is_asynchronous) sends.emplace(t.edge, t.node);
  }
  for (NodeTrace& t : nodes) {
    const auto send = t.edge >= 0 && t.is_asynchronous ? sends.find(t.edge) : sends.end();
    if (send != sends.end()) t.inputs.push_back(send->second);
  }
}

int64_t ReadyAt(const NodeTrace& t, const RunsOfNodes& runs, int64_t first_start) {
  int64_t ready = first_start;
  for (absl::string_view input : t.inputs) {
    absl::ConsumePrefix(&input, "^");
    const NodeTrace* const from = runs.Before(input, t.start_nanos);
    if (from != nullptr) ready = std::max(ready, from->end_nanos);
  }
  return std::min(ready, t.start_nanos);
}

// Whether no input of the node had these bytes, nor anybody else.
bool IsFresh(const NodeTrace& t, const NodeTrace::OutputTrace& output, const RunsOfNodes& runs) {
  if (output.is_shared) return false;
  for (const std::string& input : t.inputs) {
    const NodeTrace* const from = runs.Before(input, t.start_nanos);
    if (from == nullptr) continue;
    for (const NodeTrace::OutputTrace& given : from->outputs) {
      if (given.buffer == output.buffer) return false;
    }
  }
  return true;
}

std::string Label(const NodeTrace& t) {
  std::string label = absl::StrCat(t.node, " = ", t.op, "(", absl::StrJoin(t.inputs, ", "), ")");
  int64_t helped_nanos = 0;
  for (const HelpPart& part : t.parts) helped_nanos += part.end_nanos - part.start_nanos;
  if (helped_nanos >= 1000) absl::StrAppend(&label, " [helpers ", helped_nanos / 1000, " us]");
  return label;
}

class Epoch {
 public:
  explicit Epoch(absl::Time now) : offset_(absl::ToUnixNanos(now) - RealNanos()) {}
  void SetTimes(int64_t ready, int64_t start, int64_t computed, int64_t end, wire::NodeExecStats* n) const {
    n->scheduled_nanos = ready + offset_;
    n->scheduled_micros = n->scheduled_nanos / 1000;
    n->all_start_nanos = start + offset_;
    n->all_start_micros = n->all_start_nanos / 1000;
    n->op_end_rel_nanos = computed - start;
    n->op_end_rel_micros = n->op_end_rel_nanos / 1000;
    n->all_end_rel_nanos = end - start;
    n->all_end_rel_micros = n->all_end_rel_nanos / 1000;
  }

 private:
  const int64_t offset_;  // event times count from 1970, the trace has the monotonic clock
};

wire::NodeExecStats Entry(const NodeTrace& t, const RunsOfNodes& runs, int64_t first_start, const Epoch& epoch) {
  wire::NodeExecStats n;
  n.node_name = t.node;
  n.timeline_label = Label(t);
  n.thread_id = t.thread;
  epoch.SetTimes(
      ReadyAt(t, runs, first_start), t.start_nanos, t.is_asynchronous ? t.start_nanos : t.end_nanos, t.end_nanos, &n);
  int64_t fresh = 0;
  for (size_t i = 0; i < t.outputs.size(); ++i) {
    const NodeTrace::OutputTrace& from = t.outputs[i];
    const bool is_fresh = IsFresh(t, from, runs);
    if (is_fresh) fresh += from.bytes;
    wire::NodeOutput out;
    out.slot = static_cast<int32_t>(i);
    wire::TensorDescription& desc = out.tensor_description.Ensure();
    desc.dtype = static_cast<int32_t>(from.dtype);
    desc.shape.Ensure() = ShapeToProto(from.shape);
    wire::AllocationDescription& allocation = desc.allocation_description.Ensure();
    allocation.requested_bytes = from.bytes;
    allocation.allocated_bytes = is_fresh ? from.bytes : 0;
    allocation.allocator_name = HostAllocator().name();
    allocation.has_single_reference = !from.is_shared;
    allocation.ptr = from.buffer;
    n.output.push_back(std::move(out));
  }
  if (fresh > 0) {
    wire::AllocatorMemoryUsed& memory = n.memory.emplace_back();
    memory.allocator_name = HostAllocator().name();
    memory.total_bytes = memory.peak_bytes = memory.live_bytes = fresh;
  }
  return n;
}

// As the pool calls its threads.
std::string PoolThread(uint32_t thread) { return absl::StrCat("millrace ", thread); }

// What other threads did of a node.
void AddParts(const NodeTrace& t, const Epoch& epoch, wire::DeviceStepStats* d) {
  for (const HelpPart& part : t.parts) {
    wire::NodeExecStats& n = d->node_stats.emplace_back();
    n.node_name = absl::StrCat(t.node, " (part)");  // no node has this name
    n.timeline_label = absl::StrCat(n.node_name, " = Part()");
    n.thread_id = part.thread;
    epoch.SetTimes(part.asked_nanos, part.start_nanos, part.end_nanos, part.end_nanos, &n);
    d->thread_names.try_emplace(part.thread, PoolThread(part.thread));
  }
}

wire::DeviceStepStats Switches(const std::vector<NodeTrace>& nodes, const std::vector<OffCpu>& off_cpu,
                               const Epoch& epoch) {
  wire::DeviceStepStats d;
  d.device = kSwitches;
  for (const NodeTrace& t : nodes) {
    if (!t.is_of_this_process) continue;
    if (t.thread != 0) d.thread_names.insert_or_assign(t.thread, absl::StrCat(t.thread_name, " ", t.thread));
    for (const HelpPart& part : t.parts) d.thread_names.try_emplace(part.thread, PoolThread(part.thread));
  }
  for (const OffCpu& off : off_cpu) {
    if (d.thread_names.find(off.thread) == d.thread_names.end()) continue;  // another step's
    wire::NodeExecStats& n = d.node_stats.emplace_back();
    n.node_name = off.is_preempted ? "preempted" : "asleep";
    n.timeline_label = absl::StrCat(n.node_name, " = OffCpu()");
    n.thread_id = off.thread;
    epoch.SetTimes(off.start_nanos, off.start_nanos, off.end_nanos, off.end_nanos, &n);
  }
  return d;
}

const std::string& DeviceOf(const Node& node, absl::Span<const DeviceInfo> devices) {
  const StatusOr<DeviceName> wanted = DeviceName::Parse(node.device());
  for (const DeviceInfo& d : devices) {
    const StatusOr<DeviceName> name = DeviceName::Parse(d.name);
    if (wanted.ok() && name.ok() && wanted->Matches(*name)) return d.name;
  }
  return devices.front().name;
}

}  // namespace

StepMeasure::StepMeasure() {
  ThreadSwitches::Get().WatchThisThread();  // of the others from their first op on
  HostAllocator().ResetPeak();
  before_ = HostAllocator().Stats();
  start_nanos_ = RealNanos();
}

void StepMeasure::Stop() {
  end_nanos_ = RealNanos();
  after_ = HostAllocator().Stats();
  off_cpu_ = ThreadSwitches::Get().Between(start_nanos_, end_nanos_);
  recording_.reset();
}

void StepMeasure::Fill(std::vector<NodeTrace> nodes, absl::Span<const Output> fetches, absl::Time now,
                       wire::StepStats* stats) const {
  const Epoch epoch(now);
  if (nodes.empty()) return;
  JoinEdges(nodes);
  const RunsOfNodes runs(nodes);
  int64_t first_start = nodes.front().start_nanos;
  for (const NodeTrace& t : nodes) first_start = std::min(first_start, t.start_nanos);
  std::map<std::string, wire::DeviceStepStats> devices, parts;
  for (const NodeTrace& t : nodes) {
    if (!t.parts.empty()) AddParts(t, epoch, &parts[t.device + kParts]);
    wire::DeviceStepStats& d = devices[t.device];
    d.node_stats.push_back(Entry(t, runs, first_start, epoch));
    if (t.thread != 0) d.thread_names.insert_or_assign(t.thread, absl::StrCat(t.thread_name, " ", t.thread));
  }
  wire::NodeExecStats step;
  step.node_name = kSource;
  step.timeline_label = absl::StrCat(kSource, " = NoOp");
  epoch.SetTimes(start_nanos_, start_nanos_, end_nanos_, end_nanos_, &step);
  wire::AllocatorMemoryUsed& memory = step.memory.emplace_back();
  memory.allocator_name = HostAllocator().name();
  memory.peak_bytes = std::max<int64_t>(0, after_.peak_bytes_in_use - before_.bytes_in_use);
  memory.total_bytes = memory.peak_bytes;
  memory.live_bytes = after_.bytes_in_use - before_.bytes_in_use;
  memory.allocator_bytes_in_use = after_.bytes_in_use;
  std::vector<wire::NodeExecStats>& first = devices.begin()->second.node_stats;
  first.insert(first.begin(), std::move(step));
  if (!fetches.empty()) {
    std::vector<std::string> names;
    for (const Output& fetch : fetches) {
      if (std::find(names.begin(), names.end(), fetch.node->name()) == names.end()) names.push_back(fetch.node->name());
    }
    wire::NodeExecStats& sink = first.emplace_back();
    sink.node_name = kSink;
    sink.timeline_label = absl::StrCat(kSink, " = NoOp(", absl::StrJoin(names, ", "), ")");
    epoch.SetTimes(end_nanos_, end_nanos_, end_nanos_, end_nanos_, &sink);
  }
  wire::DeviceStepStats switches = Switches(nodes, off_cpu_, epoch);
  for (auto* const part_of_all : {&devices, &parts}) {
    for (auto& [name, d] : *part_of_all) {
      d.device = name;
      stats->dev_stats.push_back(std::move(d));
    }
  }
  if (!switches.node_stats.empty()) stats->dev_stats.push_back(std::move(switches));
}

void AddUnrun(absl::Span<const Output> feeds, absl::Span<const Output> fetches, absl::Span<const Tensor> values,
              absl::Span<const DeviceInfo> devices, std::vector<NodeTrace>* nodes) {
  HashSet<std::string> ran;
  for (const NodeTrace& t : *nodes) ran.insert(t.node);
  for (size_t i = 0; i < fetches.size() && i < values.size(); ++i) {
    const Output fetch = fetches[i];
    if (std::find(feeds.begin(), feeds.end(), fetch) != feeds.end() || !ran.insert(fetch.node->name()).second) continue;
    NodeTrace& t = nodes->emplace_back();
    t.node = fetch.node->name();
    t.op = fetch.node->op_name();
    t.device = DeviceOf(*fetch.node, devices);
    t.start_nanos = t.end_nanos = RealNanos();
    t.outputs.push_back(
        {.dtype = values[i].dtype(),
         .shape = values[i].shape(),
         .bytes = static_cast<int64_t>(values[i].TotalBytes()),
         .is_shared = true});
  }
}

}  // namespace millrace
