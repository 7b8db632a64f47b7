// SPDX-License-Identifier: Apache-2.0
#include "wire/step_stats.h"

#include "wire/enums.h"
#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& AllocationDescription::Info() {
  static const MessageInfo& info =
      Table<AllocationDescription>("AllocationDescription")
          .Field(1, "requested_bytes", &AllocationDescription::requested_bytes)
          .Field(2, "allocated_bytes", &AllocationDescription::allocated_bytes)
          .Field(3, "allocator_name", &AllocationDescription::allocator_name)
          .Field(4, "allocation_id", &AllocationDescription::allocation_id)
          .Field(5, "has_single_reference", &AllocationDescription::has_single_reference)
          .Field(6, "ptr", &AllocationDescription::ptr)
          .Build();
  return info;
}

const MessageInfo& TensorDescription::Info() {
  static const MessageInfo& info =
      Table<TensorDescription>("TensorDescription")
          .Enum(1, "dtype", &TensorDescription::dtype, kDataTypeEnum)
          .Field(2, "shape", &TensorDescription::shape)
          .Field(4, "allocation_description", &TensorDescription::allocation_description)
          .Build();
  return info;
}

const MessageInfo& NodeOutput::Info() {
  static const MessageInfo& info =
      Table<NodeOutput>("NodeOutput")
          .Field(1, "slot", &NodeOutput::slot)
          .Field(3, "tensor_description", &NodeOutput::tensor_description)
          .Build();
  return info;
}

const MessageInfo& AllocationRecord::Info() {
  static const MessageInfo& info =
      Table<AllocationRecord>("AllocationRecord")
          .Field(1, "alloc_micros", &AllocationRecord::alloc_micros)
          .Field(2, "alloc_bytes", &AllocationRecord::alloc_bytes)
          .Build();
  return info;
}

const MessageInfo& AllocatorMemoryUsed::Info() {
  static const MessageInfo& info =
      Table<AllocatorMemoryUsed>("AllocatorMemoryUsed")
          .Field(1, "allocator_name", &AllocatorMemoryUsed::allocator_name)
          .Field(2, "total_bytes", &AllocatorMemoryUsed::total_bytes)
          .Field(3, "peak_bytes", &AllocatorMemoryUsed::peak_bytes)
          .Field(4, "live_bytes", &AllocatorMemoryUsed::live_bytes)
          .Field(5, "allocator_bytes_in_use", &AllocatorMemoryUsed::allocator_bytes_in_use)
          .Field(6, "allocation_records", &AllocatorMemoryUsed::allocation_records)
          .Build();
  return info;
}

const MessageInfo& MemoryStats::Info() {
  static const MessageInfo& info =
      Table<MemoryStats>("MemoryStats")
          .Field(1, "temp_memory_size", &MemoryStats::temp_memory_size)
          .Field(2, "device_temp_memory_size", &MemoryStats::device_temp_memory_size)
          .Field(3, "persistent_memory_size", &MemoryStats::persistent_memory_size)
          .Field(4, "device_persistent_memory_size", &MemoryStats::device_persistent_memory_size)
          .Field(5, "persistent_tensor_alloc_ids", &MemoryStats::persistent_tensor_alloc_ids)
          .Field(6, "device_persistent_tensor_alloc_ids", &MemoryStats::device_persistent_tensor_alloc_ids)
          .Build();
  return info;
}

const MessageInfo& NodeExecStats::Info() {
  static const MessageInfo& info =
      Table<NodeExecStats>("NodeExecStats")
          .Field(1, "node_name", &NodeExecStats::node_name)
          .Field(2, "all_start_micros", &NodeExecStats::all_start_micros)
          .Field(3, "op_start_rel_micros", &NodeExecStats::op_start_rel_micros)
          .Field(4, "op_end_rel_micros", &NodeExecStats::op_end_rel_micros)
          .Field(5, "all_end_rel_micros", &NodeExecStats::all_end_rel_micros)
          .Field(6, "memory", &NodeExecStats::memory)
          .Field(7, "output", &NodeExecStats::output)
          .Field(8, "timeline_label", &NodeExecStats::timeline_label)
          .Field(9, "scheduled_micros", &NodeExecStats::scheduled_micros)
          .Field(10, "thread_id", &NodeExecStats::thread_id)
          .Field(11, "referenced_tensor", &NodeExecStats::referenced_tensor)
          .Field(12, "memory_stats", &NodeExecStats::memory_stats)
          .Field(13, "all_start_nanos", &NodeExecStats::all_start_nanos)
          .Field(14, "op_start_rel_nanos", &NodeExecStats::op_start_rel_nanos)
          .Field(15, "op_end_rel_nanos", &NodeExecStats::op_end_rel_nanos)
          .Field(16, "all_end_rel_nanos", &NodeExecStats::all_end_rel_nanos)
          .Field(17, "scheduled_nanos", &NodeExecStats::scheduled_nanos)
          .Build();
  return info;
}

