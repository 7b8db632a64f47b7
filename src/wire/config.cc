// SPDX-License-Identifier: Apache-2.0
#include "wire/config.h"

#include "wire/enums.h"
#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& GPUOptions::Info() {
  static const MessageInfo& info =
      Table<GPUOptions>("GPUOptions")
          .Field(1, "per_process_gpu_memory_fraction", &GPUOptions::per_process_gpu_memory_fraction)
          .Field(2, "allocator_type", &GPUOptions::allocator_type)
          .Field(3, "deferred_deletion_bytes", &GPUOptions::deferred_deletion_bytes)
          .Field(4, "allow_growth", &GPUOptions::allow_growth)
          .Field(5, "visible_device_list", &GPUOptions::visible_device_list)
          .Field(6, "polling_active_delay_usecs", &GPUOptions::polling_active_delay_usecs)
          .Field(7, "polling_inactive_delay_msecs", &GPUOptions::polling_inactive_delay_msecs)
          .Field(8, "force_gpu_compatible", &GPUOptions::force_gpu_compatible)
          .Build();
  return info;
}

const MessageInfo& OptimizerOptions::Info() {
  static const MessageInfo& info =
      Table<OptimizerOptions>("OptimizerOptions")
          .Field(1, "do_common_subexpression_elimination", &OptimizerOptions::do_common_subexpression_elimination)
          .Field(2, "do_constant_folding", &OptimizerOptions::do_constant_folding)
          .Enum(3, "opt_level", &OptimizerOptions::opt_level, kOptimizerLevelEnum)
          .Field(4, "do_function_inlining", &OptimizerOptions::do_function_inlining)
          .Enum(5, "global_jit_level", &OptimizerOptions::global_jit_level, kGlobalJitLevelEnum)
          .Field(6, "max_folded_constant_in_bytes", &OptimizerOptions::max_folded_constant_in_bytes)
          .Build();
  return info;
}

const MessageInfo& GraphOptions::Info() {
  static const MessageInfo& info =
      Table<GraphOptions>("GraphOptions")
          .Field(2, "enable_recv_scheduling", &GraphOptions::enable_recv_scheduling)
          .Field(3, "optimizer_options", &GraphOptions::optimizer_options)
          .Field(4, "build_cost_model", &GraphOptions::build_cost_model)
          .Field(5, "infer_shapes", &GraphOptions::infer_shapes)
          .Field(6, "place_pruned_graph", &GraphOptions::place_pruned_graph)
          .Field(7, "enable_bfloat16_sendrecv", &GraphOptions::enable_bfloat16_sendrecv)
          .Field(8, "timeline_step", &GraphOptions::timeline_step)
          .Field(9, "build_cost_model_after", &GraphOptions::build_cost_model_after)
          .Build();
  return info;
}

const MessageInfo& ThreadPoolOptionProto::Info() {
  static const MessageInfo& info =
      Table<ThreadPoolOptionProto>("ThreadPoolOptionProto")
          .Field(1, "num_threads", &ThreadPoolOptionProto::num_threads)
          .Field(2, "global_name", &ThreadPoolOptionProto::global_name)
          .Build();
  return info;
}

const MessageInfo& RPCOptions::Info() {
  static const MessageInfo& info =
      Table<RPCOptions>("RPCOptions")
          .Field(1, "use_rpc_for_inprocess_master", &RPCOptions::use_rpc_for_inprocess_master)
          .Field(2, "compression_algorithm", &RPCOptions::compression_algorithm)
          .Field(3, "compression_level", &RPCOptions::compression_level)
          .Field(4, "cache_rpc_response", &RPCOptions::cache_rpc_response)
          .Field(5, "disable_session_connection_sharing", &RPCOptions::disable_session_connection_sharing)
          .Build();
  return info;
}

const MessageInfo& JobDef::Info() {
  static const MessageInfo& info =
      Table<JobDef>("JobDef").Field(1, "name", &JobDef::name).Field(2, "tasks", &JobDef::tasks).Build();
  return info;
}

const MessageInfo& ClusterDef::Info() {
  static const MessageInfo& info = Table<ClusterDef>("ClusterDef").Field(1, "job", &ClusterDef::job).Build();
  return info;
}

const MessageInfo& ConfigProto::Info() {
  static const MessageInfo& info =
      Table<ConfigProto>("ConfigProto")
          .Field(1, "device_count", &ConfigProto::device_count)
          .Field(2, "intra_op_parallelism_threads", &ConfigProto::intra_op_parallelism_threads)
          .Field(3, "placement_period", &ConfigProto::placement_period)
          .Field(4, "device_filters", &ConfigProto::device_filters)
          .Field(5, "inter_op_parallelism_threads", &ConfigProto::inter_op_parallelism_threads)
          .Field(6, "gpu_options", &ConfigProto::gpu_options)
          .Field(7, "allow_soft_placement", &ConfigProto::allow_soft_placement)
          .Field(8, "log_device_placement", &ConfigProto::log_device_placement)
          .Field(9, "use_per_session_threads", &ConfigProto::use_per_session_threads)
          .Field(10, "graph_options", &ConfigProto::graph_options)
          .Field(11, "operation_timeout_in_ms", &ConfigProto::operation_timeout_in_ms)
          .Field(12, "session_inter_op_thread_pool", &ConfigProto::session_inter_op_thread_pool)
          .Field(13, "rpc_options", &ConfigProto::rpc_options)
          .Field(14, "cluster_def", &ConfigProto::cluster_def)
          .Field(15, "isolate_session_state", &ConfigProto::isolate_session_state)
          .Field(1000, "ordered", &ConfigProto::ordered)
          .Field(1001, "order_seed", &ConfigProto::order_seed)
          .Build();
  return info;
}

