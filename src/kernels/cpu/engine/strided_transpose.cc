// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "kernels/cpu/engine/strided_block.h"
#include "kernels/cpu/engine/strided_interleave_simd.h"

namespace millrace::strided {
namespace {

template <typename T>
void TransposeItems(char* dst, const char* src, const Block& b) {
  for (int64_t r = 0; r < b.rows; ++r) {
    for (int64_t i = 0; i < b.n; ++i) {
      Store<T>(dst + r * b.dst_row + i * static_cast<int64_t>(sizeof(T)),
               Load<T>(src + r * static_cast<int64_t>(sizeof(T)) + i * b.src_stride));
    }
  }
}

// A few columns or rows (channels of an image, complex parts) that lie side by side; false for others.
template <typename T>
bool TransposeNarrow(char* dst, const char* src, const Block& b) {
  constexpr int64_t kSize = sizeof(T), kMost = 4, kLong = 16;
  if constexpr (kSize > 8) return false;
  if (b.n <= kMost && b.rows >= kLong && b.n > 1 && b.dst_row == b.n * kSize) {
    Interleave(kSize, b.n, src, b.src_stride, dst, b.rows);
    return true;
  }
  if (b.rows <= kMost && b.n >= kLong && b.rows > 1 && b.src_stride == b.rows * kSize) {
    Separate(kSize, b.rows, src, dst, b.dst_row, b.n);
    return true;
  }
  return false;
}

template <typename T, size_t... I>
inline void InterleaveWith(typename Vector16<T>::Type a, typename Vector16<T>::Type b, typename Vector16<T>::Type* low,
                           typename Vector16<T>::Type* high, std::index_sequence<I...>) {
  constexpr int kLanes = Vector16<T>::kLanes;
  *low = __builtin_shufflevector(
      a, b, (static_cast<int>(I) % 2 ? kLanes + static_cast<int>(I) / 2 : static_cast<int>(I) / 2)...);
  *high = __builtin_shufflevector(
      a, b, (kLanes / 2 + (static_cast<int>(I) % 2 ? kLanes + static_cast<int>(I) / 2 : static_cast<int>(I) / 2))...);
}

// A kLanes x kLanes tile in registers: interleaving row i with row i + kLanes/2, log2(kLanes) times, transposes it.
template <typename T>
inline void TransposeTile(char* dst, int64_t dst_row, const char* src, int64_t src_stride) {
  using V = typename Vector16<T>::Type;
  constexpr int kLanes = Vector16<T>::kLanes;
  V a[kLanes], t[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) std::memcpy(&a[i], src + i * src_stride, sizeof(V));
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      InterleaveWith<T>(a[i], a[i + kLanes / 2], &t[2 * i], &t[2 * i + 1], std::make_index_sequence<kLanes>());
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) a[i] = t[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) std::memcpy(dst + i * dst_row, &a[i], sizeof(V));
}

// A square of one cache line a side. Tiles are collected in a buffer, so that both sides are touched by whole lines:
// the lines of a side may all fall into one cache set.
template <typename T>
void TransposeSquare(char* dst, int64_t dst_row, const char* src, int64_t src_stride, bool streams) {
  constexpr int64_t kLanes = Vector16<T>::kLanes;
  constexpr int64_t kSide = 64 / static_cast<int64_t>(sizeof(T));
  alignas(64) char buffer[kSide * 64];
  for (int64_t i = 0; i < kSide; i += kLanes) {
    for (int64_t r = 0; r < kSide; r += kLanes) {
      TransposeTile<T>(buffer + r * 64 + i * static_cast<int64_t>(sizeof(T)), 64,
                       src + r * static_cast<int64_t>(sizeof(T)) + i * src_stride, src_stride);
    }
  }
  for (int64_t r = 0; r < kSide; ++r) {
    if (streams) {
      StreamRun(dst + r * dst_row, buffer + r * 64, 64);
    } else {
      std::memcpy(dst + r * dst_row, buffer + r * 64, 64);
    }
  }
}

// fn(begin) for pieces of `side` that cover [0, n); the last one overlaps the one before. n >= side.
template <typename Fn>
inline void ForSides(int64_t n, int64_t side, Fn fn) {
  int64_t i = 0;
  for (; i + side <= n; i += side) fn(i);
  if (i < n) fn(n - side);
}

// In the source's order, which the processor fetches ahead; the rows after those at hand are asked for.
template <typename T>
void TransposeSquares(char* dst, const char* src, const Block& b) {
  constexpr int64_t kSize = sizeof(T), kSide = 64 / kSize;
  ForSides(b.n, kSide, [&](int64_t i) {
    const char* const next = src + (i + kSide + kSide <= b.n ? i + kSide : i) * b.src_stride;
    ForSides(b.rows, kSide, [&](int64_t r) {
      for (int64_t k = 0; k < kSide; ++k) __builtin_prefetch(next + k * b.src_stride + r * kSize);
      TransposeSquare<T>(
          dst + r * b.dst_row + i * kSize, b.dst_row, src + r * kSize + i * b.src_stride, b.src_stride, b.streams);
    });
  });
}

template <typename T>
void TransposeBlock(char* dst, const char* src, const Block& b) {
  constexpr int64_t kSize = sizeof(T);
  if (TransposeNarrow<T>(dst, src, b)) return;
  if constexpr (kSize < 16) {
    constexpr int64_t kLanes = Vector16<T>::kLanes, kSide = 64 / kSize;
    if (b.n >= kSide && b.rows >= kSide) return TransposeSquares<T>(dst, src, b);
    if (b.n >= kLanes && b.rows >= kLanes) {
      ForSides(b.n, kLanes, [&](int64_t i) {
        ForSides(b.rows, kLanes, [&](int64_t r) {
          TransposeTile<T>(
              dst + r * b.dst_row + i * kSize, b.dst_row, src + r * kSize + i * b.src_stride, b.src_stride);
        });
      });
      return;
    }
  }
  TransposeItems<T>(dst, src, b);
}

}  // namespace

BlockFn TransposeFunction(int64_t item_bytes) {
  switch (item_bytes) {
    case 1: return TransposeBlock<uint8_t>;
    case 2: return TransposeBlock<uint16_t>;
    case 4: return TransposeBlock<uint32_t>;
    case 8: return TransposeBlock<uint64_t>;
    case 16: return TransposeBlock<Bytes16>;
    default: return nullptr;
  }
}

}  // namespace millrace::strided
