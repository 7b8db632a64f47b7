// SPDX-License-Identifier: Apache-2.0
#include "client/local_session.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/time/clock.h"
#include "autodiff/gradients.h"
#include "client/interruptible.h"
#include "client/random_state.h"
#include "service/coordinator.h"
#include "service/in_process_transport.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

constexpr absl::Duration kClosePatience = absl::Seconds(10);

CoordinatorOptions OptionsFrom(const wire::ConfigProto& config) {
  CoordinatorOptions o;
  o.max_threads = config.intra_op_parallelism_threads;
  if (config.operation_timeout_in_ms > 0) o.default_timeout = absl::Milliseconds(config.operation_timeout_in_ms);
  o.passes.soft_placement = config.allow_soft_placement;
  o.passes.log_placement = config.log_device_placement;
  if (config.graph_options && config.graph_options->optimizer_options) {
    const wire::OptimizerOptions& opt = *config.graph_options->optimizer_options;
    const bool on = opt.opt_level >= 0;
    o.passes.fold_constants = on || opt.do_constant_folding;
    o.passes.merge_common_subexpressions = on || opt.do_common_subexpression_elimination;
    o.passes.simplify_arithmetic = on;
    o.passes.drop_order_only_work = on;
    if (opt.max_folded_constant_in_bytes > 0) o.passes.max_folded_bytes = opt.max_folded_constant_in_bytes;
  }
  return o;
}

void FillStepStats(std::vector<NodeTrace> nodes, wire::StepStats* stats) {
  std::map<std::string, wire::DeviceStepStats> devices;
  // Event times are micros since the epoch; the trace has the monotonic clock.
  const int64_t offset_micros = absl::ToUnixMicros(absl::Now()) - TraceClockNanos() / 1000;
  for (NodeTrace& t : nodes) {
    wire::DeviceStepStats& d = devices[t.device];
    wire::NodeExecStats n;
    n.node_name = t.node;
    n.timeline_label = absl::StrCat(t.node, " = ", t.op);
    n.all_start_micros = t.start_nanos / 1000 + offset_micros;
    n.op_start_rel_micros = 0;
    n.op_end_rel_micros = n.all_end_rel_micros = (t.end_nanos - t.start_nanos) / 1000;
    n.all_start_nanos = t.start_nanos + offset_micros * 1000;
    n.op_end_rel_nanos = n.all_end_rel_nanos = t.end_nanos - t.start_nanos;
    n.thread_id = t.thread;
    for (size_t i = 0; i < t.outputs.size(); ++i) {
      wire::NodeOutput out;
      out.slot = static_cast<int32_t>(i);
      wire::TensorDescription& desc = out.tensor_description.Ensure();
      desc.dtype = static_cast<int32_t>(t.outputs[i].dtype);
      desc.shape.Ensure() = ShapeToProto(t.outputs[i].shape);
      desc.allocation_description.Ensure().requested_bytes = t.outputs[i].bytes;
      n.output.push_back(std::move(out));
    }
    d.node_stats.push_back(std::move(n));
  }
  for (auto& [name, d] : devices) {
    d.device = name;
    stats->dev_stats.push_back(std::move(d));
  }
}

// What the step did to the host's memory, in TensorFlow's entry for what is no node: at most so much more in use than
// at the start, and so much more at the end. Other steps of the process at the same time count too.
void AddMemory(const AllocatorStats& before, int64_t start_nanos, wire::StepStats* stats) {
  const AllocatorStats after = HostAllocator().Stats();
  if (stats->dev_stats.empty()) return;
  const int64_t end_nanos = TraceClockNanos();
  const int64_t start_epoch_nanos = absl::ToUnixNanos(absl::Now()) - (end_nanos - start_nanos);
  wire::NodeExecStats n;
  n.node_name = "_SOURCE";
  n.timeline_label = "_SOURCE = NoOp";
  n.all_start_nanos = start_epoch_nanos;
  n.all_start_micros = start_epoch_nanos / 1000;
  n.op_end_rel_nanos = n.all_end_rel_nanos = end_nanos - start_nanos;
  n.op_end_rel_micros = n.all_end_rel_micros = n.all_end_rel_nanos / 1000;
  wire::AllocatorMemoryUsed& memory = n.memory.emplace_back();
  memory.allocator_name = HostAllocator().name();
  memory.peak_bytes = std::max<int64_t>(0, after.peak_bytes_in_use - before.bytes_in_use);
  memory.total_bytes = memory.peak_bytes;
  memory.live_bytes = after.bytes_in_use - before.bytes_in_use;
  memory.allocator_bytes_in_use = after.bytes_in_use;
  std::vector<wire::NodeExecStats>& nodes = stats->dev_stats[0].node_stats;
  nodes.insert(nodes.begin(), std::move(n));
}

class LocalSession;

struct LiveSessions {
  absl::Mutex mu;
  std::set<LocalSession*> all ABSL_GUARDED_BY(mu);
  static LiveSessions& Get() {
    static LiveSessions* live = new LiveSessions();  // sessions may outlive static destruction
    return *live;
  }
};

