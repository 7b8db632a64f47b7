// SPDX-License-Identifier: Apache-2.0
//
// Binary decoding: one walk over the bytes. A field of unknown number, or of
// another wire type than its table says, is kept as it is in the message's
// unknown fields; packed and unpacked numbers are both accepted. A second
// occurrence of a singular submessage is merged into the first, of a map key
// replaces it.
//
// The functions return false after they have set the status.
#include <algorithm>
#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "absl/strings/str_cat.h"
#include "wire/access.h"
#include "wire/memory_budget.h"
#include "wire/message.h"

namespace millrace::wire {
namespace {

// The bytes of one message that are still to be read.
struct Span {
  const char* next;
  const char* end;

  size_t left() const { return static_cast<size_t>(end - next); }
};

bool ReadVarint(Span* span, uint64_t* value) {
  if (span->next != span->end && static_cast<signed char>(*span->next) >= 0) {
    *value = static_cast<uint64_t>(*span->next++);
    return true;
  }
  try {
    *value = protozero::decode_varint(&span->next, span->end);
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

bool ReadLittle(Span* span, size_t bytes, uint64_t* value) {
  if (span->left() < bytes) return false;
  *value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    *value |= static_cast<uint64_t>(static_cast<unsigned char>(span->next[i])) << (8 * i);
  }
  span->next += bytes;
  return true;
}

bool ReadNumber(WireType type, Span* span, uint64_t* raw) {
  switch (type) {
    case kBits32: return ReadLittle(span, 4, raw);
    case kBits64: return ReadLittle(span, 8, raw);
    default: return ReadVarint(span, raw);
  }
}

bool ReadBytes(Span* span, Span* bytes) {
  uint64_t size;
  if (!ReadVarint(span, &size) || size > span->left()) return false;
  *bytes = {span->next, span->next + size};
  span->next = bytes->end;
  return true;
}

// What a tag says.
struct Head {
  uint32_t number;
  WireType type;
};

bool ReadHead(Span* span, Head* head) {
  uint64_t tag;
  if (!ReadVarint(span, &tag) || tag > UINT32_MAX) return false;
  head->number = static_cast<uint32_t>(tag >> 3);
  head->type = static_cast<WireType>(tag & 7);
  return head->number != 0 && head->type <= kBits32;
}

class Decoder {
 public:
  Decoder(absl::string_view bytes, const Limits& limits)
      : begin_(bytes.data()),
        levels_left_(std::clamp(limits.max_depth, 0, Limits::kMaxDepthLimit)),
        max_depth_(levels_left_),
        budget_(bytes.size(), limits) {}

  bool Message(const MessageInfo& info, Span span, void* message) {
    while (span.next != span.end) {
      const char* start = span.next;
      Head head;
      if (!ReadHead(&span, &head)) {
        return Malformed(info, nullptr, start, "bad or truncated tag");
      }
      const FieldInfo* field = info.FindNumber(head.number);
      if (field == nullptr || !Accepts(*field, head.type)) {
        if (!Skip(info, field, head, start, &span)) return false;
        Unknown(info, message).Append({start, static_cast<size_t>(span.next - start)});
      } else if (!Field(info, *field, head.type, &span, message)) {
        return false;
      }
    }
    return true;
  }

  absl::Status TakeStatus() { return std::move(status_); }

 private:
  static bool Accepts(const FieldInfo& field, WireType type) {
    const WireType declared = WireTypeOf(field.kind);
    return type == declared || (type == kBytes && field.cardinality == Cardinality::kRepeated);
  }

  bool Field(const MessageInfo& info, const FieldInfo& field, WireType type, Span* span, void* message) {
    void* target = At(message, field.offset);
    switch (field.cardinality) {
      case Cardinality::kSingular:
        SelectOneof(info, field, message);
        return field.kind == FieldKind::kMessage
                   ? Boxed(info, field, span, target)
                   : Scalar(info, field, field.kind, span, target);
      case Cardinality::kRepeated:
        if (field.kind == FieldKind::kMessage) {
          if (!Charge(info, field, field.repeated->element_bytes, *span)) {
            return false;
          }
          return Submessage(info, field, span, field.repeated->append(target));
        }
        if (field.kind == FieldKind::kString) {
          if (!Charge(info, field, sizeof(std::string), *span)) return false;
          auto& strings = *static_cast<std::vector<std::string>*>(target);
          return Scalar(info, field, field.kind, span, &strings.emplace_back());
        }
        return type == kBytes ? Packed(info, field, span, target) : Unpacked(info, field, span, target);
      case Cardinality::kMap: return MapEntry(info, field, span, target);
    }
    return false;
  }

  bool Boxed(const MessageInfo& info, const FieldInfo& field, Span* span, void* box) {
    const MessageInfo& type = field.message();
    if (BoxedMessage(box) == nullptr && !Charge(info, field, type.object_bytes, *span)) {
      return false;
    }
    return Submessage(info, field, span, BoxAccess::Ensure(box, type));
  }

  bool Submessage(const MessageInfo& info, const FieldInfo& field, Span* span, void* submessage) {
    Span bytes;
    const char* start = span->next;
    if (!ReadBytes(span, &bytes)) return Truncated(info, field, start);
    if (!Enter(info, field, start)) return false;
    const bool ok = Message(field.message(), bytes, submessage);
    ++levels_left_;
    return ok;
  }

  bool Scalar(const MessageInfo& info, const FieldInfo& field, FieldKind kind, Span* span, void* target) {
    const char* start = span->next;
    if (kind == FieldKind::kString) {
      Span bytes;
      if (!ReadBytes(span, &bytes)) return Truncated(info, field, start);
      AsString(target).assign(bytes.next, bytes.left());
      return true;
    }
    uint64_t raw;
    if (!ReadNumber(WireTypeOf(kind), span, &raw)) {
      return Truncated(info, field, start);
    }
    StoreRaw(kind, raw, target);
    return true;
  }

  bool Unpacked(const MessageInfo& info, const FieldInfo& field, Span* span, void* vector) {
    const char* start = span->next;
    uint64_t raw;
    if (!ReadNumber(WireTypeOf(field.kind), span, &raw)) {
      return Truncated(info, field, start);
    }
    VisitNumber(field.kind, [&]<class T>(std::type_identity<T>) {
      static_cast<std::vector<T>*>(vector)->push_back(FromRaw<T>(raw));
    });
    return true;
  }

  bool Packed(const MessageInfo& info, const FieldInfo& field, Span* span, void* vector) {
    const char* start = span->next;
    Span bytes;
    if (!ReadBytes(span, &bytes)) return Truncated(info, field, start);
    const WireType type = WireTypeOf(field.kind);
    const size_t width = type == kBits32 ? 4 : type == kBits64 ? 8 : 1;
    if (bytes.left() % width != 0) {
      return Malformed(info, &field, start, "packed length is no multiple");
    }
    return VisitNumber(field.kind, [&]<class T>(std::type_identity<T>) {
      auto& numbers = *static_cast<std::vector<T>*>(vector);
      if constexpr (std::endian::native == std::endian::little && std::is_floating_point_v<T>) {
        const size_t old_size = numbers.size();
        numbers.resize(old_size + bytes.left() / sizeof(T));
        if (bytes.left() != 0) {
          std::memcpy(numbers.data() + old_size, bytes.next, bytes.left());
        }
        return true;
      } else {
        if (numbers.empty()) {
          numbers.reserve(CountNumbers(type, bytes));
        }
        while (bytes.next != bytes.end) {
          const char* at = bytes.next;
          uint64_t raw;
          if (!ReadNumber(type, &bytes, &raw)) {
            return Truncated(info, field, at);
          }
          numbers.push_back(FromRaw<T>(raw));
        }
        return true;
      }
    });
  }

  static size_t CountNumbers(WireType type, Span bytes) {
    if (type == kBits32) return bytes.left() / 4;
    if (type == kBits64) return bytes.left() / 8;
    return static_cast<size_t>(
        std::count_if(bytes.next, bytes.end, [](char byte) { return static_cast<signed char>(byte) >= 0; }));
  }

  // An entry may hold key and value in any order, several times or not at all:
  // a first pass finds the last key, a second one reads the value in place.
  bool MapEntry(const MessageInfo& info, const FieldInfo& field, Span* span, void* map) {
    const MapOps& ops = *field.map;
    const char* start = span->next;
    Span entry;
    if (!ReadBytes(span, &entry)) return Truncated(info, field, start);
    if (!Enter(info, field, start)) return false;
    MapKey key;
    if (!FindMapKey(info, field, entry, &key)) return false;
    if (!Charge(info, field, ops.entry_bytes, *span)) return false;
    void* value = ops.insert(map, key);
    while (entry.next != entry.end) {
      const char* at = entry.next;
      Head head;
      if (!ReadHead(&entry, &head)) return Truncated(info, field, at);
      if (head.number == 2 && head.type == WireTypeOf(ops.value_kind)) {
        const bool ok =
            ops.value_kind == FieldKind::kMessage
                ? Submessage(info, field, &entry, value)
                : Scalar(info, field, ops.value_kind, &entry, value);
        if (!ok) return false;
      } else if (!Skip(info, &field, head, at, &entry)) {
        return false;
      }
    }
    ++levels_left_;
    return true;
  }

  bool FindMapKey(const MessageInfo& info, const FieldInfo& field, Span entry, MapKey* key) {
    const FieldKind kind = field.map->key_kind;
    while (entry.next != entry.end) {
      const char* start = entry.next;
      Head head;
      if (!ReadHead(&entry, &head)) {
        return Malformed(info, &field, start, "bad or truncated tag");
      }
      if (head.number != 1 || head.type != WireTypeOf(kind)) {
        if (!Skip(info, &field, head, start, &entry)) return false;
      } else if (kind == FieldKind::kString) {
        Span bytes;
        if (!ReadBytes(&entry, &bytes)) return Truncated(info, field, start);
        key->text = {bytes.next, bytes.left()};
      } else if (!ReadNumber(head.type, &entry, &key->number)) {
        return Truncated(info, field, start);
      }
    }
    return true;
  }

  // Passes over the value of a field, `start` being the address of its tag.
  // Groups are followed to their end without recursion.
  bool Skip(const MessageInfo& info, const FieldInfo* field, Head head, const char* start, Span* span) {
    std::vector<uint32_t> open_groups;
    for (;;) {
      if (head.type == kGroupStart) {
        if (open_groups.size() >= static_cast<size_t>(levels_left_)) {
          return TooDeep(info, field, span->next);
        }
        open_groups.push_back(head.number);
      } else if (head.type == kGroupEnd) {
        if (open_groups.empty() || open_groups.back() != head.number) {
          return Malformed(info, field, start, "end of a group not begun");
        }
        open_groups.pop_back();
      } else if (!SkipValue(head.type, span)) {
        return Malformed(info, field, start, absl::StrCat("field number ", head.number, " is malformed or truncated"));
      }
      if (open_groups.empty()) return true;
      if (!ReadHead(span, &head)) {
        return Malformed(info, field, start, "group without end");
      }
    }
  }

  static bool SkipValue(WireType type, Span* span) {
    uint64_t ignored;
    Span bytes;
    return type == kBytes ? ReadBytes(span, &bytes) : ReadNumber(type, span, &ignored);
  }

  // Takes a level of nesting; the caller gives it back by ++levels_left_.
  bool Enter(const MessageInfo& info, const FieldInfo& field, const char* at) {
    if (levels_left_ <= 0) return TooDeep(info, &field, at);
    --levels_left_;
    return true;
  }

  bool Charge(const MessageInfo& info, const FieldInfo& field, size_t bytes, Span span) {
    if (budget_.Take(bytes)) return true;
    return Fail(info, &field, span.next, budget_.Error());
  }

  bool TooDeep(const MessageInfo& info, const FieldInfo* field, const char* at) {
    return Malformed(info, field, at, absl::StrCat("nested deeper than ", max_depth_, " levels (Limits::max_depth)"));
  }

  bool Truncated(const MessageInfo& info, const FieldInfo& field, const char* at) {
    return Malformed(info, &field, at, "malformed or truncated");
  }

  bool Malformed(const MessageInfo& info, const FieldInfo* field, const char* at, absl::string_view what) {
    return Fail(info, field, at, absl::InvalidArgumentError(what));
  }

  bool Fail(const MessageInfo& info, const FieldInfo* field, const char* at, const absl::Status& what) {
    status_ = absl::Status(
        what.code(), absl::StrCat("cannot decode ", info.name, field == nullptr ? "" : ".",
                                  field == nullptr ? "" : field->name, " at byte ", at - begin_, ": ", what.message()));
    return false;
  }

  const char* begin_;
  int levels_left_;
  int max_depth_;
  MemoryBudget budget_;
  absl::Status status_;
};

}  // namespace

absl::Status DecodeErased(const MessageInfo& info, absl::string_view bytes, void* message, const Limits& limits) {
  if (bytes.size() > limits.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot decode ", info.name, ": it has ", bytes.size(), " bytes, the limit is ", limits.max_bytes,
        " (Limits::max_bytes)"));
  }
  Decoder decoder(bytes, limits);
  decoder.Message(info, {bytes.data(), bytes.data() + bytes.size()}, message);
  return decoder.TakeStatus();
}

}  // namespace millrace::wire
