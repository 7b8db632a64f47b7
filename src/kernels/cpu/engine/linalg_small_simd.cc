// SPDX-License-Identifier: Apache-2.0
// Blocks of C stay in registers: kRows rows by two vectors. B is read by rows; where it is transposed it is first
// written out by rows.
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

template <class D, class V>
HWY_INLINE void Store(D d, V sum, GemmMode mode, float* c) {
  if (mode == GemmMode::kAdd) sum = hn::Add(hn::LoadU(d, c), sum);
  if (mode == GemmMode::kSubtract) sum = hn::Sub(hn::LoadU(d, c), sum);
  hn::StoreU(sum, d, c);
}

// `Rows` rows by one or two vectors of C.
template <int Rows, bool kTwo, class D>
HWY_INLINE void Block(D d, const Operands& o, int64_t row, int64_t column) {
  const int64_t second = column + static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> left[Rows], right[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) left[r] = right[r] = hn::Zero(d);
  const float* a = o.a + row * o.a_row;
  for (int64_t p = 0; p < o.k; ++p) {
    const auto b0 = hn::LoadU(d, o.b + p * o.ldb + column);
    const auto b1 = kTwo ? hn::LoadU(d, o.b + p * o.ldb + second) : b0;
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto v = hn::Set(d, a[p * o.a_step + r * o.a_row]);
      left[r] = hn::MulAdd(v, b0, left[r]);
      if (kTwo) right[r] = hn::MulAdd(v, b1, right[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    Store(d, left[r], o.mode, o.c + (row + r) * o.ldc + column);
    if (kTwo) Store(d, right[r], o.mode, o.c + (row + r) * o.ldc + second);
  }
}

template <bool kTwo, class D>
HWY_INLINE void Columns(D d, const Operands& o, int64_t m, int64_t column) {
  int64_t row = 0;
  for (; row + 6 <= m; row += 6) Block<6, kTwo>(d, o, row, column);
  for (; row + 2 <= m; row += 2) Block<2, kTwo>(d, o, row, column);
  if (row < m) Block<1, kTwo>(d, o, row, column);
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
  for (; column + 2 * lanes <= g.n; column += 2 * lanes) Columns<true>(d, o, g.m, column);
  if (column + lanes <= g.n) {
    Columns<false>(d, o, g.m, column);
    column += lanes;
  }
  const hn::CappedTag<float, 4> four;
  const auto few = static_cast<int64_t>(hn::Lanes(four));
  for (; column + few <= g.n; column += few) Columns<false>(four, o, g.m, column);
  for (; column < g.n; ++column) Columns<false>(hn::CappedTag<float, 1>(), o, g.m, column);
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
void SmallGemm(const GemmArgs& g) { HWY_DYNAMIC_DISPATCH(Run)(g); }

}  // namespace millrace
#endif
