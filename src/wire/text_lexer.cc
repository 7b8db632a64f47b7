// SPDX-License-Identifier: Apache-2.0
#include "wire/text_lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace millrace::wire {
namespace {

bool IsIdentifierChar(char c) { return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c)); }

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

}  // namespace

TextLexer::TextLexer(absl::string_view text) : text_(text) { Next(); }

void TextLexer::Next() {
  SkipBlanks();
  token_ = text_.substr(next_, 0);
  if (next_ == text_.size()) {
    kind_ = Kind::kEnd;
    return;
  }
  const char c = text_[next_];
  const bool starts_fraction = c == '.' && next_ + 1 < text_.size() && IsDigit(text_[next_ + 1]);
  if (IsDigit(c) || starts_fraction) {
    LexNumber();
  } else if (IsIdentifierChar(c)) {
    size_t length = 1;
    while (next_ + length < text_.size() && IsIdentifierChar(text_[next_ + length])) {
      ++length;
    }
    Finish(Kind::kIdentifier, length);
  } else if (c == '"' || c == '\'') {
    LexString(c);
  } else {
    Finish(Kind::kSymbol, 1);
  }
}

bool TextLexer::TakeSymbol(char symbol) {
  if (!IsSymbol(symbol)) return false;
  Next();
  return true;
}

void TextLexer::SkipBlanks() {
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (c == '#') {
      const size_t newline = text_.find('\n', next_);
      next_ = newline == absl::string_view::npos ? text_.size() : newline;
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      ++next_;
    } else {
      return;
    }
  }
}

void TextLexer::LexNumber() {
  const absl::string_view rest = text_.substr(next_);
  const bool hex = absl::StartsWithIgnoreCase(rest, "0x");
  bool is_float = false;
  size_t length = 0;
  for (; length < rest.size(); ++length) {
    const char c = absl::ascii_tolower(static_cast<unsigned char>(rest[length]));
    if (hex) {
      if (!IsIdentifierChar(c)) break;
    } else if (c == '.' || c == 'e' || c == 'f') {
      is_float = true;
    } else if (c == '+' || c == '-') {
      const char before = rest[length - 1];
      if (before != 'e' && before != 'E') break;
    } else if (!IsIdentifierChar(c)) {
      break;
    }
  }
  Finish(is_float ? Kind::kFloat : Kind::kInteger, length);
}

void TextLexer::LexString(char quote) {
  size_t end = next_ + 1;
  while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
    end += text_[end] == '\\' ? 2 : 1;
  }
  if (end >= text_.size() || text_[end] != quote) {
    Finish(Kind::kInvalid, text_.size() - next_);
    return;
  }
  Finish(Kind::kString, end + 1 - next_);
}

void TextLexer::Finish(Kind kind, size_t length) {
  kind_ = kind;
  token_ = text_.substr(next_, length);
  next_ += length;
}

absl::Status TextLexer::Unquote(std::string* value) const {
  const absl::string_view inner = token_.substr(1, token_.size() - 2);
  std::string error;
  if (!absl::CUnescape(inner, value, &error)) {
    return Error(absl::StrCat("bad escape in string: ", error));
  }
  return absl::OkStatus();
}

size_t TextLexer::position() const { return static_cast<size_t>(token_.data() - text_.data()); }

absl::Status TextLexer::Error(absl::string_view what) const { return ErrorAt(position(), what); }

absl::Status TextLexer::ErrorAt(size_t position, absl::string_view what) const {
  size_t line = 1;
  size_t line_start = 0;
  for (size_t i = 0; i < position; ++i) {
    if (text_[i] != '\n') continue;
    ++line;
    line_start = i + 1;
  }
  return absl::InvalidArgumentError(absl::StrCat(line, ":", position - line_start + 1, ": ", what));
}

std::string TextLexer::Describe() const {
  if (kind_ == Kind::kEnd) return "the end of the text";
  if (kind_ == Kind::kInvalid) return "a string without end";
  constexpr size_t kShown = 40;
  return absl::StrCat("\"", absl::CHexEscape(token_.substr(0, kShown)), token_.size() > kShown ? "...\"" : "\"");
}

}  // namespace millrace::wire
