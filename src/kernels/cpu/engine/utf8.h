// SPDX-License-Identifier: Apache-2.0
// Characters of UTF-8 text.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace {

struct Utf8Char {
  uint32_t code = 0;
  size_t size = 1;  // bytes; of what is no character, the bytes that one replacement stands for
  bool valid = false;
};
// `text` is not empty. Surrogates, overlong forms and what is beyond U+10FFFF are no characters.
Utf8Char FirstUtf8Char(absl::string_view text);
// `code` must be a character.
void AppendUtf8(uint32_t code, std::string* out);

}  // namespace millrace
