// SPDX-License-Identifier: Apache-2.0
// One walk over the runs, from the last to the first, straight into the bytes: names, inputs and labels are made once
// for a plan, and what a node waited for is found by its number.
#include "service/step_stats_writer.h"

#include <algorithm>
#include <map>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash_map.h"
#include "wire/backward_writer.h"

namespace millrace {
namespace {

constexpr char kSource[] = "_SOURCE", kSink[] = "_SINK", kSwitches[] = "/host:CPU thread switches",
               kParts[] = " pool threads", kPart[] = " (part)";

// Fields of StepStats and what it holds; the numbers are TensorFlow's.
enum DeviceStepStatsField : uint32_t { kDevice = 1, kNodeStats = 2, kThreadNames = 3 };
enum NodeExecStatsField : uint32_t {
  kNodeName = 1,
  kAllStartMicros = 2,
  kOpEndRelMicros = 4,
  kAllEndRelMicros = 5,
  kMemory = 6,
  kOutput = 7,
  kTimelineLabel = 8,
  kScheduledMicros = 9,
  kThreadId = 10,
  kAllStartNanos = 13,
  kOpEndRelNanos = 15,
  kAllEndRelNanos = 16,
  kScheduledNanos = 17,
};

// A run of one of the records.
struct RunAt {
  const StepRecord* record;
  size_t run;
  const StepRecord::Run& operator*() const { return record->runs[run]; }
  const StepRecord::Run* operator->() const { return &record->runs[run]; }
  const TracedPlan::Node& node() const { return record->NodeOf(**this); }
  absl::Span<const StepRecord::Output> outputs() const { return record->OutputsOf(run); }
  absl::Span<const HelpPart> parts() const { return record->PartsOf(run); }
};

// The runs of each node, by the time of their end: nodes of loops have several. A node is known by a number over all
// plans of all records.
class RunsOfNodes {
 public:
  explicit RunsOfNodes(const std::vector<StepRecord>& records) {
    size_t num_nodes = 0, num_runs = 0;
    for (const StepRecord& record : records) {
      first_plan_.push_back(first_node_.size());
      for (const auto& plan : record.plans) {
        first_node_.push_back(num_nodes);
        num_nodes += plan->nodes.size();
      }
      num_runs += record.runs.size();
    }
    records_ = records;
    begins_.assign(num_nodes + 1, 0);
    for (size_t r = 0; r < records.size(); ++r) {
      for (const StepRecord::Run& run : records[r].runs) ++begins_[NumberOf(r, run.plan, run.node) + 1];
    }
    for (size_t n = 0; n < num_nodes; ++n) begins_[n + 1] += begins_[n];
    runs_.resize(num_runs);
    std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (size_t r = 0; r < records.size(); ++r) {
      for (size_t i = 0; i < records[r].runs.size(); ++i) {
        const StepRecord::Run& run = records[r].runs[i];
        runs_[next[NumberOf(r, run.plan, run.node)]++] = {&records[r], i};
      }
    }
    for (size_t n = 0; n < num_nodes; ++n) {
      if (begins_[n + 1] - begins_[n] < 2) continue;
      std::sort(runs_.begin() + begins_[n], runs_.begin() + begins_[n + 1], [](const RunAt& a, const RunAt& b) {
        return a->end_nanos < b->end_nanos;
      });
    }
    JoinEdges();
  }

  // Calls use(run, is_value) for the last run before `run` of each node that it waited for.
  template <typename Use>
  void ForEachInput(size_t record, const RunAt& run, Use use) const {
    const TracedPlan::Node& node = run.node();
    const auto one = [&](size_t number, bool is_value) {
      if (const RunAt* const from = Before(number, run->start_nanos)) use(*from, is_value);
    };
    for (const int32_t input : node.inputs) one(InputOf(record, run->plan, input), true);
    for (const int32_t control : node.controls) one(InputOf(record, run->plan, control), false);
    if (const RunAt* const send = SendOf(run)) {
      one(NumberOf(static_cast<size_t>(send->record - records_.data()), (*send)->plan, (*send)->node), true);
    }
  }
  // Of a Recv, in whichever record; null: there is none.
  const RunAt* SendOf(const RunAt& run) const {
    if (!run->is_asynchronous || run.node().edge < 0) return nullptr;
    const auto send = sends_.find(run.node().edge);
    return send == sends_.end() ? nullptr : &send->second;
  }

