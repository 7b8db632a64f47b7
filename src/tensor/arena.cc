// SPDX-License-Identifier: Apache-2.0
// Bins hold free blocks of similar size (eight bins per power of two). A request looks through its own bin for the best
// fit, then takes the smallest of the next bin that has any; both looks are bounded. When nothing fits, the arena grows
// at its end, and a free block there grows with it.
//
// Two rules bound what is free but resident, beyond max(64 MB, a quarter of the most in use lately): growth gives as
// much back as it takes, and what stayed free between two calls of Tend is given back. A loop that uses its memory once
// per iteration, and an iteration lasts no longer than that, never loses any.
#include "tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/granted_memory.h"

namespace millrace {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kKeepFree = size_t{64} << 20;
constexpr size_t kMinPurge = size_t{1} << 20;
constexpr int kLooksInOwnBin = 32;
constexpr int kLooksInNextBin = 8;

}  // namespace

// 16 bins of one granule each, then 8 per power of two.
size_t Arena::BinOf(size_t size) {
  const size_t granules = size / kGranule;
  if (granules < 16) return granules;
  const auto log = static_cast<size_t>(std::bit_width(granules)) - 1;
  return std::min(16 + (log - 4) * 8 + ((granules >> (log - 3)) & 7), kNumBins - 1);
}

void* Arena::Allocate(size_t bytes) {
  if (bytes == 0 || bytes > kMaxBytes) return nullptr;
  const size_t size = (bytes + kGranule - 1) / kGranule * kGranule;
  const absl::MutexLock lock(&mu_);
  is_quiet_ = false;
  // Charged piece by piece, the system would grant more than it has, and end the process where that is touched.
  const auto all = static_cast<size_t>(GrantedMemory().with_swap);
  if (size > all - std::min(in_use_, all)) return nullptr;
  Block* block = FindFit(size);
  if (block == nullptr) block = Grow(size);
  if (block == nullptr) return nullptr;
  TakeFrom(block, size);
  allocated_.emplace(block->address, block);
  in_use_ += size;
  peak_in_use_ = std::max(peak_in_use_, in_use_);
  lowest_free_ = std::min(lowest_free_, free_resident_);
  return block->address;
}

bool Arena::Deallocate(void* p) {
  const absl::MutexLock lock(&mu_);
  const auto found = allocated_.find(p);
  if (found == allocated_.end()) return false;
  is_quiet_ = false;
  Block* block = found->second;
  allocated_.erase(found);
  in_use_ -= block->size;
  block->resident = block->size;
  if (block->after != nullptr && block->after->free) {
    UnlinkFree(block->after);
    Absorb(block, block->after);
  }
  if (block->before != nullptr && block->before->free) {
    Block* const before = block->before;
    UnlinkFree(before);
    Absorb(before, block);
    block = before;
  }
  LinkFree(block);
  return !tended_ && IsMuchFree() ? (tended_ = true) : false;
}

Arena::Block* Arena::SmallestOf(size_t bin, size_t size, int looks) {
  Block* best = nullptr;
  for (Block* b = bins_[bin]; b != nullptr && looks > 0; b = b->next_free, --looks) {
    if (b->size == size) return b;
    if (b->size > size && (best == nullptr || b->size < best->size)) best = b;
  }
  return best;
}

Arena::Block* Arena::FindFit(size_t size) {
  const size_t own = BinOf(size);
  if (Block* const b = SmallestOf(own, size, kLooksInOwnBin)) return b;
  size_t word = (own + 1) / 64;
  if (word >= std::size(nonempty_)) return nullptr;
  uint64_t bits = nonempty_[word] & (~uint64_t{0} << ((own + 1) % 64));
  while (bits == 0) {
    if (++word == std::size(nonempty_)) return nullptr;
    bits = nonempty_[word];
  }
  return SmallestOf(word * 64 + static_cast<size_t>(std::countr_zero(bits)), size, kLooksInNextBin);
}

// A free block of at least `size`, linked, whose end is new memory.
Arena::Block* Arena::Grow(size_t size) {
  const size_t tail = last_ != nullptr && last_->free ? last_->size : 0;
  const size_t missing = size - std::min(tail, size);
  if (const size_t target = FreeTarget(); free_resident_ > target) {
    PurgeTo(std::max(target, free_resident_ - std::min(free_resident_, missing)));
  }
  if (tail > 0 && missing <= space_.Room()) {
    if (space_.Take(missing) == nullptr) return nullptr;
    UnlinkFree(last_);
    last_->size += missing;
    LinkFree(last_);
    return last_;
  }
  const bool contiguous = last_ != nullptr && size <= space_.Room();
  char* const address = space_.Take(size);
  if (address == nullptr) return nullptr;
  Block* const block = NewBlock();
  block->address = address;
  block->size = size;
  if (contiguous) {
    block->before = last_;
    last_->after = block;
  }
  last_ = block;
  LinkFree(block);
  return block;
}

