// SPDX-License-Identifier: Apache-2.0
// Attributes of an operation under construction.
#include "capi/internal.h"
#include "tensor/tensor_proto.h"

using millrace::AttrValue;
using millrace::DType;
using millrace::InvalidArgument;
using millrace::PartialShape;
using millrace::Status;
using millrace::StatusOr;
using millrace::Tensor;
using millrace::capi::Describe;
using millrace::capi::Guarded;

namespace {

// Attribute _class collects, together with TF_ColocateWith.
void Store(TF_OperationDescription* desc, const char* name, AttrValue value) {
  if (name == absl::string_view(millrace::capi::kColocationAttr)) {
    if (const auto* one = value.get<std::string>()) {
      desc->colocation = {*one};
      return;
    }
    if (const auto* list = value.get<std::vector<std::string>>()) {
      desc->colocation = {list->begin(), list->end()};
      return;
    }
  }
  desc->spec.attrs.insert_or_assign(std::string(name), std::move(value));
}

// make() -> AttrValue or StatusOr<AttrValue>.
template <typename Make>
void Set(TF_OperationDescription* desc, const char* attr_name, Make&& make) {
  Describe(desc, [&]() -> Status {
    MR_CAPI_REQUIRE(attr_name);
    StatusOr<AttrValue> value = make();
    if (!value.ok()) {
      return millrace::Annotate(value.status(), absl::StrCat("attribute '", attr_name, "': "));
    }
    Store(desc, attr_name, *std::move(value));
    return absl::OkStatus();
  });
}

// For setters with a status: what is wrong is reported at once, and the description stays as it was.
template <typename Make>
void SetReporting(TF_OperationDescription* desc, const char* attr_name, TF_Status* status, Make&& make) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(desc);
    MR_CAPI_REQUIRE(attr_name);
    StatusOr<AttrValue> value = make();
    if (!value.ok()) {
      return millrace::Annotate(value.status(), absl::StrCat("attribute '", attr_name, "': "));
    }
    Store(desc, attr_name, *std::move(value));
    return absl::OkStatus();
  });
}

// convert(values[i]) -> T for a list of plain values.
template <typename T, typename From, typename Convert>
void SetList(TF_OperationDescription* desc, const char* attr_name, const From* values, int count, Convert&& convert) {
  Set(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(values, count, "values"));
    std::vector<T> list;
    list.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      MR_ASSIGN_OR_RETURN(T value, convert(values[i]));
      list.push_back(std::move(value));
    }
    return AttrValue(std::move(list));
  });
}

// fill(i) -> StatusOr<T>
template <typename T, typename Item>
StatusOr<AttrValue> ListOf(int count, Item&& item) {
  std::vector<T> list;
  list.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    MR_ASSIGN_OR_RETURN(T value, item(i));
    list.push_back(std::move(value));
  }
  return AttrValue(std::move(list));
}

StatusOr<std::string> MakeString(const void* value, size_t length) {
  if (value == nullptr && length > 0) return millrace::capi::NullArgument("value");
  return std::string(static_cast<const char*>(value), length);
}

StatusOr<PartialShape> ShapeFromBytes(const void* proto, size_t size) {
  millrace::wire::TensorShapeProto message;
  MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(proto, size, "TensorShapeProto", &message));
  return millrace::ShapeFromProto(message);
}

// A copy: the program may write to its tensor afterwards, and views of strings may end before the graph does.
StatusOr<Tensor> TensorOf(const TF_Tensor* t) {
  if (t == nullptr) return millrace::capi::NullArgument("value");
  MR_ASSIGN_OR_RETURN(const Tensor value, millrace::capi::FeedValue(t));
  return value.Clone();
}

}  // namespace

extern "C" {

void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name, const void* value, size_t length) {
  Set(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    MR_ASSIGN_OR_RETURN(std::string s, MakeString(value, length));
    return AttrValue(std::move(s));
  });
}

void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name, const void* const* values,
                          const size_t* lengths, int num_values) {
  Set(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(values, num_values, "values"));
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(lengths, num_values, "lengths"));
    return ListOf<std::string>(num_values, [&](int i) { return MakeString(values[i], lengths[i]); });
  });
}

void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name, int64_t value) {
  Set(desc, attr_name, [&] { return AttrValue(value); });
}
void TF_SetAttrIntList(TF_OperationDescription* desc, const char* attr_name, const int64_t* values, int num_values) {
  SetList<int64_t>(desc, attr_name, values, num_values, [](int64_t v) -> StatusOr<int64_t> { return v; });
}

