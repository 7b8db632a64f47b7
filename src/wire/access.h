// SPDX-License-Identifier: Apache-2.0
//
// Type-erased access to the fields of a message, for the codec.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "wire/table.h"

namespace millrace::wire {

enum WireType : uint32_t {
  kVarint = 0,
  kBits64 = 1,
  kBytes = 2,
  kGroupStart = 3,
  kGroupEnd = 4,
  kBits32 = 5,
};

inline WireType WireTypeOf(FieldKind kind) {
  switch (kind) {
    case FieldKind::kFixed32:
    case FieldKind::kFloat: return kBits32;
    case FieldKind::kFixed64:
    case FieldKind::kDouble: return kBits64;
    case FieldKind::kString:
    case FieldKind::kMessage: return kBytes;
    default: return kVarint;
  }
}

inline void* At(void* message, size_t offset) { return static_cast<char*>(message) + offset; }
inline const void* At(const void* message, size_t offset) { return static_cast<const char*>(message) + offset; }

// Calls visit(std::type_identity<T>()), T the in-memory type of a number.
template <class Visit>
decltype(auto) VisitNumber(FieldKind kind, Visit&& visit) {
  switch (kind) {
    case FieldKind::kBool: return visit(std::type_identity<bool>());
    case FieldKind::kInt64: return visit(std::type_identity<int64_t>());
    case FieldKind::kUint32:
    case FieldKind::kFixed32: return visit(std::type_identity<uint32_t>());
    case FieldKind::kUint64:
    case FieldKind::kFixed64: return visit(std::type_identity<uint64_t>());
    case FieldKind::kFloat: return visit(std::type_identity<float>());
    case FieldKind::kDouble: return visit(std::type_identity<double>());
    default: return visit(std::type_identity<int32_t>());
  }
}

// A number as the unsigned integer that the wire carries, and back.
template <class T>
uint64_t ToRaw(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}
template <class T>
T FromRaw(uint64_t raw) {
  if constexpr (std::is_same_v<T, bool>) {
    return raw != 0;
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(raw));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(raw);
  } else {
    return static_cast<T>(raw);
  }
}

inline uint64_t LoadRaw(FieldKind kind, const void* number) {
  return VisitNumber(kind, [&]<class T>(std::type_identity<T>) { return ToRaw(*static_cast<const T*>(number)); });
}
inline void StoreRaw(FieldKind kind, uint64_t raw, void* number) {
  VisitNumber(kind, [&]<class T>(std::type_identity<T>) { *static_cast<T*>(number) = FromRaw<T>(raw); });
}

inline const std::string& AsString(const void* string) { return *static_cast<const std::string*>(string); }
inline std::string& AsString(void* string) { return *static_cast<std::string*>(string); }

// The submessage in a Box, null if absent.
inline const void* BoxedMessage(const void* box) { return static_cast<const BoxBase*>(box)->raw(); }

struct BoxAccess {
  static void* Ensure(void* box, const MessageInfo& info) {
    BoxBase& base = *static_cast<BoxBase*>(box);
    if (base.ptr_ == nullptr) base.ptr_ = info.create();
    return base.ptr_;
  }
  static void Reset(void* box, const MessageInfo& info) {
    BoxBase& base = *static_cast<BoxBase*>(box);
    if (base.ptr_ != nullptr) info.destroy(base.ptr_);
    base.ptr_ = nullptr;
  }
};

inline uint8_t OneofCase(const MessageInfo& info, const void* message) {
  return *static_cast<const unsigned char*>(At(message, info.oneof_offset));
}

inline const UnknownFields& Unknown(const MessageInfo& info, const void* message) {
  return *static_cast<const UnknownFields*>(At(message, info.unknown_offset));
}
inline UnknownFields& Unknown(const MessageInfo& info, void* message) {
  return *static_cast<UnknownFields*>(At(message, info.unknown_offset));
}

// Makes `field` the set member of its oneof (if it is in one), and the member
// that was set before empty.
void SelectOneof(const MessageInfo& info, const FieldInfo& field, void* message);

// Whether a singular field is to be written: a set member of the oneof, a
// submessage that is there, a number or string that is not its default.
bool IsPresent(const MessageInfo& info, const FieldInfo& field, const void* message);

}  // namespace millrace::wire