class LocalSession final : public Session, public Interruptible {
 public:
  LocalSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config, std::vector<DeviceList> workers,
               const KernelRegistry* kernels, const Determinism& determinism)
      : graph_(graph) {
    Transport* transport = workers.size() > 1 ? &transport_ : nullptr;
    for (DeviceList& devices : workers) {
      workers_.push_back(std::make_unique<LocalWorker>(std::move(devices), kernels, determinism.on, transport));
      transport_.Add(workers_.back().get());
    }
    CoordinatorOptions options = OptionsFrom(config);
    options.deterministic = determinism.on;
    options.order_seed = determinism.order_seed;
    if (determinism.on) options.max_threads = 1;
    for (const DeviceInfo& d : ListDevices()) {
      options.passes.devices.push_back(*DeviceName::Parse(d.name));
      options.passes.incarnations.push_back(d.incarnation);
    }
    options.passes.has_kernel = [kernels](const Node& n, const std::string& type) {
      return n.op() && (kernels->Has(*n.op(), n.attrs(), type) || n.op_name() == "_Arg" || n.op_name() == "_Retval");
    };
    options.passes.evaluate = [worker = workers_.front().get()](
                                  const Node& n, const std::vector<Tensor>& in) -> StatusOr<std::vector<Tensor>> {
      MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
      return worker->Evaluate(n, in);
    };
    options.calls.differentiate = AddDenseGradients;
    std::vector<Worker*> all;
    for (const auto& w : workers_) all.push_back(w.get());
    coordinator_ = std::make_unique<Coordinator>(std::move(graph), std::move(all), std::move(options));
    absl::MutexLock lock(&LiveSessions::Get().mu);
    LiveSessions::Get().all.insert(this);
  }

  ~LocalSession() override {
    {
      absl::MutexLock lock(&LiveSessions::Get().mu);
      LiveSessions::Get().all.erase(this);
    }
    coordinator_.reset();
    for (const auto& w : workers_) w->ClearResources("");
  }

  Status Run(const wire::RunOptions* options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
             absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs,
             wire::RunMetadata* metadata) override {
    StepOptions step;
    if (options && options->timeout_in_ms > 0) step.timeout = absl::Milliseconds(options->timeout_in_ms);
    std::optional<StepTrace> trace;
    if (options && metadata && options->trace_level > wire::RunOptions::kNoTrace) step.trace = &trace.emplace();
    AllocatorStats before;
    if (step.trace) {
      HostAllocator().ResetPeak();
      before = HostAllocator().Stats();
    }
    const int64_t start_nanos = TraceClockNanos();
    const Status s = coordinator_->Run(step, feeds, feed_values, fetches, targets, outputs);
    if (step.trace && !absl::IsCancelled(s)) {
      wire::StepStats& stats = metadata->step_stats.Ensure();
      FillStepStats(trace->Take(), &stats);
      AddMemory(before, start_nanos, &stats);
    }
    return s;
  }

  StatusOr<std::string> PartialRunSetup(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                        absl::Span<Node* const> targets) override {
    return coordinator_->PartialRunSetup(
        {{feeds.begin(), feeds.end()}, {fetches.begin(), fetches.end()}, {targets.begin(), targets.end()}});
  }
  Status PartialRun(const std::string& handle, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                    absl::Span<const Output> fetches, std::vector<Tensor>* outputs) override {
    return coordinator_->PartialRun(handle, feeds, feed_values, fetches, outputs);
  }
  Status ReleasePartialRun(const std::string& handle) override { return coordinator_->ReleasePartialRun(handle); }

  std::vector<DeviceInfo> ListDevices() const override {
    std::vector<DeviceInfo> list;
    for (const auto& w : workers_) {
      for (DeviceInfo& d : w->devices()) list.push_back(std::move(d));
    }
    return list;
  }

  StatusOr<std::string> RandomState() const override {
    RandomPositions positions;
    for (const auto& w : workers_) w->GetRandomPositions(&positions);
    return EncodeRandomPositions(positions);
  }
  Status SetRandomState(absl::string_view state) override {
    MR_ASSIGN_OR_RETURN(const RandomPositions positions, DecodeRandomPositions(state));
    for (const auto& w : workers_) w->SetRandomPositions(positions);
    return absl::OkStatus();
  }

  void SetInterruptCheck(const InterruptCheck& check) override { coordinator_->SetInterruptCheck(check); }
  Status Close() override { return coordinator_->Close(kClosePatience); }

  void Reset(const std::vector<std::string>& containers) {
    for (const auto& w : workers_) {
      if (containers.empty()) w->ClearResources("");
      for (const std::string& c : containers) w->ClearResources(c);
    }
  }

 private:
  const RefPtr<SharedGraph> graph_;
  InProcessTransport transport_;
  std::vector<std::unique_ptr<LocalWorker>> workers_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace

StatusOr<std::unique_ptr<Session>> NewLocalSession(
    RefPtr<SharedGraph> graph, const wire::ConfigProto& config, std::vector<DeviceList> workers,
    const KernelRegistry* kernels, const Determinism& determinism) {
  if (workers.empty()) return InvalidArgument("a session needs at least one worker");
  std::set<std::string> names;
  for (const DeviceList& devices : workers) {
    if (devices.empty()) return InvalidArgument("a worker needs at least one device");
    for (const auto& d : devices) {
      if (!names.insert(d->name()).second) return InvalidArgument("two devices are called ", d->name());
    }
  }
  if (config.intra_op_parallelism_threads < 0 || config.intra_op_parallelism_threads > 4096) {
    return InvalidArgument(
        "intra_op_parallelism_threads is ", config.intra_op_parallelism_threads, ", want 0 (choose) to 4096");
  }
  return std::unique_ptr<Session>(
      std::make_unique<LocalSession>(std::move(graph), config, std::move(workers), kernels, determinism));
}

void ResetLocalSessions(const std::vector<std::string>& containers) {
  absl::MutexLock lock(&LiveSessions::Get().mu);
  for (LocalSession* s : LiveSessions::Get().all) s->Reset(containers);
}

}  // namespace millrace
