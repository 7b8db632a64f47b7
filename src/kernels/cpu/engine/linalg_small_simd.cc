// SPDX-License-Identifier: Apache-2.0
// Blocks of C stay in registers: a few rows by two vectors, of which the last may be a part (where the processor can
// load and store parts). B is read by rows; where it is transposed it is first written out by rows.
#include "kernels/cpu/engine/linalg_small_simd.h"

#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/linalg_small_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

struct Operands {
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc, k;
  GemmMode mode;
};

// A vector of B's columns, or the first of it.
template <class D>
struct Whole {
  using V = hn::Vec<D>;
  static HWY_INLINE V Load(D d, const float* p) { return hn::LoadU(d, p); }
  static HWY_INLINE void Store(D d, V v, float* p) { hn::StoreU(v, d, p); }
};
template <class D>
struct Part {
  using V = hn::Vec<D>;
  hn::Mask<D> mask;
  HWY_INLINE V Load(D d, const float* p) const { return hn::MaskedLoad(mask, d, p); }
  HWY_INLINE void Store(D d, V v, float* p) const { hn::BlendedStore(v, mask, d, p); }
};

template <class D, class Columns, class V>
HWY_INLINE void Store(D d, const Columns& columns, V sum, GemmMode mode, float* c) {
  if (mode == GemmMode::kAdd) sum = hn::Add(columns.Load(d, c), sum);
  if (mode == GemmMode::kSubtract) sum = hn::Sub(columns.Load(d, c), sum);
  columns.Store(d, sum, c);
}

