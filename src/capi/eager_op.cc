// SPDX-License-Identifier: Apache-2.0
// Ops that run at once: what they are made of, and their execution. Attributes are set as those of an operation of a
// graph.
#include "capi/eager.h"

using millrace::ArgDef;
using millrace::AttrDef;
using millrace::AttrValue;
using millrace::DType;
using millrace::InvalidArgument;
using millrace::NotFound;
using millrace::OpDef;
using millrace::Status;
using millrace::StatusOr;
using millrace::Tensor;
using millrace::capi::Describe;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

namespace {

TF_OperationDescription* DescOf(TFE_Op* op) { return op ? &op->desc : nullptr; }

const OpDef* FindOp(TFE_Context& context, absl::string_view name) {
  millrace::GraphReaderLock lock(&context.shared->mu);
  return context.shared->graph.FindOp(name);
}

Status NoSuchOp(absl::string_view name) {
  return NotFound("'", name, "' is neither a type of a primitive operation nor a name of a function registered here. ",
                  "Make sure the operation or function is registered in the binary running in this process.");
}

StatusOr<const OpDef*> DefOf(TFE_Context& context, absl::string_view name) {
  const OpDef* def = FindOp(context, name);
  if (def == nullptr) return NoSuchOp(name);
  return def;
}

StatusOr<TF_AttrType> AttrType(TFE_Context& context, absl::string_view op, const char* name, unsigned char* is_list) {
  MR_CAPI_REQUIRE(name);
  MR_CAPI_REQUIRE(is_list);
  MR_ASSIGN_OR_RETURN(const OpDef* def, DefOf(context, op));
  for (const AttrDef& attr : def->attrs) {
    if (attr.name != name) continue;
    *is_list = attr.is_list ? 1 : 0;
    return millrace::capi::AttrTypeOf(attr.kind);
  }
  return InvalidArgument("Attribute '", name, "' does not exist for this operation");
}

const ArgDef* FindArg(const std::vector<ArgDef>& args, absl::string_view name, size_t* position) {
  for (*position = 0; *position < args.size(); ++*position) {
    if (args[*position].name == name) return &args[*position];
  }
  return nullptr;
}

bool IsList(const ArgDef& arg) { return !arg.number_attr.empty() || !arg.type_list_attr.empty(); }

// The length that an attribute gives to a list; -1 when it is not set.
int LengthByAttr(const TFE_Op& op, const ArgDef& arg) {
  const millrace::AttrMap& attrs = op.desc.spec.attrs;
  auto it = attrs.find(arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr);
  if (it == attrs.end()) return -1;
  if (const auto* n = it->second.get<int64_t>()) return *n >= 0 && *n <= INT32_MAX ? static_cast<int>(*n) : -1;
  if (const auto* types = it->second.get<std::vector<DType>>()) return static_cast<int>(types->size());
  return -1;
}

StatusOr<int> LengthOf(const TFE_Op& op, const OpDef& def, const ArgDef& arg) {
  if (!IsList(arg)) return 1;
  const int by_attr = LengthByAttr(op, arg);
  if (by_attr >= 0) return by_attr;
  const std::string& attr = arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
  for (size_t i = 0; i < def.inputs.size(); ++i) {  // a list of inputs with the same attribute
    const ArgDef& input = def.inputs[i];
    if (!IsList(input) || (input.number_attr.empty() ? input.type_list_attr : input.number_attr) != attr) continue;
    if (op.desc.has_list && i < op.desc.arg_sizes.size()) return op.desc.arg_sizes[i];
  }
  return InvalidArgument("Unable to find the length of '", arg.name, "': attribute '", attr, "' is not set");
}

Status AddInput(TFE_Op& op, TFE_TensorHandle* input) {
  MR_CAPI_REQUIRE(input);
  op.inputs.push_back(*input);
  return absl::OkStatus();
}

// Each constant would be a node of its own for good.
bool IsConstant(const TFE_Op& op) { return op.desc.spec.op == "Const" && op.inputs.empty(); }

Status ExecuteConstant(const TFE_Op& op, std::vector<Tensor>* outputs) {
  MR_ASSIGN_OR_RETURN(const Tensor value, millrace::GetAttr<Tensor>(op.desc.spec.attrs, "value"));
  MR_ASSIGN_OR_RETURN(const DType dtype, millrace::GetAttr<DType>(op.desc.spec.attrs, "dtype"));
  if (dtype != value.dtype()) {
    return InvalidArgument("Const: attribute dtype is ", millrace::DTypeName(dtype), ", but its value is ",
                           millrace::DTypeName(value.dtype()));
  }
  outputs->push_back(value);
  return absl::OkStatus();
}

Status Execute(TFE_Op& op, std::vector<Tensor>* outputs, std::string* device) {
  MR_RETURN_IF_ERROR(op.desc.error);
  if (IsConstant(op)) {
    MR_ASSIGN_OR_RETURN(*device, op.context->FindDevice(op.desc.spec.device));
    return ExecuteConstant(op, outputs);
  }
  MR_ASSIGN_OR_RETURN(const millrace::capi::EagerStep* step, op.context->FindStep(op));
  *device = step->device;
  absl::InlinedVector<Tensor, 4> values;
  for (const TFE_TensorHandle& input : op.inputs) values.push_back(input.tensor);
  return op.context->session->Run(nullptr, step->feeds, values, step->fetches, step->targets, outputs, nullptr);
}

Status ExecuteInto(TFE_Op& op, TFE_TensorHandle** retvals, int* num_retvals) {
  std::vector<Tensor> outputs;
  std::string device;
  MR_RETURN_IF_ERROR(Execute(op, &outputs, &device));
  if (*num_retvals < 0 || outputs.size() > static_cast<size_t>(*num_retvals)) {
    return InvalidArgument("Expecting ", outputs.size(), " outputs, but *num_retvals is ", *num_retvals);
  }
  if (!outputs.empty()) MR_CAPI_REQUIRE(retvals);
  std::vector<std::unique_ptr<TFE_TensorHandle>> made;
  for (Tensor& t : outputs) made.push_back(std::make_unique<TFE_TensorHandle>(TFE_TensorHandle{std::move(t), device}));
  for (size_t i = 0; i < made.size(); ++i) retvals[i] = made[i].release();
  *num_retvals = static_cast<int>(made.size());
  return absl::OkStatus();
}

}  // namespace

