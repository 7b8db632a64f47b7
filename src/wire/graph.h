// SPDX-License-Identifier: Apache-2.0
//
// Graphs, functions, tensors, and the schemas of operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/message.h"

namespace millrace::wire {

struct TensorProto;
struct VariantTensorDataProto;
struct AttrListValue;
struct NameAttrList;

// size -1: unknown.
struct TensorShapeDim {
  int64_t size = 0;
  std::string name;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// No dim and not unknown_rank: a scalar.
struct TensorShapeProto {
  std::vector<TensorShapeDim> dim;
  bool unknown_rank = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct DtypeAndShape {
  int32_t dtype = 0;
  Box<TensorShapeProto> shape;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ResourceHandleProto {
  std::string device;
  std::string container;
  std::string name;
  uint64_t hash_code = 0;
  std::string maybe_type_name;
  std::vector<DtypeAndShape> dtypes_and_shapes;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// The elements are in tensor_content (row-major, little-endian) or in the
// *_val field of the dtype, where the last value repeats to fill the shape.
struct TensorProto {
  int32_t dtype = 0;
  Box<TensorShapeProto> tensor_shape;
  int32_t version_number = 0;
  std::string tensor_content;
  std::vector<float> float_val;
  std::vector<double> double_val;
  std::vector<int32_t> int_val;
  std::vector<std::string> string_val;
  std::vector<float> scomplex_val;
  std::vector<int64_t> int64_val;
  std::vector<bool> bool_val;
  std::vector<double> dcomplex_val;
  std::vector<int32_t> half_val;
  std::vector<ResourceHandleProto> resource_handle_val;
  std::vector<VariantTensorDataProto> variant_val;
  std::vector<uint32_t> uint32_val;
  std::vector<uint64_t> uint64_val;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct VariantTensorDataProto {
  std::string type_name;
  std::string metadata;
  std::vector<TensorProto> tensors;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// The value of an attribute of a node.
struct AttrValue {
  enum class Kind : uint8_t {
    kNone,
    kList,
    kS,
    kI,
    kF,
    kB,
    kType,
    kShape,
    kTensor,
    kPlaceholder,
    kFunc,
  };

  Kind kind = Kind::kNone;
  Box<AttrListValue> list;
  std::string s;
  int64_t i = 0;
  float f = 0;
  bool b = false;
  int32_t type = 0;
  Box<TensorShapeProto> shape;
  Box<TensorProto> tensor;
  std::string placeholder;
  Box<NameAttrList> func;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct NameAttrList {
  std::string name;
  Map<std::string, AttrValue> attr;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct AttrListValue {
  std::vector<std::string> s;
  std::vector<int64_t> i;
  std::vector<float> f;
  std::vector<bool> b;
  std::vector<int32_t> type;
  std::vector<TensorShapeProto> shape;
  std::vector<TensorProto> tensor;
  std::vector<NameAttrList> func;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct VersionDef {
  int32_t producer = 0;
  int32_t min_consumer = 0;
  std::vector<int32_t> bad_consumers;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct NodeDefDebugInfo {
  std::vector<std::string> original_node_names;
  std::vector<std::string> original_func_names;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// A node: an operation with its inputs ("node", "node:output", "^control").
struct NodeDef {
  std::string name;
  std::string op;
  std::vector<std::string> input;
  std::string device;
  Map<std::string, AttrValue> attr;
  Box<NodeDefDebugInfo> experimental_debug_info;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct OpArgDef {
  std::string name;
  std::string description;
  int32_t type = 0;
  std::string type_attr;
  std::string number_attr;
  std::string type_list_attr;
  bool is_ref = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct OpAttrDef {
  std::string name;
  std::string type;
  Box<AttrValue> default_value;
  std::string description;
  bool has_minimum = false;
  int64_t minimum = 0;
  Box<AttrValue> allowed_values;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct OpDeprecation {
  int32_t version = 0;
  std::string explanation;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct OpDef {
  std::string name;
  std::vector<OpArgDef> input_arg;
  std::vector<OpArgDef> output_arg;
  std::vector<OpAttrDef> attr;
  std::string summary;
  std::string description;
  Box<OpDeprecation> deprecation;
  bool is_aggregate = false;
  bool is_stateful = false;
  bool is_commutative = false;
  bool allows_uninitialized_input = false;
  std::vector<std::string> control_output;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct OpList {
  std::vector<OpDef> op;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct KernelAttrConstraint {
  std::string name;
  Box<AttrValue> allowed_values;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct KernelDef {
  std::string op;
  std::string device_type;
  std::vector<KernelAttrConstraint> constraint;
  std::vector<std::string> host_memory_arg;
  std::string label;
  int32_t priority = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ArgAttrs {
  Map<std::string, AttrValue> attr;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// ret maps each output of the signature to "node:output:index".
struct FunctionDef {
  Box<OpDef> signature;
  std::vector<NodeDef> node_def;
  Map<std::string, std::string> ret;
  Map<std::string, AttrValue> attr;
  Map<std::string, std::string> control_ret;
  Map<uint32_t, ArgAttrs> arg_attr;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GradientDef {
  std::string function_name;
  std::string gradient_func;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct FunctionDefLibrary {
  std::vector<FunctionDef> function;
  std::vector<GradientDef> gradient;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// A graph: nodes in any order, and the functions they call.
struct GraphDef {
  std::vector<NodeDef> node;
  Box<FunctionDefLibrary> library;
  int32_t version = 0;  // deprecated
  Box<VersionDef> versions;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
