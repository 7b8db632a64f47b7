// SPDX-License-Identifier: Apache-2.0
#include "io/glob.h"

#include <algorithm>

#include "base/file_system.h"

namespace millrace {
namespace {

constexpr absl::string_view kWild = "*?[";

// Whether `c` matches the pattern's first element, which takes *used characters of it.
bool MatchesOne(char c, absl::string_view pattern, size_t* used) {
  *used = 1;
  if (pattern[0] == '?') return true;
  if (pattern[0] == '\\' && pattern.size() > 1) {
    *used = 2;
    return c == pattern[1];
  }
  if (pattern[0] != '[') return c == pattern[0];
  size_t i = 1;
  const bool inverted = i < pattern.size() && (pattern[i] == '^' || pattern[i] == '!');
  if (inverted) ++i;
  bool found = false;
  for (const size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    const auto at = [&](size_t k) { return static_cast<unsigned char>(pattern[k]); };
    const unsigned char low = at(i);
    unsigned char high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = at(i + 2);
      i += 2;
    }
    const auto u = static_cast<unsigned char>(c);
    found = found || (low <= u && u <= high);
  }
  if (i == pattern.size()) return c == '[';  // no set: the bracket itself
  *used = i + 1;
  return found != inverted;
}

// The pattern without its backslashes.
std::string Plain(absl::string_view pattern) {
  std::string plain;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    plain.push_back(pattern[i]);
  }
  return plain;
}

bool IsOfNoFolder(const Status& listing) { return absl::IsNotFound(listing) || absl::IsFailedPrecondition(listing); }

}  // namespace

bool MatchesPattern(absl::string_view name, absl::string_view pattern) {
  // After a mismatch, the last star takes one character more.
  size_t n = 0, p = 0, star = absl::string_view::npos, from = 0;
  while (n < name.size()) {
    size_t used = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && MatchesOne(name[n], pattern.substr(p), &used)) {
      ++n;
      p += used;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

StatusOr<std::vector<std::string>> MatchFiles(Env& env, absl::string_view pattern) {
  std::vector<std::string> found;
  if (pattern.empty()) return found;
  // As TensorFlow names what is in no folder that the pattern tells.
  const absl::string_view fixed = pattern.substr(0, pattern.find_first_of("*?[\\"));
  found.push_back(fixed.find('/') == absl::string_view::npos ? "./" : "");
  const bool tells_errors = !FileScheme(pattern).empty();
  if (tells_errors) MR_RETURN_IF_ERROR(FileSystemOf(std::string(pattern)).status());
  while (!pattern.empty() && !found.empty()) {
    // A folder or a name, and the slashes behind it.
    const size_t end = std::min(pattern.find('/'), pattern.size());
    const size_t next = std::min(pattern.find_first_not_of('/', end), pattern.size());
    const absl::string_view part = pattern.substr(0, end);
    const std::string slashes(pattern.substr(end, next - end));
    pattern.remove_prefix(next);
    std::vector<std::string> longer;
    for (const std::string& prefix : found) {
      if (part.find_first_of(kWild) == absl::string_view::npos) {
        longer.push_back(prefix + Plain(part) + slashes);
        continue;
      }
      const auto names = env.ListDir(prefix.empty() ? "." : prefix);
      if (!names.ok() && tells_errors && !IsOfNoFolder(names.status())) return names.status();
      if (!names.ok()) continue;
      for (const std::string& name : *names) {
        if (MatchesPattern(name, part)) longer.push_back(prefix + name + slashes);
      }
    }
    found.swap(longer);
  }
  found.erase(std::remove_if(found.begin(), found.end(),
                             [&](const std::string& path) { return path.empty() || !env.FileExists(path); }),
              found.end());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace millrace