extern "C" {

TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name, TF_Status* status) {
  return GuardedOr<TFE_Op*>(status, nullptr, [&]() -> StatusOr<TFE_Op*> {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(op_or_function_name);
    if (FindOp(*ctx, op_or_function_name) == nullptr) return NoSuchOp(op_or_function_name);
    auto op = std::make_unique<TFE_Op>();
    op->context = ctx;
    op->desc.spec.op = op_or_function_name;
    return op.release();
  });
}

void TFE_DeleteOp(TFE_Op* op) { delete op; }

const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status) {
  return GuardedOr<const char*>(status, nullptr, [&]() -> StatusOr<const char*> {
    MR_CAPI_REQUIRE(op);
    return op->desc.spec.op.c_str();
  });
}

TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status) {
  return GuardedOr<TFE_Context*>(status, nullptr, [&]() -> StatusOr<TFE_Context*> {
    MR_CAPI_REQUIRE(op);
    return op->context;
  });
}

void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(op);
    MR_ASSIGN_OR_RETURN(std::string device, op->context->FindDevice(device_name ? device_name : ""));
    op->desc.spec.device = device_name && *device_name ? std::move(device) : std::string();
    return absl::OkStatus();
  });
}

const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status) {
  return GuardedOr<const char*>(status, nullptr, [&]() -> StatusOr<const char*> {
    MR_CAPI_REQUIRE(op);
    return op->desc.spec.device.c_str();
  });
}

