// SPDX-License-Identifier: Apache-2.0
#include "wire/graph.h"

#include "wire/enums.h"
#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& TensorShapeDim::Info() {
  static const MessageInfo& info =
      Table<TensorShapeDim>("TensorShapeProto.Dim")
          .Field(1, "size", &TensorShapeDim::size)
          .Field(2, "name", &TensorShapeDim::name)
          .Build();
  return info;
}

const MessageInfo& TensorShapeProto::Info() {
  static const MessageInfo& info =
      Table<TensorShapeProto>("TensorShapeProto")
          .Field(2, "dim", &TensorShapeProto::dim)
          .Field(3, "unknown_rank", &TensorShapeProto::unknown_rank)
          .Build();
  return info;
}

const MessageInfo& DtypeAndShape::Info() {
  static const MessageInfo& info =
      Table<DtypeAndShape>("ResourceHandleProto.DtypeAndShape")
          .Enum(1, "dtype", &DtypeAndShape::dtype, kDataTypeEnum)
          .Field(2, "shape", &DtypeAndShape::shape)
          .Build();
  return info;
}

const MessageInfo& ResourceHandleProto::Info() {
  static const MessageInfo& info =
      Table<ResourceHandleProto>("ResourceHandleProto")
          .Field(1, "device", &ResourceHandleProto::device)
          .Field(2, "container", &ResourceHandleProto::container)
          .Field(3, "name", &ResourceHandleProto::name)
          .Field(4, "hash_code", &ResourceHandleProto::hash_code)
          .Field(5, "maybe_type_name", &ResourceHandleProto::maybe_type_name)
          .Field(6, "dtypes_and_shapes", &ResourceHandleProto::dtypes_and_shapes)
          .Build();
  return info;
}

const MessageInfo& TensorProto::Info() {
  static const MessageInfo& info =
      Table<TensorProto>("TensorProto")
          .Enum(1, "dtype", &TensorProto::dtype, kDataTypeEnum)
          .Field(2, "tensor_shape", &TensorProto::tensor_shape)
          .Field(3, "version_number", &TensorProto::version_number)
          .Field(4, "tensor_content", &TensorProto::tensor_content)
          .Field(5, "float_val", &TensorProto::float_val)
          .Field(6, "double_val", &TensorProto::double_val)
          .Field(7, "int_val", &TensorProto::int_val)
          .Field(8, "string_val", &TensorProto::string_val)
          .Field(9, "scomplex_val", &TensorProto::scomplex_val)
          .Field(10, "int64_val", &TensorProto::int64_val)
          .Field(11, "bool_val", &TensorProto::bool_val)
          .Field(12, "dcomplex_val", &TensorProto::dcomplex_val)
          .Field(13, "half_val", &TensorProto::half_val)
          .Field(14, "resource_handle_val", &TensorProto::resource_handle_val)
          .Field(15, "variant_val", &TensorProto::variant_val)
          .Field(16, "uint32_val", &TensorProto::uint32_val)
          .Field(17, "uint64_val", &TensorProto::uint64_val)
          .Build();
  return info;
}

const MessageInfo& VariantTensorDataProto::Info() {
  static const MessageInfo& info =
      Table<VariantTensorDataProto>("VariantTensorDataProto")
          .Field(1, "type_name", &VariantTensorDataProto::type_name)
          .Field(2, "metadata", &VariantTensorDataProto::metadata)
          .Field(3, "tensors", &VariantTensorDataProto::tensors)
          .Build();
  return info;
}

