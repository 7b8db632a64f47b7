// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace {

// A number of this thread that no other of the process has or had (but for wrapping around), never 0.
inline uint32_t CurrentThread() {
  static std::atomic<uint32_t> last{0};
  thread_local const uint32_t own = ++last;
  return own;
}

}  // namespace millrace