// Makes `block`, free and linked, an allocated one of `size`; what is left over becomes a free block behind it.
void Arena::TakeFrom(Block* block, size_t size) {
  UnlinkFree(block);
  if (block->size > size) {
    Block* const rest = NewBlock();
    rest->address = block->address + size;
    rest->size = block->size - size;
    rest->resident = std::min(block->resident, rest->size);
    rest->before = block;
    rest->after = block->after;
    if (rest->after != nullptr) rest->after->before = rest;
    block->after = rest;
    block->size = size;
    if (last_ == block) last_ = rest;
    LinkFree(rest);
  }
  block->free = false;
}

// `next` follows `block` directly; its descriptor ends.
void Arena::Absorb(Block* block, Block* next) {
  block->size += next->size;
  block->resident += next->resident;
  block->after = next->after;
  if (next->after != nullptr) next->after->before = block;
  if (last_ == next) last_ = block;
  *next = Block();
  next->next_free = std::exchange(spare_, next);
}

Arena::Block* Arena::NewBlock() {
  if (spare_ == nullptr) {
    constexpr size_t kBatch = 64;
    blocks_.push_back(std::make_unique<Block[]>(kBatch));
    Block* const batch = blocks_.back().get();
    for (size_t i = 0; i < kBatch; ++i) batch[i].next_free = std::exchange(spare_, &batch[i]);
  }
  Block* const block = spare_;
  spare_ = block->next_free;
  *block = Block();
  return block;
}

void Arena::LinkFree(Block* block) {
  const size_t bin = BinOf(block->size);
  block->free = true;
  block->previous_free = nullptr;
  block->next_free = bins_[bin];
  if (block->next_free != nullptr) block->next_free->previous_free = block;
  bins_[bin] = block;
  nonempty_[bin / 64] |= uint64_t{1} << (bin % 64);
  free_resident_ += block->resident;
}

void Arena::UnlinkFree(Block* block) {
  const size_t bin = BinOf(block->size);
  if (block->previous_free != nullptr) {
    block->previous_free->next_free = block->next_free;
  } else {
    bins_[bin] = block->next_free;
    if (bins_[bin] == nullptr) nonempty_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
  }
  if (block->next_free != nullptr) block->next_free->previous_free = block->previous_free;
  free_resident_ -= block->resident;
}

size_t Arena::FreeTarget() const { return std::max(kKeepFree, peak_in_use_ / 4); }

// Gives pages back, those of the largest blocks first, until at most `target` bytes are free and resident.
void Arena::PurgeTo(size_t target) {
  for (size_t bin = kNumBins; bin-- > BinOf(kMinPurge) && free_resident_ > target;) {
    for (Block* b = bins_[bin]; b != nullptr && free_resident_ > target; b = b->next_free) {
      if (b->resident < kMinPurge) continue;
      const size_t head = (kPage - reinterpret_cast<uintptr_t>(b->address) % kPage) % kPage;
      const size_t length = (b->size - head) / kPage * kPage;
      if (::madvise(b->address + head, length, MADV_DONTNEED) != 0) continue;
      free_resident_ -= b->resident;
      b->resident = std::min(b->resident, b->size - length);
      free_resident_ += b->resident;
    }
  }
}

// More than may stay once what is in use is what was.
bool Arena::IsMuchFree() const { return free_resident_ > std::max(kKeepFree, in_use_ / 4); }

bool Arena::Tend() {
  const absl::MutexLock lock(&mu_);
  const size_t target = FreeTarget();
  if (lowest_free_ > target) PurgeTo(free_resident_ - (lowest_free_ - target));
  peak_in_use_ = in_use_;
  lowest_free_ = free_resident_;
  // After a quiet time all has been given back that may be.
  return tended_ = !std::exchange(is_quiet_, true) && IsMuchFree();
}

void Arena::NobodyTends() {
  const absl::MutexLock lock(&mu_);
  tended_ = false;
}

Arena::Usage Arena::usage() const {
  const absl::MutexLock lock(&mu_);
  return {.in_use = in_use_, .committed = space_.committed_bytes(), .free_resident = free_resident_};
}

bool Arena::Verify() const {
  const absl::MutexLock lock(&mu_);
  size_t resident = 0;
  size_t used = 0;
  for (size_t bin = 0; bin < kNumBins; ++bin) {
    if ((bins_[bin] != nullptr) != ((nonempty_[bin / 64] >> (bin % 64) & 1) != 0)) return false;
    for (const Block* b = bins_[bin]; b != nullptr; b = b->next_free) {
      if (!b->free || BinOf(b->size) != bin || b->resident > b->size) return false;
      // Two free neighbours would have coalesced.
      if (b->after != nullptr && (b->after->free || b->after->address != b->address + b->size)) return false;
      if (b->before != nullptr && (b->before->free || b->before->after != b)) return false;
      resident += b->resident;
    }
  }
  for (const auto& [address, b] : allocated_) {
    if (b->free || b->address != address) return false;
    if (b->after != nullptr && (b->after->before != b || b->after->address != b->address + b->size)) return false;
    used += b->size;
  }
  return resident == free_resident_ && used == in_use_;
}

}  // namespace millrace
