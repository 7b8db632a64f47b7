// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/segment_pool.h"

#include <algorithm>

#include "cluster/shm/frame.h"

namespace millrace::shm {
namespace {

constexpr size_t kGranule = 64 * 1024;
constexpr size_t kMostWaste = 4;  // a segment serves messages down to a fourth of its size

// Sizes with 3 significant bits, so that messages of about one size share segments.
size_t Rounded(size_t bytes) {
  size_t step = kGranule;
  while (step * 8 < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

}  // namespace

StatusOr<SegmentPool::Lent> SegmentPool::Take(size_t bytes, int64_t now) {
  Entry* best = nullptr;
  for (Entry& e : entries_) {
    if (e.lent || e.segment->capacity() < bytes || e.segment->capacity() > kMostWaste * Rounded(bytes)) continue;
    if (best == nullptr || e.segment->capacity() < best->segment->capacity()) best = &e;
  }
  if (best != nullptr) {
    best->lent = true;
    best->since = now;
    return Lent{best->id, best->segment, false};
  }
  if (entries_.size() >= kMaxSegments) {
    return ResourceExhausted("the peer holds all ", kMaxSegments, " segments of shared memory that it may have");
  }
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Segment> segment, Segment::Create(Rounded(bytes)));
  entries_.push_back({++last_, std::move(segment), true, now});
  return Lent{last_, entries_.back().segment, true};
}

void SegmentPool::GiveBack(uint64_t id, int64_t now) {
  for (Entry& e : entries_) {
    if (e.id != id || !e.lent) continue;
    e.lent = false;
    e.since = now;
    return;
  }
}

std::vector<uint64_t> SegmentPool::Trim(int64_t before) {
  std::vector<uint64_t> gone;
  const auto is_old = [&](const Entry& e) {
    if (e.lent || e.since >= before) return false;
    gone.push_back(e.id);
    return true;
  };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_old), entries_.end());
  return gone;
}

}  // namespace millrace::shm
