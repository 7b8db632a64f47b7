// SPDX-License-Identifier: Apache-2.0
// The layouts, all little-endian, with the size shifted left by 2 and the kind in the low bits:
//   small   u8 size, 23 bytes (22 characters and a NUL)       large  u64 size, u64 capacity, pointer from malloc
//   offset  u32 size, u32 distance from the object, u32 count view   u64 size, pointer
// Strings cross the C API, so memory is malloc's.
#include "tensor/tstring.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace millrace {
namespace {

constexpr size_t kSmallCapacity = 22;

const char* ToPointer(uint64_t bits) { return reinterpret_cast<const char*>(static_cast<uintptr_t>(bits)); }
uint64_t ToBits(const char* p) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p)); }
uint64_t Tag(size_t size, TString::Kind kind) { return (uint64_t{size} << 2) | static_cast<uint64_t>(kind); }

// At most kSmallCapacity bytes, by two copies of a fixed size that may overlap: a call would take longer.
void CopySmall(char* to, const char* from, size_t n) {
  const auto by = [&]<size_t kBytes>() {
    char first[kBytes], last[kBytes];
    std::memcpy(first, from, kBytes);
    std::memcpy(last, from + n - kBytes, kBytes);
    std::memcpy(to, first, kBytes);
    std::memcpy(to + n - kBytes, last, kBytes);
  };
  if (n >= 16) return by.operator()<16>();
  if (n >= 8) return by.operator()<8>();
  if (n >= 4) return by.operator()<4>();
  for (size_t i = 0; i < n; ++i) to[i] = from[i];
}

}  // namespace

size_t TString::size() const {
  switch (kind()) {
    case Kind::kSmall: return static_cast<size_t>((raw_[0] & 0xff) >> 2);
    case Kind::kOffset: return static_cast<size_t>((raw_[0] & 0xffffffff) >> 2);
    case Kind::kLarge:
    case Kind::kView: break;
  }
  return static_cast<size_t>(raw_[0] >> 2);
}

const char* TString::data() const {
  const char* const self = reinterpret_cast<const char*>(raw_);
  switch (kind()) {
    case Kind::kSmall: return self + 1;
    case Kind::kLarge: return ToPointer(raw_[2]);
    case Kind::kOffset: return self + (raw_[0] >> 32);
    case Kind::kView: break;
  }
  return ToPointer(raw_[1]);
}

size_t TString::capacity() const {
  switch (kind()) {
    case Kind::kSmall: return kSmallCapacity;
    case Kind::kLarge: return static_cast<size_t>(raw_[1]);
    case Kind::kOffset:
    case Kind::kView: break;
  }
  return 0;
}

void TString::Take(TString& o) noexcept {
  if (o.kind() == Kind::kOffset) {
    // Its bytes are found relative to `o`, so they are borrowed from where they are.
    const absl::string_view bytes = o.view();
    raw_[0] = Tag(bytes.size(), Kind::kView), raw_[1] = ToBits(bytes.data()), raw_[2] = 0;
  } else {
    raw_[0] = o.raw_[0], raw_[1] = o.raw_[1], raw_[2] = o.raw_[2];
  }
  o.raw_[0] = o.raw_[1] = o.raw_[2] = 0;
}

void TString::Assign(absl::string_view s) {
  if (s.size() <= kSmallCapacity) {
    const uint64_t from = ToBits(s.data()), own = ToBits(reinterpret_cast<const char*>(raw_));
    if (kind() == Kind::kLarge || from - own < sizeof(raw_)) {
      // `s` may be part of this string's own bytes or of the memory it owns.
      char bytes[kSmallCapacity];
      CopySmall(bytes, s.data(), s.size());
      Clear();
      return Assign(absl::string_view(bytes, s.size()));
    }
    raw_[0] = Tag(s.size(), Kind::kSmall), raw_[1] = raw_[2] = 0;
    CopySmall(reinterpret_cast<char*>(raw_) + 1, s.data(), s.size());
    return;
  }
  if (kind() == Kind::kLarge && s.size() <= capacity()) {
    char* const own = const_cast<char*>(data());
    std::memmove(own, s.data(), s.size());
    own[s.size()] = '\0';
    raw_[0] = Tag(s.size(), Kind::kLarge);
    return;
  }
  const size_t capacity = (s.size() + 16) / 16 * 16 - 1;
  char* const memory = static_cast<char*>(std::malloc(capacity + 1));
  if (memory == nullptr) throw std::bad_alloc();
  std::memcpy(memory, s.data(), s.size());
  memory[s.size()] = '\0';
  Clear();
  raw_[0] = Tag(s.size(), Kind::kLarge), raw_[1] = capacity, raw_[2] = ToBits(memory);
}

void TString::AssignView(absl::string_view s) {
  Clear();
  raw_[0] = Tag(s.size(), Kind::kView), raw_[1] = ToBits(s.data());
}

void TString::Release() { std::free(const_cast<char*>(ToPointer(raw_[2]))); }

}  // namespace millrace
