// SPDX-License-Identifier: Apache-2.0
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

Allocator& MakeHostAllocator() {
  const int64_t limit = NumberOr("MILLRACE_MEMORY_LIMIT_BYTES");
  if (IsSwitchedOn("MILLRACE_GUARD_ALLOCATIONS")) return *new GuardAllocator(limit);
  if constexpr (kCaching) {
    return CachingAllocator::Instance(limit);
  } else {
    return *new PlainAllocator(limit);
  }
}

}  // namespace

Allocator& HostAllocator() {
  static Allocator& allocator = MakeHostAllocator();
  return allocator;
}

}  // namespace millrace
