// SPDX-License-Identifier: Apache-2.0
//
// Tables of fields: how a message struct is declared to the codec.
//
//   const MessageInfo& VersionDef::Info() {
//     static const MessageInfo& info =
//         Table<VersionDef>("VersionDef")
//             .Field(1, "producer", &VersionDef::producer)
//             .Field(2, "min_consumer", &VersionDef::min_consumer)
//             .Field(3, "bad_consumers", &VersionDef::bad_consumers)
//             .Build();
//     return info;
//   }
//
// The type of the member gives the wire type of the field; Fixed, Enum and
// Member are for what it does not tell: fixed-width integers, the names of an
// enum, membership in the oneof. A table is built at its first use and lives
// until the process ends. Included by the .cc files of this folder only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "wire/message.h"

namespace millrace::wire {

enum class FieldKind : uint8_t {
  kBool,
  kInt32,
  kEnum,  // int32_t in memory
  kInt64,
  kUint32,
  kUint64,
  kFixed32,  // uint32_t in memory
  kFixed64,  // uint64_t in memory
  kFloat,
  kDouble,
  kString,
  kMessage,
};

enum class Cardinality : uint8_t { kSingular, kRepeated, kMap };

struct EnumValue {
  int32_t number;
  const char* name;
};

// The values of an enum, for the text form. Numbers without a name are legal.
struct EnumInfo {
  const char* name;
  absl::Span<const EnumValue> values;

  const EnumValue* FindNumber(int32_t number) const;
  const EnumValue* FindName(absl::string_view value_name) const;
};

// Access to a std::vector of messages.
struct RepeatedOps {
  size_t element_bytes;
  size_t (*size)(const void* vector);
  const void* (*data)(const void* vector);
  void* (*append)(void* vector);
};

struct MapKey {
  absl::string_view text;  // for string keys
  uint64_t number = 0;     // for integer keys, as on the wire
};

// Access to a std::map; a message value is held directly, not in a Box.
struct MapOps {
  size_t entry_bytes;
  FieldKind key_kind;
  FieldKind value_kind;
  size_t (*size)(const void* map);
  // The value for the key, replaced by a default one if it exists.
  void* (*insert)(void* map, const MapKey& key);
  // Lets `read` fill in a key and a value, and inserts them if it returns true.
  void (*read)(void* map, absl::FunctionRef<bool(MapKey* key, void* value)> read);
  void (*for_each)(const void* map, absl::FunctionRef<void(const void* key, const void* value)> visit);
};

using InfoFunction = const MessageInfo& (*)();

struct FieldInfo {
  uint32_t number = 0;
  FieldKind kind = FieldKind::kBool;  // of a map: kMessage, the entry
  Cardinality cardinality = Cardinality::kSingular;
  uint8_t oneof_case = 0;  // value of the message's Kind; 0: not in the oneof
  size_t offset = 0;
  absl::string_view name;
  const EnumInfo* enum_info = nullptr;
  InfoFunction message = nullptr;  // of a message, or of a map's message values
  const RepeatedOps* repeated = nullptr;
  const MapOps* map = nullptr;
};

struct MessageInfo {
  static constexpr size_t kNone = SIZE_MAX;
  static constexpr uint32_t kIndexed = 32;

  absl::string_view name;
  std::vector<FieldInfo> fields;  // in order of their numbers
  size_t object_bytes = 0;
  size_t oneof_offset = kNone;
  size_t unknown_offset = 0;
  void* (*create)() = nullptr;
  void (*destroy)(void* message) = nullptr;
  // Types that may stand for this one in text as `[type.googleapis.com/x.Name]`
  // (only the message Any has some).
  std::vector<InfoFunction> any_types;
  // Position + 1 in `fields` of each small field number.
  std::array<uint8_t, kIndexed> index = {};

