// SPDX-License-Identifier: Apache-2.0
//
// Configuration of sessions and of single steps, and of a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/graph.h"
#include "wire/message.h"
#include "wire/step_stats.h"

namespace millrace::wire {

struct GPUOptions {
  double per_process_gpu_memory_fraction = 0;
  std::string allocator_type;
  int64_t deferred_deletion_bytes = 0;
  bool allow_growth = false;
  std::string visible_device_list;
  int32_t polling_active_delay_usecs = 0;
  int32_t polling_inactive_delay_msecs = 0;
  bool force_gpu_compatible = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct OptimizerOptions {
  enum Level : int32_t {
    kL1 = 0,
    kL0 = -1,
  };

  enum GlobalJitLevel : int32_t {
    kDefault = 0,
    kOff = -1,
    kOn1 = 1,
    kOn2 = 2,
  };

  bool do_common_subexpression_elimination = false;
  bool do_constant_folding = false;
  int32_t opt_level = 0;
  bool do_function_inlining = false;
  int32_t global_jit_level = 0;
  int64_t max_folded_constant_in_bytes = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GraphOptions {
  bool enable_recv_scheduling = false;
  Box<OptimizerOptions> optimizer_options;
  int64_t build_cost_model = 0;
  bool infer_shapes = false;
  bool place_pruned_graph = false;
  bool enable_bfloat16_sendrecv = false;
  int32_t timeline_step = 0;
  int64_t build_cost_model_after = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ThreadPoolOptionProto {
  int32_t num_threads = 0;
  std::string global_name;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct RPCOptions {
  bool use_rpc_for_inprocess_master = false;
  std::string compression_algorithm;
  int32_t compression_level = 0;
  bool cache_rpc_response = false;
  bool disable_session_connection_sharing = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct JobDef {
  std::string name;
  Map<int32_t, std::string> tasks;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ClusterDef {
  std::vector<JobDef> job;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ConfigProto {
  Map<std::string, int32_t> device_count;
  int32_t intra_op_parallelism_threads = 0;
  int32_t placement_period = 0;
  std::vector<std::string> device_filters;
  int32_t inter_op_parallelism_threads = 0;
  Box<GPUOptions> gpu_options;
  bool allow_soft_placement = false;
  bool log_device_placement = false;
  bool use_per_session_threads = false;
  Box<GraphOptions> graph_options;
  int64_t operation_timeout_in_ms = 0;
  std::vector<ThreadPoolOptionProto> session_inter_op_thread_pool;
  Box<RPCOptions> rpc_options;
  Box<ClusterDef> cluster_def;
  bool isolate_session_state = false;
  bool ordered = false;  // these are not TensorFlow's, see Determinism
  int64_t order_seed = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct DebugTensorWatch {
  std::string node_name;
  int32_t output_slot = 0;
  std::vector<std::string> debug_ops;
  std::vector<std::string> debug_urls;
  bool tolerate_debug_op_creation_failures = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct DebugOptions {
  std::vector<DebugTensorWatch> debug_tensor_watch_opts;
  int64_t global_step = 0;
  bool reset_disk_byte_usage = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct RunOptionsExperimental {
  int64_t collective_graph_key = 0;
  bool use_run_handler_pool = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct RunOptions {
  enum TraceLevel : int32_t {
    kNoTrace = 0,
    kSoftwareTrace = 1,
    kHardwareTrace = 2,
    kFullTrace = 3,
  };

  int32_t trace_level = 0;
  int64_t timeout_in_ms = 0;
  int32_t inter_op_thread_pool = 0;
  bool output_partition_graphs = false;
  Box<DebugOptions> debug_options;
  bool report_tensor_allocations_upon_oom = false;
  Box<RunOptionsExperimental> experimental;
  bool between_steps = false;  // not TensorFlow's, see StepOptions
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TensorConnection {
  std::string from_tensor;
  std::string to_tensor;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CallableOptions {
  std::vector<std::string> feed;
  std::vector<std::string> fetch;
  std::vector<std::string> target;
  Box<RunOptions> run_options;
  std::vector<TensorConnection> tensor_connection;
  Map<std::string, std::string> feed_devices;
  Map<std::string, std::string> fetch_devices;
  bool fetch_skip_sync = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct InterconnectLink {
  int32_t device_id = 0;
  std::string type;
  int32_t strength = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct LocalLinks {
  std::vector<InterconnectLink> link;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct DeviceLocality {
  int32_t bus_id = 0;
  int32_t numa_node = 0;
  Box<LocalLinks> links;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct DeviceAttributes {
  std::string name;
  std::string device_type;
  int64_t memory_limit = 0;
  Box<DeviceLocality> locality;
  uint64_t incarnation = 0;
  std::string physical_device_desc;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ServerDef {
  Box<ClusterDef> cluster;
  std::string job_name;
  int32_t task_index = 0;
  Box<ConfigProto> default_session_config;
  std::string protocol;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct NamedTensorProto {
  std::string name;
  Box<TensorProto> tensor;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
