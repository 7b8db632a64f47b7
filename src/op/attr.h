// SPDX-License-Identifier: Apache-2.0
// Attribute values as the system holds them, and their wire form.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"
#include "wire/graph.h"

namespace millrace {

class AttrValue;
using AttrMap = std::map<std::string, AttrValue, std::less<>>;

// A function or op name with attribute bindings.
struct FuncAttr {
  std::string name;
  std::map<std::string, AttrValue, std::less<>> attrs;
};
// Inside a function body: stands for an attribute of the function.
struct PlaceholderAttr {
  std::string name;
};
// A list without elements whose kind the file did not say; equals an empty list of any kind.
struct EmptyListAttr {};

enum class AttrKind : uint8_t { kString, kInt, kFloat, kBool, kType, kShape, kTensor, kFunc };

// The C++ types that an AttrValue can hold.
template <typename T, typename... Choices>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Choices> || ...);
template <typename T>
inline constexpr bool kIsAttrType =
    kIsOneOf<T, EmptyListAttr, std::string, int64_t, float, bool, DType, PartialShape, Tensor, FuncAttr,
             PlaceholderAttr, std::vector<std::string>, std::vector<int64_t>, std::vector<float>, std::vector<bool>,
             std::vector<DType>, std::vector<PartialShape>, std::vector<Tensor>, std::vector<FuncAttr>>;

class AttrValue {
 public:
  using Storage = std::variant<
      EmptyListAttr, std::string, int64_t, float, bool, DType, PartialShape, Tensor, FuncAttr, PlaceholderAttr,
      std::vector<std::string>, std::vector<int64_t>, std::vector<float>, std::vector<bool>, std::vector<DType>,
      std::vector<PartialShape>, std::vector<Tensor>, std::vector<FuncAttr>>;

  AttrValue() = default;
  AttrValue(const char* s) : v_(std::string(s)) {}        // NOLINT: attribute lists read like literals
  AttrValue(absl::string_view s) : v_(std::string(s)) {}  // NOLINT
  AttrValue(int i) : v_(int64_t{i}) {}                    // NOLINT
  template <typename T>
    requires kIsAttrType<T>
  AttrValue(T v) : v_(std::in_place_type<T>, std::move(v)) {}  // NOLINT

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&v_);
  }
  const Storage& storage() const { return v_; }
  bool is_list() const { return v_.index() == 0 || v_.index() >= 10; }
  // True when the value fits kind and list-ness (an EmptyListAttr fits every list; a placeholder fits everything).
  bool Is(AttrKind kind, bool list) const;
  int64_t list_size() const;     // -1 when not a list
  std::string ToString() const;  // short; for messages
  bool Equals(const AttrValue& o) const;

 private:
  Storage v_;
};

const char* AttrKindName(AttrKind k);  // "string", "int", ...

StatusOr<AttrValue> AttrFromProto(const wire::AttrValue& proto);
StatusOr<wire::AttrValue> AttrToProto(const AttrValue& value);

// Typed look-up; InvalidArgument naming the attribute, what it is and what was wanted. T: std::string, int64_t, float,
// bool, DType, PartialShape, Tensor, FuncAttr, or a std::vector of one of them.
template <typename T>
StatusOr<T> GetAttr(const AttrMap& attrs, absl::string_view name);

Status AttrMissing(absl::string_view name);
Status AttrWrongKind(absl::string_view name, const AttrValue& got, const char* want);

namespace internal {
template <typename T>
constexpr const char* AttrTypeName() {
  return "list";
}
template <>
constexpr const char* AttrTypeName<std::string>() {
  return "string";
}
template <>
constexpr const char* AttrTypeName<int64_t>() {
  return "int";
}
template <>
constexpr const char* AttrTypeName<float>() {
  return "float";
}
template <>
constexpr const char* AttrTypeName<bool>() {
  return "bool";
}
template <>
constexpr const char* AttrTypeName<DType>() {
  return "type";
}
template <>
constexpr const char* AttrTypeName<PartialShape>() {
  return "shape";
}
template <>
constexpr const char* AttrTypeName<Tensor>() {
  return "tensor";
}
template <>
constexpr const char* AttrTypeName<FuncAttr>() {
  return "func";
}
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
}  // namespace internal

template <typename T>
StatusOr<T> GetAttr(const AttrMap& attrs, absl::string_view name) {
  auto it = attrs.find(name);
  if (it == attrs.end()) return AttrMissing(name);
  if (const T* v = it->second.get<T>()) return *v;
  if constexpr (internal::IsVector<T>::value) {
    if (it->second.get<EmptyListAttr>()) return T();
  }
  return AttrWrongKind(name, it->second, internal::AttrTypeName<T>());
}

}  // namespace millrace
