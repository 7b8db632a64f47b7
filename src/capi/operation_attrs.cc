// SPDX-License-Identifier: Apache-2.0
// Reading the attributes of an operation.
#include <algorithm>
#include <cstring>

#include "capi/internal.h"
#include "tensor/tensor_proto.h"

using millrace::AttrKind;
using millrace::AttrValue;
using millrace::DType;
using millrace::EmptyListAttr;
using millrace::InvalidArgument;
using millrace::Node;
using millrace::PartialShape;
using millrace::Status;
using millrace::StatusOr;
using millrace::Tensor;
using millrace::capi::AsNode;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

namespace {

StatusOr<const AttrValue*> FindAttr(const TF_Operation* oper, const char* name) {
  MR_CAPI_REQUIRE(oper);
  if (name == nullptr) return millrace::capi::NullArgument("attr_name");
  const Node* node = AsNode(oper);
  auto it = node->attrs().find(absl::string_view(name));
  if (it != node->attrs().end()) return &it->second;
  return InvalidArgument("Operation '", node->name(), "' has no attr named '", name, "'.");
}

Status WrongKind(const TF_Operation* oper, const char* name, const AttrValue& got, const char* want) {
  return millrace::Annotate(
      millrace::AttrWrongKind(name, got, want), absl::StrCat("operation '", AsNode(oper)->name(), "': "));
}

// use(value) -> Status, with the attribute as a T.
template <typename T, typename Use>
void ReadAttr(TF_Operation* oper, const char* name, const void* out, TF_Status* status, Use&& use) {
  Guarded(status, [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const AttrValue* attr, FindAttr(oper, name));
    if (out == nullptr) return millrace::capi::NullArgument("value");
    const T* value = attr->get<T>();
    if (value == nullptr) return WrongKind(oper, name, *attr, millrace::internal::AttrTypeName<T>());
    return use(*value);
  });
}

// use(list) -> Status, where an empty list of no known kind is an empty list of T.
template <typename T, typename Use>
void ReadAttrList(TF_Operation* oper, const char* name, int max, TF_Status* status, Use&& use) {
  Guarded(status, [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const AttrValue* attr, FindAttr(oper, name));
    if (max < 0) return InvalidArgument("the number of values is negative: ", max);
    const auto* list = attr->get<std::vector<T>>();
    static const std::vector<T>& empty = *new std::vector<T>();
    if (list == nullptr && attr->get<EmptyListAttr>()) list = &empty;
    if (list == nullptr) {
      return WrongKind(oper, name, *attr, absl::StrCat("list of ", millrace::internal::AttrTypeName<T>()).c_str());
    }
    return use(*list);
  });
}

// Writes convert(list[i]) to out[i], at most `max`.
template <typename T, typename To, typename Convert>
void CopyAttrList(TF_Operation* oper, const char* name, To* out, int max, TF_Status* status, Convert&& convert) {
  ReadAttrList<T>(oper, name, max, status, [&](const std::vector<T>& list) -> Status {
    const size_t count = std::min(list.size(), static_cast<size_t>(max));
    if (count > 0 && out == nullptr) return millrace::capi::NullArgument("values");
    for (size_t i = 0; i < count; ++i) out[i] = convert(list[i]);
    return absl::OkStatus();
  });
}

}  // namespace

TF_AttrType millrace::capi::AttrTypeOf(AttrKind kind) {
  switch (kind) {
    case AttrKind::kString: return TF_ATTR_STRING;
    case AttrKind::kInt: return TF_ATTR_INT;
    case AttrKind::kFloat: return TF_ATTR_FLOAT;
    case AttrKind::kBool: return TF_ATTR_BOOL;
    case AttrKind::kType: return TF_ATTR_TYPE;
    case AttrKind::kShape: return TF_ATTR_SHAPE;
    case AttrKind::kTensor: return TF_ATTR_TENSOR;
    case AttrKind::kFunc: return TF_ATTR_FUNC;
  }
  return TF_ATTR_INT;
}

