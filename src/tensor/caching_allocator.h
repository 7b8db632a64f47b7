// SPDX-License-Identifier: Apache-2.0
// The host's allocator: small sizes from caches of the calling thread, large ones from an Arena. Thread-safe.
//
// Small memory stays in its size class for ever; large memory coalesces. One instance is meant to live as long as the
// process: threads keep their caches of it until they end.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "tensor/allocator.h"
#include "tensor/arena.h"
#include "tensor/host_charge.h"

namespace millrace {

class CachingAllocator final : public Allocator, public HostCharge {
 public:
  static constexpr size_t kMaxSmall = 32 << 10;

  // The process's instance. `bytes_limit` of the first call counts; 0: none.
  static CachingAllocator& Instance(int64_t bytes_limit = 0);

  std::string name() const override { return "host"; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* p, size_t bytes) override;
  bool Charge(size_t bytes) override;
  void Discharge(size_t bytes) override { AddUse(-static_cast<int64_t>(bytes)); }
  AllocatorStats Stats() const override;
  void ResetPeak() override;
  const Arena& arena() const { return arena_; }

 private:
  struct Cache;
  struct CacheOwner;
  struct Central;

  explicit CachingAllocator(int64_t bytes_limit);
  ~CachingAllocator() override;

  Cache* ThreadCache();
  void* AllocateSlow(size_t bytes);
  void DeallocateSlow(void* p, size_t bytes);
  void* AllocateLarge(size_t bytes);
  void DeallocateLarge(void* p, size_t bytes);
  void FreeLarge(void* p);
  void* Refill(Cache& cache, size_t size_class);
  void Spill(Cache& cache, size_t size_class);
  void Retire(Cache* cache);
  void SettleUse(Cache& cache);
  bool MayUse(size_t bytes) const;
  void AddUse(int64_t bytes);

  const int64_t limit_;
  std::unique_ptr<Central> central_;
  Arena arena_;
  // What threads have not settled yet is missing here: at most kUnsettled a thread.
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};

  static thread_local Cache* t_cache __attribute__((tls_model("initial-exec")));
};

}  // namespace millrace
