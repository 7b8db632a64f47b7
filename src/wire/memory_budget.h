// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "wire/message.h"

namespace millrace::wire {

// Memory that decoding an input may take for structs: two bytes of input can
// stand for an empty struct of some hundred bytes.
class MemoryBudget {
 public:
  MemoryBudget(size_t input_bytes, const Limits& limits);

  bool Take(size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

  // What to report when Take has returned false.
  absl::Status Error() const;

 private:
  static constexpr size_t kFreeBytes = size_t{1} << 20;

  size_t total_;
  size_t left_;
};

}  // namespace millrace::wire
