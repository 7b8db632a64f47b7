# SPDX-License-Identifier: Apache-2.0
"""The messages of TensorFlow's files and options: field numbers, names and types."""

from __future__ import annotations

from typing import Any, Dict, Optional, Type

from millrace.protos import descriptors, enums, message
from millrace.protos.message import Message

_registry: Dict[str, Type[Message]] = descriptors.registry

_TABLES = """
TensorShapeProto: 2 dim *TensorShapeProto.Dim; 3 unknown_rank bool
TensorShapeProto.Dim: 1 size int64; 2 name string
CppShapeInferenceResult: 1 shape TensorShapeProto; 4 handle_data CppShapeInferenceResult.HandleData
CppShapeInferenceResult.HandleData: 1 is_set bool; 2 shape_and_type *CppShapeInferenceResult.HandleShapeAndType
CppShapeInferenceResult.HandleShapeAndType: 1 shape TensorShapeProto; 2 dtype enum
CppShapeInferenceInputsNeeded: 1 input_tensors_needed *int32; 2 input_tensors_as_shapes_needed *int32
TensorProto: 1 dtype enum; 2 tensor_shape TensorShapeProto; 3 version_number int32; 4 tensor_content bytes; 13 half_val *int32; 5 float_val *float; 6 double_val *double; 7 int_val *int32; 8 string_val *bytes; 9 scomplex_val *float; 10 int64_val *int64; 11 bool_val *bool; 12 dcomplex_val *double; 15 variant_val *VariantTensorDataProto; 16 uint32_val *uint32; 17 uint64_val *uint64; 14 resource_handle_val *ResourceHandleProto
ResourceHandleProto: 1 device string; 2 container string; 3 name string; 4 hash_code uint64; 5 maybe_type_name string; 6 dtypes_and_shapes *ResourceHandleProto.DtypeAndShape
ResourceHandleProto.DtypeAndShape: 1 dtype enum; 2 shape TensorShapeProto
VariantTensorDataProto: 1 type_name string; 2 metadata bytes; 3 tensors *TensorProto
NameAttrList: 1 name string; 2 attr map<string,AttrValue>
AttrValue: 2 s bytes@value; 3 i int64@value; 4 f float@value; 5 b bool@value; 6 type enum@value; 7 shape TensorShapeProto@value; 8 tensor TensorProto@value; 1 list AttrValue.ListValue@value; 10 func NameAttrList@value; 9 placeholder string@value
AttrValue.ListValue: 2 s *bytes; 3 i *int64; 4 f *float; 5 b *bool; 6 type *enum; 7 shape *TensorShapeProto; 8 tensor *TensorProto; 9 func *NameAttrList
NodeDef: 1 name string; 2 op string; 3 input *string; 4 device string; 5 attr map<string,AttrValue>; 6 experimental_debug_info NodeDef.ExperimentalDebugInfo
NodeDef.ExperimentalDebugInfo: 1 original_node_names *string; 2 original_func_names *string
VersionDef: 1 producer int32; 2 min_consumer int32; 3 bad_consumers *int32
OpDef: 1 name string; 2 input_arg *OpDef.ArgDef; 3 output_arg *OpDef.ArgDef; 4 attr *OpDef.AttrDef; 8 deprecation OpDeprecation; 5 summary string; 6 description string; 18 is_commutative bool; 16 is_aggregate bool; 17 is_stateful bool; 19 allows_uninitialized_input bool; 20 control_output *string
OpDef.ArgDef: 1 name string; 2 description string; 3 type enum; 4 type_attr string; 5 number_attr string; 6 type_list_attr string; 16 is_ref bool
OpDef.AttrDef: 1 name string; 2 type string; 3 default_value AttrValue; 4 description string; 5 has_minimum bool; 6 minimum int64; 7 allowed_values AttrValue
OpDeprecation: 1 version int32; 2 explanation string
OpList: 1 op *OpDef
ApiDef: 1 graph_op_name string; 12 deprecation_message string; 13 deprecation_version int32; 2 visibility enum; 3 endpoint *ApiDef.Endpoint; 4 in_arg *ApiDef.Arg; 5 out_arg *ApiDef.Arg; 11 arg_order *string; 6 attr *ApiDef.Attr; 7 summary string; 8 description string; 9 description_prefix string; 10 description_suffix string
ApiDef.Endpoint: 1 name string; 3 deprecated bool; 4 deprecation_version int32
ApiDef.Arg: 1 name string; 2 rename_to string; 3 description string
ApiDef.Attr: 1 name string; 2 rename_to string; 3 default_value AttrValue; 4 description string
ApiDefs: 1 op *ApiDef
KernelDef: 1 op string; 2 device_type string; 3 constraint *KernelDef.AttrConstraint; 4 host_memory_arg *string; 5 label string; 6 priority int32
KernelDef.AttrConstraint: 1 name string; 2 allowed_values AttrValue
KernelList: 1 kernel *KernelDef
FunctionDef: 1 signature OpDef; 5 attr map<string,AttrValue>; 7 arg_attr map<uint32,FunctionDef.ArgAttrs>; 3 node_def *NodeDef; 4 ret map<string,string>; 6 control_ret map<string,string>
FunctionDef.ArgAttrs: 1 attr map<string,AttrValue>
GradientDef: 1 function_name string; 2 gradient_func string
FunctionDefLibrary: 1 function *FunctionDef; 2 gradient *GradientDef
GraphDebugInfo: 1 files *string; 2 traces map<string,GraphDebugInfo.StackTrace>
GraphDebugInfo.StackTrace: 1 file_line_cols *GraphDebugInfo.FileLineCol
GraphDebugInfo.FileLineCol: 1 file_index int32; 2 line int32; 3 col int32; 4 func string; 5 code string
GraphDef: 1 node *NodeDef; 4 versions VersionDef; 3 version int32; 2 library ~FunctionDefLibrary
ThreadPoolOptionProto: 1 num_threads int32; 2 global_name string
GPUOptions: 1 per_process_gpu_memory_fraction double; 4 allow_growth bool; 2 allocator_type string; 3 deferred_deletion_bytes int64; 5 visible_device_list string; 6 polling_active_delay_usecs int32; 7 polling_inactive_delay_msecs int32; 8 force_gpu_compatible bool; 9 experimental GPUOptions.Experimental
GPUOptions.Experimental: 2 use_unified_memory bool; 1 virtual_devices *GPUOptions.Experimental.VirtualDevices; 3 num_dev_to_dev_copy_streams int32; 4 collective_ring_order string; 5 timestamped_allocator bool; 7 kernel_tracker_max_interval int32; 8 kernel_tracker_max_bytes int32; 9 kernel_tracker_max_pending int32
GPUOptions.Experimental.VirtualDevices: 1 memory_limit_mb *float
OptimizerOptions: 1 do_common_subexpression_elimination bool; 2 do_constant_folding bool; 6 max_folded_constant_in_bytes int64; 4 do_function_inlining bool; 3 opt_level enum; 5 global_jit_level enum
RewriterConfig: 1 layout_optimizer enum; 3 constant_folding enum; 4 memory_optimization enum; 6 memory_optimizer_target_node_name_scope string; 7 arithmetic_optimization enum; 8 dependency_optimization enum; 9 loop_optimization enum; 10 function_optimization enum; 11 debug_stripper enum; 12 meta_optimizer_iterations enum; 13 shape_optimization enum; 14 remapping enum; 15 scoped_allocator_optimization enum; 18 pin_to_host_optimization enum; 2 disable_model_pruning bool; 17 min_graph_nodes int32; 19 disable_meta_optimizer bool; 20 meta_optimizer_timeout_ms int64; 21 fail_on_optimizer_errors bool; 22 implementation_selector enum; 23 auto_mixed_precision enum; 100 optimizers *string; 5 auto_parallel AutoParallelOptions; 16 scoped_allocator_opts ScopedAllocatorOptions; 200 custom_optimizers *RewriterConfig.CustomGraphOptimizer; 300 inter_optimizer_verifier_config VerifierConfig; 301 post_optimization_verifier_config VerifierConfig
RewriterConfig.CustomGraphOptimizer: 1 name string; 2 parameter_map map<string,AttrValue>
AutoParallelOptions: 1 enable bool; 2 num_replicas int32
ScopedAllocatorOptions: 1 enable_op *string
VerifierConfig: 1 verification_timeout_in_ms int64; 2 structure_verifier enum
GraphOptions: 2 enable_recv_scheduling bool; 3 optimizer_options OptimizerOptions; 4 build_cost_model int64; 9 build_cost_model_after int64; 5 infer_shapes bool; 6 place_pruned_graph bool; 7 enable_bfloat16_sendrecv bool; 8 timeline_step int32; 10 rewrite_options RewriterConfig
RPCOptions: 1 use_rpc_for_inprocess_master bool; 2 compression_algorithm string; 3 compression_level int32; 4 cache_rpc_response bool; 5 disable_session_connection_sharing bool
HParamDef: 1 hparam map<string,HParamDef.HParamType>
HParamDef.HParamType: 1 int64_value int64@kind; 2 float_value float@kind; 3 bytes_value bytes@kind; 7 bool_value bool@kind; 4 int64_list HParamDef.Int64List@kind; 5 float_list HParamDef.FloatList@kind; 6 bytes_list HParamDef.BytesList@kind; 8 bool_list HParamDef.BoolList@kind
HParamDef.BytesList: 1 value *bytes
HParamDef.FloatList: 1 value *float
HParamDef.Int64List: 1 value *int64
HParamDef.BoolList: 1 value *bool
ProjectorConfig: 1 model_checkpoint_path string; 2 embeddings *EmbeddingInfo; 3 model_checkpoint_dir string
EmbeddingInfo: 1 tensor_name string; 2 metadata_path string; 3 bookmarks_path string; 4 tensor_shape *uint32; 5 sprite SpriteMetadata; 6 tensor_path string
SpriteMetadata: 1 image_path string; 2 single_image_dim *uint32
TraceInfo: 1 ops *TraceInfo.OpInfo; 2 files *TraceInfo.FileInfo
TraceInfo.OpInfo: 1 name string; 2 op_type string; 3 device string; 4 traceback *TraceInfo.LineTrace; 5 inputs *TraceInfo.TensorInfo; 6 outputs *TraceInfo.TensorInfo
TraceInfo.LineTrace: 1 file_path string; 2 line_number uint32
TraceInfo.TensorInfo: 1 shape *int32; 2 dtype string; 3 num_bytes_per_elem uint32; 4 consumers *string
TraceInfo.FileInfo: 1 file_path string; 2 source_code string; 3 multiline_statements map<uint32,uint32>
JobDef: 1 name string; 2 tasks map<int32,string>
ClusterDef: 1 job *JobDef
ServerDef: 1 cluster ClusterDef; 2 job_name string; 3 task_index int32; 4 default_session_config ConfigProto; 5 protocol string
ConfigProto: 1 device_count map<string,int32>; 2 intra_op_parallelism_threads int32; 5 inter_op_parallelism_threads int32; 9 use_per_session_threads bool; 12 session_inter_op_thread_pool *ThreadPoolOptionProto; 3 placement_period int32; 4 device_filters *string; 6 gpu_options GPUOptions; 7 allow_soft_placement bool; 8 log_device_placement bool; 10 graph_options GraphOptions; 11 operation_timeout_in_ms int64; 13 rpc_options RPCOptions; 14 cluster_def ClusterDef; 15 isolate_session_state bool; 16 experimental ConfigProto.Experimental; 1000 ordered bool; 1001 order_seed int64
ConfigProto.Experimental: 1 collective_group_leader string; 3 executor_type string; 4 recv_buf_max_chunk int32; 5 use_numa_affinity bool; 6 collective_deterministic_sequential_execution bool; 7 collective_nccl bool; 8 share_session_state_in_clusterspec_propagation bool; 9 disable_thread_spinning bool; 10 share_cluster_devices_in_session bool; 11 session_metadata SessionMetadata; 12 optimize_for_static_graph bool
SessionMetadata: 1 name string; 2 version int64
DebugTensorWatch: 1 node_name string; 2 output_slot int32; 3 debug_ops *string; 4 debug_urls *string; 5 tolerate_debug_op_creation_failures bool
DebugOptions: 4 debug_tensor_watch_opts *DebugTensorWatch; 10 global_step int64; 11 reset_disk_byte_usage bool
RunOptions: 1 trace_level enum; 2 timeout_in_ms int64; 3 inter_op_thread_pool int32; 5 output_partition_graphs bool; 6 debug_options DebugOptions; 7 report_tensor_allocations_upon_oom bool; 8 experimental RunOptions.Experimental; 1000 between_steps bool
RunOptions.Experimental: 1 collective_graph_key int64; 2 use_run_handler_pool bool
AllocationDescription: 1 requested_bytes int64; 2 allocated_bytes int64; 3 allocator_name string; 4 allocation_id int64; 5 has_single_reference bool; 6 ptr uint64
TensorDescription: 1 dtype enum; 2 shape TensorShapeProto; 4 allocation_description AllocationDescription
AllocationRecord: 1 alloc_micros int64; 2 alloc_bytes int64
AllocatorMemoryUsed: 1 allocator_name string; 2 total_bytes int64; 3 peak_bytes int64; 4 live_bytes int64; 5 allocator_bytes_in_use int64; 6 allocation_records *AllocationRecord
MemoryStats: 1 temp_memory_size int64; 2 device_temp_memory_size int64; 3 persistent_memory_size int64; 4 device_persistent_memory_size int64; 5 persistent_tensor_alloc_ids *int64; 6 device_persistent_tensor_alloc_ids *int64
NodeOutput: 1 slot int32; 3 tensor_description TensorDescription
NodeExecStats: 1 node_name string; 2 all_start_micros int64; 3 op_start_rel_micros int64; 4 op_end_rel_micros int64; 5 all_end_rel_micros int64; 6 memory *AllocatorMemoryUsed; 7 output *NodeOutput; 8 timeline_label string; 9 scheduled_micros int64; 10 thread_id uint32; 11 referenced_tensor *AllocationDescription; 12 memory_stats MemoryStats; 13 all_start_nanos int64; 14 op_start_rel_nanos int64; 15 op_end_rel_nanos int64; 16 all_end_rel_nanos int64; 17 scheduled_nanos int64
DeviceStepStats: 1 device string; 2 node_stats *NodeExecStats; 3 thread_names map<uint32,string>
StepStats: 1 dev_stats *DeviceStepStats
CallableOptions: 1 feed *string; 2 fetch *string; 3 target *string; 4 run_options RunOptions; 5 tensor_connection *TensorConnection; 6 feed_devices map<string,string>; 7 fetch_devices map<string,string>; 8 fetch_skip_sync bool
TensorConnection: 1 from_tensor string; 2 to_tensor string
RunMetadata: 1 step_stats StepStats; 3 partition_graphs *GraphDef; 2 cost_graph CostGraphDef; 4 function_graphs *RunMetadata.FunctionGraphs
RunMetadata.FunctionGraphs: 1 partition_graphs *GraphDef; 2 pre_optimization_graph GraphDef; 3 post_optimization_graph GraphDef
CostGraphDef: 1 node *CostGraphDef.Node
CostGraphDef.Node: 1 name string; 2 device string; 3 id int32; 4 input_info *CostGraphDef.Node.InputInfo; 5 output_info *CostGraphDef.Node.OutputInfo; 6 temporary_memory_size int64; 12 persistent_memory_size int64; 10 host_temp_memory_size int64; 11 device_temp_memory_size int64; 16 device_persistent_memory_size int64; 9 compute_cost int64; 14 compute_time int64; 15 memory_time int64; 7 is_final bool; 8 control_input *int32; 17 inaccurate bool
CostGraphDef.Node.InputInfo: 1 preceding_node int32; 2 preceding_port int32
CostGraphDef.Node.OutputInfo: 1 size int64; 2 alias_input_port int64; 3 shape TensorShapeProto; 4 dtype enum
BytesList: 1 value *bytes
FloatList: 1 value *float
Int64List: 1 value *int64
Feature: 1 bytes_list BytesList@kind; 2 float_list FloatList@kind; 3 int64_list Int64List@kind
Features: 1 feature map<string,Feature>
FeatureList: 1 feature *Feature
FeatureLists: 1 feature_list map<string,FeatureList>
Example: 1 features Features
SequenceExample: 1 context Features; 2 feature_lists FeatureLists
HistogramProto: 1 min double; 2 max double; 3 num double; 4 sum double; 5 sum_squares double; 6 bucket_limit *double; 7 bucket *double
SummaryMetadata: 1 plugin_data SummaryMetadata.PluginData; 2 display_name string; 3 summary_description string
SummaryMetadata.PluginData: 1 plugin_name string; 2 content bytes
Summary: 1 value *Summary.Value
Summary.Image: 1 height int32; 2 width int32; 3 colorspace int32; 4 encoded_image_string bytes
Summary.Audio: 1 sample_rate float; 2 num_channels int64; 3 length_frames int64; 4 encoded_audio_string bytes; 5 content_type string
Summary.Value: 7 node_name string; 1 tag string; 9 metadata SummaryMetadata; 2 simple_value float@value; 3 obsolete_old_style_histogram bytes@value; 4 image Summary.Image@value; 5 histo HistogramProto@value; 6 audio Summary.Audio@value; 8 tensor TensorProto@value
LogMessage: 1 level enum; 2 message string
SessionLog: 1 status enum; 2 checkpoint_path string; 3 msg string
GraphNodeProto: 1 name string; 15 tensor_value TFProfTensorProto; 21 run_count int64; 2 exec_micros int64; 17 accelerator_exec_micros int64; 18 cpu_exec_micros int64; 3 requested_bytes int64; 24 peak_bytes int64; 25 residual_bytes int64; 26 output_bytes int64; 4 parameters int64; 13 float_ops int64; 10 devices *string; 23 total_definition_count int64; 22 total_run_count int64; 6 total_exec_micros int64; 19 total_accelerator_exec_micros int64; 20 total_cpu_exec_micros int64; 7 total_requested_bytes int64; 27 total_peak_bytes int64; 28 total_residual_bytes int64; 29 total_output_bytes int64; 8 total_parameters int64; 14 total_float_ops int64; 11 shapes *TensorShapeProto; 16 input_shapes map<int32,TensorShapeProto>; 12 children *GraphNodeProto
MultiGraphNodeProto: 1 name string; 2 exec_micros int64; 12 accelerator_exec_micros int64; 13 cpu_exec_micros int64; 3 requested_bytes int64; 16 peak_bytes int64; 17 residual_bytes int64; 18 output_bytes int64; 4 parameters int64; 5 float_ops int64; 6 total_exec_micros int64; 14 total_accelerator_exec_micros int64; 15 total_cpu_exec_micros int64; 7 total_requested_bytes int64; 19 total_peak_bytes int64; 20 total_residual_bytes int64; 21 total_output_bytes int64; 8 total_parameters int64; 9 total_float_ops int64; 10 graph_nodes *GraphNodeProto; 11 children *MultiGraphNodeProto
TFProfTensorProto: 1 dtype enum; 2 value_double *double; 3 value_int64 *int64; 4 value_str *string
AdviceProto: 1 checkers map<string,AdviceProto.Checker>
AdviceProto.Checker: 2 reports *string
OpLogProto: 1 log_entries *OpLogEntry; 2 id_to_string map<int64,string>
OpLogEntry: 1 name string; 2 float_ops int64; 3 types *string; 4 code_def CodeDef
CodeDef: 1 traces *CodeDef.Trace
CodeDef.Trace: 6 file_id int64; 2 lineno int32; 7 function_id int64; 8 line_id int64; 5 func_start_line int32; 1 file string; 3 function string; 4 line string
SummaryDescription: 1 type_hint string
TaggedRunMetadata: 1 tag string; 2 run_metadata bytes
Event: 1 wall_time double; 2 step int64; 3 file_version string@what; 4 graph_def bytes@what; 5 summary Summary@what; 6 log_message LogMessage@what; 7 session_log SessionLog@what; 8 tagged_run_metadata TaggedRunMetadata@what; 9 meta_graph_def bytes@what
SaverDef: 1 filename_tensor_name string; 2 save_tensor_name string; 3 restore_op_name string; 4 max_to_keep int32; 5 sharded bool; 6 keep_checkpoint_every_n_hours float; 7 version enum
CheckpointState: 1 model_checkpoint_path string; 2 all_model_checkpoint_paths *string; 3 all_model_checkpoint_timestamps *double; 4 last_preserved_timestamp double
TrackableObjectGraph: 1 nodes *TrackableObjectGraph.TrackableObject
TrackableObjectGraph.TrackableObject: 1 children *TrackableObjectGraph.TrackableObject.ObjectReference; 2 attributes *TrackableObjectGraph.TrackableObject.SerializedTensor; 3 slot_variables *TrackableObjectGraph.TrackableObject.SlotVariableReference
TrackableObjectGraph.TrackableObject.ObjectReference: 1 node_id int32; 2 local_name string
TrackableObjectGraph.TrackableObject.SerializedTensor: 1 name string; 2 full_name string; 3 checkpoint_key string; 4 optional_restore bool
TrackableObjectGraph.TrackableObject.SlotVariableReference: 1 original_variable_node_id int32; 2 slot_name string; 3 slot_variable_node_id int32
SaveSliceInfoDef: 1 full_name string; 2 full_shape *int64; 3 var_offset *int64; 4 var_shape *int64
VariableDef: 1 variable_name string; 6 initial_value_name string; 2 initializer_name string; 3 snapshot_name string; 4 save_slice_info_def SaveSliceInfoDef; 5 is_resource bool; 7 trainable bool; 8 synchronization enum; 9 aggregation enum
QueueRunnerDef: 1 queue_name string; 2 enqueue_op_name *string; 3 close_op_name string; 4 cancel_op_name string; 5 queue_closed_exception_types *enum
ValuesDef: 1 values *string; 2 external_values map<string,string>
CondContextDef: 1 context_name string; 2 pred_name string; 3 pivot_name string; 4 branch int32; 5 values_def ValuesDef; 6 nested_contexts *ControlFlowContextDef
WhileContextDef: 1 context_name string; 2 parallel_iterations int32; 3 back_prop bool; 4 swap_memory bool; 5 pivot_name string; 6 pivot_for_pred_name string; 7 pivot_for_body_name string; 8 loop_exit_names *string; 9 values_def ValuesDef; 10 loop_enter_names *string; 11 maximum_iterations_name string; 12 nested_contexts *ControlFlowContextDef
ControlFlowContextDef: 1 cond_ctxt CondContextDef@ctxt; 2 while_ctxt WhileContextDef@ctxt
TensorInfo: 1 name string@encoding; 2 dtype enum; 3 tensor_shape TensorShapeProto; 4 coo_sparse TensorInfo.CooSparse@encoding; 5 composite_tensor TensorInfo.CompositeTensor@encoding
TensorInfo.CompositeTensor: 1 type_spec TypeSpecProto; 2 components *TensorInfo
StructuredValue: 1 none_value NoneValue@kind; 11 float64_value double@kind; 12 int64_value sint64@kind; 13 string_value string@kind; 14 bool_value bool@kind; 31 tensor_shape_value TensorShapeProto@kind; 32 tensor_dtype_value enum@kind; 33 tensor_spec_value TensorSpecProto@kind; 34 type_spec_value TypeSpecProto@kind; 51 list_value ListValue@kind; 52 tuple_value TupleValue@kind; 53 dict_value DictValue@kind; 54 named_tuple_value NamedTupleValue@kind
NoneValue:
ListValue: 1 values *StructuredValue
TupleValue: 1 values *StructuredValue
DictValue: 1 fields map<string,StructuredValue>
PairValue: 1 key string; 2 value StructuredValue
NamedTupleValue: 1 name string; 2 values *PairValue
TensorSpecProto: 1 name string; 2 shape TensorShapeProto; 3 dtype enum
TypeSpecProto: 1 type_spec_class enum; 2 type_state StructuredValue; 3 type_spec_class_name string
TensorInfo.CooSparse: 1 values_tensor_name string; 2 indices_tensor_name string; 3 dense_shape_tensor_name string
SignatureDef: 1 inputs map<string,TensorInfo>; 2 outputs map<string,TensorInfo>; 3 method_name string
CollectionDef: 1 node_list CollectionDef.NodeList@kind; 2 bytes_list CollectionDef.BytesList@kind; 3 int64_list CollectionDef.Int64List@kind; 4 float_list CollectionDef.FloatList@kind; 5 any_list CollectionDef.AnyList@kind
CollectionDef.NodeList: 1 value *string
CollectionDef.BytesList: 1 value *bytes
CollectionDef.Int64List: 1 value *int64
CollectionDef.FloatList: 1 value *float
CollectionDef.AnyList: 1 value *Any
Any: 1 type_url string; 2 value bytes
AssetFileDef: 1 tensor_info TensorInfo; 2 filename string
MetaGraphDef: 1 meta_info_def MetaGraphDef.MetaInfoDef; 2 graph_def GraphDef; 3 saver_def SaverDef; 4 collection_def map<string,CollectionDef>; 5 signature_def map<string,SignatureDef>; 6 asset_file_def *AssetFileDef; 7 object_graph_def SavedObjectGraph
SavedObjectGraph: 1 nodes *SavedObject; 2 concrete_functions map<string,SavedConcreteFunction>
SavedObject: 1 children *TrackableObjectGraph.TrackableObject.ObjectReference; 3 slot_variables *TrackableObjectGraph.TrackableObject.SlotVariableReference; 4 user_object SavedUserObject@kind; 5 asset SavedAsset@kind; 6 function SavedFunction@kind; 7 variable SavedVariable@kind; 8 bare_concrete_function SavedBareConcreteFunction@kind; 9 constant SavedConstant@kind; 10 resource SavedResource@kind
SavedUserObject: 1 identifier string; 2 version VersionDef; 3 metadata string
SavedAsset: 1 asset_file_def_index int32
SavedFunction: 1 concrete_functions *string; 2 function_spec FunctionSpec
SavedConcreteFunction: 2 bound_inputs *int32; 3 canonicalized_input_signature StructuredValue; 4 output_signature StructuredValue
SavedBareConcreteFunction: 1 concrete_function_name string; 2 argument_keywords *string; 3 allowed_positional_arguments int64
SavedConstant: 1 operation string
SavedVariable: 1 dtype enum; 2 shape TensorShapeProto; 3 trainable bool; 4 synchronization enum; 5 aggregation enum; 6 name string
FunctionSpec: 1 fullargspec StructuredValue; 2 is_method bool; 5 input_signature StructuredValue
SavedResource: 1 device string
MetaGraphDef.MetaInfoDef: 1 meta_graph_version string; 2 stripped_op_list OpList; 3 any_info Any; 4 tags *string; 5 tensorflow_version string; 6 tensorflow_git_version string; 7 stripped_default_attrs bool
serving.TensorBinding: 1 tensor_name string
serving.AssetFile: 1 tensor_binding serving.TensorBinding; 2 filename string
serving.RegressionSignature: 1 input serving.TensorBinding; 2 output serving.TensorBinding
serving.ClassificationSignature: 1 input serving.TensorBinding; 2 classes serving.TensorBinding; 3 scores serving.TensorBinding
serving.GenericSignature: 1 map map<string,serving.TensorBinding>
serving.Signature: 1 regression_signature serving.RegressionSignature@type; 2 classification_signature serving.ClassificationSignature@type; 3 generic_signature serving.GenericSignature@type
serving.Signatures: 1 default_signature serving.Signature; 2 named_signatures map<string,serving.Signature>
boosted_trees.Vector: 1 value *float
boosted_trees.SparseVector: 1 index *int32; 2 value *float
boosted_trees.Leaf: 1 vector boosted_trees.Vector@leaf; 2 sparse_vector boosted_trees.SparseVector@leaf; 3 scalar float
boosted_trees.BucketizedSplit: 1 feature_id int32; 2 threshold int32; 5 dimension_id int32; 6 default_direction enum; 3 left_id int32; 4 right_id int32
boosted_trees.CategoricalSplit: 1 feature_id int32; 2 value int32; 5 dimension_id int32; 3 left_id int32; 4 right_id int32
boosted_trees.DenseSplit: 1 feature_id int32; 2 threshold float; 3 left_id int32; 4 right_id int32
boosted_trees.NodeMetadata: 1 gain float; 2 original_leaf boosted_trees.Leaf
boosted_trees.Node: 1 leaf boosted_trees.Leaf@node; 2 bucketized_split boosted_trees.BucketizedSplit@node; 3 categorical_split boosted_trees.CategoricalSplit@node; 4 dense_split boosted_trees.DenseSplit@node; 777 metadata boosted_trees.NodeMetadata
boosted_trees.Tree: 1 nodes *boosted_trees.Node
boosted_trees.TreeMetadata: 2 num_layers_grown int32; 3 is_finalized bool; 4 post_pruned_nodes_meta *boosted_trees.TreeMetadata.PostPruneNodeUpdate
boosted_trees.TreeMetadata.PostPruneNodeUpdate: 1 new_node_id int32; 2 logit_change *float
boosted_trees.GrowingMetadata: 1 num_trees_attempted int64; 2 num_layers_attempted int64; 3 last_layer_node_start int32; 4 last_layer_node_end int32
boosted_trees.TreeEnsemble: 1 trees *boosted_trees.Tree; 2 tree_weights *float; 3 tree_metadata *boosted_trees.TreeMetadata; 4 growing_metadata boosted_trees.GrowingMetadata
boosted_trees.DebugOutput: 1 feature_ids *int32; 2 logits_path *float
Int32Value: 1 value int32
StringValue: 1 value string
decision_trees.Value: 1 float_value float@value; 2 double_value double@value; 3 int32_value int32@value; 4 int64_value int64@value; 5 custom_value Any@value
decision_trees.Vector: 1 value *decision_trees.Value
decision_trees.SparseVector: 1 sparse_value map<int64,decision_trees.Value>
decision_trees.Leaf: 1 vector decision_trees.Vector@leaf; 2 sparse_vector decision_trees.SparseVector@leaf; 3 additional_data *Any
decision_trees.FeatureId: 1 id StringValue; 2 additional_data *Any
decision_trees.ObliqueFeatures: 1 features *decision_trees.FeatureId; 2 weights *float
decision_trees.InequalityTest: 1 feature_id decision_trees.FeatureId@FeatureSum; 4 oblique decision_trees.ObliqueFeatures@FeatureSum; 2 type enum; 3 threshold decision_trees.Value
decision_trees.MatchingValuesTest: 1 feature_id decision_trees.FeatureId; 2 value *decision_trees.Value; 3 inverse bool
decision_trees.BinaryNode: 1 left_child_id Int32Value; 2 right_child_id Int32Value; 3 default_direction enum; 4 inequality_left_child_test decision_trees.InequalityTest@left_child_test; 5 custom_left_child_test Any@left_child_test
decision_trees.TreeNode: 1 node_id Int32Value; 2 depth Int32Value; 3 subtree_size Int32Value; 4 binary_node decision_trees.BinaryNode@node_type; 5 leaf decision_trees.Leaf@node_type; 6 custom_node_type Any@node_type; 7 additional_data *Any
decision_trees.DecisionTree: 1 nodes *decision_trees.TreeNode; 2 additional_data *Any
decision_trees.Model: 1 decision_tree decision_trees.DecisionTree@model; 2 ensemble decision_trees.Ensemble@model; 3 custom_model Any@model; 4 additional_data *Any
decision_trees.Ensemble: 100 members *decision_trees.Ensemble.Member; 1 summation_combination_technique decision_trees.Summation@combination_technique; 2 averaging_combination_technique decision_trees.Averaging@combination_technique; 3 custom_combination_technique Any@combination_technique; 4 additional_data *Any
decision_trees.Ensemble.Member: 1 submodel decision_trees.Model; 2 submodel_id Int32Value; 3 additional_data *Any
decision_trees.Summation: 1 additional_data *Any
decision_trees.Averaging: 1 additional_data *Any
decision_trees.ModelAndFeatures: 1 features map<string,decision_trees.ModelAndFeatures.Feature>; 2 model decision_trees.Model; 3 additional_data *Any
decision_trees.ModelAndFeatures.Feature: 1 feature_id decision_trees.FeatureId; 2 additional_data *Any
tensorforest.GiniStats: 2 square float
tensorforest.LeafStat: 3 weight_sum float; 1 classification tensorforest.LeafStat.GiniImpurityClassificationStats@leaf_stat; 2 regression tensorforest.LeafStat.LeastSquaresRegressionStats@leaf_stat
tensorforest.LeafStat.GiniImpurityClassificationStats: 1 dense_counts decision_trees.Vector@counts; 2 sparse_counts decision_trees.SparseVector@counts; 3 gini tensorforest.GiniStats
tensorforest.LeafStat.LeastSquaresRegressionStats: 1 mean_output decision_trees.Vector; 2 mean_output_squares decision_trees.Vector
tensorforest.SplitCandidate: 1 split decision_trees.BinaryNode; 4 left_stats tensorforest.LeafStat; 5 right_stats tensorforest.LeafStat; 6 unique_id string
tensorforest.FertileSlot: 4 leaf_stats tensorforest.LeafStat; 1 candidates *tensorforest.SplitCandidate; 6 post_init_leaf_stats tensorforest.LeafStat; 5 node_id int32; 7 depth int32
tensorforest.FertileStats: 1 node_to_slot *tensorforest.FertileSlot
tensorforest.TreePath: 1 nodes_visited *decision_trees.TreeNode
tensorforest.LinearParam: 1 slope float; 2 y_intercept float; 3 min_val float; 4 max_val float
tensorforest.ExponentialParam: 1 bias float; 2 base float; 3 multiplier float; 4 depth_multiplier float
tensorforest.ThresholdParam: 1 on_value float; 2 off_value float; 3 threshold float
tensorforest.DepthDependentParam: 1 constant_value float@ParamType; 2 linear tensorforest.LinearParam@ParamType; 3 exponential tensorforest.ExponentialParam@ParamType; 4 threshold tensorforest.ThresholdParam@ParamType
tensorforest.SplitPruningConfig: 1 prune_every_samples tensorforest.DepthDependentParam; 2 type enum
tensorforest.SplitFinishConfig: 1 check_every_steps tensorforest.DepthDependentParam; 2 type enum
tensorforest.TensorForestParams: 1 leaf_type enum; 2 stats_type enum; 3 collection_type enum; 4 pruning_type tensorforest.SplitPruningConfig; 5 finish_type tensorforest.SplitFinishConfig; 6 num_trees int32; 7 max_nodes int32; 21 num_features int32; 19 inequality_test_type enum; 8 is_regression bool; 9 drop_final_class bool; 10 collate_examples bool; 11 checkpoint_stats bool; 20 use_running_stats_method bool; 22 initialize_average_splits bool; 23 inference_tree_paths bool; 12 num_outputs int32; 13 num_splits_to_consider tensorforest.DepthDependentParam; 14 split_after_samples tensorforest.DepthDependentParam; 15 dominate_fraction tensorforest.DepthDependentParam; 18 min_split_samples tensorforest.DepthDependentParam; 16 graph_dir string; 17 num_select_features int32; 24 num_classes_to_track int32
boosted_trees.QuantileConfig: 1 eps double; 2 num_quantiles int64
boosted_trees.QuantileEntry: 1 value float; 2 weight float; 3 min_rank float; 4 max_rank float
boosted_trees.QuantileSummaryState: 1 entries *boosted_trees.QuantileEntry
boosted_trees.QuantileStreamState: 1 summaries *boosted_trees.QuantileSummaryState
boosted_trees.trees:
boosted_trees.learner:
boosted_trees.trees.Leaf: 1 vector boosted_trees.trees.Vector@leaf; 2 sparse_vector boosted_trees.trees.SparseVector@leaf
boosted_trees.trees.Vector: 1 value *float
boosted_trees.trees.SparseVector: 1 index *int32; 2 value *float
boosted_trees.trees.TreeNodeMetadata: 1 gain float; 2 original_leaf boosted_trees.trees.Leaf
boosted_trees.trees.DenseFloatBinarySplit: 1 feature_column int32; 5 dimension_id int32; 2 threshold float; 3 left_id int32; 4 right_id int32
boosted_trees.trees.SparseFloatBinarySplitDefaultLeft: 1 split boosted_trees.trees.DenseFloatBinarySplit
boosted_trees.trees.SparseFloatBinarySplitDefaultRight: 1 split boosted_trees.trees.DenseFloatBinarySplit
boosted_trees.trees.CategoricalIdBinarySplit: 1 feature_column int32; 2 feature_id int64; 3 left_id int32; 4 right_id int32
boosted_trees.trees.CategoricalIdSetMembershipBinarySplit: 1 feature_column int32; 2 feature_ids *int64; 3 left_id int32; 4 right_id int32
boosted_trees.trees.TreeNode: 1 leaf boosted_trees.trees.Leaf@node; 2 dense_float_binary_split boosted_trees.trees.DenseFloatBinarySplit@node; 3 sparse_float_binary_split_default_left boosted_trees.trees.SparseFloatBinarySplitDefaultLeft@node; 4 sparse_float_binary_split_default_right boosted_trees.trees.SparseFloatBinarySplitDefaultRight@node; 5 categorical_id_binary_split boosted_trees.trees.CategoricalIdBinarySplit@node; 6 categorical_id_set_membership_binary_split boosted_trees.trees.CategoricalIdSetMembershipBinarySplit@node; 777 node_metadata boosted_trees.trees.TreeNodeMetadata
boosted_trees.trees.DecisionTreeConfig: 1 nodes *boosted_trees.trees.TreeNode
boosted_trees.trees.DecisionTreeMetadata: 1 num_tree_weight_updates int32; 2 num_layers_grown int32; 3 is_finalized bool
boosted_trees.trees.GrowingMetadata: 1 num_trees_attempted int64; 2 num_layers_attempted int64; 3 used_handler_ids *int64
boosted_trees.trees.DecisionTreeEnsembleConfig: 1 trees *boosted_trees.trees.DecisionTreeConfig; 2 tree_weights *float; 3 tree_metadata *boosted_trees.trees.DecisionTreeMetadata; 4 growing_metadata boosted_trees.trees.GrowingMetadata
boosted_trees.learner.SplitInfo: 1 split_node boosted_trees.trees.TreeNode; 2 left_child boosted_trees.trees.Leaf; 3 right_child boosted_trees.trees.Leaf
boosted_trees.learner.TreeRegularizationConfig: 1 l1 float; 2 l2 float; 3 tree_complexity float
boosted_trees.learner.TreeConstraintsConfig: 1 max_tree_depth uint32; 2 min_node_weight float; 3 max_number_of_unique_feature_columns int64
boosted_trees.learner.LearningRateConfig: 1 fixed boosted_trees.learner.LearningRateFixedConfig@tuner; 2 dropout boosted_trees.learner.LearningRateDropoutDrivenConfig@tuner; 3 line_search boosted_trees.learner.LearningRateLineSearchConfig@tuner
boosted_trees.learner.LearningRateFixedConfig: 1 learning_rate float
boosted_trees.learner.LearningRateLineSearchConfig: 1 max_learning_rate float; 2 num_steps int32
boosted_trees.learner.AveragingConfig: 1 average_last_n_trees float@config; 2 average_last_percent_trees float@config
boosted_trees.learner.LearningRateDropoutDrivenConfig: 1 dropout_probability float; 2 probability_of_skipping_dropout float; 3 learning_rate float
boosted_trees.learner.LearnerConfig: 1 num_classes uint32; 2 feature_fraction_per_tree float@feature_fraction; 3 feature_fraction_per_level float@feature_fraction; 4 regularization boosted_trees.learner.TreeRegularizationConfig; 5 constraints boosted_trees.learner.TreeConstraintsConfig; 8 pruning_mode enum; 9 growing_mode enum; 6 learning_rate_tuner boosted_trees.learner.LearningRateConfig; 10 multi_class_strategy enum; 11 averaging_config boosted_trees.learner.AveragingConfig; 12 weak_learner_type enum
SavedModel: 1 saved_model_schema_version int64; 2 meta_graphs *MetaGraphDef
EntryValue: 1 double_value double@kind; 2 string_value string@kind
MetricEntry: 1 name string; 2 value double; 3 min_value DoubleValue; 4 max_value DoubleValue
DoubleValue: 1 value double
BenchmarkEntry: 1 name string; 2 iters int64; 3 cpu_time double; 4 wall_time double; 5 throughput double; 6 extras map<string,EntryValue>; 7 metrics *MetricEntry
BenchmarkEntries: 1 entry *BenchmarkEntry
DeviceAttributes: 1 name string; 2 device_type string; 4 memory_limit int64; 6 incarnation fixed64; 7 physical_device_desc string; 5 locality DeviceLocality
DeviceLocality: 1 bus_id int32; 2 numa_node int32; 3 links LocalLinks
LocalLinks: 1 link *InterconnectLink
InterconnectLink: 1 device_id int32; 2 type string; 3 strength int32
"""

