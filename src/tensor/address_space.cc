// SPDX-License-Identifier: Apache-2.0
#include "tensor/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace millrace {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr size_t kReserveBytes = size_t{1} << 30;  // its shadow memory is not free of charge
#else
constexpr size_t kReserveBytes = size_t{64} << 30;
#endif
constexpr size_t kCommitBytes = size_t{32} << 20;

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

AddressSpace::~AddressSpace() {
  for (const Mapping& mapping : mappings_) ::munmap(mapping.address, mapping.size);
}

char* AddressSpace::Take(size_t bytes) {
  if (bytes > Room() && !Reserve(bytes)) return nullptr;
  char* const result = next_;
  char* const end = result + bytes;
  if (end > committed_end_) {
    const auto missing = static_cast<size_t>(end - committed_end_);
    const auto possible = static_cast<size_t>(reserved_end_ - committed_end_);
    const size_t step = std::min(RoundUp(missing, kCommitBytes), possible);
    // Reserved pages are charged here, so this is where a system that is out of memory says so.
    if (::mprotect(committed_end_, step, PROT_READ | PROT_WRITE) != 0) return nullptr;
    committed_end_ += step;
    committed_bytes_ += step;
  }
  next_ = end;
  return result;
}

bool AddressSpace::Reserve(size_t bytes) {
  const size_t least = RoundUp(bytes, kHugePage);
  // A limit on address space (ulimit -v) may allow less than we like.
  for (size_t size = std::max(kReserveBytes, least);; size = std::max(RoundUp(size / 2, kHugePage), least)) {
    const size_t padded = size + kHugePage;
    void* const p = ::mmap(nullptr, padded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
      if (size == least) return false;
      continue;
    }
    const auto address = reinterpret_cast<uintptr_t>(p);
    char* const begin = static_cast<char*>(p) + (RoundUp(address, kHugePage) - address);
    // Not every system has huge pages; then small ones do.
    (void)::madvise(begin, size, MADV_HUGEPAGE);
    // A request that can never be met must not use up address space.
    if (bytes > kReserveBytes && ::mprotect(begin, least, PROT_READ | PROT_WRITE) != 0) {
      ::munmap(p, padded);
      return false;
    }
    mappings_.push_back({p, padded});
    next_ = committed_end_ = begin;
    reserved_end_ = begin + size;
    return true;
  }
}

}  // namespace millrace
