// SPDX-License-Identifier: Apache-2.0
#include "client/random_state.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace millrace {
namespace {

constexpr absl::string_view kFirstLine = "millrace random state 1";

StatusOr<RandomStream::Position> ParsePosition(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  RandomStream::Position p;
  if (words.size() != p.size()) return InvalidArgument("a position has ", p.size(), " numbers, got '", text, "'");
  for (size_t i = 0; i < p.size(); ++i) {
    const bool digits = std::all_of(words[i].begin(), words[i].end(), absl::ascii_isxdigit);
    if (words[i].size() != 8 || !digits || !absl::SimpleHexAtoi(words[i], &p[i])) {
      return InvalidArgument("'", words[i], "' is no number of a position");
    }
  }
  return p;
}

}  // namespace

std::string EncodeRandomPositions(const RandomPositions& positions) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const auto& [name, p] : positions) {
    absl::StrAppendFormat(&text, "%08x %08x %08x %08x %08x %08x %s\n", p[0], p[1], p[2], p[3], p[4], p[5], name);
  }
  return text;
}

StatusOr<RandomPositions> DecodeRandomPositions(absl::string_view text) {
  constexpr size_t kDigits = 6 * 9 - 1;
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines.size() < 2 || lines.front() != kFirstLine || !lines.back().empty()) {
    return InvalidArgument("a random state begins with the line '", kFirstLine, "' and ends with an end of line");
  }
  RandomPositions positions;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    if (lines[i].size() < kDigits + 2 || lines[i][kDigits] != ' ') {
      return InvalidArgument("line ", i + 1, " of a random state is no position and name");
    }
    MR_ASSIGN_OR_RETURN(const RandomStream::Position p, ParsePosition(lines[i].substr(0, kDigits)));
    if (!positions.emplace(std::string(lines[i].substr(kDigits + 1)), p).second) {
      return InvalidArgument("line ", i + 1, " of a random state names a node again");
    }
  }
  return positions;
}

}  // namespace millrace
