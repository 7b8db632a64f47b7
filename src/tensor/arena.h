// SPDX-License-Identifier: Apache-2.0
// Large pieces of memory, kept for the process's life: best fit over free blocks that coalesce with their neighbours.
// What is free stays mapped, so a piece that is freed and taken again costs no page faults; the pages of free blocks go
// back to the system only when far more is free than in use. It has no clock: who has one calls Tend. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensor/address_space.h"

namespace millrace {

class Arena {
 public:
  static constexpr size_t kGranule = 256;
  static constexpr size_t kMaxBytes = size_t{1} << 46;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Aligned to kGranule; contents undefined. Null when the system refuses. 0 < bytes.
  void* Allocate(size_t bytes);
  // True: more is free than may stay, and nobody is tending yet; the caller must see to Tend.
  bool Deallocate(void* p);

  // Gives back what was free all the time since the last call, beyond what may stay. True: more may become idle, so it
  // is to be called once more, a while later; false: whoever tends may stop until Deallocate says so again.
  bool Tend();
  // Nobody tends after all, though Deallocate asked for it.
  void NobodyTends();

  struct Usage {
    size_t in_use = 0;         // rounded sizes of what is allocated
    size_t committed = 0;      // address space in use or free
    size_t free_resident = 0;  // free and probably backed by pages
  };
  Usage usage() const;
  // The invariants of the block lists; for tests.
  bool Verify() const;

 private:
  // Neighbours in address order are linked, free blocks of a bin too.
  struct Block {
    char* address = nullptr;
    size_t size = 0;
    size_t resident = 0;  // upper bound of the bytes that have pages; of free blocks only
    bool free = false;
    Block* before = nullptr;
    Block* after = nullptr;
    Block* previous_free = nullptr;
    Block* next_free = nullptr;
  };
  static constexpr size_t kNumBins = 320;

  static size_t BinOf(size_t size);
  Block* FindFit(size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Block* SmallestOf(size_t bin, size_t size, int looks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Block* Grow(size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeFrom(Block* block, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Block* NewBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LinkFree(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UnlinkFree(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Absorb(Block* block, Block* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  size_t FreeTarget() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsMuchFree() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PurgeTo(size_t target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  AddressSpace space_ ABSL_GUARDED_BY(mu_);
  Block* last_ ABSL_GUARDED_BY(mu_) = nullptr;  // highest block of the current reservation
  std::vector<std::unique_ptr<Block[]>> blocks_ ABSL_GUARDED_BY(mu_);
  Block* spare_ ABSL_GUARDED_BY(mu_) = nullptr;  // unused ones of blocks_, linked by next_free
  absl::flat_hash_map<void*, Block*> allocated_ ABSL_GUARDED_BY(mu_);
  Block* bins_[kNumBins] ABSL_GUARDED_BY(mu_) = {};
  uint64_t nonempty_[kNumBins / 64] ABSL_GUARDED_BY(mu_) = {};
  size_t in_use_ ABSL_GUARDED_BY(mu_) = 0;
  size_t free_resident_ ABSL_GUARDED_BY(mu_) = 0;
  // Most in use and least free_resident_ since somebody last tended.
  size_t peak_in_use_ ABSL_GUARDED_BY(mu_) = 0;
  size_t lowest_free_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_quiet_ ABSL_GUARDED_BY(mu_) = true;  // nothing was allocated or freed
  bool tended_ ABSL_GUARDED_BY(mu_) = false;   // somebody calls Tend from time to time
};

}  // namespace millrace