void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name, float value) {
  Set(desc, attr_name, [&] { return AttrValue(value); });
}
void TF_SetAttrFloatList(TF_OperationDescription* desc, const char* attr_name, const float* values, int num_values) {
  SetList<float>(desc, attr_name, values, num_values, [](float v) -> StatusOr<float> { return v; });
}

void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name, unsigned char value) {
  Set(desc, attr_name, [&] { return AttrValue(value != 0); });
}
void TF_SetAttrBoolList(TF_OperationDescription* desc, const char* attr_name, const unsigned char* values,
                        int num_values) {
  SetList<bool>(desc, attr_name, values, num_values, [](unsigned char v) -> StatusOr<bool> { return v != 0; });
}

void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name, TF_DataType value) {
  Set(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    MR_ASSIGN_OR_RETURN(const DType dtype, millrace::capi::MakeDType(value));
    return AttrValue(dtype);
  });
}
void TF_SetAttrTypeList(TF_OperationDescription* desc, const char* attr_name, const TF_DataType* values,
                        int num_values) {
  SetList<DType>(desc, attr_name, values, num_values, millrace::capi::MakeDType);
}

void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name, const char* placeholder) {
  Set(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    MR_CAPI_REQUIRE(placeholder);
    return AttrValue(millrace::PlaceholderAttr{placeholder});
  });
}

void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name, const char* value, size_t length) {
  Set(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    MR_ASSIGN_OR_RETURN(std::string name, MakeString(value, length));
    return AttrValue(millrace::FuncAttr{std::move(name), {}});
  });
}

void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name, const int64_t* dims, int num_dims) {
  Set(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    MR_ASSIGN_OR_RETURN(PartialShape shape, millrace::capi::MakePartialShape(dims, num_dims));
    return AttrValue(std::move(shape));
  });
}
void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name, const int64_t* const* dims,
                         const int* num_dims, int num_shapes) {
  Set(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(dims, num_shapes, "dims"));
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(num_dims, num_shapes, "num_dims"));
    return ListOf<PartialShape>(
        num_shapes, [&](int i) { return millrace::capi::MakePartialShape(dims[i], num_dims[i]); });
  });
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc, const char* attr_name, const void* proto,
                                size_t proto_len, TF_Status* status) {
  SetReporting(desc, attr_name, status, [&]() -> StatusOr<AttrValue> {
    MR_ASSIGN_OR_RETURN(PartialShape shape, ShapeFromBytes(proto, proto_len));
    return AttrValue(std::move(shape));
  });
}
void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* desc, const char* attr_name, const void* const* protos,
                                    const size_t* proto_lens, int num_shapes, TF_Status* status) {
  SetReporting(desc, attr_name, status, [&]() -> StatusOr<AttrValue> {
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(protos, num_shapes, "protos"));
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(proto_lens, num_shapes, "proto_lens"));
    return ListOf<PartialShape>(num_shapes, [&](int i) { return ShapeFromBytes(protos[i], proto_lens[i]); });
  });
}

void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name, TF_Tensor* value, TF_Status* status) {
  SetReporting(desc, attr_name, status, [&]() -> StatusOr<AttrValue> {
    MR_ASSIGN_OR_RETURN(Tensor tensor, TensorOf(value));
    return AttrValue(std::move(tensor));
  });
}
void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name, TF_Tensor* const* values,
                          int num_values, TF_Status* status) {
  SetReporting(desc, attr_name, status, [&]() -> StatusOr<AttrValue> {
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(values, num_values, "values"));
    return ListOf<Tensor>(num_values, [&](int i) { return TensorOf(values[i]); });
  });
}

void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name, const void* proto, size_t proto_len,
                          TF_Status* status) {
  SetReporting(desc, attr_name, status, [&]() -> StatusOr<AttrValue> {
    millrace::wire::AttrValue message;
    MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(proto, proto_len, "AttrValue", &message));
    const bool empty = message.kind == millrace::wire::AttrValue::Kind::kNone;
    if (empty && attr_name == absl::string_view(millrace::capi::kColocationAttr)) {
      return AttrValue(std::vector<std::string>());  // colocated with nothing
    }
    return millrace::AttrFromProto(message);
  });
}

}  // extern "C"