const MessageInfo& DebugTensorWatch::Info() {
  static const MessageInfo& info =
      Table<DebugTensorWatch>("DebugTensorWatch")
          .Field(1, "node_name", &DebugTensorWatch::node_name)
          .Field(2, "output_slot", &DebugTensorWatch::output_slot)
          .Field(3, "debug_ops", &DebugTensorWatch::debug_ops)
          .Field(4, "debug_urls", &DebugTensorWatch::debug_urls)
          .Field(5, "tolerate_debug_op_creation_failures", &DebugTensorWatch::tolerate_debug_op_creation_failures)
          .Build();
  return info;
}

const MessageInfo& DebugOptions::Info() {
  static const MessageInfo& info =
      Table<DebugOptions>("DebugOptions")
          .Field(4, "debug_tensor_watch_opts", &DebugOptions::debug_tensor_watch_opts)
          .Field(10, "global_step", &DebugOptions::global_step)
          .Field(11, "reset_disk_byte_usage", &DebugOptions::reset_disk_byte_usage)
          .Build();
  return info;
}

const MessageInfo& RunOptionsExperimental::Info() {
  static const MessageInfo& info =
      Table<RunOptionsExperimental>("RunOptions.Experimental")
          .Field(1, "collective_graph_key", &RunOptionsExperimental::collective_graph_key)
          .Field(2, "use_run_handler_pool", &RunOptionsExperimental::use_run_handler_pool)
          .Build();
  return info;
}

const MessageInfo& RunOptions::Info() {
  static const MessageInfo& info =
      Table<RunOptions>("RunOptions")
          .Enum(1, "trace_level", &RunOptions::trace_level, kTraceLevelEnum)
          .Field(2, "timeout_in_ms", &RunOptions::timeout_in_ms)
          .Field(3, "inter_op_thread_pool", &RunOptions::inter_op_thread_pool)
          .Field(5, "output_partition_graphs", &RunOptions::output_partition_graphs)
          .Field(6, "debug_options", &RunOptions::debug_options)
          .Field(7, "report_tensor_allocations_upon_oom", &RunOptions::report_tensor_allocations_upon_oom)
          .Field(8, "experimental", &RunOptions::experimental)
          .Field(1000, "between_steps", &RunOptions::between_steps)
          .Build();
  return info;
}

const MessageInfo& TensorConnection::Info() {
  static const MessageInfo& info =
      Table<TensorConnection>("TensorConnection")
          .Field(1, "from_tensor", &TensorConnection::from_tensor)
          .Field(2, "to_tensor", &TensorConnection::to_tensor)
          .Build();
  return info;
}

const MessageInfo& CallableOptions::Info() {
  static const MessageInfo& info =
      Table<CallableOptions>("CallableOptions")
          .Field(1, "feed", &CallableOptions::feed)
          .Field(2, "fetch", &CallableOptions::fetch)
          .Field(3, "target", &CallableOptions::target)
          .Field(4, "run_options", &CallableOptions::run_options)
          .Field(5, "tensor_connection", &CallableOptions::tensor_connection)
          .Field(6, "feed_devices", &CallableOptions::feed_devices)
          .Field(7, "fetch_devices", &CallableOptions::fetch_devices)
          .Field(8, "fetch_skip_sync", &CallableOptions::fetch_skip_sync)
          .Build();
  return info;
}

const MessageInfo& InterconnectLink::Info() {
  static const MessageInfo& info =
      Table<InterconnectLink>("InterconnectLink")
          .Field(1, "device_id", &InterconnectLink::device_id)
          .Field(2, "type", &InterconnectLink::type)
          .Field(3, "strength", &InterconnectLink::strength)
          .Build();
  return info;
}

const MessageInfo& LocalLinks::Info() {
  static const MessageInfo& info = Table<LocalLinks>("LocalLinks").Field(1, "link", &LocalLinks::link).Build();
  return info;
}

const MessageInfo& DeviceLocality::Info() {
  static const MessageInfo& info =
      Table<DeviceLocality>("DeviceLocality")
          .Field(1, "bus_id", &DeviceLocality::bus_id)
          .Field(2, "numa_node", &DeviceLocality::numa_node)
          .Field(3, "links", &DeviceLocality::links)
          .Build();
  return info;
}

const MessageInfo& DeviceAttributes::Info() {
  static const MessageInfo& info =
      Table<DeviceAttributes>("DeviceAttributes")
          .Field(1, "name", &DeviceAttributes::name)
          .Field(2, "device_type", &DeviceAttributes::device_type)
          .Field(4, "memory_limit", &DeviceAttributes::memory_limit)
          .Field(5, "locality", &DeviceAttributes::locality)
          .Fixed(6, "incarnation", &DeviceAttributes::incarnation)
          .Field(7, "physical_device_desc", &DeviceAttributes::physical_device_desc)
          .Build();
  return info;
}

const MessageInfo& ServerDef::Info() {
  static const MessageInfo& info =
      Table<ServerDef>("ServerDef")
          .Field(1, "cluster", &ServerDef::cluster)
          .Field(2, "job_name", &ServerDef::job_name)
          .Field(3, "task_index", &ServerDef::task_index)
          .Field(4, "default_session_config", &ServerDef::default_session_config)
          .Field(5, "protocol", &ServerDef::protocol)
          .Build();
  return info;
}

const MessageInfo& NamedTensorProto::Info() {
  static const MessageInfo& info =
      Table<NamedTensorProto>("NamedTensorProto")
          .Field(1, "name", &NamedTensorProto::name)
          .Field(2, "tensor", &NamedTensorProto::tensor)
          .Build();
  return info;
}

}  // namespace millrace::wire
