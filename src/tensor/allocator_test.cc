// SPDX-License-Identifier: Apache-2.0
#include "tensor/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/granted_memory.h"
#include "gtest/gtest.h"
#include "tensor/arena.h"
#include "tensor/caching_allocator.h"
#include "tensor/guard_allocator.h"
#include "tensor/plain_allocator.h"

namespace millrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

std::vector<Allocator*> AllAllocators() {
  static PlainAllocator plain;
  static GuardAllocator guard;
  return {&plain, &guard, &HostAllocator(), &CachingAllocator::Instance()};
}

bool Aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % Allocator::kAlignment == 0; }

TEST(AllocatorTest, EverySizeIsAlignedWritableAndDisjoint) {
  for (Allocator* allocator : AllAllocators()) {
    std::vector<std::pair<char*, size_t>> pieces;
    for (size_t bytes = 0; bytes < 3 * kMiB; bytes = bytes + 1 + bytes / 7) {
      char* const p = static_cast<char*>(allocator->Allocate(bytes));
      ASSERT_NE(p, nullptr);
      EXPECT_TRUE(Aligned(p));
      std::memset(p, static_cast<int>(pieces.size()), bytes);
      pieces.emplace_back(p, bytes);
    }
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto [p, bytes] = pieces[i];
      EXPECT_EQ(static_cast<size_t>(std::count(p, p + bytes, static_cast<char>(i))), bytes);
      allocator->Deallocate(p, bytes);
    }
  }
}

TEST(AllocatorTest, ImpossibleSizesGiveNull) {
  for (Allocator* allocator : AllAllocators()) {
    for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, size_t{1} << 62, (size_t{1} << 46) + 1, size_t{1} << 46}) {
      EXPECT_EQ(allocator->Allocate(bytes), nullptr) << bytes;
    }
    allocator->Deallocate(nullptr, 0);
    void* const p = allocator->Allocate(100);
    EXPECT_NE(p, nullptr);
    allocator->Deallocate(p, 100);
  }
}

TEST(AllocatorTest, Stats) {
  for (Allocator* allocator : AllAllocators()) {
    allocator->ResetPeak();
    const AllocatorStats before = allocator->Stats();
    void* const large = allocator->Allocate(10 * kMiB);
    void* const small = allocator->Allocate(100);
    AllocatorStats now = allocator->Stats();
    EXPECT_EQ(now.bytes_in_use - before.bytes_in_use, static_cast<int64_t>(10 * kMiB + 100));
    EXPECT_EQ(now.num_allocations - before.num_allocations, 2);
    EXPECT_GE(now.peak_bytes_in_use, now.bytes_in_use);
    EXPECT_GE(now.bytes_reserved, now.bytes_in_use);
    allocator->Deallocate(large, 10 * kMiB);
    allocator->Deallocate(small, 100);
    now = allocator->Stats();
    EXPECT_EQ(now.bytes_in_use, before.bytes_in_use);
    EXPECT_GE(now.peak_bytes_in_use, static_cast<int64_t>(10 * kMiB));
    allocator->ResetPeak();
    EXPECT_LT(allocator->Stats().peak_bytes_in_use, before.bytes_in_use + static_cast<int64_t>(kMiB));
  }
}

TEST(AllocatorTest, LimitIsKept) {
  PlainAllocator limited(1000);
  void* const p = limited.Allocate(900);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(limited.Allocate(101), nullptr);
  limited.Deallocate(p, 900);
  void* const q = limited.Allocate(1000);
  EXPECT_NE(q, nullptr);
  limited.Deallocate(q, 1000);
  const auto buffer = AllocateBuffer(limited, 2000);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(buffer.status().message().find("2000"), absl::string_view::npos);
}

#if !defined(__SANITIZE_THREAD__)  // which does not fork well
TEST(GuardAllocatorTest, EndsTheProcessPastAnAllocation) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static GuardAllocator guard;
  char* const whole = static_cast<char*>(guard.Allocate(128));
  EXPECT_DEATH(whole[128] = 1, "");
  EXPECT_DEATH(whole[0] = static_cast<volatile char*>(whole)[128], "");
  char* const part = static_cast<char*>(guard.Allocate(100));
  EXPECT_DEATH(
      {
        part[100] = 1;
        guard.Deallocate(part, 100);
      },
      "wrote past the end of an allocation of 100 bytes");
  guard.Deallocate(whole, 128);
  guard.Deallocate(part, 100);
  EXPECT_EQ(guard.Stats().bytes_in_use, 0);
}
#endif