const MessageInfo& AttrValue::Info() {
  static const MessageInfo& info =
      Table<AttrValue>("AttrValue")
          .Member(AttrValue::Kind::kList, 1, "list", &AttrValue::list)
          .Member(AttrValue::Kind::kS, 2, "s", &AttrValue::s)
          .Member(AttrValue::Kind::kI, 3, "i", &AttrValue::i)
          .Member(AttrValue::Kind::kF, 4, "f", &AttrValue::f)
          .Member(AttrValue::Kind::kB, 5, "b", &AttrValue::b)
          .Member(AttrValue::Kind::kType, 6, "type", &AttrValue::type, kDataTypeEnum)
          .Member(AttrValue::Kind::kShape, 7, "shape", &AttrValue::shape)
          .Member(AttrValue::Kind::kTensor, 8, "tensor", &AttrValue::tensor)
          .Member(AttrValue::Kind::kPlaceholder, 9, "placeholder", &AttrValue::placeholder)
          .Member(AttrValue::Kind::kFunc, 10, "func", &AttrValue::func)
          .Build();
  return info;
}

const MessageInfo& NameAttrList::Info() {
  static const MessageInfo& info =
      Table<NameAttrList>("NameAttrList")
          .Field(1, "name", &NameAttrList::name)
          .Field(2, "attr", &NameAttrList::attr)
          .Build();
  return info;
}

const MessageInfo& AttrListValue::Info() {
  static const MessageInfo& info =
      Table<AttrListValue>("AttrValue.ListValue")
          .Field(2, "s", &AttrListValue::s)
          .Field(3, "i", &AttrListValue::i)
          .Field(4, "f", &AttrListValue::f)
          .Field(5, "b", &AttrListValue::b)
          .Enum(6, "type", &AttrListValue::type, kDataTypeEnum)
          .Field(7, "shape", &AttrListValue::shape)
          .Field(8, "tensor", &AttrListValue::tensor)
          .Field(9, "func", &AttrListValue::func)
          .Build();
  return info;
}

const MessageInfo& VersionDef::Info() {
  static const MessageInfo& info =
      Table<VersionDef>("VersionDef")
          .Field(1, "producer", &VersionDef::producer)
          .Field(2, "min_consumer", &VersionDef::min_consumer)
          .Field(3, "bad_consumers", &VersionDef::bad_consumers)
          .Build();
  return info;
}

const MessageInfo& NodeDefDebugInfo::Info() {
  static const MessageInfo& info =
      Table<NodeDefDebugInfo>("NodeDef.ExperimentalDebugInfo")
          .Field(1, "original_node_names", &NodeDefDebugInfo::original_node_names)
          .Field(2, "original_func_names", &NodeDefDebugInfo::original_func_names)
          .Build();
  return info;
}

const MessageInfo& NodeDef::Info() {
  static const MessageInfo& info =
      Table<NodeDef>("NodeDef")
          .Field(1, "name", &NodeDef::name)
          .Field(2, "op", &NodeDef::op)
          .Field(3, "input", &NodeDef::input)
          .Field(4, "device", &NodeDef::device)
          .Field(5, "attr", &NodeDef::attr)
          .Field(6, "experimental_debug_info", &NodeDef::experimental_debug_info)
          .Build();
  return info;
}

const MessageInfo& OpArgDef::Info() {
  static const MessageInfo& info =
      Table<OpArgDef>("OpDef.ArgDef")
          .Field(1, "name", &OpArgDef::name)
          .Field(2, "description", &OpArgDef::description)
          .Enum(3, "type", &OpArgDef::type, kDataTypeEnum)
          .Field(4, "type_attr", &OpArgDef::type_attr)
          .Field(5, "number_attr", &OpArgDef::number_attr)
          .Field(6, "type_list_attr", &OpArgDef::type_list_attr)
          .Field(16, "is_ref", &OpArgDef::is_ref)
          .Build();
  return info;
}

const MessageInfo& OpAttrDef::Info() {
  static const MessageInfo& info =
      Table<OpAttrDef>("OpDef.AttrDef")
          .Field(1, "name", &OpAttrDef::name)
          .Field(2, "type", &OpAttrDef::type)
          .Field(3, "default_value", &OpAttrDef::default_value)
          .Field(4, "description", &OpAttrDef::description)
          .Field(5, "has_minimum", &OpAttrDef::has_minimum)
          .Field(6, "minimum", &OpAttrDef::minimum)
          .Field(7, "allowed_values", &OpAttrDef::allowed_values)
          .Build();
  return info;
}

