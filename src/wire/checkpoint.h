// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints: the index of format V2, the content of format V1, the state
// file, and the object graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/graph.h"
#include "wire/message.h"

namespace millrace::wire {

struct BundleHeaderProto {
  enum Endianness : int32_t {
    kLittle = 0,
    kBig = 1,
  };

  int32_t num_shards = 0;
  int32_t endianness = 0;
  Box<VersionDef> version;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// length not set: the whole dimension.
struct TensorSliceExtent {
  enum class Kind : uint8_t {
    kNone,
    kLength,
  };

  Kind kind = Kind::kNone;
  int64_t start = 0;
  int64_t length = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TensorSliceProto {
  std::vector<TensorSliceExtent> extent;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Where a tensor lies in the data files of a checkpoint.
struct BundleEntryProto {
  int32_t dtype = 0;
  Box<TensorShapeProto> shape;
  int32_t shard_id = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t crc32c = 0;
  std::vector<TensorSliceProto> slices;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SavedSliceMeta {
  std::string name;
  Box<TensorShapeProto> shape;
  int32_t type = 0;
  std::vector<TensorSliceProto> slice;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SavedTensorSliceMeta {
  std::vector<SavedSliceMeta> tensor;
  Box<VersionDef> versions;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SavedSlice {
  std::string name;
  Box<TensorSliceProto> slice;
  Box<TensorProto> data;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SavedTensorSlices {
  Box<SavedTensorSliceMeta> meta;
  Box<SavedSlice> data;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// The file `checkpoint` in a directory of checkpoints, in text form.
struct CheckpointState {
  std::string model_checkpoint_path;
  std::vector<std::string> all_model_checkpoint_paths;
  std::vector<double> all_model_checkpoint_timestamps;
  double last_preserved_timestamp = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ObjectReference {
  int32_t node_id = 0;
  std::string local_name;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SerializedTensor {
  std::string name;
  std::string full_name;
  std::string checkpoint_key;
  bool optional_restore = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SlotVariableReference {
  int32_t original_variable_node_id = 0;
  std::string slot_name;
  int32_t slot_variable_node_id = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TrackableObject {
  std::vector<ObjectReference> children;
  std::vector<SerializedTensor> attributes;
  std::vector<SlotVariableReference> slot_variables;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TrackableObjectGraph {
  std::vector<TrackableObject> nodes;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