TEST(CachingAllocatorTest, FreedMemoryIsUsedAgain) {
  CachingAllocator& allocator = CachingAllocator::Instance();
  for (size_t bytes : {size_t{64}, size_t{5000}, size_t{40000}, 64 * kMiB}) {
    void* const p = allocator.Allocate(bytes);
    allocator.Deallocate(p, bytes);
    void* const q = allocator.Allocate(bytes);
    EXPECT_EQ(p, q);
    allocator.Deallocate(q, bytes);
  }
}

// What another thread frees meanwhile is in that one's cache. What a thread keeps is little, and goes with it.
TEST(CachingAllocatorTest, AThreadTakesTheLargePieceAgainThatItFreedLast) {
  CachingAllocator& allocator = CachingAllocator::Instance();
  constexpr size_t kBytes = 96 * 96 * 4;
  void* const others = allocator.Allocate(kBytes);
  void* const first = allocator.Allocate(kBytes);
  void* const last = allocator.Allocate(kBytes - 5);  // rounded, the same
  const int64_t in_use = allocator.Stats().bytes_in_use;
  allocator.Deallocate(first, kBytes);
  allocator.Deallocate(last, kBytes - 5);
  std::thread([&] { allocator.Deallocate(others, kBytes); }).join();
  EXPECT_EQ(allocator.Stats().bytes_in_use, in_use - static_cast<int64_t>(3 * kBytes - 5));
  EXPECT_EQ(allocator.Allocate(kBytes), last);
  EXPECT_EQ(allocator.Allocate(kBytes), first);
  allocator.Deallocate(first, kBytes);
  allocator.Deallocate(last, kBytes);

  const auto arena_uses = [&] { return allocator.arena().usage().in_use; };
  std::thread([&] {
    const size_t before = arena_uses();
    std::vector<void*> pieces;
    for (int i = 0; i < 100; ++i) pieces.push_back(allocator.Allocate(kBytes));
    for (void* p : pieces) allocator.Deallocate(p, kBytes);
    EXPECT_LE(arena_uses(), before + kMiB);
    void* const large = allocator.Allocate(kMiB);
    allocator.Deallocate(large, kMiB);
    EXPECT_LE(arena_uses(), before + kMiB) << "what is larger goes back";
  }).join();
  const size_t before = arena_uses();
  std::thread([&] { allocator.Deallocate(allocator.Allocate(kBytes), kBytes); }).join();
  EXPECT_EQ(arena_uses(), before);
  EXPECT_TRUE(allocator.arena().Verify());
}

// Threads allocate, check and free, half of it what others allocated.
TEST(CachingAllocatorTest, ThreadsExchangeMemory) {
  CachingAllocator& allocator = CachingAllocator::Instance();
  const int64_t before = allocator.Stats().bytes_in_use;
  struct Piece {
    unsigned char* p;
    size_t bytes;
    unsigned char fill;
  };
  absl::Mutex mu;
  std::vector<Piece> shared;
  std::atomic<int> damaged{0};
  const auto release = [&](const Piece& piece) {
    if (piece.p[0] != piece.fill || piece.p[piece.bytes - 1] != piece.fill) ++damaged;
    allocator.Deallocate(piece.p, piece.bytes);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Piece> own;
      for (int i = 0; i < 4000; ++i) {
        const size_t limit = size_t{1} << (random() % 18);
        const size_t bytes = 1 + random() % limit;
        Piece piece{
            static_cast<unsigned char*>(allocator.Allocate(bytes)), bytes, static_cast<unsigned char>(random())};
        std::memset(piece.p, piece.fill, bytes);
        own.push_back(piece);
        if (own.size() > 50) {
          std::swap(own[random() % own.size()], own.back());
          piece = own.back();
          own.pop_back();
          const absl::MutexLock lock(&mu);
          shared.push_back(piece);
          std::swap(shared[random() % shared.size()], shared.back());
          piece = shared.back();
          shared.pop_back();
          release(piece);
        }
      }
      for (const Piece& piece : own) release(piece);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Piece& piece : shared) release(piece);
  EXPECT_EQ(damaged.load(), 0);
  EXPECT_EQ(allocator.Stats().bytes_in_use, before);
  EXPECT_TRUE(allocator.arena().Verify());
}