 private:
  size_t NumberOf(size_t record, int32_t plan, int32_t node) const {
    return first_node_[first_plan_[record] + static_cast<size_t>(plan)] + static_cast<size_t>(node);
  }
  // An argument runs nowhere: what another plan has by its name does.
  size_t InputOf(size_t record, int32_t plan, int32_t node) const {
    const size_t number = NumberOf(record, plan, node);
    if (begins_[number] != begins_[number + 1] || first_node_.size() < 2) return number;
    if (by_name_.empty()) {
      for (size_t i = 0; i < runs_.size(); ++i) by_name_.emplace(runs_[i].node().name, i);
    }
    const StepRecord& r = records_[record];
    const auto other = by_name_.find(r.plans[static_cast<size_t>(plan)]->nodes[static_cast<size_t>(node)].name);
    if (other == by_name_.end()) return number;
    const RunAt& found = runs_[other->second];
    return NumberOf(static_cast<size_t>(found.record - records_.data()), found->plan, found->node);
  }
  // The last that had ended at `nanos`; null: none.
  const RunAt* Before(size_t number, int64_t nanos) const {
    const RunAt* const begin = runs_.data() + begins_[number];
    const RunAt* const end = runs_.data() + begins_[number + 1];
    const RunAt* const after =
        std::upper_bound(begin, end, nanos, [](int64_t t, const RunAt& run) { return t < run->end_nanos; });
    return after == begin ? nullptr : after - 1;
  }
  void JoinEdges() {
    for (const RunAt& run : runs_) {
      if (run.node().edge >= 0 && !run->is_asynchronous) sends_.emplace(run.node().edge, run);
    }
  }

  absl::Span<const StepRecord> records_;
  std::vector<size_t> first_plan_;  // by record
  std::vector<size_t> first_node_;  // by plan
  std::vector<uint32_t> begins_;    // by node, in runs_
  std::vector<RunAt> runs_;
  HashMap<int64_t, RunAt> sends_;                       // by edge
  mutable HashMap<absl::string_view, size_t> by_name_;  // in runs_
};

// As the pool calls its threads.
std::string PoolThread(uint32_t thread) { return absl::StrCat("millrace ", thread); }

using ThreadNames = std::map<uint32_t, std::string>;

class Writer {
 public:
  Writer(const std::vector<StepRecord>& records, const WholeStep& step, size_t bytes)
      : records_(records),
        step_(step),
        runs_(records),
        offset_(absl::ToUnixNanos(step.end) - step.end_nanos),
        first_start_(INT64_MAX),
        out_(bytes) {
    for (size_t r = 0; r < records.size(); ++r) {
      for (size_t i = 0; i < records[r].runs.size(); ++i) {
        const RunAt run{&records[r], i};
        first_start_ = std::min(first_start_, run->start_nanos);
        Device& device = devices_[records[r].plans[static_cast<size_t>(run->plan)]->device];
        device.runs.push_back({r, i});
        device.has_parts |= !run.parts().empty();
      }
    }
  }

  std::string Write() {
    WriteSwitches();
    for (auto d = devices_.rbegin(); d != devices_.rend(); ++d) {
      if (d->second.has_parts) WriteParts(d->first, d->second);
    }
    for (auto d = devices_.rbegin(); d != devices_.rend(); ++d) WriteDevice(d->first, d->second);
    out_.Message(1, 0);  // step_stats
    return out_.Finish();
  }

 private:
  struct Device {
    std::vector<std::pair<size_t, size_t>> runs;  // record, run
    bool has_parts = false;
  };

  RunAt At(const std::pair<size_t, size_t>& run) const { return {&records_[run.first], run.second}; }

  void WriteDevice(absl::string_view name, const Device& device) {
    const size_t end = out_.size();
    ThreadNames threads;
    for (const auto& at : device.runs) NoteThread(At(at), &threads);
    WriteThreadNames(threads);
    const bool is_first = name == devices_.begin()->first;
    if (is_first && !step_.fetched.empty()) {
      WriteEntry(kSink, absl::StrCat(kSink, " = NoOp(", absl::StrJoin(step_.fetched, ", "), ")"), 0, step_.end_nanos,
                 step_.end_nanos, step_.end_nanos, step_.end_nanos, [] {});
    }
    for (auto at = device.runs.rbegin(); at != device.runs.rend(); ++at) WriteRun(at->first, At(*at));
    if (is_first) {
      WriteEntry(kSource, absl::StrCat(kSource, " = NoOp"), 0, step_.start_nanos, step_.start_nanos, step_.end_nanos,
                 step_.end_nanos,
                 [&] { WriteMemory(step_.peak_bytes, step_.peak_bytes, step_.kept_bytes, step_.bytes_in_use); });
    }
    out_.String(kDevice, name);
    out_.Message(1, end);
  }

