// SPDX-License-Identifier: Apache-2.0
// Numbers too small for a full mantissa, which many processors are slow with: where steps are computed they are
// taken for 0, and 0 comes out in their place, as on the threads of TensorFlow. Threads of our own are so for as long
// as they live, a client's thread while it computes.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace millrace {

// While it lives, on the thread that made it.
class FlushedDenormals {
 public:
  FlushedDenormals() : before_(Control()) {
    if ((before_ & kFlush) != kFlush) SetControl(before_ | kFlush);
  }
  ~FlushedDenormals() {
    if ((before_ & kFlush) != kFlush) SetControl(before_);
  }
  FlushedDenormals(const FlushedDenormals&) = delete;
  FlushedDenormals& operator=(const FlushedDenormals&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr uint64_t kFlush = 0x8040;  // of results, of arguments
  static uint64_t Control() { return _mm_getcsr(); }
  static void SetControl(uint64_t control) { _mm_setcsr(static_cast<unsigned>(control)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;
  static uint64_t Control() {
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void SetControl(uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t Control() { return 0; }
  static void SetControl(uint64_t) {}
#endif

  const uint64_t before_;
};

}  // namespace millrace