namespace {

// The metadata of one kind of value, in the order of AttrValue::Storage.
struct Measure {
  TF_AttrMetadata operator()(const EmptyListAttr&) const { return {1, 0, TF_ATTR_INT, -1}; }
  TF_AttrMetadata operator()(const std::string& s) const { return {0, -1, TF_ATTR_STRING, Size(s)}; }
  TF_AttrMetadata operator()(int64_t) const { return {0, -1, TF_ATTR_INT, -1}; }
  TF_AttrMetadata operator()(float) const { return {0, -1, TF_ATTR_FLOAT, -1}; }
  TF_AttrMetadata operator()(bool) const { return {0, -1, TF_ATTR_BOOL, -1}; }
  TF_AttrMetadata operator()(DType) const { return {0, -1, TF_ATTR_TYPE, -1}; }
  TF_AttrMetadata operator()(const PartialShape& s) const { return {0, -1, TF_ATTR_SHAPE, s.rank()}; }
  TF_AttrMetadata operator()(const Tensor&) const { return {0, -1, TF_ATTR_TENSOR, -1}; }
  TF_AttrMetadata operator()(const millrace::FuncAttr&) const { return {0, -1, TF_ATTR_FUNC, -1}; }
  TF_AttrMetadata operator()(const millrace::PlaceholderAttr&) const { return {0, -1, TF_ATTR_PLACEHOLDER, -1}; }
  TF_AttrMetadata operator()(const std::vector<std::string>& l) const {
    int64_t total = 0;
    for (const std::string& s : l) total += Size(s);
    return {1, Size(l), TF_ATTR_STRING, total};
  }
  TF_AttrMetadata operator()(const std::vector<int64_t>& l) const { return {1, Size(l), TF_ATTR_INT, -1}; }
  TF_AttrMetadata operator()(const std::vector<float>& l) const { return {1, Size(l), TF_ATTR_FLOAT, -1}; }
  TF_AttrMetadata operator()(const std::vector<bool>& l) const { return {1, Size(l), TF_ATTR_BOOL, -1}; }
  TF_AttrMetadata operator()(const std::vector<DType>& l) const { return {1, Size(l), TF_ATTR_TYPE, -1}; }
  TF_AttrMetadata operator()(const std::vector<PartialShape>& l) const {
    int64_t total = 0;
    for (const PartialShape& s : l) total += s.has_rank() ? s.rank() : 0;
    return {1, Size(l), TF_ATTR_SHAPE, total};
  }
  TF_AttrMetadata operator()(const std::vector<Tensor>& l) const { return {1, Size(l), TF_ATTR_TENSOR, -1}; }
  TF_AttrMetadata operator()(const std::vector<millrace::FuncAttr>& l) const { return {1, Size(l), TF_ATTR_FUNC, -1}; }

 private:
  template <typename C>
  static int64_t Size(const C& c) {
    return static_cast<int64_t>(c.size());
  }
};

// What an empty list would hold, by the op's declaration.
void RefineEmptyList(const Node& node, const char* name, TF_AttrMetadata* metadata) {
  const millrace::AttrDef* def = node.op() ? node.op()->FindAttr(name) : nullptr;
  if (def == nullptr) return;
  metadata->type = millrace::capi::AttrTypeOf(def->kind);
  if (def->kind == AttrKind::kString || def->kind == AttrKind::kShape) metadata->total_size = 0;
}

}  // namespace

extern "C" {

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper, const char* attr_name, TF_Status* status) {
  return GuardedOr<TF_AttrMetadata>(status, {0, -1, TF_ATTR_STRING, -1}, [&]() -> StatusOr<TF_AttrMetadata> {
    MR_ASSIGN_OR_RETURN(const AttrValue* attr, FindAttr(oper, attr_name));
    TF_AttrMetadata metadata = std::visit(Measure(), attr->storage());
    if (metadata.is_list && metadata.list_size == 0) RefineEmptyList(*AsNode(oper), attr_name, &metadata);
    return metadata;
  });
}

