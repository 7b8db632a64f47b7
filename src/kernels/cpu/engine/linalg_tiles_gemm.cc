// SPDX-License-Identifier: Apache-2.0
// Matrix products of double, int32 and int64, after Goto and van de Geijn (Anatomy of high-performance matrix
// multiplication): blocks of B and A are packed into panels that stay in cache, and a kernel keeps a few rows by two
// vectors of C in registers while it walks along k. Integers multiply as unsigned: they wrap.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tensor/allocator.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/linalg_tiles_gemm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"
#include "kernels/cpu/engine/linalg_gemm.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SSE2
constexpr int kVectorBytes = 16, kRows = 4;
#elif HWY_TARGET <= HWY_AVX3
constexpr int kVectorBytes = 64, kRows = 12;
#else
constexpr int kVectorBytes = 32, kRows = 6;
#endif
constexpr int64_t kDepth = 256, kHeight = 120, kWidth = 1024;  // of the packed blocks

template <typename T>
struct Kernel {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kColumns = 2 * kLanes;

  // tile (kRows x kColumns) = panel of A (k x kRows) times panel of B (k x kColumns).
  static void Multiply(const T* a, const T* b, int64_t k, T* tile) {
    Vector c0[kRows] = {}, c1[kRows] = {};
    for (int64_t p = 0; p < k; ++p) {
      Vector b0, b1;
      std::memcpy(&b0, b + p * kColumns, sizeof(b0));
      std::memcpy(&b1, b + p * kColumns + kLanes, sizeof(b1));
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const T v = a[p * kRows + i];
        c0[i] += v * b0;
        c1[i] += v * b1;
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      std::memcpy(tile + i * kColumns, &c0[i], sizeof(c0[i]));
      std::memcpy(tile + i * kColumns + kLanes, &c1[i], sizeof(c1[i]));
    }
  }

  // Rows [0, m) by [0, k) of op(A) as panels of kRows rows, the last one filled up with zeros.
  static void PackA(const T* a, int64_t lda, bool transposed, int64_t m, int64_t k, T* out) {
    Pack<kRows>(a, lda, !transposed, m, k, out);
  }
  // [0, k) by columns [0, n) of op(B) as panels of kColumns columns.
  static void PackB(const T* b, int64_t ldb, bool transposed, int64_t k, int64_t n, T* out) {
    Pack<kColumns>(b, ldb, transposed, n, k, out);
  }

  // n lines of k numbers as panels of kWide lines, number by number. `along`: the numbers of a line follow each other,
  // else those of the same place in all lines do.
  template <int kWide>
  static void Pack(const T* in, int64_t stride, bool along, int64_t n, int64_t k, T* out) {
    for (int64_t i = 0; i < n; i += kWide, out += kWide * k) {
      const int64_t lines = std::min<int64_t>(kWide, n - i);
      if (lines < kWide) std::memset(out, 0, static_cast<size_t>(kWide * k) * sizeof(T));
      if (along) {
        Turn<kWide>(in + i * stride, stride, lines, k, out);
      } else if (lines == kWide) {
        for (int64_t p = 0; p < k; ++p) std::memcpy(out + p * kWide, in + p * stride + i, kWide * sizeof(T));
      } else {
        for (int64_t p = 0; p < k; ++p) {
          std::memcpy(out + p * kWide, in + p * stride + i, static_cast<size_t>(lines) * sizeof(T));
        }
      }
    }
  }
  // As much of each line as a cache line has: where the stride is a power of two, those of many lines push each other
  // out of the cache.
  template <int kWide>
  static void Turn(const T* in, int64_t stride, int64_t lines, int64_t k, T* out) {
    constexpr int64_t kSome = 64 / sizeof(T);
    int64_t p = 0;
    for (; p + kSome <= k; p += kSome) {
      for (int64_t l = 0; l < lines; ++l) {
        T some[kSome];
        std::memcpy(some, in + l * stride + p, sizeof(some));
#pragma GCC unroll 16
        for (int64_t q = 0; q < kSome; ++q) out[(p + q) * kWide + l] = some[q];
      }
    }
    for (; p < k; ++p) {
      for (int64_t l = 0; l < lines; ++l) out[p * kWide + l] = in[l * stride + p];
    }
  }

