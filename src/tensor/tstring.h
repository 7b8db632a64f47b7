// SPDX-License-Identifier: Apache-2.0
// The string element, bit for bit TF_TString (24 bytes, little-endian), so that a string tensor crosses the C API as it
// is. Kinds by the two low bits: small (up to 22 characters inline), large (owned heap), offset (foreign, read only),
// view (borrowed). An all-zero TString is the empty string.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace {

class TString {
 public:
  TString() = default;
  TString(absl::string_view s) { Assign(s); }   // NOLINT: reads like std::string
  TString(const char* s) { Assign(s); }         // NOLINT
  TString(const std::string& s) { Assign(s); }  // NOLINT
  TString(const TString& o) { Assign(o.view()); }
  TString(TString&& o) noexcept { Take(o); }
  TString& operator=(const TString& o) {
    if (this != &o) Assign(o.view());
    return *this;
  }
  TString& operator=(TString&& o) noexcept {
    if (this != &o) {
      Clear();
      Take(o);
    }
    return *this;
  }
  TString& operator=(absl::string_view s) {
    Assign(s);
    return *this;
  }
  TString& operator=(const std::string& s) { return *this = absl::string_view(s); }
  TString& operator=(const char* s) { return *this = absl::string_view(s); }
  ~TString() { Clear(); }

  enum class Kind { kSmall = 0, kLarge = 1, kOffset = 2, kView = 3 };
  Kind kind() const { return static_cast<Kind>(raw_[0] & 3); }
  absl::string_view view() const { return {data(), size()}; }
  operator absl::string_view() const { return view(); }  // NOLINT
  std::string str() const { return std::string(view()); }
  const char* data() const;
  size_t size() const;
  size_t capacity() const;
  bool empty() const { return size() == 0; }

  void Assign(absl::string_view s);      // copies; `s` may point into this string; bad_alloc like std::string
  void AssignView(absl::string_view s);  // borrows
  // Frees and becomes empty.
  void Clear() {
    if (kind() == Kind::kLarge) Release();
    raw_[0] = raw_[1] = raw_[2] = 0;
  }

  bool operator==(const TString& o) const { return view() == o.view(); }
  bool operator<(const TString& o) const { return view() < o.view(); }

 private:
  void Take(TString& o) noexcept;  // leaves `o` empty; what this held must be freed before
  void Release();                  // frees the heap memory of a large string

  uint64_t raw_[3] = {0, 0, 0};
};
static_assert(sizeof(TString) == 24);

}  // namespace millrace
