// SPDX-License-Identifier: Apache-2.0
// The passes between a pruned graph and its partitions, in order. Each is named, may be switched off where that keeps
// the meaning, and in debug builds the graph is verified after each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "graph/graph.h"
#include "op/device_name.h"

namespace millrace {

struct PassEnvironment {
  // Devices in order of preference; the first is the client's own.
  std::vector<DeviceName> devices;
  // Incarnation per device, for the keys of Send and Recv.
  std::vector<uint64_t> incarnations;
  // Whether a device type has a kernel for the node.
  std::function<bool(const Node&, const std::string& device_type)> has_kernel;
  // Runs one stateless node on constant inputs; any error means "do not fold".
  std::function<StatusOr<std::vector<Tensor>>(const Node&, const std::vector<Tensor>& inputs)> evaluate;
  bool fold_constants = true;
  bool simplify_arithmetic = true;
  bool merge_common_subexpressions = true;
  bool drop_order_only_work = true;
  int64_t max_folded_bytes = 10 << 20;
  bool soft_placement = false;  // a constraint that cannot be met is dropped, with a log line
  bool log_placement = false;
};

struct Partition {
  std::string device;
  std::unique_ptr<Graph> graph;
};

// merge -> fold -> simplify -> merge -> drop -> place -> partition. The input must be pruned and verified.
StatusOr<std::vector<Partition>> RunPasses(std::unique_ptr<Graph> graph, const PassEnvironment& env);

// The single passes.
Status FoldConstants(Graph& graph, const PassEnvironment& env);
Status SimplifyArithmetic(Graph& graph);
Status MergeCommonSubexpressions(Graph& graph);
Status DropOrderOnlyWork(Graph& graph);
Status Place(Graph& graph, const PassEnvironment& env);
Status ReadAfterUpdates(Graph& graph);  // after placement: on another device than the variable's, a value is read
StatusOr<std::vector<Partition>> PartitionGraph(std::unique_ptr<Graph> graph, const PassEnvironment& env);

}  // namespace millrace
