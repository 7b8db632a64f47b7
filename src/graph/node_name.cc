// SPDX-License-Identifier: Apache-2.0
#include "graph/node_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace millrace {
namespace {

bool IsCount(absl::string_view s) {
  int n;
  return s == "*" || (!s.empty() && absl::ascii_isdigit(s[0]) && absl::SimpleAtoi(s, &n));
}
bool IsWord(absl::string_view s) {
  if (s == "*") return true;
  for (char c : s) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return !s.empty() && absl::ascii_isalpha(s[0]);
}
// "CPU:0", "CPU".
bool IsTypeAndId(absl::string_view s) {
  const size_t colon = s.find(':');
  return IsWord(s.substr(0, colon)) && (colon == s.npos || IsCount(s.substr(colon + 1)));
}

}  // namespace

bool IsNodeName(absl::string_view name, bool internal) {
  if (name.empty()) return false;
  if (!absl::ascii_isalnum(name[0]) && name[0] != '.' && !(internal && name[0] == '_')) return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '.' && c != '/' && c != '-' && c != '>') return false;
  }
  return true;
}

bool IsProgramNodeName(absl::string_view name) {
  if (name.empty() || name[0] == '^') return false;
  for (char c : name) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) || c == ':' || c == ';') return false;
  }
  return true;
}

bool IsDeviceName(absl::string_view name) {
  if (name.empty()) return true;
  if (name[0] != '/') return IsTypeAndId(name);
  for (absl::string_view part : absl::StrSplit(name.substr(1), '/')) {
    if (absl::ConsumePrefix(&part, "job:")) {
      bool ok = !part.empty();
      for (char c : part) ok = ok && (absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '*');
      if (!ok) return false;
    } else if (absl::ConsumePrefix(&part, "replica:") || absl::ConsumePrefix(&part, "task:")) {
      if (!IsCount(part)) return false;
    } else {
      absl::ConsumePrefix(&part, "device:");
      if (!IsTypeAndId(part)) return false;
    }
  }
  return true;
}

}  // namespace millrace