  void WriteRun(size_t record, const RunAt& run) {
    const TracedPlan::Node& node = run.node();
    int64_t ready = first_start_;
    absl::InlinedVector<absl::Span<const StepRecord::Output>, 8> given;
    runs_.ForEachInput(record, run, [&](const RunAt& from, bool is_value) {
      ready = std::max(ready, from->end_nanos);
      if (is_value) given.push_back(from.outputs());
    });
    uint64_t helped = 0;  // whoever sent the parts may have made them up: no sum may overflow
    for (const HelpPart& part : run.parts()) helped += static_cast<uint64_t>(part.end_nanos - part.start_nanos);
    const auto helped_nanos = static_cast<int64_t>(helped);
    const RunAt* const send = runs_.SendOf(run);
    std::string label;
    if (send != nullptr || helped_nanos >= 1000) {
      label = node.label;
      if (send != nullptr && !label.empty()) {
        label.pop_back();
        absl::StrAppend(&label, label.back() == '(' ? "" : ", ", send->node().name, ")");
      }
      if (helped_nanos >= 1000) absl::StrAppend(&label, " [helpers ", helped_nanos / 1000, " us]");
    }
    WriteEntry(node.name, label.empty() ? node.label : label, run->thread, std::min(ready, run->start_nanos),
               run->start_nanos, run->is_asynchronous ? run->start_nanos : run->end_nanos, run->end_nanos,
               [&] { WriteOutputs(run.outputs(), given); });
  }

  // Field 7, then field 6 before it.
  void WriteOutputs(absl::Span<const StepRecord::Output> outputs,
                    absl::Span<const absl::Span<const StepRecord::Output>> given) {
    uint64_t fresh = 0;
    for (size_t i = outputs.size(); i-- > 0;) {
      const StepRecord::Output& o = outputs[i];
      const bool is_fresh = IsFresh(o, given);
      if (is_fresh) fresh += static_cast<uint64_t>(o.bytes);
      const size_t end = out_.size();
      out_.Number(6, o.buffer);             // ptr
      out_.Number(5, o.is_shared ? 0 : 1);  // has_single_reference
      out_.String(3, step_.allocator);
      out_.Number(2, static_cast<uint64_t>(is_fresh ? o.bytes : 0));  // allocated_bytes
      out_.Number(1, static_cast<uint64_t>(o.bytes));                 // requested_bytes
      out_.Message(4, end);
      const size_t shape_end = out_.size();
      for (int d = o.shape.rank(); d-- > 0;) {
        const size_t dim_end = out_.size();
        out_.Number(1, static_cast<uint64_t>(o.shape.dim(d)));
        out_.Message(2, dim_end);
      }
      out_.Message(2, shape_end);
      out_.Number(1, static_cast<uint64_t>(o.dtype));
      out_.Message(3, end);  // tensor_description
      out_.Number(1, i);     // slot
      out_.Message(kOutput, end);
    }
    if (const auto all = static_cast<int64_t>(fresh); all > 0) WriteMemory(all, all, all, 0);
  }

  // Whether no input of the node had these bytes, nor anybody else.
  static bool IsFresh(const StepRecord::Output& output, absl::Span<const absl::Span<const StepRecord::Output>> given) {
    if (output.is_shared) return false;
    for (const auto& outputs : given) {
      for (const StepRecord::Output& input : outputs) {
        if (input.buffer == output.buffer) return false;
      }
    }
    return true;
  }

  void WriteMemory(int64_t total, int64_t peak, int64_t live, int64_t in_use) {
    const size_t end = out_.size();
    out_.Number(5, static_cast<uint64_t>(in_use));
    out_.Number(4, static_cast<uint64_t>(live));
    out_.Number(3, static_cast<uint64_t>(peak));
    out_.Number(2, static_cast<uint64_t>(total));
    out_.String(1, step_.allocator);
    out_.Message(kMemory, end);
  }

