// SPDX-License-Identifier: Apache-2.0
// A thread's cache has a stack of free objects per size class. An empty stack takes a batch from the central stack of
// its class, a full one gives a batch back. The central stacks live on spans carved from their own address space, so
// the small objects, which never go back, do not split up the arena.
//
// A thread also keeps a few large pieces that it has freed, for as long as they are likely to be in its core's cache:
// from the arena, which hands out what was freed last by anybody, threads that run beside each other would get the
// memory that the other's core has just written.
//
// A thread counts its use privately and settles the count with the common one from time to time.
#include "tensor/caching_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <memory>
#include <new>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/timer_thread.h"

namespace millrace {
namespace {

constexpr size_t kUnit = Allocator::kAlignment;
constexpr size_t kFineClasses = 16;  // of one unit each, then 8 per power of two
constexpr size_t kNumClasses = kFineClasses + 5 * 8;
constexpr int64_t kUnsettled = 64 << 10;
constexpr size_t kBatchBytes = 16 << 10;
constexpr size_t kTinyBytes = 256;       // of classes up to here
constexpr size_t kKeptTiny = 128 << 10;  // a thread keeps so much: steps hold many scalars at once
constexpr size_t kSpanBytes = 64 << 10;

constexpr size_t ClassBytes(size_t size_class) {
  if (size_class < kFineClasses) return (size_class + 1) * kUnit;
  const size_t i = size_class - kFineClasses;
  return (kFineClasses * kUnit << (i / 8)) / 8 * (9 + i % 8);
}
static_assert(ClassBytes(kNumClasses - 1) == CachingAllocator::kMaxSmall);

// The class of n units, for n from 0 on.
constexpr auto kClassOfUnits = [] {
  std::array<uint8_t, CachingAllocator::kMaxSmall / kUnit + 1> table{};
  for (size_t units = 0, size_class = 0; units < table.size(); ++units) {
    if (units * kUnit > ClassBytes(size_class)) ++size_class;
    table[units] = static_cast<uint8_t>(size_class);
  }
  return table;
}();

size_t ClassOf(size_t bytes) { return kClassOfUnits[(bytes + kUnit - 1) / kUnit]; }

constexpr uint32_t BatchOf(size_t size_class) {
  return static_cast<uint32_t>(std::clamp<size_t>(kBatchBytes / ClassBytes(size_class), 2, 64));
}

// A stack of more gives a batch back.
constexpr uint32_t KeptOf(size_t size_class) {
  const size_t bytes = ClassBytes(size_class);
  return bytes <= kTinyBytes ? static_cast<uint32_t>(kKeptTiny / bytes) : 2 * BatchOf(size_class);
}
constexpr auto kKept = [] {
  std::array<uint32_t, kNumClasses> kept{};
  for (size_t i = 0; i < kNumClasses; ++i) kept[i] = KeptOf(i);
  return kept;
}();

// What was free for so long goes back. On the machine's clock: its memory is in no simulated world.
constexpr absl::Duration kIdle = absl::Seconds(10);

constexpr size_t kMaxKept = 256 << 10;        // of a large piece
constexpr size_t kMostKeptBytes = 512 << 10;  // of all that a thread keeps
constexpr size_t kMostKept = 8;

// Large pieces, the one freed last behind the others.
class KeptPieces {
 public:
  // Null: there is none of this size.
  void* Take(size_t bytes) {
    for (size_t i = count_; i-- > 0;) {
      if (pieces_[i].bytes == bytes) return Remove(i);
    }
    return nullptr;
  }
  // REQUIRES: HasRoomFor(bytes).
  void Add(void* p, size_t bytes) {
    pieces_[count_++] = {p, bytes};
    bytes_ += bytes;
  }
  bool HasRoomFor(size_t bytes) const { return count_ < kMostKept && bytes_ + bytes <= kMostKeptBytes; }
  bool empty() const { return count_ == 0; }
  void* TakeOldest() { return Remove(0); }

