// SPDX-License-Identifier: Apache-2.0
#include "cluster/common_codec.h"

#include <algorithm>

namespace millrace {

std::vector<RandomPositionEntry> ListPositions(const RandomPositions& positions) {
  std::vector<RandomPositionEntry> list;
  for (const auto& [node, position] : positions) list.push_back({node, {position.begin(), position.end()}});
  return list;
}

Status TakePosition(const RandomPositionEntry& entry, RandomPositions* positions) {
  RandomStream::Position position;
  if (entry.numbers.size() != position.size()) {
    return InvalidArgument(
        "the position of '", entry.node, "' has ", entry.numbers.size(), " numbers, want ", position.size());
  }
  std::copy(entry.numbers.begin(), entry.numbers.end(), position.begin());
  (*positions)[entry.node] = position;
  return absl::OkStatus();
}

}  // namespace millrace
