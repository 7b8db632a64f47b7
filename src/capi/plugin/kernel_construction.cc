// SPDX-License-Identifier: Apache-2.0
// What a kernel reads of its operation when it is made.
#include <algorithm>
#include <cstring>
#include <limits>

#include "capi/internal.h"
#include "capi/plugin/foreign.h"
#include "capi/plugin/plugin_kernel.h"

using millrace::AttrValue;
using millrace::DType;
using millrace::EmptyListAttr;
using millrace::InvalidArgument;
using millrace::NotFound;
using millrace::PartialShape;
using millrace::Status;
using millrace::StatusOr;
using millrace::Tensor;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

namespace {

const AttrValue* Find(const TF_OpKernelConstruction& c, const char* name) {
  auto it = c.init.attrs.find(absl::string_view(name));
  return it == c.init.attrs.end() ? nullptr : &it->second;
}

Status WrongKind(const TF_OpKernelConstruction& c, const char* name, const AttrValue& got, const char* want) {
  return millrace::Annotate(millrace::AttrWrongKind(name, got, want),
                            absl::StrCat("operation '", c.init.node_name, "' (", c.init.op.name, "): "));
}

// use(value) -> Status, with the attribute as a T.
template <typename T, typename Use>
Status WithAttr(TF_OpKernelConstruction* ctx, const char* attr_name, const void* out, Use&& use) {
  MR_CAPI_REQUIRE(ctx);
  MR_CAPI_REQUIRE(attr_name);
  if (out == nullptr) return millrace::capi::NullArgument("val");
  const AttrValue* attr = Find(*ctx, attr_name);
  if (attr == nullptr) {
    return NotFound("No attr named '", attr_name, "' in NodeDef of operation '", ctx->init.node_name, "' (",
                    ctx->init.op.name, ")");
  }
  if (const T* value = attr->get<T>()) return use(*value);
  return WrongKind(*ctx, attr_name, *attr, millrace::internal::AttrTypeName<T>());
}

// use(list) -> Status; an empty list of no known kind is an empty list of T.
template <typename T, typename Use>
Status WithList(TF_OpKernelConstruction* ctx, const char* attr_name, int max, Use&& use) {
  MR_CAPI_REQUIRE(ctx);
  MR_CAPI_REQUIRE(attr_name);
  if (max < 0) return InvalidArgument("the number of values is negative: ", max);
  const AttrValue* attr = Find(*ctx, attr_name);
  if (attr == nullptr) {
    return InvalidArgument("Operation '", ctx->init.node_name, "' has no attr named '", attr_name, "'.");
  }
  if (!attr->is_list()) return InvalidArgument("Value for '", attr_name, "' is not a list.");
  if (attr->get<EmptyListAttr>()) return absl::OkStatus();
  if (const auto* list = attr->get<std::vector<T>>()) return use(*list);
  return WrongKind(*ctx, attr_name, *attr, absl::StrCat("list of ", millrace::internal::AttrTypeName<T>()).c_str());
}

template <typename T, typename To>
void ReadOne(TF_OpKernelConstruction* ctx, const char* attr_name, To* val, TF_Status* status) {
  Guarded(status, [&] {
    return WithAttr<T>(ctx, attr_name, val, [&](const T& v) -> Status {
      if constexpr (std::is_same_v<To, int32_t> && std::is_same_v<T, int64_t>) {
        if (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()) {
          return InvalidArgument("Attr ", attr_name, " has value ", v, " out of range for an int32");
        }
      }
      *val = static_cast<To>(v);
      return absl::OkStatus();
    });
  });
}

// At most `max`, as the caller's type has them.
template <typename T, typename To>
void ReadList(TF_OpKernelConstruction* ctx, const char* attr_name, To* vals, int max, TF_Status* status) {
  Guarded(status, [&] {
    return WithList<T>(ctx, attr_name, max, [&](const std::vector<T>& list) -> Status {
      const size_t count = std::min(list.size(), static_cast<size_t>(max));
      if (count > 0 && vals == nullptr) return millrace::capi::NullArgument("vals");
      for (size_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<To, int32_t> && std::is_same_v<T, int64_t>) {
          const int64_t v = list[i];
          if (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()) {
            return InvalidArgument("Attr ", attr_name, " has value ", v, " out of range for an int32");
          }
        }
        vals[i] = static_cast<To>(list[i]);
      }
      return absl::OkStatus();
    });
  });
}

int32_t Narrow(size_t n) { return static_cast<int32_t>(std::min<size_t>(n, std::numeric_limits<int32_t>::max())); }

