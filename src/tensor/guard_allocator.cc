// SPDX-License-Identifier: Apache-2.0
#include "tensor/guard_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/logging.h"

namespace millrace {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMaxBytes = size_t{1} << 38;
constexpr unsigned char kFill = 0xcb;
constexpr size_t kMostFilled = 64 << 10;  // of the bytes handed out, so that what was never written is not zero

size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

// An allocation of `bytes` bytes: `used` of them and their alignment, at the end of `pages`.
struct Layout {
  explicit Layout(size_t bytes)
      : used(RoundUp(std::max<size_t>(bytes, 1), Allocator::kAlignment)), pages(RoundUp(used, kPage)) {}
  size_t used;
  size_t pages;
};

}  // namespace

void* GuardAllocator::Allocate(size_t bytes) {
  if (bytes > kMaxBytes) return nullptr;
  if (!Charge(bytes)) return nullptr;
  const Layout layout(bytes);
  void* const mapped =
      mmap(nullptr, layout.pages + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    Discharge(bytes);
    return nullptr;
  }
  unsigned char* const guard = static_cast<unsigned char*>(mapped) + layout.pages;
  if (mprotect(guard, kPage, PROT_NONE) != 0) {
    munmap(mapped, layout.pages + kPage);
    Discharge(bytes);
    return nullptr;
  }
  unsigned char* const p = guard - layout.used;
  std::memset(p, kFill, std::min(bytes, kMostFilled));
  std::memset(p + bytes, kFill, layout.used - bytes);
  allocations_.fetch_add(1);
  return p;
}

bool GuardAllocator::Charge(size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  if (limit_ > 0 && size > limit_ - in_use_.load()) return false;
  const int64_t in_use = in_use_.fetch_add(size) + size;
  for (int64_t peak = peak_.load(); in_use > peak && !peak_.compare_exchange_weak(peak, in_use);) {
  }
  return true;
}

void GuardAllocator::Deallocate(void* p, size_t bytes) {
  if (p == nullptr) return;
  const Layout layout(bytes);
  unsigned char* const first = static_cast<unsigned char*>(p);
  unsigned char* const guard = first + layout.used;
  if (!std::all_of(first + bytes, guard, [](unsigned char c) { return c == kFill; })) {
    LogError("something wrote past the end of an allocation of ", bytes, " bytes");
    *static_cast<volatile unsigned char*>(guard) = 0;  // ends here, as it does where the page itself is hit
  }
  Discharge(bytes);
  munmap(guard - layout.pages, layout.pages + kPage);
}

AllocatorStats GuardAllocator::Stats() const {
  return {.bytes_in_use = in_use_,
          .peak_bytes_in_use = peak_,
          .num_allocations = allocations_,
          .bytes_reserved = in_use_,
          .bytes_limit = limit_};
}

}  // namespace millrace