  template <typename Middle>
  void WriteEntry(absl::string_view name, absl::string_view label, uint32_t thread, int64_t ready, int64_t start,
                  int64_t computed, int64_t ended, Middle write_outputs_and_memory) {
    const auto at = [&](int64_t nanos) { return static_cast<uint64_t>(nanos + offset_); };
    const auto since = [&](int64_t nanos) { return static_cast<uint64_t>(nanos - start); };
    const size_t end = out_.size();
    out_.Number(kScheduledNanos, at(ready));
    out_.Number(kAllEndRelNanos, since(ended));
    out_.Number(kOpEndRelNanos, since(computed));
    out_.Number(kAllStartNanos, at(start));
    out_.Number(kThreadId, thread);
    out_.Number(kScheduledMicros, at(ready) / 1000);
    out_.String(kTimelineLabel, label);
    write_outputs_and_memory();
    out_.Number(kAllEndRelMicros, since(ended) / 1000);
    out_.Number(kOpEndRelMicros, since(computed) / 1000);
    out_.Number(kAllStartMicros, at(start) / 1000);
    out_.String(kNodeName, name);
    out_.Message(kNodeStats, end);
  }

  // What other threads did of the nodes of a device.
  void WriteParts(absl::string_view device, const Device& of) {
    const size_t end = out_.size();
    ThreadNames threads;
    for (const auto& at : of.runs) {
      for (const HelpPart& part : At(at).parts()) threads.try_emplace(part.thread, PoolThread(part.thread));
    }
    WriteThreadNames(threads);
    for (auto at = of.runs.rbegin(); at != of.runs.rend(); ++at) {
      const absl::Span<const HelpPart> parts = At(*at).parts();
      if (parts.empty()) continue;
      const std::string name = absl::StrCat(At(*at).node().name, kPart);  // no node has this name
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        WriteEntry(name, absl::StrCat(name, " = Part()"), part->thread, part->asked_nanos, part->start_nanos,
                   part->end_nanos, part->end_nanos, [] {});
      }
    }
    out_.String(kDevice, absl::StrCat(device, kParts));
    out_.Message(1, end);
  }

  void WriteSwitches() {
    ThreadNames threads;
    for (size_t r = 0; r < records_.size(); ++r) {
      if (!records_[r].is_of_this_process) continue;
      for (size_t i = 0; i < records_[r].runs.size(); ++i) {
        const RunAt run{&records_[r], i};
        NoteThread(run, &threads);
        for (const HelpPart& part : run.parts()) threads.try_emplace(part.thread, PoolThread(part.thread));
      }
    }
    const size_t end = out_.size();
    WriteThreadNames(threads);
    const size_t none = out_.size();
    for (auto off = step_.off_cpu.rbegin(); off != step_.off_cpu.rend(); ++off) {
      if (!threads.contains(off->thread)) continue;  // another step's
      WriteEntry(
          off->is_preempted ? "preempted" : "asleep", off->is_preempted ? "preempted = OffCpu()" : "asleep = OffCpu()",
          off->thread, off->start_nanos, off->start_nanos, off->end_nanos, off->end_nanos, [] {});
    }
    if (out_.size() == none) return out_.Drop(end);
    out_.String(kDevice, kSwitches);
    out_.Message(1, end);
  }

  static void NoteThread(const RunAt& run, ThreadNames* threads) {
    if (run->thread == 0 || threads->contains(run->thread)) return;
    const auto& named = run.record->threads;
    const auto found = std::find_if(named.begin(), named.end(), [&](const auto& t) { return t.number == run->thread; });
    threads->emplace(run->thread, absl::StrCat(found == named.end() ? "" : found->name, " ", run->thread));
  }
  void WriteThreadNames(const ThreadNames& threads) {
    for (auto t = threads.rbegin(); t != threads.rend(); ++t) {
      const size_t end = out_.size();
      out_.String(2, t->second);
      out_.Number(1, t->first);
      out_.Message(kThreadNames, end);
    }
  }

  const std::vector<StepRecord>& records_;
  const WholeStep& step_;
  const RunsOfNodes runs_;
  const int64_t offset_;  // event times count from 1970, the trace has the monotonic clock
  int64_t first_start_;
  std::map<absl::string_view, Device> devices_;
  wire::BackwardWriter out_;
};

// Enough for most steps.
size_t BytesOf(const std::vector<StepRecord>& records) {
  size_t bytes = 1024;
  for (const StepRecord& record : records) {
    for (const StepRecord::Run& run : record.runs) {
      const TracedPlan::Node& node = record.NodeOf(run);
      bytes += 128 + node.name.size() + node.label.size();
    }
    bytes += 96 * (record.outputs.size() + record.parts.size());
  }
  return bytes;
}

}  // namespace

std::string WriteStepStats(const std::vector<StepRecord>& records, const WholeStep& step) {
  return Writer(records, step, BytesOf(records)).Write();
}

}  // namespace millrace