for _row in _TABLES.strip().splitlines():
    _name, _, _table = _row.partition(":")
    if "." in _name and _name.split(".")[0] not in _registry:
        globals()[_name.split(".")[0]] = message.define(_name.split(".")[0], "", _registry)
    message.define(_name, _table, _registry)
    if "." not in _name:
        globals()[_name] = _registry[_name]
for _name, _class in _registry.items():  # the outer class may have come later
    if "." in _name:
        setattr(_registry[_name.rsplit(".", 1)[0]], _name.rsplit(".", 1)[1], _class)
    for _field in _class._fields.values():
        _field.message = _registry.get(_field.kind)
        if _field.message is not None:
            _field.wire = 2


class _Entry:
    """The message class of a map's entries, as an attribute of the class with the map."""

    def __init__(self, field: Any) -> None:
        self._field = field

    def __get__(self, instance: Any, owner: Any) -> Any:
        return descriptors.entry_class(self._field)


for _class in _registry.values():
    for _field in _class._fields.values():
        if _field.key_kind:
            setattr(_class, "".join(word.capitalize() for word in _field.name.split("_")) + "Entry", _Entry(_field))


def _pack(self: Message, msg: Message) -> None:
    """Takes a message, with its type."""
    self.type_url, self.value = "type.googleapis.com/tensorflow." + type(msg).__qualname__, msg.SerializeToString()


