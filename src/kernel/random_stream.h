// SPDX-License-Identifier: Apache-2.0
// RandomStream: what a kernel is, besides, whose numbers go on from step to step. A session can tell where its streams
// are and put those of another session there, so that an interrupted program ends with the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace millrace {

class RandomStream {
 public:
  // The counter, then the key, of the numbers that come next.
  using Position = std::array<uint32_t, 6>;

  virtual ~RandomStream() = default;
  // Thread-safe, but only between steps do they mean much.
  virtual Position position() const = 0;
  virtual void set_position(const Position& p) = 0;
};

// By names of nodes.
using RandomPositions = std::map<std::string, RandomStream::Position>;

}  // namespace millrace