 private:
  struct Piece {
    void* p = nullptr;
    size_t bytes = 0;
  };
  void* Remove(size_t i) {
    void* const p = pieces_[i].p;
    bytes_ -= pieces_[i].bytes;
    std::copy(pieces_ + i + 1, pieces_ + count_, pieces_ + i);
    --count_;
    return p;
  }

  Piece pieces_[kMostKept];
  size_t count_ = 0, bytes_ = 0;
};

// Pieces of one size serve each other.
size_t LargeBytes(size_t bytes) { return (bytes + Arena::kGranule - 1) / Arena::kGranule * Arena::kGranule; }

struct FreeObject {
  FreeObject* next;
};

struct Stack {
  FreeObject* top = nullptr;
  uint32_t count = 0;

  void Push(void* p) {
    top = new (p) FreeObject{top};
    ++count;
  }
  void* Pop() {
    FreeObject* const p = top;
    top = p->next;
    --count;
    return p;
  }
};

// Only the owner writes; Stats() reads from other threads.
class OwnedCounter {
 public:
  void Add(int64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  int64_t Reset() {
    const int64_t old = get();
    value_.store(0, std::memory_order_relaxed);
    return old;
  }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

}  // namespace

struct CachingAllocator::Cache {
  Stack stacks[kNumClasses];
  KeptPieces large;
  OwnedCounter unsettled;
  OwnedCounter allocations;
};

struct CachingAllocator::Central {
  struct alignas(64) Class {
    absl::Mutex mu;
    Stack free ABSL_GUARDED_BY(mu);
    char* span ABSL_GUARDED_BY(mu) = nullptr;  // the part not handed out yet
    char* span_end ABSL_GUARDED_BY(mu) = nullptr;
  };

  Class classes[kNumClasses];
  absl::Mutex span_mu;
  AddressSpace spans ABSL_GUARDED_BY(span_mu);
  mutable absl::Mutex caches_mu;
  std::set<const Cache*> caches ABSL_GUARDED_BY(caches_mu);

