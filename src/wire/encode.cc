// SPDX-License-Identifier: Apache-2.0
//
// Binary encoding in two walks over the message in the same order. The first
// computes the length of everything that is length-prefixed and queues those
// lengths; the second writes, taking the lengths from the queue. Each length is
// so computed once, whatever the depth. Small pieces are gathered in a buffer
// on the stack, large strings go to the output directly.
#include <algorithm>
#include <cstring>
#include <protozero/varint.hpp>

#include "wire/access.h"
#include "wire/message.h"

namespace millrace::wire {
namespace {

size_t VarintBytes(uint64_t value) { return static_cast<size_t>(protozero::length_of_varint(value)); }

uint32_t Tag(uint32_t number, WireType type) { return number << 3 | type; }

size_t TagBytes(uint32_t number) { return VarintBytes(Tag(number, kVarint)); }

size_t NumberBytes(FieldKind kind, uint64_t raw) {
  switch (WireTypeOf(kind)) {
    case kBits32: return 4;
    case kBits64: return 8;
    default: return VarintBytes(raw);
  }
}

size_t WithPrefix(size_t bytes) { return VarintBytes(bytes) + bytes; }

// First walk.
class Sizer {
 public:
  size_t Message(const MessageInfo& info, const void* message) {
    if (message == nullptr) return 0;
    size_t total = Unknown(info, message).bytes().size();
    for (const FieldInfo& field : info.fields) {
      total += Field(info, field, message);
    }
    return total;
  }

  std::vector<size_t> TakeLengths() { return std::move(lengths_); }

 private:
  size_t Field(const MessageInfo& info, const FieldInfo& field, const void* message) {
    const void* value = At(message, field.offset);
    switch (field.cardinality) {
      case Cardinality::kSingular:
        if (!IsPresent(info, field, message)) return 0;
        if (field.kind == FieldKind::kMessage) value = BoxedMessage(value);
        return TagBytes(field.number) + Value(field.kind, field.message, value);
      case Cardinality::kRepeated: return Repeated(field, value);
      case Cardinality::kMap: return MapEntries(field, value);
    }
    return 0;
  }

  size_t Value(FieldKind kind, InfoFunction message, const void* value) {
    if (kind == FieldKind::kMessage) {
      return Prefixed([&] { return Message(message(), value); });
    }
    if (kind == FieldKind::kString) return WithPrefix(AsString(value).size());
    return NumberBytes(kind, LoadRaw(kind, value));
  }

  size_t Repeated(const FieldInfo& field, const void* value) {
    if (field.kind == FieldKind::kMessage) {
      const size_t n = field.repeated->size(value);
      const char* element = static_cast<const char*>(field.repeated->data(value));
      size_t total = n * TagBytes(field.number);
      for (size_t i = 0; i < n; ++i) {
        total += Value(field.kind, field.message, element);
        element += field.repeated->element_bytes;
      }
      return total;
    }
    if (field.kind == FieldKind::kString) {
      const auto& strings = *static_cast<const std::vector<std::string>*>(value);
      size_t total = strings.size() * TagBytes(field.number);
      for (const std::string& string : strings) {
        total += WithPrefix(string.size());
      }
      return total;
    }
    return VisitNumber(field.kind, [&]<class T>(std::type_identity<T>) {
      const auto& numbers = *static_cast<const std::vector<T>*>(value);
      if (numbers.empty()) return size_t{0};
      return TagBytes(field.number) + Prefixed([&] {
               if (WireTypeOf(field.kind) != kVarint) {
                 return numbers.size() * sizeof(T);
               }
               size_t total = 0;
               for (const T number : numbers) {
                 total += VarintBytes(ToRaw<T>(number));
               }
               return total;
             });
    });
  }

  size_t MapEntries(const FieldInfo& field, const void* value) {
    const MapOps& map = *field.map;
    size_t total = map.size(value) * TagBytes(field.number);
    map.for_each(value, [&](const void* key, const void* mapped) {
      total += Prefixed([&] {
        return 2 + Value(map.key_kind, nullptr, key) + Value(map.value_kind, field.message, mapped);
      });
    });
    return total;
  }

  // Queues the length that `compute` returns in front of those it queues.
  template <class Compute>
  size_t Prefixed(Compute compute) {
    const size_t slot = lengths_.size();
    lengths_.push_back(0);
    const size_t length = compute();
    lengths_[slot] = length;
    return WithPrefix(length);
  }

