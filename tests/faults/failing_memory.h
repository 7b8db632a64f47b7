// SPDX-License-Identifier: Apache-2.0
// Memory that runs out on request: operator new of this program, and the allocator of test devices, count together.
#pragma once

#include <cstdint>

#include "tensor/allocator.h"

namespace millrace {

// From now on the n-th allocation (from 1) fails, with `and_all_after` every later one too; n = 0: none fails.
void FailAllocation(int64_t n, bool and_all_after = false);
// How many there were since then, on all threads.
int64_t CountedAllocations();
// No longer fails nor counts.
void StopFailing();

// HostAllocator(), which fails with the rest.
Allocator& FailingAllocator();

}  // namespace millrace