  bool NewSpan(Class& c, size_t object_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(c.mu) {
    const size_t bytes = std::max(kSpanBytes, object_bytes * 8) / object_bytes * object_bytes;
    const absl::MutexLock lock(&span_mu);
    char* const span = spans.Take(bytes);
    if (span == nullptr) return false;
    c.span = span;
    c.span_end = span + bytes;
    return true;
  }

  void* PopOne(size_t size_class, Class& c) ABSL_EXCLUSIVE_LOCKS_REQUIRED(c.mu) {
    if (c.free.top != nullptr) return c.free.Pop();
    const size_t bytes = ClassBytes(size_class);
    if (c.span == c.span_end && !NewSpan(c, bytes)) return nullptr;
    return std::exchange(c.span, c.span + bytes);
  }
};

// The declaration's model does not reach the definition.
thread_local CachingAllocator::Cache* CachingAllocator::t_cache __attribute__((tls_model("initial-exec"))) = nullptr;
// Has no destructor, so it can be read while the thread's other objects go.
static thread_local bool t_ended = false;

// Gives a thread's cache back when the thread ends. Other thread-local objects may still free memory after that.
struct CachingAllocator::CacheOwner {
  CachingAllocator* allocator = nullptr;
  ~CacheOwner() {
    t_ended = true;
    if (t_cache != nullptr) allocator->Retire(std::exchange(t_cache, nullptr));
  }
};

CachingAllocator::CachingAllocator(int64_t bytes_limit) : limit_(bytes_limit), central_(std::make_unique<Central>()) {}
CachingAllocator::~CachingAllocator() = default;

CachingAllocator& CachingAllocator::Instance(int64_t bytes_limit) {
  static CachingAllocator& allocator = *new CachingAllocator(bytes_limit);
  return allocator;
}

CachingAllocator::Cache* CachingAllocator::ThreadCache() {
  if (t_ended) return nullptr;
  static thread_local CacheOwner owner;
  owner.allocator = this;
  // Without memory for a cache this thread goes to the central lists: what frees memory must not throw.
  std::unique_ptr<Cache> cache(new (std::nothrow) Cache);
  if (cache == nullptr) return nullptr;
  try {
    const absl::MutexLock lock(&central_->caches_mu);
    central_->caches.insert(cache.get());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  t_cache = cache.release();
  return t_cache;
}

void CachingAllocator::Retire(Cache* cache) {
  for (size_t i = 0; i < kNumClasses; ++i) {
    while (cache->stacks[i].count > 0) Spill(*cache, i);
  }
  while (!cache->large.empty()) FreeLarge(cache->large.TakeOldest());
  SettleUse(*cache);
  {
    const absl::MutexLock lock(&central_->caches_mu);
    central_->caches.erase(cache);
    allocations_.fetch_add(cache->allocations.get(), std::memory_order_relaxed);
  }
  delete cache;
}

void CachingAllocator::AddUse(int64_t bytes) {
  const int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  for (int64_t peak = peak_.load(std::memory_order_relaxed);
       now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed);) {
  }
}

void CachingAllocator::SettleUse(Cache& cache) { AddUse(cache.unsettled.Reset()); }

bool CachingAllocator::MayUse(size_t bytes) const {
  return limit_ == 0 || static_cast<int64_t>(bytes) <= limit_ - in_use_.load(std::memory_order_relaxed);
}

void* CachingAllocator::Allocate(size_t bytes) {
  Cache* const cache = t_cache;
  if (bytes > kMaxSmall || cache == nullptr) return AllocateSlow(bytes);
  const size_t size_class = ClassOf(bytes);
  Stack& stack = cache->stacks[size_class];
  void* const p = __builtin_expect(stack.top != nullptr, 1) ? stack.Pop() : Refill(*cache, size_class);
  if (p == nullptr) return nullptr;
  cache->allocations.Add(1);
  cache->unsettled.Add(static_cast<int64_t>(bytes));
  if (cache->unsettled.get() > kUnsettled) SettleUse(*cache);
  return p;
}

void CachingAllocator::Deallocate(void* p, size_t bytes) {
  Cache* const cache = t_cache;
  if (bytes > kMaxSmall || cache == nullptr || p == nullptr) return DeallocateSlow(p, bytes);
  const size_t size_class = ClassOf(bytes);
  Stack& stack = cache->stacks[size_class];
  stack.Push(p);
  if (stack.count > kKept[size_class]) Spill(*cache, size_class);
  cache->unsettled.Add(-static_cast<int64_t>(bytes));
  if (cache->unsettled.get() < -kUnsettled) SettleUse(*cache);
}

void* CachingAllocator::AllocateSlow(size_t bytes) {
  if (bytes > kMaxSmall) return AllocateLarge(bytes);
  if (ThreadCache() != nullptr) return Allocate(bytes);
  const size_t size_class = ClassOf(bytes);
  Central::Class& c = central_->classes[size_class];
  const absl::MutexLock lock(&c.mu);
  void* const p = central_->PopOne(size_class, c);
  if (p != nullptr) AddUse(static_cast<int64_t>(bytes));
  return p;
}

void CachingAllocator::DeallocateSlow(void* p, size_t bytes) {
  if (p == nullptr) return;
  if (bytes > kMaxSmall) return DeallocateLarge(p, bytes);
  if (ThreadCache() != nullptr) return Deallocate(p, bytes);
  AddUse(-static_cast<int64_t>(bytes));
  Central::Class& c = central_->classes[ClassOf(bytes)];
  const absl::MutexLock lock(&c.mu);
  c.free.Push(p);
}

void* CachingAllocator::AllocateLarge(size_t bytes) {
  if (bytes > Arena::kMaxBytes || !MayUse(bytes)) return nullptr;
  Cache* const cache = bytes <= kMaxKept ? t_cache : nullptr;
  void* p = cache != nullptr ? cache->large.Take(LargeBytes(bytes)) : nullptr;
  if (p == nullptr) p = arena_.Allocate(LargeBytes(bytes));
  if (p == nullptr) return nullptr;
  if (cache == nullptr) {
    AddUse(static_cast<int64_t>(bytes));
    allocations_.fetch_add(1, std::memory_order_relaxed);
  } else {
    cache->allocations.Add(1);
    cache->unsettled.Add(static_cast<int64_t>(bytes));
    if (cache->unsettled.get() > kUnsettled) SettleUse(*cache);
  }
  return p;
}

void CachingAllocator::DeallocateLarge(void* p, size_t bytes) {
  Cache* const cache = bytes <= kMaxKept && (t_cache != nullptr || ThreadCache() != nullptr) ? t_cache : nullptr;
  if (cache == nullptr) {
    AddUse(-static_cast<int64_t>(bytes));
    return FreeLarge(p);
  }
  const size_t size = LargeBytes(bytes);
  while (!cache->large.HasRoomFor(size)) FreeLarge(cache->large.TakeOldest());
  cache->large.Add(p, size);
  cache->unsettled.Add(-static_cast<int64_t>(bytes));
  if (cache->unsettled.get() < -kUnsettled) SettleUse(*cache);
}

// The timer runs while much is free, and ends in a process that rests.
void CachingAllocator::FreeLarge(void* p) {
  if (!arena_.Deallocate(p)) return;
  try {
    TimerThread::Get().Add(kIdle, [this] { return arena_.Tend(); });
  } catch (const std::exception&) {  // no memory, no thread: another time
    arena_.NobodyTends();
  }
}

bool CachingAllocator::Charge(size_t bytes) {
  if (!MayUse(bytes)) return false;
  AddUse(static_cast<int64_t>(bytes));
  allocations_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// One object for the caller and up to a batch less one for the cache.
void* CachingAllocator::Refill(Cache& cache, size_t size_class) {
  if (!MayUse(ClassBytes(size_class))) return nullptr;
  Central::Class& c = central_->classes[size_class];
  const absl::MutexLock lock(&c.mu);
  void* const result = central_->PopOne(size_class, c);
  for (uint32_t i = 1; result != nullptr && i < BatchOf(size_class); ++i) {
    // Memory never touched stays so until somebody needs it.
    if (c.free.top == nullptr) break;
    cache.stacks[size_class].Push(c.free.Pop());
  }
  return result;
}

void CachingAllocator::Spill(Cache& cache, size_t size_class) {
  Stack& stack = cache.stacks[size_class];
  Central::Class& c = central_->classes[size_class];
  const absl::MutexLock lock(&c.mu);
  for (uint32_t i = BatchOf(size_class); i > 0 && stack.count > 0; --i) c.free.Push(stack.Pop());
}

AllocatorStats CachingAllocator::Stats() const {
  AllocatorStats stats;
  {
    const absl::MutexLock lock(&central_->caches_mu);
    stats.num_allocations = allocations_.load(std::memory_order_relaxed);
    for (const Cache* cache : central_->caches) {
      stats.bytes_in_use += cache->unsettled.get();
      stats.num_allocations += cache->allocations.get();
    }
  }
  stats.bytes_in_use = std::max<int64_t>(0, stats.bytes_in_use + in_use_.load(std::memory_order_relaxed));
  stats.peak_bytes_in_use = std::max(peak_.load(std::memory_order_relaxed), stats.bytes_in_use);
  stats.bytes_reserved = static_cast<int64_t>(arena_.usage().committed);
  {
    const absl::MutexLock lock(&central_->span_mu);
    stats.bytes_reserved += static_cast<int64_t>(central_->spans.committed_bytes());
  }
  stats.bytes_limit = limit_;
  return stats;
}

void CachingAllocator::ResetPeak() { peak_.store(in_use_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

}  // namespace millrace