  std::vector<size_t> lengths_;
};

// Second walk.
class Writer {
 public:
  Writer(std::vector<size_t> lengths, std::string* out) : lengths_(std::move(lengths)), out_(out) {}
  ~Writer() { Flush(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Message(const MessageInfo& info, const void* message) {
    if (message == nullptr) return;
    for (const FieldInfo& field : info.fields) Field(info, field, message);
    const UnknownFields& unknown = Unknown(info, message);
    if (!unknown.empty()) {
      Bytes(unknown.bytes().data(), unknown.bytes().size());
    }
  }

 private:
  void Field(const MessageInfo& info, const FieldInfo& field, const void* message) {
    const void* value = At(message, field.offset);
    switch (field.cardinality) {
      case Cardinality::kSingular:
        if (!IsPresent(info, field, message)) return;
        if (field.kind == FieldKind::kMessage) value = BoxedMessage(value);
        Value(field.number, field.kind, field.message, value);
        return;
      case Cardinality::kRepeated: Repeated(field, value); return;
      case Cardinality::kMap:
        field.map->for_each(value, [&](const void* key, const void* mapped) {
          Varint(Tag(field.number, kBytes));
          Varint(NextLength());
          Value(1, field.map->key_kind, nullptr, key);
          Value(2, field.map->value_kind, field.message, mapped);
        });
        return;
    }
  }

  void Value(uint32_t number, FieldKind kind, InfoFunction message, const void* value) {
    Varint(Tag(number, WireTypeOf(kind)));
    if (kind == FieldKind::kMessage) {
      Varint(NextLength());
      Message(message(), value);
    } else if (kind == FieldKind::kString) {
      String(AsString(value));
    } else {
      Number(kind, LoadRaw(kind, value));
    }
  }

  void Repeated(const FieldInfo& field, const void* value) {
    if (field.kind == FieldKind::kMessage) {
      const size_t n = field.repeated->size(value);
      const char* element = static_cast<const char*>(field.repeated->data(value));
      for (size_t i = 0; i < n; ++i) {
        Value(field.number, field.kind, field.message, element);
        element += field.repeated->element_bytes;
      }
      return;
    }
    if (field.kind == FieldKind::kString) {
      const auto& strings = *static_cast<const std::vector<std::string>*>(value);
      for (const std::string& string : strings) {
        Varint(Tag(field.number, kBytes));
        String(string);
      }
      return;
    }
    VisitNumber(field.kind, [&]<class T>(std::type_identity<T>) {
      const auto& numbers = *static_cast<const std::vector<T>*>(value);
      if (numbers.empty()) return;
      Varint(Tag(field.number, kBytes));
      Varint(NextLength());
      if constexpr (std::endian::native == std::endian::little && std::is_floating_point_v<T>) {
        Bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
      } else {
        for (const T number : numbers) Number(field.kind, ToRaw<T>(number));
      }
    });
  }

  void Number(FieldKind kind, uint64_t raw) {
    switch (WireTypeOf(kind)) {
      case kBits32: Little(raw, 4); return;
      case kBits64: Little(raw, 8); return;
      default: Varint(raw);
    }
  }

  void Little(uint64_t raw, size_t bytes) {
    Reserve(bytes);
    for (size_t i = 0; i < bytes; ++i) {
      buffer_[used_++] = static_cast<char>(raw >> (8 * i) & 0xff);
    }
  }

  void Varint(uint64_t value) {
    Reserve(10);
    used_ += static_cast<size_t>(protozero::write_varint(buffer_ + used_, value));
  }

  void String(const std::string& string) {
    Varint(string.size());
    Bytes(string.data(), string.size());
  }

  void Bytes(const char* data, size_t size) {
    if (size > sizeof(buffer_) / 2) {
      Flush();
      out_->append(data, size);
      return;
    }
    Reserve(size);
    if (size != 0) std::memcpy(buffer_ + used_, data, size);
    used_ += size;
  }

  void Reserve(size_t size) {
    if (sizeof(buffer_) - used_ < size) Flush();
  }

  void Flush() {
    out_->append(buffer_, used_);
    used_ = 0;
  }

  size_t NextLength() { return lengths_[next_++]; }

  std::vector<size_t> lengths_;
  size_t next_ = 0;
  std::string* out_;
  size_t used_ = 0;
  char buffer_[2048];
};

}  // namespace

size_t EncodedSizeErased(const MessageInfo& info, const void* message) { return Sizer().Message(info, message); }

void AppendEncodedErased(const MessageInfo& info, const void* message, std::string* out) {
  Sizer sizer;
  const size_t size = sizer.Message(info, message);
  // Growth stays geometric when a caller appends many small messages.
  if (out->capacity() - out->size() < size) {
    out->reserve(std::max(out->size() + size, 2 * out->size()));
  }
  Writer(sizer.TakeLengths(), out).Message(info, message);
}

}  // namespace millrace::wire
