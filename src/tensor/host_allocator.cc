// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "tensor/allocator.h"

namespace millrace {
namespace {

class PlainAllocator final : public Allocator {
 public:
  std::string name() const override { return "host"; }

  void* Allocate(size_t bytes) override {
    constexpr size_t kMaxBytes = size_t{1} << 46;
    if (bytes > kMaxBytes) return nullptr;
    void* const p = std::aligned_alloc(kAlignment, (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment);
    if (p == nullptr) return nullptr;
    const int64_t in_use = in_use_.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
    for (int64_t peak = peak_.load(); in_use > peak && !peak_.compare_exchange_weak(peak, in_use);) {
    }
    allocations_.fetch_add(1);
    return p;
  }
  void Deallocate(void* p, size_t bytes) override {
    if (p == nullptr) return;
    in_use_.fetch_sub(static_cast<int64_t>(bytes));
    std::free(p);
  }
  AllocatorStats Stats() const override {
    return {.bytes_in_use = in_use_, .peak_bytes_in_use = peak_, .num_allocations = allocations_, .bytes_reserved = in_use_};
  }
  void ResetPeak() override { peak_ = in_use_.load(); }

 private:
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace

Allocator& HostAllocator() {
  static PlainAllocator& allocator = *new PlainAllocator;
  return allocator;
}

}  // namespace millrace