  // The field, or null if the message has none with this number (name).
  const FieldInfo* FindNumber(uint32_t number) const;
  const FieldInfo* FindName(absl::string_view field_name) const;
  void SortAndIndex();
};

template <class T>
constexpr FieldKind KindOf() {
  if constexpr (std::is_same_v<T, bool>) {
    return FieldKind::kBool;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return FieldKind::kInt32;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return FieldKind::kInt64;
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return FieldKind::kUint32;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return FieldKind::kUint64;
  } else if constexpr (std::is_same_v<T, float>) {
    return FieldKind::kFloat;
  } else if constexpr (std::is_same_v<T, double>) {
    return FieldKind::kDouble;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return FieldKind::kString;
  } else {
    return FieldKind::kMessage;
  }
}

template <class T>
inline constexpr RepeatedOps kRepeatedOps = {
    sizeof(T),
    [](const void* vector) { return static_cast<const std::vector<T>*>(vector)->size(); },
    [](const void* vector) -> const void* { return static_cast<const std::vector<T>*>(vector)->data(); },
    [](void* vector) -> void* { return &static_cast<std::vector<T>*>(vector)->emplace_back(); },
};

template <class M>
typename M::key_type ToKey(const MapKey& key) {
  if constexpr (std::is_same_v<typename M::key_type, std::string>) {
    return std::string(key.text);
  } else {
    return static_cast<typename M::key_type>(key.number);
  }
}

template <class M>
inline constexpr MapOps kMapOps = {
    // A tree node has three pointers and a colour beside the entry.
    sizeof(typename M::value_type) + 4 * sizeof(void*),
    KindOf<typename M::key_type>(),
    KindOf<typename M::mapped_type>(),
    [](const void* map) { return static_cast<const M*>(map)->size(); },
    [](void* erased, const MapKey& key) -> void* {
      M& map = *static_cast<M*>(erased);
      const size_t size = map.size();
      // Writers sort by key, so the end is the likely place.
      const auto it = map.try_emplace(map.end(), ToKey<M>(key));
      if (map.size() == size) it->second = typename M::mapped_type();
      return &it->second;
    },
    [](void* map, absl::FunctionRef<bool(MapKey* key, void* value)> read) {
      MapKey key;
      typename M::mapped_type value{};
      if (!read(&key, &value)) return;
      static_cast<M*>(map)->insert_or_assign(ToKey<M>(key), std::move(value));
    },
    [](const void* map, absl::FunctionRef<void(const void* key, const void* value)> visit) {
      for (const auto& [key, value] : *static_cast<const M*>(map)) {
        visit(&key, &value);
      }
    },
};

// Fills the parts of a FieldInfo that follow from the type of its member.
template <class T>
struct FieldShape {
  static void Fill(FieldInfo* field) {
    field->kind = KindOf<T>();
    static_assert(KindOf<T>() != FieldKind::kMessage, "a singular submessage is a Box");
  }
};
template <class T>
struct FieldShape<Box<T>> {
  static void Fill(FieldInfo* field) {
    field->kind = FieldKind::kMessage;
    field->message = &T::Info;
  }
};
template <class T>
struct FieldShape<std::vector<T>> {
  static void Fill(FieldInfo* field) {
    field->kind = KindOf<T>();
    field->cardinality = Cardinality::kRepeated;
    if constexpr (KindOf<T>() == FieldKind::kMessage) {
      field->message = &T::Info;
      field->repeated = &kRepeatedOps<T>;
    }
  }
};
template <class K, class V>
struct FieldShape<Map<K, V>> {
  static void Fill(FieldInfo* field) {
    field->kind = FieldKind::kMessage;
    field->cardinality = Cardinality::kMap;
    field->map = &kMapOps<Map<K, V>>;
    if constexpr (KindOf<V>() == FieldKind::kMessage) {
      field->message = &V::Info;
    }
  }
};

template <class M>
class Table {
 public:
  explicit Table(absl::string_view name) {
    info_.name = name;
    info_.object_bytes = sizeof(M);
    info_.unknown_offset = Offset(&M::unknown_fields);
    info_.create = []() -> void* { return new M(); };
    info_.destroy = [](void* message) { delete static_cast<M*>(message); };
    if constexpr (requires { typename M::Kind; }) {
      static_assert(sizeof(typename M::Kind) == 1);
      info_.oneof_offset = Offset(&M::kind);
    }
  }

  template <class T>
  Table& Field(uint32_t number, absl::string_view name, T M::* member) {
    FieldInfo& field = info_.fields.emplace_back();
    field.number = number;
    field.name = name;
    field.offset = Offset(member);
    FieldShape<T>::Fill(&field);
    return *this;
  }

  // An int32_t (or a vector of them) with names for its values.
  template <class T>
  Table& Enum(uint32_t number, absl::string_view name, T M::* member, const EnumInfo& values) {
    Field(number, name, member);
    info_.fields.back().kind = FieldKind::kEnum;
    info_.fields.back().enum_info = &values;
    return *this;
  }

  // A uint32_t or uint64_t that takes 4 or 8 bytes on the wire.
  template <class T>
  Table& Fixed(uint32_t number, absl::string_view name, T M::* member) {
    Field(number, name, member);
    info_.fields.back().kind = sizeof(T) == 4 ? FieldKind::kFixed32 : FieldKind::kFixed64;
    return *this;
  }

  // A member of the oneof, set when M::kind equals `kind`.
  template <class Kind, class T>
  Table& Member(Kind kind, uint32_t number, absl::string_view name, T M::* member) {
    Field(number, name, member);
    info_.fields.back().oneof_case = static_cast<uint8_t>(kind);
    return *this;
  }
  template <class Kind, class T>
  Table& Member(Kind kind, uint32_t number, absl::string_view name, T M::* member, const EnumInfo& values) {
    Enum(number, name, member, values);
    info_.fields.back().oneof_case = static_cast<uint8_t>(kind);
    return *this;
  }

  Table& AnyType(InfoFunction type) {
    info_.any_types.push_back(type);
    return *this;
  }

  const MessageInfo& Build() {
    info_.SortAndIndex();
    return *new MessageInfo(std::move(info_));
  }

 private:
  template <class T>
  size_t Offset(T M::* member) const {
    return static_cast<size_t>(
        reinterpret_cast<const char*>(&(probe_.*member)) - reinterpret_cast<const char*>(&probe_));
  }

  const M probe_{};
  MessageInfo info_;
};

}  // namespace millrace::wire
