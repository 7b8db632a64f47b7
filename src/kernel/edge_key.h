// SPDX-License-Identifier: Apache-2.0
// How Send and Recv name an edge in the rendezvous of a step: by the number that master and workers have agreed on when
// the partitions were registered, and in loops by frame and iteration. As a text it is "<edge>;<frame>:<iteration>".
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace millrace {

// The attribute of Send and Recv nodes that holds the number.
inline constexpr char kEdgeAttr[] = "_edge";

struct EdgeKey {
  int64_t edge = 0;
  uint64_t frame = 0;  // 0 outside of loops
  int64_t iteration = 0;

  std::string ToString() const;
  // InvalidArgument unless ToString has made it.
  static StatusOr<EdgeKey> Parse(absl::string_view text);
  bool operator==(const EdgeKey&) const = default;
};

}  // namespace millrace
