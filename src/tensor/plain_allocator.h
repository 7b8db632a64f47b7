// SPDX-License-Identifier: Apache-2.0
// Every allocation is one of the C library's. It stands in for the caching allocator where a tool watches the bounds
// and the life of each piece of memory.
#pragma once

#include <atomic>
#include <string>

#include "tensor/allocator.h"

namespace millrace {

class PlainAllocator final : public Allocator {
 public:
  explicit PlainAllocator(int64_t bytes_limit = 0) : limit_(bytes_limit) {}
  std::string name() const override { return "host"; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* p, size_t bytes) override;
  AllocatorStats Stats() const override;
  void ResetPeak() override;

 private:
  const int64_t limit_;
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace millrace
