// SPDX-License-Identifier: Apache-2.0
#include "service/session_config.h"

#include "absl/strings/str_split.h"
#include "base/settings.h"
#include "passes/placement_state.h"
#include "wire/rewriter_config.h"

namespace millrace {
namespace {

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

StatusOr<CoordinatorOptions> OptionsFrom(const wire::ConfigProto& config) {
  MR_RETURN_IF_ERROR(CheckConfig(config));
  CoordinatorOptions o;
  const std::string names = TextSetting(kSwitchedOff);
  for (absl::string_view name : absl::StrSplit(names, ',', absl::SkipEmpty())) {
    MR_RETURN_IF_ERROR(Annotate(CheckOptionalStage(name), absl::StrCat(kSwitchedOff, ": ")));
    o.passes.switched_off.insert(std::string(name));
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

wire::ConfigProto WithDefaults(const wire::ConfigProto& config, const wire::ConfigProto& defaults) {
  wire::ConfigProto merged = defaults;
  if (!config.device_filters.empty()) merged.device_filters.clear();
  if (!config.session_inter_op_thread_pool.empty()) merged.session_inter_op_thread_pool.clear();
  // What follows in the binary form replaces or is merged into what came before.
  const std::string both = wire::Encode(merged) + wire::Encode(config);
  return wire::Decode(both, &merged).ok() ? merged : config;
}

std::vector<int> InterOpThreads(const wire::ConfigProto& config) {
  const int width = config.inter_op_parallelism_threads < 0 ? 1 : config.inter_op_parallelism_threads;
  std::vector<int> threads;
  for (const wire::ThreadPoolOptionProto& pool : config.session_inter_op_thread_pool) {
    threads.push_back(pool.num_threads > 0 ? pool.num_threads : width);
  }
  if (threads.empty()) threads.push_back(width);
  return threads;
}

}  // namespace millrace