  static void Store(const T* tile, int64_t rows, int64_t columns, T* c, int64_t ldc, GemmMode mode) {
    for (int64_t i = 0; i < rows; ++i, tile += kColumns, c += ldc) {
      if (mode == GemmMode::kSet) {
        for (int64_t j = 0; j < columns; ++j) c[j] = tile[j];
      } else if (mode == GemmMode::kAdd) {
        for (int64_t j = 0; j < columns; ++j) c[j] += tile[j];
      } else {
        for (int64_t j = 0; j < columns; ++j) c[j] -= tile[j];
      }
    }
  }

  static void Run(const GemmArgs& g) {
    const T* a = static_cast<const T*>(g.a);
    const T* b = static_cast<const T*>(g.b);
    T* c = static_cast<T*>(g.c);
    const int64_t depth = std::min(kDepth, g.k);
    const int64_t width = std::min(kWidth, (g.n + kColumns - 1) / kColumns * kColumns);
    const int64_t height = std::min(kHeight, (g.m + kRows - 1) / kRows * kRows);
    const size_t bytes = static_cast<size_t>(depth * (width + height)) * sizeof(T);
    auto memory = AllocateBuffer(HostAllocator(), bytes);
    if (!memory.ok()) return Plainly(g);
    T* const packed_b = static_cast<T*>((*memory)->data());
    T* const packed_a = packed_b + depth * width;
    for (int64_t j = 0; j < g.n; j += width) {
      const int64_t n = std::min(width, g.n - j);
      for (int64_t p = 0; p < g.k; p += depth) {
        const int64_t k = std::min(depth, g.k - p);
        const GemmMode mode = p > 0 && g.mode == GemmMode::kSet ? GemmMode::kAdd : g.mode;
        PackB(b + (g.transpose_b ? j * g.ldb + p : p * g.ldb + j), g.ldb, g.transpose_b, k, n, packed_b);
        for (int64_t i = 0; i < g.m; i += height) {
          const int64_t m = std::min(height, g.m - i);
          PackA(a + (g.transpose_a ? p * g.lda + i : i * g.lda + p), g.lda, g.transpose_a, m, k, packed_a);
          Block(packed_a, packed_b, m, n, k, c + i * g.ldc + j, g.ldc, mode);
        }
      }
    }
  }

 private:
  static void Block(const T* a, const T* b, int64_t m, int64_t n, int64_t k, T* c, int64_t ldc, GemmMode mode) {
    alignas(64) T tile[kRows * kColumns];
    for (int64_t j = 0; j < n; j += kColumns) {
      for (int64_t i = 0; i < m; i += kRows) {
        Multiply(a + i * k, b + j * k, k, tile);
        Store(tile, std::min<int64_t>(kRows, m - i), std::min<int64_t>(kColumns, n - j), c + i * ldc + j, ldc, mode);
      }
    }
  }

  // When there is no memory for panels.
  static void Plainly(const GemmArgs& g) {
    const T* a = static_cast<const T*>(g.a);
    const T* b = static_cast<const T*>(g.b);
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) {
        T sum = 0;
        for (int64_t p = 0; p < g.k; ++p) {
          sum += a[g.transpose_a ? p * g.lda + i : i * g.lda + p] * b[g.transpose_b ? j * g.ldb + p : p * g.ldb + j];
        }
        Store(&sum, 1, 1, static_cast<T*>(g.c) + i * g.ldc + j, g.ldc, g.mode);
      }
    }
  }
};

void GemmOf(DType dtype, const GemmArgs& args) {
  if (dtype == DType::kDouble) return Kernel<double>::Run(args);
  if (dtype == DType::kInt32) return Kernel<uint32_t>::Run(args);
  if (dtype == DType::kInt64) return Kernel<uint64_t>::Run(args);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(GemmOf);
void TiledGemm(DType dtype, const GemmArgs& args) { HWY_DYNAMIC_DISPATCH(GemmOf)(dtype, args); }

}  // namespace millrace
#endif
