// SPDX-License-Identifier: Apache-2.0
// Every allocation is one of the C library's. It stands in for the caching allocator where a tool watches the bounds
// and the life of each piece of memory.
#pragma once

#include <atomic>
#include <string>

#include "tensor/allocator.h"
#include "tensor/host_charge.h"

namespace millrace {

class PlainAllocator final : public Allocator, public HostCharge {
 public:
  explicit PlainAllocator(int64_t bytes_limit = 0) : limit_(bytes_limit) {}
  std::string name() const override { return "host"; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* p, size_t bytes) override;
  bool Charge(size_t bytes) override;
  void Discharge(size_t bytes) override { in_use_.fetch_sub(static_cast<int64_t>(bytes)); }
  AllocatorStats Stats() const override;
  void ResetPeak() override;

 private:
  const int64_t limit_;
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace millrace