const MessageInfo& DeviceStepStats::Info() {
  static const MessageInfo& info =
      Table<DeviceStepStats>("DeviceStepStats")
          .Field(1, "device", &DeviceStepStats::device)
          .Field(2, "node_stats", &DeviceStepStats::node_stats)
          .Field(3, "thread_names", &DeviceStepStats::thread_names)
          .Build();
  return info;
}

const MessageInfo& StepStats::Info() {
  static const MessageInfo& info = Table<StepStats>("StepStats").Field(1, "dev_stats", &StepStats::dev_stats).Build();
  return info;
}

const MessageInfo& CostGraphInputInfo::Info() {
  static const MessageInfo& info =
      Table<CostGraphInputInfo>("CostGraphDef.Node.InputInfo")
          .Field(1, "preceding_node", &CostGraphInputInfo::preceding_node)
          .Field(2, "preceding_port", &CostGraphInputInfo::preceding_port)
          .Build();
  return info;
}

const MessageInfo& CostGraphOutputInfo::Info() {
  static const MessageInfo& info =
      Table<CostGraphOutputInfo>("CostGraphDef.Node.OutputInfo")
          .Field(1, "size", &CostGraphOutputInfo::size)
          .Field(2, "alias_input_port", &CostGraphOutputInfo::alias_input_port)
          .Field(3, "shape", &CostGraphOutputInfo::shape)
          .Enum(4, "dtype", &CostGraphOutputInfo::dtype, kDataTypeEnum)
          .Build();
  return info;
}

const MessageInfo& CostGraphNode::Info() {
  static const MessageInfo& info =
      Table<CostGraphNode>("CostGraphDef.Node")
          .Field(1, "name", &CostGraphNode::name)
          .Field(2, "device", &CostGraphNode::device)
          .Field(3, "id", &CostGraphNode::id)
          .Field(4, "input_info", &CostGraphNode::input_info)
          .Field(5, "output_info", &CostGraphNode::output_info)
          .Field(6, "temporary_memory_size", &CostGraphNode::temporary_memory_size)
          .Field(7, "is_final", &CostGraphNode::is_final)
          .Field(8, "control_input", &CostGraphNode::control_input)
          .Field(9, "compute_cost", &CostGraphNode::compute_cost)
          .Field(10, "host_temp_memory_size", &CostGraphNode::host_temp_memory_size)
          .Field(11, "device_temp_memory_size", &CostGraphNode::device_temp_memory_size)
          .Field(12, "persistent_memory_size", &CostGraphNode::persistent_memory_size)
          .Field(14, "compute_time", &CostGraphNode::compute_time)
          .Field(15, "memory_time", &CostGraphNode::memory_time)
          .Field(16, "device_persistent_memory_size", &CostGraphNode::device_persistent_memory_size)
          .Field(17, "inaccurate", &CostGraphNode::inaccurate)
          .Build();
  return info;
}

const MessageInfo& CostGraphDef::Info() {
  static const MessageInfo& info = Table<CostGraphDef>("CostGraphDef").Field(1, "node", &CostGraphDef::node).Build();
  return info;
}

const MessageInfo& RunMetadataFunctionGraphs::Info() {
  static const MessageInfo& info =
      Table<RunMetadataFunctionGraphs>("RunMetadata.FunctionGraphs")
          .Field(1, "partition_graphs", &RunMetadataFunctionGraphs::partition_graphs)
          .Field(2, "pre_optimization_graph", &RunMetadataFunctionGraphs::pre_optimization_graph)
          .Field(3, "post_optimization_graph", &RunMetadataFunctionGraphs::post_optimization_graph)
          .Build();
  return info;
}

const MessageInfo& RunMetadata::Info() {
  static const MessageInfo& info =
      Table<RunMetadata>("RunMetadata")
          .Field(1, "step_stats", &RunMetadata::step_stats)
          .Field(2, "cost_graph", &RunMetadata::cost_graph)
          .Field(3, "partition_graphs", &RunMetadata::partition_graphs)
          .Field(4, "function_graphs", &RunMetadata::function_graphs)
          .Build();
  return info;
}

}  // namespace millrace::wire