TEST(CachingAllocatorTest, ThreadLocalObjectsMayFreeLate) {
  // Constructed before the thread's cache, so destroyed after it.
  struct Late {
    void* p = nullptr;
    ~Late() {
      if (p != nullptr) CachingAllocator::Instance().Deallocate(p, 128);
      void* const q = CachingAllocator::Instance().Allocate(256);
      CachingAllocator::Instance().Deallocate(q, 256);
    }
  };
  const int64_t before = CachingAllocator::Instance().Stats().bytes_in_use;
  std::thread([] {
    static thread_local Late late;
    late.p = nullptr;
    late.p = CachingAllocator::Instance().Allocate(128);
  }).join();
  EXPECT_EQ(CachingAllocator::Instance().Stats().bytes_in_use, before);
}

TEST(ArenaTest, RandomUseKeepsTheInvariants) {
  Arena arena;
  std::mt19937 random(7);
  std::map<char*, size_t> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() < 200 && random() % 5 != 0) {
      const size_t bytes = 1 + random() % (size_t{1} << (8 + random() % 14));
      char* const p = static_cast<char*>(arena.Allocate(bytes));
      ASSERT_NE(p, nullptr);
      const auto next = live.upper_bound(p);
      if (next != live.end()) {
        ASSERT_LE(p + bytes, next->first);
      }
      if (next != live.begin()) {
        ASSERT_GE(p, std::prev(next)->first + std::prev(next)->second);
      }
      live[p] = bytes;
    } else if (!live.empty()) {
      auto victim = live.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % live.size()));
      arena.Deallocate(victim->first);
      live.erase(victim);
    }
    if (i % 500 == 0) {
      ASSERT_TRUE(arena.Verify());
    }
  }
  for (const auto& [p, bytes] : live) arena.Deallocate(p);
  EXPECT_TRUE(arena.Verify());
  EXPECT_EQ(arena.usage().in_use, 0u);
}

TEST(ArenaTest, FreeNeighboursCoalesce) {
  Arena arena;
  std::vector<void*> pieces;
  for (int i = 0; i < 16; ++i) pieces.push_back(arena.Allocate(kMiB));
  const size_t committed = arena.usage().committed;
  for (size_t i = 0; i < pieces.size(); i += 2) arena.Deallocate(pieces[i]);
  for (size_t i = 1; i < pieces.size(); i += 2) arena.Deallocate(pieces[i]);
  void* const all = arena.Allocate(16 * kMiB);
  EXPECT_EQ(all, pieces[0]);
  EXPECT_EQ(arena.usage().committed, committed);
  arena.Deallocate(all);
}

TEST(ArenaTest, GrantsNoMoreThanTheProcessMayHave) {
  const auto all = static_cast<size_t>(GrantedMemory().with_swap);
  Arena arena;
  EXPECT_EQ(arena.Allocate(all + (size_t{64} << 20)), nullptr);
  void* const most = arena.Allocate(all / 10 * 6);  // not touched
  if (most == nullptr) GTEST_SKIP() << "skipped: the system grants less";
  EXPECT_EQ(arena.Allocate(all / 10 * 6), nullptr);
  arena.Deallocate(most);
  EXPECT_EQ(arena.Allocate(all / 10 * 12), nullptr);  // neither a longer piece in its place
}

TEST(ArenaTest, GrowthGivesUnusablePagesBack) {
  Arena arena;
  // Free pieces of 1 MiB between pieces in use: larger requests cannot take them.
  std::vector<void*> used;
  std::vector<void*> freed;
  for (int i = 0; i < 200; ++i) {
    freed.push_back(arena.Allocate(kMiB + kMiB / 2));
    used.push_back(arena.Allocate(Arena::kGranule));
  }
  for (void* p : freed) arena.Deallocate(p);
  EXPECT_EQ(arena.usage().free_resident, 300 * kMiB);
  for (int i = 0; i < 60; ++i) used.push_back(arena.Allocate(4 * kMiB));
  EXPECT_LE(arena.usage().free_resident, 128 * kMiB);
  EXPECT_TRUE(arena.Verify());
  for (void* p : used) arena.Deallocate(p);
  EXPECT_TRUE(arena.Verify());
}