void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name, void* value, size_t max_length,
                               TF_Status* status) {
  ReadAttr<std::string>(oper, attr_name, max_length ? value : attr_name, status, [&](const std::string& s) {
    if (max_length > 0) std::memcpy(value, s.data(), std::min(s.size(), max_length));
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrStringList(TF_Operation* oper, const char* attr_name, void** values, size_t* lengths,
                                   int max_values, void* storage, size_t storage_size, TF_Status* status) {
  ReadAttrList<std::string>(oper, attr_name, max_values, status, [&](const std::vector<std::string>& list) -> Status {
    const size_t count = std::min(list.size(), static_cast<size_t>(max_values));
    if (count > 0) {
      MR_CAPI_REQUIRE(values);
      MR_CAPI_REQUIRE(lengths);
    }
    char* next = static_cast<char*>(storage);
    size_t left = storage ? storage_size : 0;
    for (size_t i = 0; i < count; ++i) {
      if (list[i].size() > left) {
        return InvalidArgument(
            "storage of ", storage_size, " bytes is too small for the strings of attribute '", attr_name, "'");
      }
      values[i] = next;
      lengths[i] = list[i].size();
      if (!list[i].empty()) std::memcpy(next, list[i].data(), list[i].size());
      if (next) next += list[i].size();
      left -= list[i].size();
    }
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrInt(TF_Operation* oper, const char* attr_name, int64_t* value, TF_Status* status) {
  ReadAttr<int64_t>(oper, attr_name, value, status, [&](int64_t v) { return *value = v, absl::OkStatus(); });
}
void TF_OperationGetAttrIntList(TF_Operation* oper, const char* attr_name, int64_t* values, int max_values,
                                TF_Status* status) {
  CopyAttrList<int64_t>(oper, attr_name, values, max_values, status, [](int64_t v) { return v; });
}

void TF_OperationGetAttrFloat(TF_Operation* oper, const char* attr_name, float* value, TF_Status* status) {
  ReadAttr<float>(oper, attr_name, value, status, [&](float v) { return *value = v, absl::OkStatus(); });
}
void TF_OperationGetAttrFloatList(TF_Operation* oper, const char* attr_name, float* values, int max_values,
                                  TF_Status* status) {
  CopyAttrList<float>(oper, attr_name, values, max_values, status, [](float v) { return v; });
}

void TF_OperationGetAttrBool(TF_Operation* oper, const char* attr_name, unsigned char* value, TF_Status* status) {
  ReadAttr<bool>(oper, attr_name, value, status, [&](bool v) { return *value = v, absl::OkStatus(); });
}
void TF_OperationGetAttrBoolList(TF_Operation* oper, const char* attr_name, unsigned char* values, int max_values,
                                 TF_Status* status) {
  CopyAttrList<bool>(oper, attr_name, values, max_values, status, [](bool v) { return static_cast<unsigned char>(v); });
}

void TF_OperationGetAttrType(TF_Operation* oper, const char* attr_name, TF_DataType* value, TF_Status* status) {
  ReadAttr<DType>(
      oper, attr_name, value, status, [&](DType v) { return *value = static_cast<TF_DataType>(v), absl::OkStatus(); });
}
void TF_OperationGetAttrTypeList(TF_Operation* oper, const char* attr_name, TF_DataType* values, int max_values,
                                 TF_Status* status) {
  CopyAttrList<DType>(oper, attr_name, values, max_values, status, [](DType v) { return static_cast<TF_DataType>(v); });
}

void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name, int64_t* value, int num_dims,
                              TF_Status* status) {
  ReadAttr<PartialShape>(oper, attr_name, attr_name, status, [&](const PartialShape& shape) -> Status {
    const int count = std::min(shape.has_rank() ? shape.rank() : 0, num_dims);
    if (count > 0) MR_CAPI_REQUIRE(value);
    for (int i = 0; i < count; ++i) value[i] = shape.dim(i);
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* attr_name, int64_t** dims, int* num_dims,
                                  int num_shapes, int64_t* storage, int storage_size, TF_Status* status) {
  ReadAttrList<PartialShape>(oper, attr_name, num_shapes, status, [&](const std::vector<PartialShape>& list) -> Status {
    const size_t count = std::min(list.size(), static_cast<size_t>(num_shapes));
    if (count > 0) {
      MR_CAPI_REQUIRE(dims);
      MR_CAPI_REQUIRE(num_dims);
    }
    int64_t* next = storage;
    int left = storage ? storage_size : 0;
    for (size_t i = 0; i < count; ++i) {
      num_dims[i] = list[i].rank();
      dims[i] = next;
      if (num_dims[i] <= 0) continue;
      if (num_dims[i] > left) {
        return InvalidArgument(
            "storage of ", storage_size, " dimensions is too small for the shapes of attribute '", attr_name, "'");
      }
      for (int64_t d : list[i].dims()) *next++ = d;
      left -= num_dims[i];
    }
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper, const char* attr_name, TF_Buffer* value,
                                         TF_Status* status) {
  ReadAttr<PartialShape>(oper, attr_name, value, status, [&](const PartialShape& shape) {
    return millrace::capi::FillWithMessage(value, millrace::ShapeToProto(shape), "value");
  });
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper, const char* attr_name, TF_Buffer** values,
                                             int max_values, TF_Status* status) {
  ReadAttrList<PartialShape>(oper, attr_name, max_values, status, [&](const std::vector<PartialShape>& list) -> Status {
    const size_t count = std::min(list.size(), static_cast<size_t>(max_values));
    if (count > 0) MR_CAPI_REQUIRE(values);
    std::vector<std::unique_ptr<TF_Buffer, void (*)(TF_Buffer*)>> made;
    for (size_t i = 0; i < count; ++i) {
      made.emplace_back(
          millrace::capi::MakeBuffer(millrace::wire::Encode(millrace::ShapeToProto(list[i]))), TF_DeleteBuffer);
    }
    for (size_t i = 0; i < count; ++i) values[i] = made[i].release();
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name, TF_Tensor** value, TF_Status* status) {
  ReadAttr<Tensor>(oper, attr_name, value, status, [&](const Tensor& t) {
    *value = new TF_Tensor{t};
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name, TF_Tensor** values, int max_values,
                                   TF_Status* status) {
  ReadAttrList<Tensor>(oper, attr_name, max_values, status, [&](const std::vector<Tensor>& list) -> Status {
    const size_t count = std::min(list.size(), static_cast<size_t>(max_values));
    if (count > 0) MR_CAPI_REQUIRE(values);
    std::vector<std::unique_ptr<TF_Tensor>> made;
    for (size_t i = 0; i < count; ++i) made.push_back(std::make_unique<TF_Tensor>(TF_Tensor{list[i]}));
    for (size_t i = 0; i < count; ++i) values[i] = made[i].release();
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name, TF_Buffer* output_attr_value,
                                   TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const AttrValue* attr, FindAttr(oper, attr_name));
    MR_ASSIGN_OR_RETURN(const millrace::wire::AttrValue message, millrace::AttrToProto(*attr));
    return millrace::capi::FillWithMessage(output_attr_value, message, "output_attr_value");
  });
}

int TF_OperationGetNumAttrs(TF_Operation* oper) { return oper ? static_cast<int>(AsNode(oper)->attrs().size()) : 0; }

int TF_OperationGetAttrNameLength(TF_Operation* oper, int i) {
  if (i < 0 || i >= TF_OperationGetNumAttrs(oper)) return 0;
  return static_cast<int>(std::next(AsNode(oper)->attrs().begin(), i)->first.size());
}

void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(oper);
    MR_CAPI_REQUIRE(output);
    const auto& attrs = AsNode(oper)->attrs();
    if (i < 0 || static_cast<size_t>(i) >= attrs.size()) {
      return InvalidArgument("operation '", AsNode(oper)->name(), "' has ", attrs.size(), " attributes, no number ", i);
    }
    const std::string& name = std::next(attrs.begin(), i)->first;
    std::memcpy(output, name.data(), name.size());
    return absl::OkStatus();
  });
}

}  // extern "C"
