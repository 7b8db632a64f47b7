// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace millrace::wire {

// Splits the text form of a message into tokens, and tells where they are.
// White space and comments (# to the end of the line) separate tokens.
class TextLexer {
 public:
  enum class Kind : uint8_t {
    kEnd,
    kIdentifier,  // letters, digits, '_'
    kInteger,     // decimal, 0x hexadecimal or 0 octal; no sign
    kFloat,       // has a point, an exponent or the suffix f; no sign
    kString,      // with its quotes
    kSymbol,      // one character
    kInvalid,     // see Error()
  };

  // `text` must outlive the lexer.
  explicit TextLexer(absl::string_view text);

  // The current token.
  Kind kind() const { return kind_; }
  absl::string_view token() const { return token_; }
  bool IsSymbol(char symbol) const { return kind_ == Kind::kSymbol && token_[0] == symbol; }

  void Next();

  // Passes over the current token if it is this symbol.
  bool TakeSymbol(char symbol);

  // The value of the current kString token, its escapes resolved.
  absl::Status Unquote(std::string* value) const;

  // "line:column: what", for the current token, or for an earlier position.
  absl::Status Error(absl::string_view what) const;
  absl::Status ErrorAt(size_t position, absl::string_view what) const;
  size_t position() const;

  // The current token as an error message should quote it.
  std::string Describe() const;

 private:
  void SkipBlanks();
  void LexNumber();
  void LexString(char quote);
  void Finish(Kind kind, size_t length);

  absl::string_view text_;
  size_t next_ = 0;  // of the token that follows the current one
  Kind kind_ = Kind::kEnd;
  absl::string_view token_;
};

}  // namespace millrace::wire
