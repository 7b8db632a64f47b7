// SPDX-License-Identifier: Apache-2.0
#include "base/granted_memory.h"
#include "base/settings.h"
#include "tensor/caching_allocator.h"
#include "tensor/guard_allocator.h"
#include "tensor/plain_allocator.h"

namespace millrace {
namespace {

#if defined(__has_feature)
#define MR_HAS_FEATURE(f) __has_feature(f)
#else
#define MR_HAS_FEATURE(f) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || MR_HAS_FEATURE(address_sanitizer)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

struct Host {
  Allocator& allocator;
  HostCharge& charges;
};

template <typename T>
Host Of(T& allocator) {
  return {allocator, allocator};
}

Host MakeHost() {
  const int64_t limit = NumberOr("MILLRACE_MEMORY_LIMIT_BYTES");
  // What the system would grant beyond what it has; the arena looks itself.
  [[maybe_unused]] const int64_t most = limit != 0 ? limit : GrantedMemory().with_swap;
  if (IsSwitchedOn("MILLRACE_GUARD_ALLOCATIONS")) return Of(*new GuardAllocator(most));
  if constexpr (kCaching) {
    return Of(CachingAllocator::Instance(limit));
  } else {
    return Of(*new PlainAllocator(most));
  }
}

const Host& TheHost() {
  static const Host host = MakeHost();
  return host;
}

}  // namespace

Allocator& HostAllocator() { return TheHost().allocator; }
HostCharge& HostCharges() { return TheHost().charges; }

}  // namespace millrace
