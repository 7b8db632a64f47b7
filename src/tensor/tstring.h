// SPDX-License-Identifier: Apache-2.0
// The string element, bit for bit TF_TString (24 bytes, little-endian), so that a string tensor crosses the C API as it is.
// Kinds by the two low bits: small (up to 22 characters inline), large (owned heap), offset (foreign, read only), view
// (borrowed). An all-zero TString is the empty string.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace {

class TString {
 public:
  TString() = default;
  TString(absl::string_view s) { Assign(s); }  // NOLINT: reads like std::string
  TString(const TString& o) { Assign(o.view()); }
  TString(TString&& o) noexcept {
    raw_[0] = o.raw_[0], raw_[1] = o.raw_[1], raw_[2] = o.raw_[2];
    o.raw_[0] = o.raw_[1] = o.raw_[2] = 0;
  }
  TString& operator=(const TString& o) {
    if (this != &o) Assign(o.view());
    return *this;
  }
  TString& operator=(TString&& o) noexcept {
    if (this != &o) {
      Clear();
      raw_[0] = o.raw_[0], raw_[1] = o.raw_[1], raw_[2] = o.raw_[2];
      o.raw_[0] = o.raw_[1] = o.raw_[2] = 0;
    }
    return *this;
  }
  TString& operator=(absl::string_view s) {
    Assign(s);
    return *this;
  }
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

  void Assign(absl::string_view s);      // copies; `s` may point into this string
  void AssignView(absl::string_view s);  // borrows
  void Clear();                          // frees and becomes empty

  bool operator==(const TString& o) const { return view() == o.view(); }
  bool operator<(const TString& o) const { return view() < o.view(); }

 private:
  uint64_t raw_[3] = {0, 0, 0};
};
static_assert(sizeof(TString) == 24);

}  // namespace millrace
