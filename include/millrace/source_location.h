// SPDX-License-Identifier: Apache-2.0
// Where in the program an operation is made: std::source_location, or the like of it for clang before 16 with
// libstdc++, which has none.
#pragma once

#include <source_location>

#ifndef __cpp_lib_source_location
#include <cstdint>
#endif

namespace millrace {

#ifdef __cpp_lib_source_location
using SourceLocation = std::source_location;
#else
// A line of the program.
class SourceLocation {
 public:
  // That of the caller.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(), uint_least32_t line = __builtin_LINE()) {
    SourceLocation here;
    here.file_ = file;
    here.line_ = line;
    return here;
  }
  // Its file, as the compiler was told.
  constexpr const char* file_name() const { return file_; }
  // Its number, from 1 on.
  constexpr uint_least32_t line() const { return line_; }

 private:
  const char* file_ = "";
  uint_least32_t line_ = 0;
};
#endif

}  // namespace millrace