const MessageInfo& OpDeprecation::Info() {
  static const MessageInfo& info =
      Table<OpDeprecation>("OpDeprecation")
          .Field(1, "version", &OpDeprecation::version)
          .Field(2, "explanation", &OpDeprecation::explanation)
          .Build();
  return info;
}

const MessageInfo& OpDef::Info() {
  static const MessageInfo& info =
      Table<OpDef>("OpDef")
          .Field(1, "name", &OpDef::name)
          .Field(2, "input_arg", &OpDef::input_arg)
          .Field(3, "output_arg", &OpDef::output_arg)
          .Field(4, "attr", &OpDef::attr)
          .Field(5, "summary", &OpDef::summary)
          .Field(6, "description", &OpDef::description)
          .Field(8, "deprecation", &OpDef::deprecation)
          .Field(16, "is_aggregate", &OpDef::is_aggregate)
          .Field(17, "is_stateful", &OpDef::is_stateful)
          .Field(18, "is_commutative", &OpDef::is_commutative)
          .Field(19, "allows_uninitialized_input", &OpDef::allows_uninitialized_input)
          .Field(20, "control_output", &OpDef::control_output)
          .Build();
  return info;
}

const MessageInfo& OpList::Info() {
  static const MessageInfo& info = Table<OpList>("OpList").Field(1, "op", &OpList::op).Build();
  return info;
}

const MessageInfo& KernelAttrConstraint::Info() {
  static const MessageInfo& info =
      Table<KernelAttrConstraint>("KernelDef.AttrConstraint")
          .Field(1, "name", &KernelAttrConstraint::name)
          .Field(2, "allowed_values", &KernelAttrConstraint::allowed_values)
          .Build();
  return info;
}

const MessageInfo& KernelDef::Info() {
  static const MessageInfo& info =
      Table<KernelDef>("KernelDef")
          .Field(1, "op", &KernelDef::op)
          .Field(2, "device_type", &KernelDef::device_type)
          .Field(3, "constraint", &KernelDef::constraint)
          .Field(4, "host_memory_arg", &KernelDef::host_memory_arg)
          .Field(5, "label", &KernelDef::label)
          .Field(6, "priority", &KernelDef::priority)
          .Build();
  return info;
}

const MessageInfo& ArgAttrs::Info() {
  static const MessageInfo& info = Table<ArgAttrs>("FunctionDef.ArgAttrs").Field(1, "attr", &ArgAttrs::attr).Build();
  return info;
}

const MessageInfo& FunctionDef::Info() {
  static const MessageInfo& info =
      Table<FunctionDef>("FunctionDef")
          .Field(1, "signature", &FunctionDef::signature)
          .Field(3, "node_def", &FunctionDef::node_def)
          .Field(4, "ret", &FunctionDef::ret)
          .Field(5, "attr", &FunctionDef::attr)
          .Field(6, "control_ret", &FunctionDef::control_ret)
          .Field(7, "arg_attr", &FunctionDef::arg_attr)
          .Build();
  return info;
}

const MessageInfo& GradientDef::Info() {
  static const MessageInfo& info =
      Table<GradientDef>("GradientDef")
          .Field(1, "function_name", &GradientDef::function_name)
          .Field(2, "gradient_func", &GradientDef::gradient_func)
          .Build();
  return info;
}

const MessageInfo& FunctionDefLibrary::Info() {
  static const MessageInfo& info =
      Table<FunctionDefLibrary>("FunctionDefLibrary")
          .Field(1, "function", &FunctionDefLibrary::function)
          .Field(2, "gradient", &FunctionDefLibrary::gradient)
          .Build();
  return info;
}

const MessageInfo& GraphDef::Info() {
  static const MessageInfo& info =
      Table<GraphDef>("GraphDef")
          .Field(1, "node", &GraphDef::node)
          .Field(2, "library", &GraphDef::library)
          .Field(3, "version", &GraphDef::version)
          .Field(4, "versions", &GraphDef::versions)
          .Build();
  return info;
}

}  // namespace millrace::wire
