// SPDX-License-Identifier: Apache-2.0
// What Unicode says of single characters: case and script.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

// The small letter of a character, else the character. U+0130, which becomes two, and the final sigma are the caller's.
uint32_t LowerCase(uint32_t code);

struct UpperCaseText {
  uint32_t code[3];
  size_t size;
};
UpperCaseText UpperCase(uint32_t code);

bool IsCased(uint32_t code);
bool IsCaseIgnorable(uint32_t code);

// The number of the character's script, -1 for what is no code point.
int32_t ScriptOf(int64_t code);

}  // namespace millrace
