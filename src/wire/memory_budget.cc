// SPDX-License-Identifier: Apache-2.0
#include "wire/memory_budget.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace millrace::wire {

MemoryBudget::MemoryBudget(size_t input_bytes, const Limits& limits) {
  const bool overflows = input_bytes != 0 && limits.max_expansion > (SIZE_MAX - kFreeBytes) / input_bytes;
  total_ = overflows ? SIZE_MAX : kFreeBytes + input_bytes * limits.max_expansion;
  left_ = total_;
}

absl::Status MemoryBudget::Error() const {
  return absl::ResourceExhaustedError(
      absl::StrCat("its content needs more than ", total_, " bytes of memory (Limits::max_expansion)"));
}

}  // namespace millrace::wire
