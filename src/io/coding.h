// SPDX-License-Identifier: Apache-2.0
// Integers in files: little-endian of fixed width, and varints. The getters take from the front of *in; they return
// false and leave *in unspecified when the bytes end early or (varint) do not fit in 64 bits.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace {

inline void PutFixed32(uint32_t v, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8) out->push_back(static_cast<char>((v >> shift) & 0xff));
}
inline void PutFixed64(uint64_t v, std::string* out) {
  for (int shift = 0; shift < 64; shift += 8) out->push_back(static_cast<char>((v >> shift) & 0xff));
}
inline void PutVarint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>((v & 0x7f) | 0x80));
  out->push_back(static_cast<char>(v));
}

inline uint64_t ReadFixed(const char* p, int bytes) {
  uint64_t v = 0;
  for (int i = bytes - 1; i >= 0; --i) v = (v << 8) | static_cast<unsigned char>(p[i]);
  return v;
}
[[nodiscard]] inline bool GetFixed32(absl::string_view* in, uint32_t* v) {
  if (in->size() < 4) return false;
  *v = static_cast<uint32_t>(ReadFixed(in->data(), 4));
  in->remove_prefix(4);
  return true;
}
[[nodiscard]] inline bool GetFixed64(absl::string_view* in, uint64_t* v) {
  if (in->size() < 8) return false;
  *v = ReadFixed(in->data(), 8);
  in->remove_prefix(8);
  return true;
}
[[nodiscard]] inline bool GetVarint(absl::string_view* in, uint64_t* v) {
  *v = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in->front());
    in->remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    *v |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}
[[nodiscard]] inline bool GetBytes(absl::string_view* in, uint64_t n, absl::string_view* out) {
  if (in->size() < n) return false;
  *out = in->substr(0, static_cast<size_t>(n));
  in->remove_prefix(static_cast<size_t>(n));
  return true;
}

}  // namespace millrace