void TFE_OpSetXLACompilation(TFE_Op*, unsigned char) {}

void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(op);
    MR_RETURN_IF_ERROR(AddInput(*op, input));
    op->desc.arg_sizes.push_back(1);
    return absl::OkStatus();
  });
}

void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(op);
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(inputs, num_inputs, "inputs"));
    for (int i = 0; i < num_inputs; ++i) MR_CAPI_REQUIRE(inputs[i]);
    for (int i = 0; i < num_inputs; ++i) MR_RETURN_IF_ERROR(AddInput(*op, inputs[i]));
    op->desc.arg_sizes.push_back(num_inputs);
    op->desc.has_list = true;
    return absl::OkStatus();
  });
}

int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status) {
  return GuardedOr<int>(status, -1, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(op);
    return static_cast<int>(op->inputs.size());
  });
}

TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index, TF_Status* status) {
  return GuardedOr<TFE_TensorHandle*>(status, nullptr, [&]() -> StatusOr<TFE_TensorHandle*> {
    MR_CAPI_REQUIRE(op);
    if (index < 0 || static_cast<size_t>(index) >= op->inputs.size()) {
      return InvalidArgument("op ", op->desc.spec.op, " has ", op->inputs.size(), " inputs, no input ", index);
    }
    return const_cast<TFE_TensorHandle*>(&op->inputs[static_cast<size_t>(index)]);
  });
}

TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name, unsigned char* is_list, TF_Status* status) {
  return GuardedOr<TF_AttrType>(status, TF_ATTR_INT, [&]() -> StatusOr<TF_AttrType> {
    MR_CAPI_REQUIRE(op);
    return AttrType(*op->context, op->desc.spec.op, attr_name, is_list);
  });
}

TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx, const char* op_or_function_name, const char* attr_name,
                                  unsigned char* is_list, TF_Status* status) {
  return GuardedOr<TF_AttrType>(status, TF_ATTR_INT, [&]() -> StatusOr<TF_AttrType> {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(op_or_function_name);
    return AttrType(*ctx, op_or_function_name, attr_name, is_list);
  });
}

void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value, size_t length) {
  TF_SetAttrString(DescOf(op), attr_name, value, length);
}
void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value) { TF_SetAttrInt(DescOf(op), attr_name, value); }
void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value) {
  TF_SetAttrFloat(DescOf(op), attr_name, value);
}
void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name, unsigned char value) {
  TF_SetAttrBool(DescOf(op), attr_name, value);
}
void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value) {
  TF_SetAttrType(DescOf(op), attr_name, value);
}

void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name, const int64_t* dims, const int num_dims,
                        TF_Status* out_status) {
  Guarded(out_status, [&]() -> Status {
    MR_CAPI_REQUIRE(op);
    MR_RETURN_IF_ERROR(millrace::capi::MakePartialShape(dims, num_dims).status());
    TF_SetAttrShape(DescOf(op), attr_name, dims, num_dims);
    return absl::OkStatus();
  });
}

void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name, const TFE_Op* value) {
  Describe(DescOf(op), [&]() -> Status {
    MR_CAPI_REQUIRE(attr_name);
    MR_CAPI_REQUIRE(value);
    op->desc.spec.attrs.insert_or_assign(
        attr_name, AttrValue(millrace::FuncAttr{value->desc.spec.op, value->desc.spec.attrs}));
    return absl::OkStatus();
  });
}
void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name, const char* data, size_t length) {
  TF_SetAttrFuncName(DescOf(op), attr_name, data, length);
}
void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor, TF_Status* status) {
  TF_SetAttrTensor(DescOf(op), attr_name, tensor, status);
}
void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name, const void* proto, size_t proto_len,
                             TF_Status* status) {
  TF_SetAttrValueProto(DescOf(const_cast<TFE_Op*>(op)), attr_name, proto, proto_len, status);
}

