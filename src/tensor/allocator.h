// SPDX-License-Identifier: Apache-2.0
// Where tensor memory comes from, and the reference-counted buffer that holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/ref_counted.h"
#include "base/status.h"

namespace millrace {

struct AllocatorStats {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t num_allocations = 0;
  int64_t bytes_reserved = 0;
  int64_t bytes_limit = 0;  // 0: none
};

// Thread-safe. Memory is aligned to kAlignment. Null on exhaustion, never an exception.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;
  virtual ~Allocator() = default;
  virtual std::string name() const = 0;
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Deallocate(void* p, size_t bytes) = 0;  // `bytes` as it was asked for
  virtual AllocatorStats Stats() const = 0;
  virtual void ResetPeak() = 0;
};

// The host's default allocator: a caching arena for the process's life.
Allocator& HostAllocator();

// Memory plus its owner. data() is aligned to Allocator::kAlignment unless foreign.
class Buffer : public RefCounted {
 public:
  void* data() const { return data_; }
  size_t size() const { return size_; }
  // True when kernels may write into it while they are its only holder (memory of our own allocators).
  bool writable() const { return writable_; }

 protected:
  Buffer(void* data, size_t size, bool writable) : data_(data), size_(size), writable_(writable) {}
  void* data_;
  size_t size_;
  bool writable_;
};

// One allocation holds header and bytes; null on exhaustion.
Buffer* TryAllocateBuffer(Allocator& allocator, size_t bytes);
// The same. ResourceExhausted names size and allocator.
StatusOr<RefPtr<Buffer>> AllocateBuffer(Allocator& allocator, size_t bytes);
// Memory of somebody else, handed to `release(data, size, arg)` exactly once, at the end.
RefPtr<Buffer> WrapBuffer(void* data, size_t size, void (*release)(void* data, size_t size, void* arg), void* arg,
                          bool writable);

}  // namespace millrace
