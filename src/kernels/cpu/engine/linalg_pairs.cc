// SPDX-License-Identifier: Apache-2.0
// B is copied first, so that two numbers that follow each other along k make a word, and words of a row of results
// follow each other. Blocks of results stay in registers.
#include "kernels/cpu/engine/linalg_pairs.h"

#include "hwy/targets.h"
#if HWY_ARCH_X86
#include <immintrin.h>
#endif

#include <algorithm>

#include "kernels/cpu/engine/strided_block.h"

namespace millrace {

#if HWY_ARCH_X86 && defined(__GNUC__)

namespace {

#define MR_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

constexpr int64_t kLanes = 16, kMostWords = 8192;

int64_t RoundUp(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

MR_PAIRS void Pack(const GemmArgs& g, uint32_t* words) {
  const auto* b = static_cast<const uint16_t*>(g.b);
  const int64_t row = RoundUp(g.n), pairs = g.k / 2;
  if (g.transpose_b) {
    strided::Block block;
    block.rows = pairs;
    block.dst_row = row * 4;
    block.src_row = 4;
    block.n = g.n;
    block.dst_stride = 4;
    block.src_stride = g.ldb * 2;
    strided::TransposeFunction(4)(reinterpret_cast<char*>(words), reinterpret_cast<const char*>(b), block);
  } else {
    for (int64_t p = 0; p < pairs; ++p) {
      const uint16_t *const low = b + 2 * p * g.ldb, *const high = low + g.ldb;
      uint32_t* const to = words + p * row;
      for (int64_t j = 0; j < g.n; ++j) to[j] = low[j] | static_cast<uint32_t>(high[j]) << 16;
    }
  }
  if (g.k % 2 != 0) {
    for (int64_t j = 0; j < g.n; ++j)
      words[pairs * row + j] = b[g.transpose_b ? j * g.ldb + g.k - 1 : (g.k - 1) * g.ldb + j];
  }
  for (int64_t p = 0; p < (g.k + 1) / 2; ++p) std::fill(words + p * row + g.n, words + (p + 1) * row, 0u);
}

// Words of B with pairs of kRows rows of A, of which the last may be one number.
template <int kRows, int kVectors, typename Pair>
MR_PAIRS __attribute__((always_inline)) inline void Add(
    const uint16_t* a, int64_t lda, const uint32_t* words, __m512 (&sums)[kRows][kVectors]) {
  __m512bh b[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) b[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(words + v * kLanes));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto pair = static_cast<int>(strided::Load<Pair>(reinterpret_cast<const char*>(a + r * lda)));
    const auto both = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], both, b[v]);
  }
}

template <int kRows, int kVectors>
MR_PAIRS void Block(const GemmArgs& g, const uint32_t* words, int64_t first, int64_t column) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  const int64_t row = RoundUp(g.n), lda = g.lda, pairs = g.k / 2;
  const auto* a = static_cast<const uint16_t*>(g.a) + first * lda;
  const uint32_t* b = words + column;
  for (int64_t p = 0; p < pairs; ++p, a += 2, b += row) Add<kRows, kVectors, uint32_t>(a, lda, b, sums);
  if (g.k % 2 != 0) Add<kRows, kVectors, uint16_t>(a, lda, b, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = column + v * kLanes, n = std::min(kLanes, g.n - at);
      auto* const to = static_cast<uint16_t*>(g.c) + (first + r) * g.ldc + at;
      const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sums[r][v]));
      _mm256_mask_storeu_epi16(to, static_cast<__mmask16>((1u << n) - 1), rounded);
    }
  }
}

template <int kVectors>
MR_PAIRS void Columns(const GemmArgs& g, const uint32_t* words, int64_t column) {
  int64_t row = 0;
  for (; row + 6 <= g.m; row += 6) Block<6, kVectors>(g, words, row, column);
  for (; row + 2 <= g.m; row += 2) Block<2, kVectors>(g, words, row, column);
  if (row < g.m) Block<1, kVectors>(g, words, row, column);
}

}  // namespace

bool IsPairGemm(const GemmArgs& g) {
  constexpr int64_t kLeastWork = 4096;
  static const bool has = (hwy::SupportedTargets() & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512bf16");
  return has && !g.transpose_a && g.mode == GemmMode::kSet && g.n >= 8 && g.k >= 8 && g.m * g.n * g.k >= kLeastWork &&
         RoundUp(g.n) * ((g.k + 1) / 2) <= kMostWords;
}

void PairGemm(const GemmArgs& g) {
  alignas(64) uint32_t words[kMostWords];
  Pack(g, words);
  int64_t column = 0;
  for (; column + kLanes < g.n; column += 2 * kLanes) Columns<2>(g, words, column);
  if (column < g.n) Columns<1>(g, words, column);
}

#else

bool IsPairGemm(const GemmArgs&) { return false; }
void PairGemm(const GemmArgs&) {}

#endif

}  // namespace millrace
