// SPDX-License-Identifier: Apache-2.0
// Parts of the strided copy: its innermost two dimensions, and elements as unsigned integers of their size.
#pragma once

#include <cstdint>
#include <cstring>

#include "hwy/detect_targets.h"
#if HWY_ARCH_X86
#include <emmintrin.h>
#endif

namespace millrace::strided {

using Bytes16 = unsigned __int128;

// Elements are moved as unsigned integers of their size; neither side need be aligned to it.
template <typename T>
inline T Load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}
template <typename T>
inline void Store(char* p, T v) {
  std::memcpy(p, &v, sizeof(T));
}

// The innermost two dimensions, rows of `n` items; strides in bytes.
struct Block {
  int64_t rows = 1;
  int64_t dst_row = 0;
  int64_t src_row = 0;
  int64_t n = 1;
  int64_t dst_stride = 0;
  int64_t src_stride = 0;
  bool streams = false;  // so much is written that caches would not keep it
};
using BlockFn = void (*)(char* dst, const char* src, const Block& b);

template <typename T>
struct Vector16 {
  static constexpr int kLanes = 16 / static_cast<int>(sizeof(T));
  typedef T Type __attribute__((vector_size(16)));
};

// The first and the last T of n bytes, which may overlap: sizeof(T) <= n <= 2 * sizeof(T).
template <typename T>
inline void CopyEnds(char* dst, const char* src, int64_t n) {
  const int64_t last = n - static_cast<int64_t>(sizeof(T));
  const T head = Load<T>(src), tail = Load<T>(src + last);
  Store(dst, head);
  Store(dst + last, tail);
}
// Calls fn(copy) with the best way to copy runs of n bytes, which does so by copy(dst, src).
template <class Fn>
inline void WithCopyOfRuns(int64_t n, Fn fn) {
  using Bytes = Vector16<uint8_t>::Type;
  if (n > 64) return fn([n](char* d, const char* s) { std::memcpy(d, s, static_cast<size_t>(n)); });
  if (n > 32) {
    return fn([n](char* d, const char* s) {
      const auto a = Load<Bytes>(s), b = Load<Bytes>(s + 16), c = Load<Bytes>(s + n - 32), e = Load<Bytes>(s + n - 16);
      Store(d, a);
      Store(d + 16, b);
      Store(d + n - 32, c);
      Store(d + n - 16, e);
    });
  }
  if (n >= 16) return fn([n](char* d, const char* s) { CopyEnds<Bytes>(d, s, n); });
  if (n >= 8) return fn([n](char* d, const char* s) { CopyEnds<uint64_t>(d, s, n); });
  if (n >= 4) return fn([n](char* d, const char* s) { CopyEnds<uint32_t>(d, s, n); });
  fn([n](char* d, const char* s) {
    for (int64_t i = 0; i < n; ++i) d[i] = s[i];
  });
}
inline void CopyRun(char* dst, const char* src, int64_t n) {
  WithCopyOfRuns(n, [&](auto copy) { copy(dst, src); });
}

constexpr int64_t kStreamBytes = 8 << 20;  // from here on, what an op writes goes past the caches
// n bytes past the caches, as far as they fill whole lines; FinishStreams() before another thread reads them.
inline void StreamRun(char* dst, const char* src, int64_t n) {
#if HWY_ARCH_X86
  const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst) % 64);
  if (n >= head + 64) {
    CopyRun(dst, src, head);
    int64_t at = head;
    for (; at + 64 <= n; at += 64) {
      const auto* from = reinterpret_cast<const __m128i*>(src + at);
      auto* to = reinterpret_cast<__m128i*>(dst + at);
      const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
      const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
      _mm_stream_si128(to, a);
      _mm_stream_si128(to + 1, b);
      _mm_stream_si128(to + 2, c);
      _mm_stream_si128(to + 3, d);
    }
    return CopyRun(dst + at, src + at, n - at);
  }
#endif
  CopyRun(dst, src, n);
}
inline void FinishStreams() {
#if HWY_ARCH_X86
  _mm_sfence();
#endif
}

// Transposition: dst rows are contiguous along n, src is contiguous along rows (src_row == item_bytes). Null for no
// such item size.
BlockFn TransposeFunction(int64_t item_bytes);

}  // namespace millrace::strided
