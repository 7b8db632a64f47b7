// SPDX-License-Identifier: Apache-2.0
#include "wire/meta_graph.h"

#include "wire/enums.h"
#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& Any::Info() {
  static const MessageInfo& info =
      Table<Any>("Any")
          .Field(1, "type_url", &Any::type_url)
          .Field(2, "value", &Any::value)
          .AnyType(&AssetFileDef::Info)
          .AnyType(&VariableDef::Info)
          .AnyType(&SaverDef::Info)
          .Build();
  return info;
}

const MessageInfo& MetaInfoDef::Info() {
  static const MessageInfo& info =
      Table<MetaInfoDef>("MetaGraphDef.MetaInfoDef")
          .Field(1, "meta_graph_version", &MetaInfoDef::meta_graph_version)
          .Field(2, "stripped_op_list", &MetaInfoDef::stripped_op_list)
          .Field(3, "any_info", &MetaInfoDef::any_info)
          .Field(4, "tags", &MetaInfoDef::tags)
          .Field(5, "tensorflow_version", &MetaInfoDef::tensorflow_version)
          .Field(6, "tensorflow_git_version", &MetaInfoDef::tensorflow_git_version)
          .Field(7, "stripped_default_attrs", &MetaInfoDef::stripped_default_attrs)
          .Build();
  return info;
}

const MessageInfo& CollectionNodeList::Info() {
  static const MessageInfo& info =
      Table<CollectionNodeList>("CollectionDef.NodeList").Field(1, "value", &CollectionNodeList::value).Build();
  return info;
}

const MessageInfo& CollectionBytesList::Info() {
  static const MessageInfo& info =
      Table<CollectionBytesList>("CollectionDef.BytesList").Field(1, "value", &CollectionBytesList::value).Build();
  return info;
}

const MessageInfo& CollectionInt64List::Info() {
  static const MessageInfo& info =
      Table<CollectionInt64List>("CollectionDef.Int64List").Field(1, "value", &CollectionInt64List::value).Build();
  return info;
}

const MessageInfo& CollectionFloatList::Info() {
  static const MessageInfo& info =
      Table<CollectionFloatList>("CollectionDef.FloatList").Field(1, "value", &CollectionFloatList::value).Build();
  return info;
}

const MessageInfo& CollectionAnyList::Info() {
  static const MessageInfo& info =
      Table<CollectionAnyList>("CollectionDef.AnyList").Field(1, "value", &CollectionAnyList::value).Build();
  return info;
}

const MessageInfo& CollectionDef::Info() {
  static const MessageInfo& info =
      Table<CollectionDef>("CollectionDef")
          .Member(CollectionDef::Kind::kNodeList, 1, "node_list", &CollectionDef::node_list)
          .Member(CollectionDef::Kind::kBytesList, 2, "bytes_list", &CollectionDef::bytes_list)
          .Member(CollectionDef::Kind::kInt64List, 3, "int64_list", &CollectionDef::int64_list)
          .Member(CollectionDef::Kind::kFloatList, 4, "float_list", &CollectionDef::float_list)
          .Member(CollectionDef::Kind::kAnyList, 5, "any_list", &CollectionDef::any_list)
          .Build();
  return info;
}

const MessageInfo& TensorInfoCooSparse::Info() {
  static const MessageInfo& info =
      Table<TensorInfoCooSparse>("TensorInfo.CooSparse")
          .Field(1, "values_tensor_name", &TensorInfoCooSparse::values_tensor_name)
          .Field(2, "indices_tensor_name", &TensorInfoCooSparse::indices_tensor_name)
          .Field(3, "dense_shape_tensor_name", &TensorInfoCooSparse::dense_shape_tensor_name)
          .Build();
  return info;
}

const MessageInfo& TensorInfo::Info() {
  static const MessageInfo& info =
      Table<TensorInfo>("TensorInfo")
          .Member(TensorInfo::Kind::kName, 1, "name", &TensorInfo::name)
          .Enum(2, "dtype", &TensorInfo::dtype, kDataTypeEnum)
          .Field(3, "tensor_shape", &TensorInfo::tensor_shape)
          .Member(TensorInfo::Kind::kCooSparse, 4, "coo_sparse", &TensorInfo::coo_sparse)
          .Build();
  return info;
}

const MessageInfo& SignatureDef::Info() {
  static const MessageInfo& info =
      Table<SignatureDef>("SignatureDef")
          .Field(1, "inputs", &SignatureDef::inputs)
          .Field(2, "outputs", &SignatureDef::outputs)
          .Field(3, "method_name", &SignatureDef::method_name)
          .Build();
  return info;
}

const MessageInfo& AssetFileDef::Info() {
  static const MessageInfo& info =
      Table<AssetFileDef>("AssetFileDef")
          .Field(1, "tensor_info", &AssetFileDef::tensor_info)
          .Field(2, "filename", &AssetFileDef::filename)
          .Build();
  return info;
}

const MessageInfo& SaverDef::Info() {
  static const MessageInfo& info =
      Table<SaverDef>("SaverDef")
          .Field(1, "filename_tensor_name", &SaverDef::filename_tensor_name)
          .Field(2, "save_tensor_name", &SaverDef::save_tensor_name)
          .Field(3, "restore_op_name", &SaverDef::restore_op_name)
          .Field(4, "max_to_keep", &SaverDef::max_to_keep)
          .Field(5, "sharded", &SaverDef::sharded)
          .Field(6, "keep_checkpoint_every_n_hours", &SaverDef::keep_checkpoint_every_n_hours)
          .Enum(7, "version", &SaverDef::version, kCheckpointFormatVersionEnum)
          .Build();
  return info;
}

