// SPDX-License-Identifier: Apache-2.0
#include "passes/compile.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/logging.h"
#include "base/settings.h"
#include "base/stopwatch.h"
#include "graph/verify.h"
#include "passes/placement_groups.h"
#include "passes/placement_state.h"

namespace millrace {
namespace {

// Debug builds do, and processes with MILLRACE_VERIFY_GRAPHS=1 in the environment.
bool VerifiesBetweenStages() {
#ifdef NDEBUG
  static const bool asked = IsSwitchedOn("MILLRACE_VERIFY_GRAPHS");
  return asked;
#else
  return true;
#endif
}

struct Compilation {
  LendGraph lend;
  const RunSignature& signature;
  const PruneOptions& options;
  const PassEnvironment& env;
  CompileReport& report;
  std::vector<std::string>* notes;    // of the stage that runs; null: nobody reads it
  std::unique_ptr<Graph> whole;       // what placement of state looks at
  std::unique_ptr<Graph> graph;       // until it is partitioned
  std::vector<Partition> partitions;  // from then on

  Status KeepGoing() const { return options.calls.keep_going ? options.calls.keep_going() : absl::OkStatus(); }
};

// Where there is one device, what goes to it is known before folding and merging take the client's names away.
bool HasChoice(const PassEnvironment& env) { return env.devices.size() > 1; }

// Variables lie where they are best for all steps, also those that have not been asked for.
bool WantsWholeGraph(const PassEnvironment& env, const Graph& source) {
  if (!env.place_by_cost || env.place_pruned_graph || !env.placement || !HasChoice(env)) return false;
  return std::any_of(source.nodes().begin(), source.nodes().end(), [&](const Node* n) {
    return n->Is(OpTrait::kMakesVariable) && env.placement->PinOf(n->name()).empty();
  });
}
Status Prune(Compilation& c) {
  return c.lend([&](const Graph& source) -> Status {
    MR_ASSIGN_OR_RETURN(c.graph, PruneForRun(source, c.signature, c.options));
    if (HasChoice(c.env) && !c.env.place_by_cost) MR_RETURN_IF_ERROR(AskAsWholeGraph(source, c.env, c.graph.get()));
    if (!WantsWholeGraph(c.env, source)) return absl::OkStatus();
    RunSignature all;
    for (Node* n : source.nodes()) {
      if (n->consumers().empty() && n->control_outputs().empty()) all.targets.push_back(n);
    }
    MR_ASSIGN_OR_RETURN(c.whole, PruneForRun(source, all));
    return absl::OkStatus();
  });
}
Status PlaceState(Compilation& c) {
  if (!c.whole) return absl::OkStatus();
  const std::unique_ptr<Graph> whole = std::move(c.whole);
  MR_RETURN_IF_ERROR(InlineCalls(*whole, whole.get(), c.options.calls));
  return Place(*whole, c.env);
}
Status ExpandCalls(Compilation& c) { return InlineCalls(*c.graph, c.graph.get(), c.options.calls); }
Status Verify(Compilation& c) { return VerifyGraph(*c.graph); }
Status Merge(Compilation& c) { return MergeCommonSubexpressions(*c.graph); }
Status Fold(Compilation& c) {
  if (!c.env.evaluate) return absl::OkStatus();
  return FoldConstants(*c.graph, c.env, [&] { return c.KeepGoing(); });
}
Status Simplify(Compilation& c) { return SimplifyArithmetic(*c.graph); }
Status DropOrderOnly(Compilation& c) { return DropOrderOnlyWork(*c.graph); }

void LogPlacement(const PassEnvironment& env, const Node& n, const std::string& device) {
  if (env.log_placement) LogInfo(n.name(), ": (", n.op_name(), "): ", device);
}
Status LogTheOnlyPlacement(Compilation& c) {
  if (HasChoice(c.env)) return absl::OkStatus();
  for (const Node* n : c.graph->nodes()) LogPlacement(c.env, *n, c.env.devices.front().ToString());
  return absl::OkStatus();
}
Status PlaceNodes(Compilation& c) {
  MR_RETURN_IF_ERROR(Place(*c.graph, c.env, c.notes != nullptr ? &c.report.placement : nullptr));
  if (!HasChoice(c.env)) return absl::OkStatus();
  for (const Node* n : c.graph->nodes()) LogPlacement(c.env, *n, n->assigned_device());
  return absl::OkStatus();
}
Status ReadAfter(Compilation& c) { return ReadAfterUpdates(*c.graph); }
Status Partitioning(Compilation& c) {
  MR_ASSIGN_OR_RETURN(c.partitions, PartitionGraph(std::move(c.graph), c.env));
  return absl::OkStatus();
}
Status CopyBetween(Compilation& c) {
  for (Partition& p : c.partitions) MR_RETURN_IF_ERROR(CopyBetweenMemories(p, c.env));
  return absl::OkStatus();
}
Status FuseAll(Compilation& c) {
  for (Partition& p : c.partitions) MR_RETURN_IF_ERROR(Fuse(p, c.env, c.notes));
  return absl::OkStatus();
}
Status Collapse(Compilation& c) {
  for (Partition& p : c.partitions) MR_RETURN_IF_ERROR(CollapseLoops(p));
  return absl::OkStatus();
}

Status RecomputeForGradients(Compilation& c) { return Recompute(*c.graph, c.env, c.notes); }
Status Swap(Compilation& c) { return SwapToHost(c.partitions, c.env, c.notes); }
Status DelayRecvs(Compilation& c) { return ScheduleRecvs(c.partitions, c.env, c.notes); }
Status Order(Compilation& c) {
  for (Partition& p : c.partitions) MR_RETURN_IF_ERROR(OrderByMemory(p, c.env, c.notes));
  return absl::OkStatus();
}
// Workers do it where they read the graph (runtime/update_order.h): the order of nodes is the plan's.
Status OrderUpdates(Compilation& c) {
  for (Partition& p : c.partitions) p.updates_early = true;
  return absl::OkStatus();
}
// Where a segment begins and ends depends on kernels, which workers have: they do the work when the partition is
// registered (runtime/plan_cut.h), and Session::Explain adds what they tell.
Status Cut(Compilation& c) {
  for (Partition& p : c.partitions) p.in_segments = true;
  return absl::OkStatus();
}

struct Stage {
  const char* name;
  bool is_optional;
  Status (*run)(Compilation&);
};

// Merging comes before folding too: equal nodes fold once, which spares memory when they are large.
constexpr Stage kStages[] = {
    {"prune", false, Prune},
    {"place_state", true, PlaceState},
    {"expand_calls", false, ExpandCalls},
    {"verify", false, Verify},
    {"log_placement", false, LogTheOnlyPlacement},
    {"merge_before_folding", true, Merge},
    {"fold_constants", true, Fold},
    {"simplify_arithmetic", true, Simplify},
    {"merge_common_subexpressions", true, Merge},
    {"drop_order_only_work", true, DropOrderOnly},
    {"recompute", true, RecomputeForGradients},
    {"place", false, PlaceNodes},
    {"read_after_updates", false, ReadAfter},
    {"partition", false, Partitioning},
    {"copy_between_memories", false, CopyBetween},
    {"fuse", true, FuseAll},
    {"swap_to_host", true, Swap},
    {"collapse_loops", true, Collapse},
    {"schedule_recvs", true, DelayRecvs},
    {"order_by_memory", true, Order},
    {kOrderUpdatesStage, true, OrderUpdates},
    {kCutStage, true, Cut},
};

// Of the nodes of all graphs, sorted.
std::vector<std::string> NodeNames(const Compilation& c) {
  std::vector<std::string> names;
  const auto add = [&](const Graph& graph) {
    for (const Node* n : graph.nodes()) names.push_back(n->name());
  };
  if (c.graph) add(*c.graph);
  for (const Partition& p : c.partitions) {
    add(*p.graph);
    for (const auto& [name, loop] : p.loops) {
      add(*loop.predicate);
      add(*loop.body);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Without(const std::vector<std::string>& all, const std::vector<std::string>& some) {
  std::vector<std::string> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
  return rest;
}

Status VerifyAll(const Compilation& c) {
  if (c.graph) return VerifyGraph(*c.graph);
  for (const Partition& p : c.partitions) {
    MR_RETURN_IF_ERROR(VerifyGraph(*p.graph, GraphExtent::kPartition));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<Partition>> CompileGraph(
    LendGraph lend, const RunSignature& signature, const PruneOptions& options, const PassEnvironment& env,
    CompileReport* report) {
  if (env.devices.empty()) return Internal("there is no device to run on");
  CompileReport unread;
  Compilation c{
      .lend = lend,
      .signature = signature,
      .options = options,
      .env = env,
      .report = report != nullptr ? *report : unread,
      .notes = nullptr,
      .whole = nullptr,
      .graph = nullptr,
      .partitions = {}};
  std::vector<std::string> names;
  for (const Stage& stage : kStages) {
    StageReport told;
    told.name = stage.name;
    told.ran = !stage.is_optional || !env.switched_off.contains(stage.name);
    if (report != nullptr) c.notes = &told.did;
    const int64_t start = RealNanos();
    if (told.ran) {
      MR_RETURN_IF_ERROR(c.KeepGoing());
      MR_RETURN_IF_ERROR(stage.run(c));
      if (VerifiesBetweenStages()) {
        MR_RETURN_IF_ERROR(Annotate(VerifyAll(c), absl::StrCat("after the stage ", stage.name, ": ")));
      }
    }
    if (report == nullptr) continue;
    told.nanos = RealNanos() - start;
    std::vector<std::string> names_now = NodeNames(c);
    told.nodes = static_cast<int64_t>(names_now.size());
    if (!report->stages.empty()) {
      told.gone = Without(names, names_now);
      told.added = Without(names_now, names);
    }
    names = std::move(names_now);
    report->stages.push_back(std::move(told));
  }
  if (report != nullptr) {
    MR_ASSIGN_OR_RETURN(report->memory, MemoryOf(c.partitions, env));
  }
  return std::move(c.partitions);
}

Status CheckOptionalStage(absl::string_view name) {
  std::vector<std::string> optional;
  for (const Stage& s : kStages) {
    if (s.is_optional && name == s.name) return absl::OkStatus();
    if (s.is_optional) optional.emplace_back(s.name);
  }
  return InvalidArgument(
      "'", name, "' is no stage of compilation that can be switched off; these can: ", absl::StrJoin(optional, ", "));
}

}  // namespace millrace
