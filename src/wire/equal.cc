// SPDX-License-Identifier: Apache-2.0
#include "wire/access.h"
#include "wire/message.h"

namespace millrace::wire {
namespace {

bool EqualValues(FieldKind kind, InfoFunction message, const void* a, const void* b) {
  if (kind == FieldKind::kMessage) {
    const MessageInfo& info = message();
    // Null is the absent value of a set oneof member; it reads as empty.
    if (a == nullptr || b == nullptr) {
      return (a == nullptr || EncodedSizeErased(info, a) == 0) && (b == nullptr || EncodedSizeErased(info, b) == 0);
    }
    return EqualErased(info, a, b);
  }
  if (kind == FieldKind::kString) return AsString(a) == AsString(b);
  return LoadRaw(kind, a) == LoadRaw(kind, b);
}

bool EqualSingular(const MessageInfo& info, const FieldInfo& field, const void* a, const void* b) {
  const bool present = IsPresent(info, field, a);
  if (present != IsPresent(info, field, b)) return false;
  if (!present) return true;
  const void* value_a = At(a, field.offset);
  const void* value_b = At(b, field.offset);
  if (field.kind == FieldKind::kMessage) {
    value_a = BoxedMessage(value_a);
    value_b = BoxedMessage(value_b);
  }
  return EqualValues(field.kind, field.message, value_a, value_b);
}

bool EqualRepeated(const FieldInfo& field, const void* a, const void* b) {
  if (field.kind == FieldKind::kMessage) {
    const RepeatedOps& ops = *field.repeated;
    const size_t n = ops.size(a);
    if (n != ops.size(b)) return false;
    const char* element_a = static_cast<const char*>(ops.data(a));
    const char* element_b = static_cast<const char*>(ops.data(b));
    for (size_t i = 0; i < n; ++i) {
      if (!EqualErased(field.message(), element_a + i * ops.element_bytes, element_b + i * ops.element_bytes)) {
        return false;
      }
    }
    return true;
  }
  if (field.kind == FieldKind::kString) {
    using Strings = std::vector<std::string>;
    return *static_cast<const Strings*>(a) == *static_cast<const Strings*>(b);
  }
  return VisitNumber(field.kind, [&]<class T>(std::type_identity<T>) {
    const auto& numbers_a = *static_cast<const std::vector<T>*>(a);
    const auto& numbers_b = *static_cast<const std::vector<T>*>(b);
    if (numbers_a.size() != numbers_b.size()) return false;
    for (size_t i = 0; i < numbers_a.size(); ++i) {
      if (ToRaw<T>(numbers_a[i]) != ToRaw<T>(numbers_b[i])) return false;
    }
    return true;
  });
}

bool EqualMaps(const FieldInfo& field, const void* a, const void* b) {
  const MapOps& ops = *field.map;
  if (ops.size(a) != ops.size(b)) return false;
  // Both maps are sorted, so equal ones have equal entries in step.
  std::vector<std::pair<const void*, const void*>> entries_a;
  entries_a.reserve(ops.size(a));
  ops.for_each(a, [&](const void* key, const void* value) { entries_a.emplace_back(key, value); });
  bool equal = true;
  size_t i = 0;
  ops.for_each(b, [&](const void* key, const void* value) {
    equal = equal && EqualValues(ops.key_kind, nullptr, entries_a[i].first, key) &&
            EqualValues(ops.value_kind, field.message, entries_a[i].second, value);
    ++i;
  });
  return equal;
}

bool EqualFields(const MessageInfo& info, const FieldInfo& field, const void* a, const void* b) {
  switch (field.cardinality) {
    case Cardinality::kSingular: return EqualSingular(info, field, a, b);
    case Cardinality::kRepeated: return EqualRepeated(field, At(a, field.offset), At(b, field.offset));
    case Cardinality::kMap: return EqualMaps(field, At(a, field.offset), At(b, field.offset));
  }
  return false;
}

}  // namespace

bool EqualErased(const MessageInfo& info, const void* a, const void* b) {
  for (const FieldInfo& field : info.fields) {
    if (!EqualFields(info, field, a, b)) return false;
  }
  return Unknown(info, a).bytes() == Unknown(info, b).bytes();
}

}  // namespace millrace::wire
