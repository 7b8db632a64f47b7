// SPDX-License-Identifier: Apache-2.0
#include "wire/checkpoint.h"

#include "wire/enums.h"
#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& BundleHeaderProto::Info() {
  static const MessageInfo& info =
      Table<BundleHeaderProto>("BundleHeaderProto")
          .Field(1, "num_shards", &BundleHeaderProto::num_shards)
          .Enum(2, "endianness", &BundleHeaderProto::endianness, kEndiannessEnum)
          .Field(3, "version", &BundleHeaderProto::version)
          .Build();
  return info;
}

const MessageInfo& TensorSliceExtent::Info() {
  static const MessageInfo& info =
      Table<TensorSliceExtent>("TensorSliceProto.Extent")
          .Field(1, "start", &TensorSliceExtent::start)
          .Member(TensorSliceExtent::Kind::kLength, 2, "length", &TensorSliceExtent::length)
          .Build();
  return info;
}

const MessageInfo& TensorSliceProto::Info() {
  static const MessageInfo& info =
      Table<TensorSliceProto>("TensorSliceProto").Field(1, "extent", &TensorSliceProto::extent).Build();
  return info;
}

const MessageInfo& BundleEntryProto::Info() {
  static const MessageInfo& info =
      Table<BundleEntryProto>("BundleEntryProto")
          .Enum(1, "dtype", &BundleEntryProto::dtype, kDataTypeEnum)
          .Field(2, "shape", &BundleEntryProto::shape)
          .Field(3, "shard_id", &BundleEntryProto::shard_id)
          .Field(4, "offset", &BundleEntryProto::offset)
          .Field(5, "size", &BundleEntryProto::size)
          .Fixed(6, "crc32c", &BundleEntryProto::crc32c)
          .Field(7, "slices", &BundleEntryProto::slices)
          .Build();
  return info;
}

const MessageInfo& SavedSliceMeta::Info() {
  static const MessageInfo& info =
      Table<SavedSliceMeta>("SavedSliceMeta")
          .Field(1, "name", &SavedSliceMeta::name)
          .Field(2, "shape", &SavedSliceMeta::shape)
          .Enum(3, "type", &SavedSliceMeta::type, kDataTypeEnum)
          .Field(4, "slice", &SavedSliceMeta::slice)
          .Build();
  return info;
}

const MessageInfo& SavedTensorSliceMeta::Info() {
  static const MessageInfo& info =
      Table<SavedTensorSliceMeta>("SavedTensorSliceMeta")
          .Field(1, "tensor", &SavedTensorSliceMeta::tensor)
          .Field(2, "versions", &SavedTensorSliceMeta::versions)
          .Build();
  return info;
}

const MessageInfo& SavedSlice::Info() {
  static const MessageInfo& info =
      Table<SavedSlice>("SavedSlice")
          .Field(1, "name", &SavedSlice::name)
          .Field(2, "slice", &SavedSlice::slice)
          .Field(3, "data", &SavedSlice::data)
          .Build();
  return info;
}

const MessageInfo& SavedTensorSlices::Info() {
  static const MessageInfo& info =
      Table<SavedTensorSlices>("SavedTensorSlices")
          .Field(1, "meta", &SavedTensorSlices::meta)
          .Field(2, "data", &SavedTensorSlices::data)
          .Build();
  return info;
}

const MessageInfo& CheckpointState::Info() {
  static const MessageInfo& info =
      Table<CheckpointState>("CheckpointState")
          .Field(1, "model_checkpoint_path", &CheckpointState::model_checkpoint_path)
          .Field(2, "all_model_checkpoint_paths", &CheckpointState::all_model_checkpoint_paths)
          .Field(3, "all_model_checkpoint_timestamps", &CheckpointState::all_model_checkpoint_timestamps)
          .Field(4, "last_preserved_timestamp", &CheckpointState::last_preserved_timestamp)
          .Build();
  return info;
}

const MessageInfo& ObjectReference::Info() {
  static const MessageInfo& info =
      Table<ObjectReference>("TrackableObjectGraph.TrackableObject.ObjectReference")
          .Field(1, "node_id", &ObjectReference::node_id)
          .Field(2, "local_name", &ObjectReference::local_name)
          .Build();
  return info;
}

const MessageInfo& SerializedTensor::Info() {
  static const MessageInfo& info =
      Table<SerializedTensor>("TrackableObjectGraph.TrackableObject.SerializedTensor")
          .Field(1, "name", &SerializedTensor::name)
          .Field(2, "full_name", &SerializedTensor::full_name)
          .Field(3, "checkpoint_key", &SerializedTensor::checkpoint_key)
          .Field(4, "optional_restore", &SerializedTensor::optional_restore)
          .Build();
  return info;
}

const MessageInfo& SlotVariableReference::Info() {
  static const MessageInfo& info =
      Table<SlotVariableReference>("TrackableObjectGraph.TrackableObject.SlotVariableReference")
          .Field(1, "original_variable_node_id", &SlotVariableReference::original_variable_node_id)
          .Field(2, "slot_name", &SlotVariableReference::slot_name)
          .Field(3, "slot_variable_node_id", &SlotVariableReference::slot_variable_node_id)
          .Build();
  return info;
}

const MessageInfo& TrackableObject::Info() {
  static const MessageInfo& info =
      Table<TrackableObject>("TrackableObjectGraph.TrackableObject")
          .Field(1, "children", &TrackableObject::children)
          .Field(2, "attributes", &TrackableObject::attributes)
          .Field(3, "slot_variables", &TrackableObject::slot_variables)
          .Build();
  return info;
}

const MessageInfo& TrackableObjectGraph::Info() {
  static const MessageInfo& info =
      Table<TrackableObjectGraph>("TrackableObjectGraph").Field(1, "nodes", &TrackableObjectGraph::nodes).Build();
  return info;
}

}  // namespace millrace::wire