void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name, const void* const* values, const size_t* lengths,
                             int num_values) {
  TF_SetAttrStringList(DescOf(op), attr_name, values, lengths, num_values);
}
void TFE_OpSetAttrIntList(TFE_Op* op, const char* attr_name, const int64_t* values, int num_values) {
  TF_SetAttrIntList(DescOf(op), attr_name, values, num_values);
}
void TFE_OpSetAttrFloatList(TFE_Op* op, const char* attr_name, const float* values, int num_values) {
  TF_SetAttrFloatList(DescOf(op), attr_name, values, num_values);
}
void TFE_OpSetAttrBoolList(TFE_Op* op, const char* attr_name, const unsigned char* values, int num_values) {
  TF_SetAttrBoolList(DescOf(op), attr_name, values, num_values);
}
void TFE_OpSetAttrTypeList(TFE_Op* op, const char* attr_name, const TF_DataType* values, int num_values) {
  TF_SetAttrTypeList(DescOf(op), attr_name, values, num_values);
}

void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name, const int64_t** dims, const int* num_dims,
                            int num_values, TF_Status* out_status) {
  Guarded(out_status, [&]() -> Status {
    MR_CAPI_REQUIRE(op);
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(dims, num_values, "dims"));
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(num_dims, num_values, "num_dims"));
    for (int i = 0; i < num_values; ++i) {
      MR_RETURN_IF_ERROR(millrace::capi::MakePartialShape(dims[i], num_dims[i]).status());
    }
    TF_SetAttrShapeList(DescOf(op), attr_name, dims, num_dims, num_values);
    return absl::OkStatus();
  });
}

void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name, const TFE_Op** value, int num_values) {
  Describe(DescOf(op), [&]() -> Status {
    MR_CAPI_REQUIRE(attr_name);
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(value, num_values, "value"));
    std::vector<millrace::FuncAttr> list;
    for (int i = 0; i < num_values; ++i) {
      MR_CAPI_REQUIRE(value[i]);
      list.push_back(millrace::FuncAttr{value[i]->desc.spec.op, value[i]->desc.spec.attrs});
    }
    op->desc.spec.attrs.insert_or_assign(attr_name, AttrValue(std::move(list)));
    return absl::OkStatus();
  });
}

int TFE_OpGetInputLength(TFE_Op* op, const char* input_name, TF_Status* status) {
  return GuardedOr<int>(status, -1, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(op);
    MR_CAPI_REQUIRE(input_name);
    MR_ASSIGN_OR_RETURN(const OpDef* def, DefOf(*op->context, op->desc.spec.op));
    size_t position;
    const ArgDef* arg = FindArg(def->inputs, input_name, &position);
    if (arg == nullptr) return InvalidArgument("Input '", input_name, "' not found");
    if (IsList(*arg) && op->desc.has_list && position < op->desc.arg_sizes.size()) return op->desc.arg_sizes[position];
    return LengthOf(*op, *def, *arg);
  });
}

int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name, TF_Status* status) {
  return GuardedOr<int>(status, -1, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(op);
    MR_CAPI_REQUIRE(output_name);
    MR_ASSIGN_OR_RETURN(const OpDef* def, DefOf(*op->context, op->desc.spec.op));
    size_t position;
    const ArgDef* arg = FindArg(def->outputs, output_name, &position);
    if (arg == nullptr) return InvalidArgument("Output '", output_name, "' not found");
    return LengthOf(*op, *def, *arg);
  });
}

void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals, TF_Status* status) {
  if (retvals != nullptr && num_retvals != nullptr) {
    for (int i = 0; i < *num_retvals; ++i) retvals[i] = nullptr;
  }
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(op);
    MR_CAPI_REQUIRE(num_retvals);
    return ExecuteInto(*op, retvals, num_retvals);
  });
}

}  // extern "C"
