// SPDX-License-Identifier: Apache-2.0
// The passes of compilation, which compile.cc strings together, and what they know of their surroundings.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "graph/graph.h"
#include "op/arg_memory.h"
#include "op/device_name.h"
#include "op/op_cost.h"
#include "passes/loop_region.h"

namespace millrace {

class PlacementState;

// What is done so that a step needs less memory (white paper 4.1). Every value stays what it is.
struct MemoryOptions {
  bool reorder = true;                   // nodes run in an order that needs less, where it is worth it
  bool by_hand = false;                  // nodes marked `_recompute_hint`, inputs named by `_swap_to_host`
  bool recompute_by_cost = false;        // cheap nodes whose outputs would be kept for gradients
  bool swap_by_cost = false;             // where a device's memory would not do
  std::string gradients = "gradients/";  // the name scope of the nodes for which values are computed twice
};

struct PassEnvironment {
  // Devices in order of preference.
  std::vector<DeviceName> devices;
  // The position of the device to which the client's tensors come first.
  size_t client = 0;
  // Incarnation per device, for the keys of Send and Recv.
  std::vector<uint64_t> incarnations;
  // Whether the device has memory of its own, per device; not given: none has.
  std::vector<bool> own_memory;
  // Where the arguments of the node lie on a device of that type with memory of its own.
  std::function<ArgMemory(const Node&, const std::string& device_type)> memory_of;
  // Whether a device type has a kernel for the node.
  std::function<bool(const Node&, const std::string& device_type)> has_kernel;
  // What the device type's kernel for the node is estimated to work; not given: an operation an element.
  std::function<CostFunction(const Node&, const std::string& device_type)> cost_of;
  // Runs one stateless node on constant inputs, as long as `keep_going`, which any thread may ask, lets it; any error
  // means "do not fold".
  std::function<StatusOr<std::vector<Tensor>>(
      const Node&, const std::vector<Tensor>& inputs, absl::FunctionRef<Status()> keep_going)>
      evaluate;
  absl::flat_hash_set<std::string> switched_off;  // stages, by the names of compile.cc
  int64_t max_folded_bytes = 10 << 20;
  std::vector<int64_t> memory_limits;  // bytes, per device; 0, or not given: none
  bool soft_placement = false;         // a constraint that cannot be met is dropped, with a log line
  bool log_placement = false;
  bool place_by_cost = false;       // by simulated execution, instead of the first device that fits
  bool place_pruned_graph = false;  // state lies where the first step that meets it is best, not the whole graph
  std::shared_ptr<PlacementState> placement;  // of the session; null: each compilation is by itself
  bool schedule_recvs = false;                // as late as the critical path allows
  bool bfloat16_between_tasks = false;        // floats travel as bfloat16
  MemoryOptions memory;
};

struct Partition {
  std::string device;
  std::unique_ptr<Graph> graph;
  CollapsedLoops loops;  // what the `_Loop` nodes of the graph, and of loops around them, do
  // Its plan runs updates of variables as early as that changes nothing else. Else nodes keep their order.
  bool updates_early = false;
  // Its plan is cut into segments. Else each node runs by itself, in any order that the graph allows.
  bool in_segments = false;
};

// Each takes a verified graph and leaves one. `notes`: gets a line for each thing that was done.
// Constants may take long: an error of `keep_going` ends the work, also within a node.
Status FoldConstants(Graph& graph, const PassEnvironment& env, absl::FunctionRef<Status()> keep_going);
Status SimplifyArithmetic(Graph& graph);
Status MergeCommonSubexpressions(Graph& graph);
Status DropOrderOnlyWork(Graph& graph);
// Where a node lies, and why.
struct PlacedNode {
  std::string name, op, device, reason;
  std::string ToString() const { return absl::StrCat(name, " (", op, ") is on ", device, ": ", reason); }
};
// `placed`: gets each node.
Status Place(Graph& graph, const PassEnvironment& env, std::vector<PlacedNode>* placed = nullptr);
Status ReadAfterUpdates(Graph& graph);  // after placement: on another device than the variable's, a value is read
StatusOr<std::vector<Partition>> PartitionGraph(std::unique_ptr<Graph> graph, const PassEnvironment& env);
Status CopyBetweenMemories(Partition& partition, const PassEnvironment& env);
Status Fuse(Partition& partition, const PassEnvironment& env, std::vector<std::string>* notes);
Status CollapseLoops(Partition& partition);  // loops that wait for nothing and have LoopRegion's form
Status Recompute(Graph& graph, const PassEnvironment& env, std::vector<std::string>* notes);  // after merging
Status SwapToHost(std::vector<Partition>& partitions, const PassEnvironment& env, std::vector<std::string>* notes);
Status ScheduleRecvs(std::vector<Partition>& partitions, const PassEnvironment& env, std::vector<std::string>* notes);
Status OrderByMemory(Partition& partition, const PassEnvironment& env, std::vector<std::string>* notes);

}  // namespace millrace
