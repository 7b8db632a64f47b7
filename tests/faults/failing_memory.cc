// SPDX-License-Identifier: Apache-2.0
#include "failing_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace millrace {
namespace {

std::atomic<bool> counting{false}, sticky{false};
std::atomic<int64_t> counted{0}, failing{0};

bool Fails() {
  if (!counting.load(std::memory_order_acquire)) return false;
  const int64_t n = counted.fetch_add(1) + 1, at = failing.load();
  return at != 0 && (n == at || (n > at && sticky.load()));
}

class Failing final : public Allocator {
 public:
  std::string name() const override { return HostAllocator().name(); }
  void* Allocate(size_t bytes) override { return Fails() ? nullptr : HostAllocator().Allocate(bytes); }
  void Deallocate(void* p, size_t bytes) override { HostAllocator().Deallocate(p, bytes); }
  AllocatorStats Stats() const override { return HostAllocator().Stats(); }
  void ResetPeak() override { HostAllocator().ResetPeak(); }
};

void* New(size_t bytes, size_t alignment) {
  if (Fails()) return nullptr;
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* NewOrThrow(size_t bytes, size_t alignment) {
  void* const p = New(bytes, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void FailAllocation(int64_t n, bool and_all_after) {
  counting.store(false);
  counted.store(0);
  failing.store(n);
  sticky.store(and_all_after);
  counting.store(true, std::memory_order_release);
}
int64_t CountedAllocations() { return counted.load(); }
void StopFailing() { counting.store(false); }

Allocator& FailingAllocator() {
  static Failing allocator;
  return allocator;
}

}  // namespace millrace

using millrace::New;
using millrace::NewOrThrow;

void* operator new(size_t n) { return NewOrThrow(n, 1); }
void* operator new[](size_t n) { return NewOrThrow(n, 1); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return New(n, 1); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return New(n, 1); }
void* operator new(size_t n, std::align_val_t a) { return NewOrThrow(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a) { return NewOrThrow(n, static_cast<size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
