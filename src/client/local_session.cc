// SPDX-License-Identifier: Apache-2.0
#include "client/local_session.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autodiff/gradients.h"
#include "client/interruptible.h"
#include "client/placement_periods.h"
#include "client/random_state.h"
#include "client/step_stats.h"
#include "client/trace_files.h"
#include "kernel/device_env.h"
#include "service/ask_kernels.h"
#include "service/coordinator.h"
#include "service/local_directory.h"
#include "service/worker.h"
#include "tensor/prepared.h"
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
  if (rewrites.rewrite_options->remapping == Rewriter::kOff) env->switched_off.insert("fuse");
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
      o.passes.switched_off.insert({"simplify_arithmetic", "drop_order_only_work", "fuse"});
      if (!opt.do_constant_folding) o.passes.switched_off.insert({"merge_before_folding", "fold_constants"});
      if (!opt.do_common_subexpression_elimination) {
        o.passes.switched_off.insert({"merge_before_folding", "merge_common_subexpressions"});
      }
    }
    if (opt.max_folded_constant_in_bytes > 0) o.passes.max_folded_bytes = opt.max_folded_constant_in_bytes;
  }
  return o;
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
               std::unique_ptr<ThreadPool> pool, TraceFiles trace_files)
      : graph_(graph),
        core_(std::make_shared<SessionCore>(std::move(pool), std::move(workers), kernels)),
        inter_op_threads_(InterOpThreads(config)),
        placement_(options.passes.placement),
        periods_(config.placement_period),
        trace_files_(std::move(trace_files)) {
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
    const int64_t written_as = trace_files_.is_on() ? trace_files_.Next() : -1;
    std::optional<StepTrace> trace;
    std::optional<StepMeasure> measure;
    if (is_asked_for || written_as >= 0) measure.emplace();
    if (measure || turn == PlacementPeriods::Turn::kMeasure) step.trace = &trace.emplace();
    const Status s = core_->coordinator->Run(step, feeds, feed_values, fetches, targets, outputs);
    if (measure) measure->Stop();
    if (!step.trace || absl::IsCancelled(s)) return s;
    std::vector<NodeTrace> nodes = trace->Take();
    if (turn == PlacementPeriods::Turn::kMeasure) KeepCosts(nodes, *placement_);
    if (!measure) return s;
    wire::RunMetadata traced;
    if (s.ok()) AddUnrun(feeds, fetches, *outputs, core_->coordinator->ListDevices().front().name, &nodes);
    measure->Fill(std::move(nodes), fetches, core_->env.Now(), &traced.step_stats.Ensure());
    if (written_as >= 0 && s.ok()) trace_files_.Write(core_->env, written_as, traced);
    if (is_asked_for) metadata->step_stats = std::move(traced.step_stats);
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
  TraceFiles trace_files_;
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
  MR_ASSIGN_OR_RETURN(TraceFiles trace_files, TraceFiles::FromEnvironment());
  auto session = std::make_unique<LocalSession>(
      std::move(graph), config, std::move(options), std::move(workers), kernels, determinism, std::move(pool),
      std::move(trace_files));
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