// List size and total size, in the order of AttrValue::Storage.
struct Sizes {
  std::pair<int32_t, int32_t> operator()(const EmptyListAttr&) const { return {0, -1}; }
  std::pair<int32_t, int32_t> operator()(const std::string& s) const { return {-1, Narrow(s.size())}; }
  std::pair<int32_t, int32_t> operator()(const PartialShape& s) const { return {-1, s.rank()}; }
  std::pair<int32_t, int32_t> operator()(const std::vector<std::string>& l) const {
    size_t total = 0;
    for (const std::string& s : l) total += s.size();
    return {Narrow(l.size()), l.empty() ? -1 : Narrow(total)};
  }
  std::pair<int32_t, int32_t> operator()(const std::vector<PartialShape>& l) const {
    size_t total = 0;
    for (const PartialShape& s : l) total += s.dims().size();
    return {Narrow(l.size()), l.empty() ? -1 : Narrow(total)};
  }
  template <typename T>
  std::pair<int32_t, int32_t> operator()(const std::vector<T>& l) const {
    return {Narrow(l.size()), -1};
  }
  template <typename T>
  std::pair<int32_t, int32_t> operator()(const T&) const {
    return {-1, -1};
  }
};

}  // namespace

extern "C" {

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx, TF_Status* status) {
  if (ctx == nullptr || status == nullptr) return;
  millrace::capi::Try(0, [&] { return ctx->failure.Update(millrace::capi::FromStatus(*status)), 0; });
}

TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx) {
  if (ctx == nullptr) return {nullptr, 0};
  return {ctx->init.node_name.data(), ctx->init.node_name.size()};
}

bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx, const char* attr_name, TF_Status* status) {
  return GuardedOr<bool>(status, false, [&]() -> StatusOr<bool> {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(attr_name);
    return Find(*ctx, attr_name) != nullptr;
  });
}

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx, const char* attr_name, int32_t* list_size,
                                         int32_t* total_size, TF_Status* status) {
  if (list_size != nullptr) *list_size = -1;
  if (total_size != nullptr) *total_size = -1;
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(attr_name);
    MR_CAPI_REQUIRE(list_size);
    MR_CAPI_REQUIRE(total_size);
    const AttrValue* attr = Find(*ctx, attr_name);
    if (attr == nullptr) {
      return InvalidArgument("Operation '", ctx->init.node_name, "' has no attr named '", attr_name, "'.");
    }
    std::tie(*list_size, *total_size) = std::visit(Sizes(), attr->storage());
    return absl::OkStatus();
  });
}

void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* ctx, const char* attr_name, TF_DataType* val,
                                         TF_Status* status) {
  ReadOne<DType>(ctx, attr_name, val, status);
}
void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx, const char* attr_name, int32_t* val,
                                          TF_Status* status) {
  ReadOne<int64_t>(ctx, attr_name, val, status);
}
void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction* ctx, const char* attr_name, int64_t* val,
                                          TF_Status* status) {
  ReadOne<int64_t>(ctx, attr_name, val, status);
}
void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* ctx, const char* attr_name, float* val,
                                          TF_Status* status) {
  ReadOne<float>(ctx, attr_name, val, status);
}
void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* ctx, const char* attr_name, TF_Bool* val,
                                         TF_Status* status) {
  ReadOne<bool>(ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction* ctx, const char* attr_name, TF_DataType* vals,
                                             int max_vals, TF_Status* status) {
  ReadList<DType>(ctx, attr_name, vals, max_vals, status);
}
void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx, const char* attr_name, int32_t* vals,
                                              int max_vals, TF_Status* status) {
  ReadList<int64_t>(ctx, attr_name, vals, max_vals, status);
}
void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction* ctx, const char* attr_name, int64_t* vals,
                                              int max_vals, TF_Status* status) {
  ReadList<int64_t>(ctx, attr_name, vals, max_vals, status);
}
void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction* ctx, const char* attr_name, float* vals,
                                              int max_vals, TF_Status* status) {
  ReadList<float>(ctx, attr_name, vals, max_vals, status);
}
void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction* ctx, const char* attr_name, TF_Bool* vals,
                                             int max_vals, TF_Status* status) {
  ReadList<bool>(ctx, attr_name, vals, max_vals, status);
}

void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx, const char* attr_name, char* val,
                                           size_t max_length, TF_Status* status) {
  Guarded(status, [&] {
    return WithAttr<std::string>(ctx, attr_name, max_length > 0 ? val : attr_name, [&](const std::string& s) {
      if (max_length > 0) std::memcpy(val, s.data(), std::min(s.size(), max_length));
      return absl::OkStatus();
    });
  });
}