// Bytes of `address` and what follows that have pages.
size_t ResidentBytes(void* address, size_t bytes) {
  constexpr size_t kPage = 4096;
  std::vector<unsigned char> pages(bytes / kPage);
  const uintptr_t first = (reinterpret_cast<uintptr_t>(address) + kPage - 1) / kPage * kPage;
  if (::mincore(reinterpret_cast<void*>(first), bytes - kPage, pages.data()) != 0) return SIZE_MAX;
  return kPage *
         static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](auto page) { return (page & 1) != 0; }));
}

TEST(ArenaTest, WhatStaysFreeGoesBackWithoutFurtherFrees) {
  Arena arena;
  void* const used = arena.Allocate(100 * kMiB);
  void* const freed = arena.Allocate(300 * kMiB);
  std::memset(freed, 1, 300 * kMiB);
  EXPECT_TRUE(arena.Deallocate(freed)) << "now somebody has to tend";
  void* const again = arena.Allocate(kMiB);
  EXPECT_FALSE(arena.Deallocate(again)) << "somebody does";
  EXPECT_GE(ResidentBytes(freed, 300 * kMiB), 299 * kMiB);

  EXPECT_TRUE(arena.Tend()) << "it was in use in this time";
  EXPECT_EQ(arena.usage().free_resident, 300 * kMiB);
  EXPECT_FALSE(arena.Tend()) << "there was no need for it in this one";
  EXPECT_LE(arena.usage().free_resident, 64 * kMiB);
  EXPECT_LE(ResidentBytes(freed, 300 * kMiB), 65 * kMiB);
  EXPECT_EQ(arena.usage().in_use, 100 * kMiB);
  EXPECT_TRUE(arena.Verify());

  void* const more = arena.Allocate(300 * kMiB);
  EXPECT_EQ(more, freed);
  EXPECT_TRUE(arena.Deallocate(more)) << "and once more";
  arena.NobodyTends();
  EXPECT_TRUE(arena.Deallocate(used));
}

TEST(ArenaTest, ALoopKeepsWhatItNeedsOnceAnIteration) {
  Arena arena;
  for (int i = 0; i < 5; ++i) {
    void* const p = arena.Allocate(300 * kMiB);
    arena.Deallocate(p);
    EXPECT_TRUE(arena.Tend());
    EXPECT_EQ(arena.usage().free_resident, 300 * kMiB) << i;
  }
}

TEST(ArenaTest, SmallPiecesWakeNobodyForEver) {
  Arena arena;
  std::vector<void*> pieces;
  for (int i = 0; i < 400; ++i) pieces.push_back(arena.Allocate(kMiB / 2));
  for (size_t i = 0; i < pieces.size(); i += 2) arena.Deallocate(pieces[i]);  // 100 MiB, none of which may go
  arena.Tend();
  EXPECT_FALSE(arena.Tend());
  EXPECT_EQ(arena.usage().free_resident, 100 * kMiB);
}

TEST(BufferTest, HeaderAndBytesAreOneAllocation) {
  PlainAllocator allocator;
  {
    const auto buffer = AllocateBuffer(allocator, 100);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(allocator.Stats().num_allocations, 1);
    EXPECT_TRUE(Aligned((*buffer)->data()));
    EXPECT_EQ((*buffer)->size(), 100u);
    EXPECT_TRUE((*buffer)->writable());
    EXPECT_GT(allocator.Stats().bytes_in_use, 0);
  }
  EXPECT_EQ(allocator.Stats().bytes_in_use, 0);
  EXPECT_EQ(AllocateBuffer(allocator, SIZE_MAX).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(AllocateBuffer(allocator, SIZE_MAX - 64).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(BufferTest, ForeignMemoryIsReleasedOnce) {
  int released = 0;
  int memory[4];
  {
    RefPtr<Buffer> buffer = WrapBuffer(
        memory, sizeof(memory), [](void*, size_t, void* arg) { ++*static_cast<int*>(arg); }, &released, false);
    const RefPtr<Buffer> second = buffer;
    buffer.reset();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(second->data(), memory);
    EXPECT_FALSE(second->writable());
  }
  EXPECT_EQ(released, 1);
  WrapBuffer(memory, 4, nullptr, nullptr, false);
}

}  // namespace
}  // namespace millrace