// `Rows` rows by one vector of C, `last`, or a whole one and `last` behind it.
template <int Rows, bool kTwo, class D, class Last>
HWY_INLINE void Block(D d, const Operands& o, const Last& last, int64_t row, int64_t column) {
  const Whole<D> whole;
  const int64_t second = column + (kTwo ? static_cast<int64_t>(hn::Lanes(d)) : 0);
  hn::Vec<D> left[Rows], right[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) left[r] = right[r] = hn::Zero(d);
  const float* a = o.a + row * o.a_row;
  for (int64_t p = 0; p < o.k; ++p) {
    const auto b1 = last.Load(d, o.b + p * o.ldb + second);
    const auto b0 = kTwo ? whole.Load(d, o.b + p * o.ldb + column) : b1;
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto v = hn::Set(d, a[p * o.a_step + r * o.a_row]);
      right[r] = hn::MulAdd(v, b1, right[r]);
      if (kTwo) left[r] = hn::MulAdd(v, b0, left[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    float* const c = o.c + (row + r) * o.ldc;
    if (kTwo) Store(d, whole, left[r], o.mode, c + column);
    Store(d, last, right[r], o.mode, c + second);
  }
}

template <bool kTwo, class D, class Last>
HWY_INLINE void Columns(D d, const Operands& o, const Last& last, int64_t m, int64_t column) {
  int64_t row = 0;
  for (; row + 6 <= m; row += 6) Block<6, kTwo>(d, o, last, row, column);
  for (; row + 2 <= m; row += 2) Block<2, kTwo>(d, o, last, row, column);
  if (row < m) Block<1, kTwo>(d, o, last, row, column);
}

void Run(const GemmArgs& g) {
  Operands o{
      static_cast<const float*>(g.a),
      g.transpose_a ? 1 : g.lda,
      g.transpose_a ? g.lda : 1,
      static_cast<const float*>(g.b),
      g.ldb,
      static_cast<float*>(g.c),
      g.ldc,
      g.k,
      g.mode};
  HWY_ALIGN float turned[kMostOfTurned];
  if (g.transpose_b) {
    for (int64_t j = 0; j < g.n; ++j) {
      for (int64_t p = 0; p < g.k; ++p) turned[p * g.n + j] = o.b[j * g.ldb + p];
    }
    o.b = turned;
    o.ldb = g.n;
  }
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t column = 0;
  const Whole<decltype(d)> whole;
  for (; column + 2 * lanes <= g.n; column += 2 * lanes) Columns<true>(d, o, whole, g.m, column);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  const int64_t rest = g.n - column;
  const Part<decltype(d)> part{hn::FirstN(d, static_cast<size_t>(rest > lanes ? rest - lanes : rest))};
  if (rest > lanes) {
    Columns<true>(d, o, part, g.m, column);
  } else if (rest > 0) {
    Columns<false>(d, o, part, g.m, column);
  }
#else
  if (column + lanes <= g.n) {
    Columns<false>(d, o, whole, g.m, column);
    column += lanes;
  }
  const hn::CappedTag<float, 1> one;
  for (; column < g.n; ++column) Columns<false>(one, o, Whole<decltype(one)>(), g.m, column);
#endif
}

// Columns [0, n) of one row of C.
void RowPart(const Operands& o, int64_t n) {
  constexpr int64_t kMost = 4096;
  constexpr int kRows = 8;  // of B at once
  HWY_ALIGN float sums[kMost];
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t first = 0; first < n; first += kMost) {
    const int64_t m = std::min(kMost, n - first);
    std::fill_n(sums, m, 0.0f);
    int64_t p = 0;
    for (; p + kRows <= o.k; p += kRows) {
      const float* const b = o.b + p * o.ldb + first;
      float a[kRows];
      for (int r = 0; r < kRows; ++r) a[r] = o.a[(p + r) * o.a_step];
      const auto add = [&](auto dd, int64_t c) HWY_ATTR {
        auto even = hn::Mul(hn::Set(dd, a[0]), hn::LoadU(dd, b + c));
        auto odd = hn::Mul(hn::Set(dd, a[1]), hn::LoadU(dd, b + o.ldb + c));
#pragma GCC unroll 8
        for (int r = 2; r < kRows; r += 2) {
          even = hn::MulAdd(hn::Set(dd, a[r]), hn::LoadU(dd, b + r * o.ldb + c), even);
          odd = hn::MulAdd(hn::Set(dd, a[r + 1]), hn::LoadU(dd, b + (r + 1) * o.ldb + c), odd);
        }
        hn::StoreU(hn::Add(hn::LoadU(dd, sums + c), hn::Add(even, odd)), dd, sums + c);
      };
      int64_t c = 0;
      for (; c + lanes <= m; c += lanes) add(d, c);
      for (; c < m; ++c) add(hn::CappedTag<float, 1>(), c);
    }
    for (; p < o.k; ++p) {
      const float a = o.a[p * o.a_step];
      const float* const b = o.b + p * o.ldb + first;
      for (int64_t c = 0; c < m; ++c) sums[c] += a * b[c];
    }
    float* const to = o.c + first;
    for (int64_t c = 0; c < m; ++c) {
      to[c] = o.mode == GemmMode::kSet ? sums[c] : o.mode == GemmMode::kAdd ? to[c] + sums[c] : to[c] - sums[c];
    }
  }
}
void RunRow(const GemmArgs& g) {
  RowPart({static_cast<const float*>(g.a), 0, g.transpose_a ? g.lda : 1, static_cast<const float*>(g.b), g.ldb,
           static_cast<float*>(g.c), g.ldc, g.k, g.mode},
          g.n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(Run);

bool IsSmallGemm(const GemmArgs& g) {
  constexpr int64_t kMostWork = 64 * 64 * 16;
  return g.n >= 4 && g.m <= 64 && g.n <= 64 && g.k <= 256 && g.m * g.n * g.k <= kMostWork &&
         (!g.transpose_b || g.n * g.k <= kMostOfTurned);
}
HWY_EXPORT(RunRow);

bool IsRowGemm(const GemmArgs& g) { return g.m == 1 && !g.transpose_b && g.n >= 16; }
void RowGemm(const GemmArgs& g) { HWY_DYNAMIC_DISPATCH(RunRow)(g); }

void SmallGemm(const GemmArgs& g) { HWY_DYNAMIC_DISPATCH(Run)(g); }

}  // namespace millrace
#endif
