// SPDX-License-Identifier: Apache-2.0
#include "tensor/plain_allocator.h"

#include <algorithm>
#include <cstdlib>

namespace millrace {

void* PlainAllocator::Allocate(size_t bytes) {
  constexpr size_t kMaxBytes = size_t{1} << 38;  // sanitizers end the process somewhere beyond
  if (bytes > kMaxBytes) return nullptr;
  if (!Charge(bytes)) return nullptr;
  void* const p =
      std::aligned_alloc(kAlignment, (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment);
  if (p == nullptr) {
    Discharge(bytes);
    return nullptr;
  }
  allocations_.fetch_add(1);
  return p;
}

bool PlainAllocator::Charge(size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  if (limit_ > 0 && size > limit_ - in_use_.load()) return false;
  const int64_t in_use = in_use_.fetch_add(size) + size;
  for (int64_t peak = peak_.load(); in_use > peak && !peak_.compare_exchange_weak(peak, in_use);) {
  }
  return true;
}

void PlainAllocator::Deallocate(void* p, size_t bytes) {
  if (p == nullptr) return;
  Discharge(bytes);
  std::free(p);
}

AllocatorStats PlainAllocator::Stats() const {
  return {.bytes_in_use = in_use_,
          .peak_bytes_in_use = peak_,
          .num_allocations = allocations_,
          .bytes_reserved = in_use_,
          .bytes_limit = limit_};
}

void PlainAllocator::ResetPeak() { peak_ = in_use_.load(); }

}  // namespace millrace
