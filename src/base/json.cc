// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <charconv>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace millrace {
namespace {

void AppendUtf8(uint32_t c, std::string* out) {
  auto tail = [&](int shift) { out->push_back(static_cast<char>(128 | (c >> shift & 63))); };
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xc0 | c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | c >> 12));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xf0 | c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

Status JsonReader::Fail(absl::string_view what) const {
  return InvalidArgument("Error while parsing JSON: ", what, " at offset ", at_);
}

char JsonReader::Peek() {
  while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::Take(char c) {
  if (Peek() != c) return false;
  ++at_;
  return true;
}

bool JsonReader::TakeNull() {
  if (Peek() != 'n' || text_.substr(at_, 4) != "null") return false;
  at_ += 4;
  return true;
}

Status JsonReader::Object(absl::FunctionRef<Status(const std::string&)> member) {
  if (!Take('{')) return Fail("expected '{'");
  std::set<std::string> seen;
  while (!Take('}')) {
    std::string key;
    MR_RETURN_IF_ERROR(Key(&key));
    if (!seen.insert(key).second) return Fail(absl::StrCat("repeated key '", key.substr(0, 80), "'"));
    if (!Take(':')) return Fail("expected ':'");
    MR_RETURN_IF_ERROR(member(key));
    if (!Take(',') && Peek() != '}') return Fail("expected ',' or '}'");
  }
  return absl::OkStatus();
}

Status JsonReader::Array(absl::FunctionRef<Status()> element) {
  if (!Take('[')) return element();
  while (!Take(']')) {
    MR_RETURN_IF_ERROR(element());
    if (!Take(',') && Peek() != ']') return Fail("expected ',' or ']'");
  }
  return absl::OkStatus();
}

Status JsonReader::Scalar(bool* quoted, std::string* value) {
  const char c = Peek();
  *quoted = c == '"' || c == '\'';
  if (*quoted) return String(value);
  const size_t end = std::min(text_.find_first_not_of("+-0123456789.eE", at_), text_.size());
  *value = std::string(text_.substr(at_, end - at_));
  at_ = end;
  return value->empty() ? Fail("expected a number or a string") : absl::OkStatus();
}

Status JsonReader::Key(std::string* key) {
  const char c = Peek();
  if (c == '"' || c == '\'') return String(key);
  const size_t begin = at_;
  while (at_ < text_.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
    ++at_;
  }
  *key = std::string(text_.substr(begin, at_ - begin));
  return key->empty() ? Fail("expected a key") : absl::OkStatus();
}

Status JsonReader::String(std::string* out) {
  const char quote = text_[at_++];
  while (at_ < text_.size() && text_[at_] != quote) {
    if (text_[at_] != '\\') {
      out->push_back(text_[at_++]);
      continue;
    }
    if (++at_ == text_.size()) break;
    const char c = text_[at_++];
    const size_t plain = absl::string_view("bfnrt\"'\\/").find(c);
    if (plain != absl::string_view::npos) {
      out->push_back("\b\f\n\r\t\"'\\/"[plain]);
    } else if (c == 'u') {
      MR_RETURN_IF_ERROR(Unicode(out));
    } else {
      return Fail("unknown escape");
    }
  }
  if (at_ == text_.size()) return Fail("unexpected end of a string");
  ++at_;
  return absl::OkStatus();
}

// The digits after \u, and the other half of a pair.
Status JsonReader::Unicode(std::string* out) {
  uint32_t code = 0;
  if (!Hex(&code)) return Fail("expected four hexadecimal digits");
  if (code >= 0xd800 && code < 0xe000) {
    uint32_t low = 0;
    if (code >= 0xdc00 || text_.substr(at_, 2) != "\\u") return Fail("half of a surrogate pair");
    at_ += 2;
    if (!Hex(&low) || low < 0xdc00 || low >= 0xe000) return Fail("half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  AppendUtf8(code, out);
  return absl::OkStatus();
}

bool JsonReader::Hex(uint32_t* code) {
  const absl::string_view digits = text_.substr(at_, 4);
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), *code, 16).ptr;
  if (digits.size() < 4 || end != digits.data() + 4) return false;
  at_ += 4;
  return true;
}

std::string JsonQuoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + '"';
}

}  // namespace millrace