void TF_OpKernelConstruction_GetAttrStringList(
    TF_OpKernelConstruction* ctx, const char* attr_name, char** values, size_t* lengths, int max_values, void* storage,
    size_t storage_size, TF_Status* status) {
  Guarded(status, [&] {
    return WithList<std::string>(ctx, attr_name, max_values, [&](const std::vector<std::string>& list) -> Status {
      const size_t count = std::min(list.size(), static_cast<size_t>(max_values));
      if (count > 0) {
        MR_CAPI_REQUIRE(values);
        MR_CAPI_REQUIRE(lengths);
      }
      char* next = static_cast<char*>(storage);
      size_t left = storage ? storage_size : 0;
      for (size_t i = 0; i < count; ++i) {
        if (list[i].size() > left) {
          return InvalidArgument("Not enough storage to hold the requested list of strings");
        }
        values[i] = next;
        lengths[i] = list[i].size();
        if (!list[i].empty()) std::memcpy(next, list[i].data(), list[i].size());
        if (next != nullptr) next += list[i].size();
        left -= list[i].size();
      }
      return absl::OkStatus();
    });
  });
}

void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx, const char* attr_name, TF_Tensor** val,
                                           TF_Status* status) {
  if (val != nullptr) *val = nullptr;
  Guarded(status, [&] {
    return WithAttr<Tensor>(ctx, attr_name, val, [&](const Tensor& t) {
      *val = new TF_Tensor{t};
      return absl::OkStatus();
    });
  });
}

void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx, const char* attr_name, TF_Tensor** vals,
                                               int max_values, TF_Status* status) {
  Guarded(status, [&] {
    return WithList<Tensor>(ctx, attr_name, max_values, [&](const std::vector<Tensor>& list) -> Status {
      const size_t count = std::min(list.size(), static_cast<size_t>(max_values));
      if (count > 0) MR_CAPI_REQUIRE(vals);
      std::vector<std::unique_ptr<TF_Tensor>> made;
      for (size_t i = 0; i < count; ++i) made.push_back(std::make_unique<TF_Tensor>(TF_Tensor{list[i]}));
      for (size_t i = 0; i < count; ++i) vals[i] = made[i].release();
      return absl::OkStatus();
    });
  });
}

TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* ctx, const char* attr_name,
                                                   TF_Status* status) {
  return GuardedOr<TF_Buffer*>(status, nullptr, [&]() -> StatusOr<TF_Buffer*> {
    TF_Buffer* buffer = nullptr;
    MR_RETURN_IF_ERROR(
        WithAttr<millrace::FuncAttr>(ctx, attr_name, &buffer, [&](const millrace::FuncAttr& f) -> Status {
          MR_ASSIGN_OR_RETURN(const millrace::wire::AttrValue proto, millrace::AttrToProto(AttrValue(f)));
          buffer = millrace::capi::MakeBuffer(millrace::wire::Encode(*proto.func));
          return absl::OkStatus();
        }));
    return buffer;
  });
}

TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx, TF_Status* status) {
  return GuardedOr<TF_Buffer*>(status, nullptr, [&]() -> StatusOr<TF_Buffer*> {
    MR_CAPI_REQUIRE(ctx);
    millrace::wire::NodeDef def;
    def.name = ctx->init.node_name;
    def.op = ctx->init.op.name;
    def.device = ctx->init.device.name();
    for (const auto& [name, value] : ctx->init.attrs) {
      MR_ASSIGN_OR_RETURN(def.attr[name], millrace::AttrToProto(value));
    }
    return millrace::capi::MakeBuffer(millrace::wire::Encode(def));
  });
}

int MR_OpKernelConstruction_GetAttrShape(TF_OpKernelConstruction* ctx, const char* attr_name, int64_t* dims,
                                         int max_dims, TF_Status* status) {
  return GuardedOr<int>(status, -1, [&]() -> StatusOr<int> {
    int rank = -1;
    MR_RETURN_IF_ERROR(WithAttr<PartialShape>(ctx, attr_name, &rank, [&](const PartialShape& shape) -> Status {
      const int count = std::min(std::max(shape.rank(), 0), max_dims);
      if (count > 0) MR_CAPI_REQUIRE(dims);
      for (int i = 0; i < count; ++i) dims[i] = shape.dim(i);
      rank = shape.rank();
      return absl::OkStatus();
    }));
    return rank;
  });
}

}  // extern "C"
