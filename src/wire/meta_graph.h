// SPDX-License-Identifier: Apache-2.0
//
// Meta graphs and saved models: a graph with what is needed to use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/graph.h"
#include "wire/message.h"

namespace millrace::wire {

struct ControlFlowContextDef;

// An encoded message of the type that the end of type_url names.
struct Any {
  std::string type_url;
  std::string value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct MetaInfoDef {
  std::string meta_graph_version;
  Box<OpList> stripped_op_list;
  Box<Any> any_info;
  std::vector<std::string> tags;
  std::string tensorflow_version;
  std::string tensorflow_git_version;
  bool stripped_default_attrs = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CollectionNodeList {
  std::vector<std::string> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CollectionBytesList {
  std::vector<std::string> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CollectionInt64List {
  std::vector<int64_t> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CollectionFloatList {
  std::vector<float> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CollectionAnyList {
  std::vector<Any> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// node_list: names; bytes_list: encoded messages such as VariableDef.
struct CollectionDef {
  enum class Kind : uint8_t {
    kNone,
    kNodeList,
    kBytesList,
    kInt64List,
    kFloatList,
    kAnyList,
  };

  Kind kind = Kind::kNone;
  Box<CollectionNodeList> node_list;
  Box<CollectionBytesList> bytes_list;
  Box<CollectionInt64List> int64_list;
  Box<CollectionFloatList> float_list;
  Box<CollectionAnyList> any_list;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TensorInfoCooSparse {
  std::string values_tensor_name;
  std::string indices_tensor_name;
  std::string dense_shape_tensor_name;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TensorInfo {
  enum class Kind : uint8_t {
    kNone,
    kName,
    kCooSparse,
  };

  Kind kind = Kind::kNone;
  std::string name;
  int32_t dtype = 0;
  Box<TensorShapeProto> tensor_shape;
  Box<TensorInfoCooSparse> coo_sparse;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SignatureDef {
  Map<std::string, TensorInfo> inputs;
  Map<std::string, TensorInfo> outputs;
  std::string method_name;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct AssetFileDef {
  Box<TensorInfo> tensor_info;
  std::string filename;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SaverDef {
  enum CheckpointFormatVersion : int32_t {
    kLegacy = 0,
    kV1 = 1,
    kV2 = 2,
  };

  std::string filename_tensor_name;
  std::string save_tensor_name;
  std::string restore_op_name;
  int32_t max_to_keep = 0;
  bool sharded = false;
  float keep_checkpoint_every_n_hours = 0;
  int32_t version = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SaveSliceInfoDef {
  std::string full_name;
  std::vector<int64_t> full_shape;
  std::vector<int64_t> var_offset;
  std::vector<int64_t> var_shape;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct VariableDef {
  enum Synchronization : int32_t {
    kSynchronizationAuto = 0,
    kSynchronizationNone = 1,
    kSynchronizationOnWrite = 2,
    kSynchronizationOnRead = 3,
  };

  enum Aggregation : int32_t {
    kAggregationNone = 0,
    kAggregationSum = 1,
    kAggregationMean = 2,
    kAggregationOnlyFirstReplica = 3,
  };

  std::string variable_name;
  std::string initializer_name;
  std::string snapshot_name;
  Box<SaveSliceInfoDef> save_slice_info_def;
  bool is_resource = false;
  std::string initial_value_name;
  bool trainable = false;
  int32_t synchronization = 0;
  int32_t aggregation = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct QueueRunnerDef {
  std::string queue_name;
  std::vector<std::string> enqueue_op_name;
  std::string close_op_name;
  std::string cancel_op_name;
  std::vector<int32_t> queue_closed_exception_types;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ValuesDef {
  std::vector<std::string> values;
  Map<std::string, std::string> external_values;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct CondContextDef {
  std::string context_name;
  std::string pred_name;
  std::string pivot_name;
  int32_t branch = 0;
  Box<ValuesDef> values_def;
  std::vector<ControlFlowContextDef> nested_contexts;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct WhileContextDef {
  std::string context_name;
  int32_t parallel_iterations = 0;
  bool back_prop = false;
  bool swap_memory = false;
  std::string pivot_name;
  std::string pivot_for_pred_name;
  std::string pivot_for_body_name;
  std::vector<std::string> loop_exit_names;
  Box<ValuesDef> values_def;
  std::vector<std::string> loop_enter_names;
  std::string maximum_iterations_name;
  std::vector<ControlFlowContextDef> nested_contexts;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ControlFlowContextDef {
  enum class Kind : uint8_t {
    kNone,
    kCondCtxt,
    kWhileCtxt,
  };

  Kind kind = Kind::kNone;
  Box<CondContextDef> cond_ctxt;
  Box<WhileContextDef> while_ctxt;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct MetaGraphDef {
  Box<MetaInfoDef> meta_info_def;
  Box<GraphDef> graph_def;
  Box<SaverDef> saver_def;
  Map<std::string, CollectionDef> collection_def;
  Map<std::string, SignatureDef> signature_def;
  std::vector<AssetFileDef> asset_file_def;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SavedModel {
  int64_t saved_model_schema_version = 0;
  std::vector<MetaGraphDef> meta_graphs;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
