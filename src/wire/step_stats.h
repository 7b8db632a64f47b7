// SPDX-License-Identifier: Apache-2.0
//
// What a step did: times, memory and costs of its nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/graph.h"
#include "wire/message.h"

namespace millrace::wire {

struct AllocationDescription {
  int64_t requested_bytes = 0;
  int64_t allocated_bytes = 0;
  std::string allocator_name;
  int64_t allocation_id = 0;
  bool has_single_reference = false;
  uint64_t ptr = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TensorDescription {
  int32_t dtype = 0;
  Box<TensorShapeProto> shape;
  Box<AllocationDescription> allocation_description;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct NodeOutput {
  int32_t slot = 0;
  Box<TensorDescription> tensor_description;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct AllocationRecord {
  int64_t alloc_micros = 0;
  int64_t alloc_bytes = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct AllocatorMemoryUsed {
  std::string allocator_name;
  int64_t total_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t live_bytes = 0;
  int64_t allocator_bytes_in_use = 0;
  std::vector<AllocationRecord> allocation_records;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct MemoryStats {
  int64_t temp_memory_size = 0;
  int64_t device_temp_memory_size = 0;  // deprecated
  int64_t persistent_memory_size = 0;
  int64_t device_persistent_memory_size = 0;  // deprecated
  std::vector<int64_t> persistent_tensor_alloc_ids;
  std::vector<int64_t> device_persistent_tensor_alloc_ids;  // deprecated
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct NodeExecStats {
  std::string node_name;
  int64_t all_start_micros = 0;
  int64_t op_start_rel_micros = 0;
  int64_t op_end_rel_micros = 0;
  int64_t all_end_rel_micros = 0;
  std::vector<AllocatorMemoryUsed> memory;
  std::vector<NodeOutput> output;
  std::string timeline_label;
  int64_t scheduled_micros = 0;
  uint32_t thread_id = 0;
  std::vector<AllocationDescription> referenced_tensor;
  Box<MemoryStats> memory_stats;
  int64_t all_start_nanos = 0;
  int64_t op_start_rel_nanos = 0;
  int64_t op_end_rel_nanos = 0;
  int64_t all_end_rel_nanos = 0;
  int64_t scheduled_nanos = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct DeviceStepStats {
  std::string device;
  std::vector<NodeExecStats> node_stats;
  Map<uint32_t, std::string> thread_names;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct StepStats {
  std::vector<DeviceStepStats> dev_stats;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CostGraphInputInfo {
  int32_t preceding_node = 0;
  int32_t preceding_port = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CostGraphOutputInfo {
  int64_t size = 0;
  int64_t alias_input_port = 0;
  Box<TensorShapeProto> shape;
  int32_t dtype = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CostGraphNode {
  std::string name;
  std::string device;
  int32_t id = 0;
  std::vector<CostGraphInputInfo> input_info;
  std::vector<CostGraphOutputInfo> output_info;
  int64_t temporary_memory_size = 0;
  bool is_final = false;
  std::vector<int32_t> control_input;
  int64_t compute_cost = 0;
  int64_t host_temp_memory_size = 0;    // deprecated
  int64_t device_temp_memory_size = 0;  // deprecated
  int64_t persistent_memory_size = 0;
  int64_t compute_time = 0;
  int64_t memory_time = 0;
  int64_t device_persistent_memory_size = 0;  // deprecated
  bool inaccurate = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CostGraphDef {
  std::vector<CostGraphNode> node;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct RunMetadataFunctionGraphs {
  std::vector<GraphDef> partition_graphs;
  Box<GraphDef> pre_optimization_graph;
  Box<GraphDef> post_optimization_graph;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct RunMetadata {
  Box<StepStats> step_stats;
  Box<CostGraphDef> cost_graph;
  std::vector<GraphDef> partition_graphs;
  std::vector<RunMetadataFunctionGraphs> function_graphs;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
