// SPDX-License-Identifier: Apache-2.0
// The segments by which one end of a connection sends: used again and again, since memory that is touched for the first
// time costs as much as a copy. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "cluster/shm/segment.h"

namespace millrace::shm {

class SegmentPool {
 public:
  struct Lent {
    uint64_t id = 0;
    std::shared_ptr<Segment> segment;
    bool is_new = false;  // the peer has not seen it
  };
  // For the sender alone, until the peer gives it back.
  StatusOr<Lent> Take(size_t bytes, int64_t now);
  // What the peer says: of no segment that it has, nothing happens.
  void GiveBack(uint64_t id, int64_t now);
  // Forgets segments that nobody has wanted since `before`: their ids.
  std::vector<uint64_t> Trim(int64_t before);

 private:
  struct Entry {
    uint64_t id;
    std::shared_ptr<Segment> segment;
    bool lent;
    int64_t since;
  };
  uint64_t last_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace millrace::shm
