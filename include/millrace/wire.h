// SPDX-License-Identifier: Apache-2.0
// Protocol messages, field by field: as much of them as the C++ client writes and reads itself.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "millrace/status.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace internal {

// Appends fields to an encoded message. Int and Text leave out what readers take for granted: 0 and "".
class Encoder {
 public:
  Encoder& Int(uint32_t field, int64_t value) {
    if (value == 0) return *this;
    Varint(uint64_t{field} << 3);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  Encoder& Text(uint32_t field, std::string_view value) { return value.empty() ? *this : Message(field, value); }
  // A message, or an entry of a repeated field, which counts when it is empty too.
  Encoder& Message(uint32_t field, std::string_view encoded) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(encoded.size());
    bytes_.append(encoded);
    return *this;
  }
  Encoder& Fixed32(uint32_t field, float value) {
    Varint(uint64_t{field} << 3 | 5);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  operator std::string_view() const { return bytes_; }  // NOLINT: the message that it is

 private:
  void Varint(uint64_t v) {
    for (; v >= 128; v >>= 7) bytes_.push_back(static_cast<char>(v | 128));
    bytes_.push_back(static_cast<char>(v));
  }
  std::string bytes_;
};

// Walks over the fields of an encoded message, which must outlive it. Bytes that are no message end the walk.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}
  bool Next() {
    uint64_t key = 0, size = 0;
    if (rest_.empty() || !Varint(&key)) return false;
    field_ = static_cast<uint32_t>(key >> 3);
    number_ = 0;
    bytes_ = {};
    switch (key & 7) {
      case 0: return Varint(&number_);
      case 1: return Take(8);
      case 2: return Varint(&size) && Take(size);
      case 5: return Take(4);
      default: return Fail();
    }
  }
  uint32_t field() const { return field_; }
  int64_t number() const { return static_cast<int64_t>(number_); }
  std::string_view bytes() const { return bytes_; }
  std::string text() const { return std::string(bytes_); }
  bool damaged() const { return damaged_; }

 private:
  bool Fail() {
    damaged_ = true;
    rest_ = {};
    return false;
  }
  bool Take(uint64_t size) {
    if (size > rest_.size()) return Fail();
    bytes_ = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(static_cast<size_t>(size));
    return true;
  }
  bool Varint(uint64_t* v) {
    *v = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      *v |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return true;
    }
    return Fail();
  }
  std::string_view rest_, bytes_;
  uint64_t number_ = 0;
  uint32_t field_ = 0;
  bool damaged_ = false;
};

}  // namespace internal
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
