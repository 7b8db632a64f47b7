// SPDX-License-Identifier: Apache-2.0
// Every allocation ends at a page that nobody may touch: a read or write past a tensor faults at once, at full speed
// and without a sanitizer's build. What alignment leaves over behind an allocation is checked when it is freed. Slow
// where small tensors come and go, and wasteful: for tests (MILLRACE_GUARD_ALLOCATIONS=1).
#pragma once

#include <atomic>
#include <string>

#include "tensor/allocator.h"
#include "tensor/host_charge.h"

namespace millrace {

class GuardAllocator final : public Allocator, public HostCharge {
 public:
  explicit GuardAllocator(int64_t bytes_limit = 0) : limit_(bytes_limit) {}
  std::string name() const override { return "host"; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* p, size_t bytes) override;
  bool Charge(size_t bytes) override;
  void Discharge(size_t bytes) override { in_use_.fetch_sub(static_cast<int64_t>(bytes)); }
  AllocatorStats Stats() const override;
  void ResetPeak() override { peak_ = in_use_.load(); }

 private:
  const int64_t limit_;
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace millrace