const MessageInfo& SaveSliceInfoDef::Info() {
  static const MessageInfo& info =
      Table<SaveSliceInfoDef>("SaveSliceInfoDef")
          .Field(1, "full_name", &SaveSliceInfoDef::full_name)
          .Field(2, "full_shape", &SaveSliceInfoDef::full_shape)
          .Field(3, "var_offset", &SaveSliceInfoDef::var_offset)
          .Field(4, "var_shape", &SaveSliceInfoDef::var_shape)
          .Build();
  return info;
}

const MessageInfo& VariableDef::Info() {
  static const MessageInfo& info =
      Table<VariableDef>("VariableDef")
          .Field(1, "variable_name", &VariableDef::variable_name)
          .Field(2, "initializer_name", &VariableDef::initializer_name)
          .Field(3, "snapshot_name", &VariableDef::snapshot_name)
          .Field(4, "save_slice_info_def", &VariableDef::save_slice_info_def)
          .Field(5, "is_resource", &VariableDef::is_resource)
          .Field(6, "initial_value_name", &VariableDef::initial_value_name)
          .Field(7, "trainable", &VariableDef::trainable)
          .Enum(8, "synchronization", &VariableDef::synchronization, kVariableSynchronizationEnum)
          .Enum(9, "aggregation", &VariableDef::aggregation, kVariableAggregationEnum)
          .Build();
  return info;
}

const MessageInfo& QueueRunnerDef::Info() {
  static const MessageInfo& info =
      Table<QueueRunnerDef>("QueueRunnerDef")
          .Field(1, "queue_name", &QueueRunnerDef::queue_name)
          .Field(2, "enqueue_op_name", &QueueRunnerDef::enqueue_op_name)
          .Field(3, "close_op_name", &QueueRunnerDef::close_op_name)
          .Field(4, "cancel_op_name", &QueueRunnerDef::cancel_op_name)
          .Enum(5, "queue_closed_exception_types", &QueueRunnerDef::queue_closed_exception_types, kErrorCodeEnum)
          .Build();
  return info;
}

const MessageInfo& ValuesDef::Info() {
  static const MessageInfo& info =
      Table<ValuesDef>("ValuesDef")
          .Field(1, "values", &ValuesDef::values)
          .Field(2, "external_values", &ValuesDef::external_values)
          .Build();
  return info;
}

const MessageInfo& CondContextDef::Info() {
  static const MessageInfo& info =
      Table<CondContextDef>("CondContextDef")
          .Field(1, "context_name", &CondContextDef::context_name)
          .Field(2, "pred_name", &CondContextDef::pred_name)
          .Field(3, "pivot_name", &CondContextDef::pivot_name)
          .Field(4, "branch", &CondContextDef::branch)
          .Field(5, "values_def", &CondContextDef::values_def)
          .Field(6, "nested_contexts", &CondContextDef::nested_contexts)
          .Build();
  return info;
}

const MessageInfo& WhileContextDef::Info() {
  static const MessageInfo& info =
      Table<WhileContextDef>("WhileContextDef")
          .Field(1, "context_name", &WhileContextDef::context_name)
          .Field(2, "parallel_iterations", &WhileContextDef::parallel_iterations)
          .Field(3, "back_prop", &WhileContextDef::back_prop)
          .Field(4, "swap_memory", &WhileContextDef::swap_memory)
          .Field(5, "pivot_name", &WhileContextDef::pivot_name)
          .Field(6, "pivot_for_pred_name", &WhileContextDef::pivot_for_pred_name)
          .Field(7, "pivot_for_body_name", &WhileContextDef::pivot_for_body_name)
          .Field(8, "loop_exit_names", &WhileContextDef::loop_exit_names)
          .Field(9, "values_def", &WhileContextDef::values_def)
          .Field(10, "loop_enter_names", &WhileContextDef::loop_enter_names)
          .Field(11, "maximum_iterations_name", &WhileContextDef::maximum_iterations_name)
          .Field(12, "nested_contexts", &WhileContextDef::nested_contexts)
          .Build();
  return info;
}

const MessageInfo& ControlFlowContextDef::Info() {
  static const MessageInfo& info =
      Table<ControlFlowContextDef>("ControlFlowContextDef")
          .Member(ControlFlowContextDef::Kind::kCondCtxt, 1, "cond_ctxt", &ControlFlowContextDef::cond_ctxt)
          .Member(ControlFlowContextDef::Kind::kWhileCtxt, 2, "while_ctxt", &ControlFlowContextDef::while_ctxt)
          .Build();
  return info;
}

const MessageInfo& MetaGraphDef::Info() {
  static const MessageInfo& info =
      Table<MetaGraphDef>("MetaGraphDef")
          .Field(1, "meta_info_def", &MetaGraphDef::meta_info_def)
          .Field(2, "graph_def", &MetaGraphDef::graph_def)
          .Field(3, "saver_def", &MetaGraphDef::saver_def)
          .Field(4, "collection_def", &MetaGraphDef::collection_def)
          .Field(5, "signature_def", &MetaGraphDef::signature_def)
          .Field(6, "asset_file_def", &MetaGraphDef::asset_file_def)
          .Build();
  return info;
}

const MessageInfo& SavedModel::Info() {
  static const MessageInfo& info =
      Table<SavedModel>("SavedModel")
          .Field(1, "saved_model_schema_version", &SavedModel::saved_model_schema_version)
          .Field(2, "meta_graphs", &SavedModel::meta_graphs)
          .Build();
  return info;
}

}  // namespace millrace::wire
