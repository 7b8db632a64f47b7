// SPDX-License-Identifier: Apache-2.0
#include "client/local_session.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autodiff/gradients.h"
#include "base/stopwatch.h"
#include "client/interruptible.h"
#include "client/placement_periods.h"
#include "client/random_state.h"
#include "kernel/device_env.h"
#include "service/ask_kernels.h"
#include "service/coordinator.h"
#include "service/local_directory.h"
#include "service/worker.h"
#include "tensor/prepared.h"
#include "tensor/tensor_proto.h"
#include "wire/rewriter_config.h"

namespace millrace {
namespace {

constexpr absl::Duration kClosePatience = absl::Seconds(10);

constexpr char kSwitchedOff[] = "MILLRACE_SWITCHED_OFF_STAGES";

Status TakeGraphOptions(const wire::GraphOptions& options, PassEnvironment* env) {
  env->place_pruned_graph = options.place_pruned_graph;
  env->schedule_recvs = options.enable_recv_scheduling;
  env->bfloat16_between_tasks = options.enable_bfloat16_sendrecv;
  wire::RewriteOptions rewrites;
  MR_RETURN_IF_ERROR(Annotate(wire::Decode(options.unknown_fields.bytes(), &rewrites), "GraphOptions: "));
  if (!rewrites.rewrite_options) return absl::OkStatus();
  using Rewriter = wire::RewriterConfig;
  const int32_t kind = rewrites.rewrite_options->memory_optimization;
  if (kind < Rewriter::kDefaultMemOpt || kind > Rewriter::kSchedulingHeuristics) {
    return InvalidArgument("RewriterConfig.memory_optimization is ", kind, ", want 0 to 6");
  }
  MemoryOptions& memory = env->memory;
  memory.reorder = kind != Rewriter::kNoMemOpt;
  memory.recompute_by_cost = kind == Rewriter::kHeuristics || kind == Rewriter::kRecomputationHeuristics;
  memory.swap_by_cost = kind == Rewriter::kHeuristics || kind == Rewriter::kSwappingHeuristics;
  memory.by_hand = kind == Rewriter::kManual || memory.recompute_by_cost || memory.swap_by_cost;
  const std::string& scope = rewrites.rewrite_options->memory_optimizer_target_node_name_scope;
  if (!scope.empty()) memory.gradients = scope;
  return absl::OkStatus();
}

StatusOr<CoordinatorOptions> OptionsFrom(const wire::ConfigProto& config) {
  CoordinatorOptions o;
  if (const char* names = std::getenv(kSwitchedOff)) {
    for (absl::string_view name : absl::StrSplit(names, ',', absl::SkipEmpty())) {
      MR_RETURN_IF_ERROR(Annotate(CheckOptionalStage(name), absl::StrCat(kSwitchedOff, ": ")));
      o.passes.switched_off.insert(std::string(name));
    }
  }
  o.max_threads = config.intra_op_parallelism_threads;
  if (config.operation_timeout_in_ms > 0) o.default_timeout = absl::Milliseconds(config.operation_timeout_in_ms);
  o.passes.soft_placement = config.allow_soft_placement;
  o.passes.log_placement = config.log_device_placement;
  o.passes.placement = std::make_shared<PlacementState>();
  o.passes.place_by_cost = config.placement_period > 0;
  if (config.graph_options) MR_RETURN_IF_ERROR(TakeGraphOptions(*config.graph_options, &o.passes));
  if (config.graph_options && config.graph_options->optimizer_options) {
    const wire::OptimizerOptions& opt = *config.graph_options->optimizer_options;
    if (opt.opt_level < 0) {
      o.passes.switched_off.insert({"simplify_arithmetic", "drop_order_only_work"});
      if (!opt.do_constant_folding) o.passes.switched_off.insert({"merge_before_folding", "fold_constants"});
      if (!opt.do_common_subexpression_elimination) {
        o.passes.switched_off.insert({"merge_before_folding", "merge_common_subexpressions"});
      }
    }
    if (opt.max_folded_constant_in_bytes > 0) o.passes.max_folded_bytes = opt.max_folded_constant_in_bytes;
  }
  return o;
}

// Entries for what was fetched without running: constants, and what was folded into some.
void AddUnrun(absl::Span<const Output> feeds, absl::Span<const Output> fetches, absl::Span<const Tensor> values,
              const std::string& device, std::vector<NodeTrace>* nodes) {
  absl::flat_hash_set<std::string> ran;
  for (const NodeTrace& t : *nodes) ran.insert(t.node);
  for (size_t i = 0; i < fetches.size() && i < values.size(); ++i) {
    const Output fetch = fetches[i];
    if (std::find(feeds.begin(), feeds.end(), fetch) != feeds.end() || !ran.insert(fetch.node->name()).second) continue;
    NodeTrace& t = nodes->emplace_back();
    t.node = fetch.node->name();
    t.op = fetch.node->op_name();
    t.device = device;
    t.start_nanos = t.end_nanos = RealNanos();
    t.outputs.push_back({values[i].dtype(), values[i].shape(), static_cast<int64_t>(values[i].TotalBytes())});
  }
}

// "node = Op(inputs)", the inputs of a node of the client's graph.
std::string TimelineLabel(const Graph& graph, const NodeTrace& t) {
  const Node* node = graph.Find(t.node);
  std::vector<std::string> inputs;
  if (node != nullptr && node->op_name() == t.op) {
    for (const Output& input : node->inputs()) inputs.push_back(input.node->name());
  }
  return absl::StrCat(t.node, " = ", t.op, "(", absl::StrJoin(inputs, ", "), ")");
}

void FillStepStats(const Graph& graph, std::vector<NodeTrace> nodes, absl::Time now, wire::StepStats* stats) {
  std::map<std::string, wire::DeviceStepStats> devices;
  // Event times are micros since the epoch; the trace has the monotonic clock.
  const int64_t offset_micros = absl::ToUnixMicros(now) - RealNanos() / 1000;
  for (NodeTrace& t : nodes) {
    wire::DeviceStepStats& d = devices[t.device];
    wire::NodeExecStats n;
    n.node_name = t.node;
    n.timeline_label = TimelineLabel(graph, t);
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
      desc.allocation_description.Ensure().allocator_name = HostAllocator().name();
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
void AddMemory(const AllocatorStats& before, int64_t start_nanos, absl::Time now, wire::StepStats* stats) {
  const AllocatorStats after = HostAllocator().Stats();
  if (stats->dev_stats.empty()) return;
  const int64_t end_nanos = RealNanos();
  const int64_t start_epoch_nanos = absl::ToUnixNanos(now) - (end_nanos - start_nanos);
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

// A session's own: kept by the session, and by who resets it.
struct SessionCore {
  SessionCore(std::unique_ptr<ThreadPool> own_pool, std::vector<DeviceList> lists, const KernelRegistry* kernels)
      : pool(std::move(own_pool)), env(EnvOf(*lists.front().front())) {
    WorkerDirectory* const peers = lists.size() > 1 ? &directory : nullptr;
    for (DeviceList& devices : lists) {
      workers.push_back(std::make_unique<Worker>(std::move(devices), kernels, peers, env.Random64()));
      directory.Add(workers.back().get());
    }
  }
  ~SessionCore() {
    coordinator.reset();
    ResetWorkers({});
    workers.clear();
    DropUnusedPreparedForms();  // of the variables and constants that went with it
  }
  // Drops what is in these containers, all when empty, once nothing runs any more.
  void ResetWorkers(const std::vector<std::string>& containers) {
    for (const auto& w : workers) w->Reset({}, {containers}, [](const StatusOr<ResetResponse>&) {});
  }

  const std::unique_ptr<ThreadPool> pool;  // null: the devices use the process's
  Env& env;                                // that of the devices
  LocalDirectory directory;
  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<Coordinator> coordinator;
};

struct LiveSessions {
  absl::Mutex mu;
  std::map<const SessionCore*, std::weak_ptr<SessionCore>> all ABSL_GUARDED_BY(mu);
  static LiveSessions& Get() {
    static LiveSessions* live = new LiveSessions();  // sessions may outlive static destruction
    return *live;
  }
};

class LocalSession final : public Session, public Interruptible {
 public:
  LocalSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config, CoordinatorOptions options,
               std::vector<DeviceList> workers, const KernelRegistry* kernels, const Determinism& determinism,
               std::unique_ptr<ThreadPool> pool)
      : graph_(graph),
        core_(std::make_shared<SessionCore>(std::move(pool), std::move(workers), kernels)),
        inter_op_threads_(InterOpThreads(config)),
        placement_(options.passes.placement),
        periods_(config.placement_period) {
    options.env = &core_->env;
    options.inter_op_threads = inter_op_threads_.front();
    options.deterministic = determinism.on;
    options.order_seed = determinism.order_seed;
    if (determinism.on) {
      options.max_threads = 1;
      options.passes.switched_off.insert("collapse_loops");  // every order of a loop's nodes
    }
    AskKernels(*kernels, core_->workers.front()->host(), &options.passes);
    options.calls.differentiate = AddDenseGradients;
    std::vector<WorkerInterface*> all;
    for (const auto& w : core_->workers) all.push_back(w.get());
    core_->coordinator =
        std::make_unique<Coordinator>(std::move(graph), std::move(all), core_->env.Random64(), std::move(options));
    absl::MutexLock lock(&LiveSessions::Get().mu);
    LiveSessions::Get().all.emplace(core_.get(), core_);
  }
  // Once, before all else.
  Status Connect() { return core_->coordinator->Connect(); }

  ~LocalSession() override {
    {
      absl::MutexLock lock(&LiveSessions::Get().mu);
      LiveSessions::Get().all.erase(core_.get());
    }
    // Here, also when somebody resets the session just now.
    core_->coordinator->Close(absl::InfiniteDuration()).IgnoreError();
  }

  Status Run(const wire::RunOptions* options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
             absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs,
             wire::RunMetadata* metadata) override {
    StepOptions step;
    if (options) MR_RETURN_IF_ERROR(CheckRunOptions(*options));
    step.inter_op_threads =
        options && options->inter_op_thread_pool != 0
            ? InterOpThreadsOf(options->inter_op_thread_pool)
            : inter_op_threads_.front();
    if (options && options->timeout_in_ms > 0) step.timeout = absl::Milliseconds(options->timeout_in_ms);
    const PlacementPeriods::Turn turn = periods_.Next();
    if (turn == PlacementPeriods::Turn::kPlace) core_->coordinator->ForgetCompiled();
    const bool is_asked_for = options && metadata && options->trace_level > wire::RunOptions::kNoTrace;
    std::optional<StepTrace> trace;
    if (is_asked_for || turn == PlacementPeriods::Turn::kMeasure) step.trace = &trace.emplace();
    AllocatorStats before;
    if (is_asked_for) {
      HostAllocator().ResetPeak();
      before = HostAllocator().Stats();
    }
    const int64_t start_nanos = RealNanos();
    const Status s = core_->coordinator->Run(step, feeds, feed_values, fetches, targets, outputs);
    if (!step.trace || absl::IsCancelled(s)) return s;
    std::vector<NodeTrace> nodes = trace->Take();
    if (turn == PlacementPeriods::Turn::kMeasure) KeepCosts(nodes, *placement_);
    if (is_asked_for) {
      wire::StepStats& stats = metadata->step_stats.Ensure();
      if (s.ok()) AddUnrun(feeds, fetches, *outputs, core_->coordinator->ListDevices().front().name, &nodes);
      const absl::Time now = core_->env.Now();
      {
        const GraphReaderLock lock(&graph_->mu);
        FillStepStats(graph_->graph, std::move(nodes), now, &stats);
      }
      AddMemory(before, start_nanos, now, &stats);
    }
    return s;
  }

  StatusOr<std::string> PartialRunSetup(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                        absl::Span<Node* const> targets) override {
    return core_->coordinator->PartialRunSetup(
        {{feeds.begin(), feeds.end()}, {fetches.begin(), fetches.end()}, {targets.begin(), targets.end()}});
  }
  Status PartialRun(const std::string& handle, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                    absl::Span<const Output> fetches, std::vector<Tensor>* outputs) override {
    return core_->coordinator->PartialRun(handle, feeds, feed_values, fetches, outputs);
  }
  Status ReleasePartialRun(const std::string& handle) override { return core_->coordinator->ReleasePartialRun(handle); }

  std::vector<DeviceInfo> ListDevices() const override { return core_->coordinator->ListDevices(); }

  StatusOr<std::string> Explain(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                absl::Span<Node* const> targets) override {
    return core_->coordinator->Explain(
        {{feeds.begin(), feeds.end()}, {fetches.begin(), fetches.end()}, {targets.begin(), targets.end()}});
  }
  StatusOr<std::string> RandomState() const override {
    MR_ASSIGN_OR_RETURN(const RandomPositions positions, core_->coordinator->GetRandomPositions());
    return EncodeRandomPositions(positions);
  }
  Status SetRandomState(absl::string_view state) override {
    MR_ASSIGN_OR_RETURN(const RandomPositions positions, DecodeRandomPositions(state));
    return core_->coordinator->SetRandomPositions(positions);
  }

  void SetInterruptCheck(const InterruptCheck& check) override { core_->coordinator->SetInterruptCheck(check); }
  Status Close() override { return core_->coordinator->Close(kClosePatience); }

 private:
  static std::vector<int> InterOpThreads(const wire::ConfigProto& config) {
    const int width = config.inter_op_parallelism_threads < 0 ? 1 : config.inter_op_parallelism_threads;
    std::vector<int> threads;
    for (const wire::ThreadPoolOptionProto& pool : config.session_inter_op_thread_pool) {
      threads.push_back(pool.num_threads > 0 ? pool.num_threads : width);
    }
    if (threads.empty()) threads.push_back(width);
    return threads;
  }
  // -1: the caller's thread alone.
  int InterOpThreadsOf(int32_t pool) const { return pool < 0 ? 1 : inter_op_threads_[static_cast<size_t>(pool)]; }

  Status CheckRunOptions(const wire::RunOptions& options) const {
    const int32_t pool = options.inter_op_thread_pool;
    if (pool < -1 || pool >= static_cast<int32_t>(inter_op_threads_.size())) {
      return InvalidArgument("Invalid inter_op_thread_pool: ", pool, "; the session has ", inter_op_threads_.size());
    }
    if (options.debug_options && !options.debug_options->debug_tensor_watch_opts.empty()) {
      return Unimplemented("RunOptions.debug_options.debug_tensor_watch_opts: tensors of a step are not watched");
    }
    return absl::OkStatus();
  }

  const RefPtr<SharedGraph> graph_;
  const std::shared_ptr<SessionCore> core_;
  const std::vector<int> inter_op_threads_;  // by RunOptions.inter_op_thread_pool
  const std::shared_ptr<PlacementState> placement_;
  PlacementPeriods periods_;
};

Status CheckThreads(absl::string_view option, int32_t least, int32_t threads) {
  constexpr int32_t kMost = 4096;
  if (threads >= least && threads <= kMost) return absl::OkStatus();
  return InvalidArgument(
      option, " is ", threads, ", want ", least < 0 ? "-1 (the caller's), " : "", "0 (choose) to ", kMost);
}

Status CheckConfig(const wire::ConfigProto& config) {
  MR_RETURN_IF_ERROR(CheckThreads("intra_op_parallelism_threads", 0, config.intra_op_parallelism_threads));
  MR_RETURN_IF_ERROR(CheckThreads("inter_op_parallelism_threads", -1, config.inter_op_parallelism_threads));
  if (config.placement_period < 0) {
    return InvalidArgument("placement_period is ", config.placement_period, ", want 0 (never) or a number of steps");
  }
  for (const wire::ThreadPoolOptionProto& pool : config.session_inter_op_thread_pool) {
    MR_RETURN_IF_ERROR(CheckThreads("session_inter_op_thread_pool.num_threads", 0, pool.num_threads));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Session>> NewLocalSession(
    RefPtr<SharedGraph> graph, const wire::ConfigProto& config, std::vector<DeviceList> workers,
    const KernelRegistry* kernels, const Determinism& determinism, std::unique_ptr<ThreadPool> pool) {
  if (workers.empty()) return InvalidArgument("a session needs at least one worker");
  std::set<std::string> names, tasks;
  for (const DeviceList& devices : workers) {
    if (devices.empty()) return InvalidArgument("a worker needs at least one device");
    if (!tasks.insert(TaskOf(devices.front()->parsed_name())).second) {
      return InvalidArgument("two workers are task ", TaskOf(devices.front()->parsed_name()));
    }
    for (const auto& d : devices) {
      if (!names.insert(d->name()).second) return InvalidArgument("two devices are called ", d->name());
    }
  }
  MR_RETURN_IF_ERROR(CheckConfig(config));
  MR_ASSIGN_OR_RETURN(CoordinatorOptions options, OptionsFrom(config));
  auto session = std::make_unique<LocalSession>(
      std::move(graph), config, std::move(options), std::move(workers), kernels, determinism, std::move(pool));
  MR_RETURN_IF_ERROR(session->Connect());
  return std::unique_ptr<Session>(std::move(session));
}

Status ResetLocalSessions(const std::vector<std::string>& containers) {
  std::vector<std::shared_ptr<SessionCore>> live;
  {
    absl::MutexLock lock(&LiveSessions::Get().mu);
    for (const auto& [core, weak] : LiveSessions::Get().all) {
      if (std::shared_ptr<SessionCore> held = weak.lock()) live.push_back(std::move(held));
    }
  }
  Status first;
  for (const auto& core : live) first.Update(core->coordinator->Close(kClosePatience));
  for (const auto& core : live) core->ResetWorkers(containers);
  return first;
}

}  // namespace millrace