def _is(self: Message, kind: Any) -> bool:
    """Whether it holds a message of a type."""
    return str(self.type_url).rpartition("/")[2] == "tensorflow." + str(getattr(kind, "__qualname__", kind))


def _unpack(self: Message, msg: Message) -> bool:
    """Gives the message that it holds to one of the same type; False, and nothing done, for another."""
    if not _is(self, type(msg)):
        return False
    msg.ParseFromString(self.value)
    return True


def _packed(self: Message) -> Optional[Message]:
    """The message that it holds; None where its type is not known here, or the bytes are none of it."""
    kind = _registry.get(str(self.type_url).rpartition("/tensorflow.")[2])
    try:
        return kind.FromString(self.value) if kind is not None else None
    except message.DecodeError:
        return None


for _name, _function in (("Pack", _pack), ("Is", _is), ("Unpack", _unpack), ("_packed", _packed)):
    setattr(_registry["Any"], _name, _function)


def _constants(class_name: str, **values: int) -> None:
    for name, value in values.items():
        setattr(_registry[class_name], name, value)


_constants("RunOptions", NO_TRACE=0, SOFTWARE_TRACE=1, HARDWARE_TRACE=2, FULL_TRACE=3)
_constants("OptimizerOptions", L1=0, L0=-1, DEFAULT=0, OFF=-1, ON_1=1, ON_2=2)
_constants(
    "RewriterConfig",
    DEFAULT=0,
    ON=1,
    OFF=2,
    AGGRESSIVE=3,
    DEFAULT_NUM_ITERS=0,
    ONE=1,
    TWO=2,
    DEFAULT_MEM_OPT=0,
    NO_MEM_OPT=1,
    MANUAL=2,
    HEURISTICS=3,
    SWAPPING_HEURISTICS=4,
    RECOMPUTATION_HEURISTICS=5,
    SCHEDULING_HEURISTICS=6,
)
_constants("VerifierConfig", DEFAULT=0, ON=1, OFF=2)
_constants("TypeSpecProto", **dict(enums.TypeSpecClass.items()))
_constants("SaverDef", LEGACY=0, V1=1, V2=2)
_constants("SessionLog", STATUS_UNSPECIFIED=0, START=1, STOP=2, CHECKPOINT=3)


def __getattr__(name: str) -> Any:
    if name in enums.MODULE_ENUMS:
        return enums.MODULE_ENUMS[name]
    for enum in enums.MODULE_ENUMS.values():
        if name in enum.keys():
            return enum.Value(name)
    raise AttributeError("there is no message %r" % name)
