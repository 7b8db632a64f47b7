// SPDX-License-Identifier: Apache-2.0
// Blocks of C stay in registers: a few rows by two vectors, of which the last may be a part (where the processor can
// load and store parts). B is read by rows; where it is transposed it is first written out by rows.
#include "kernels/cpu/engine/linalg_small_simd.h"

#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#include "kernels/cpu/engine/strided_block.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/linalg_small_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct Operands {
  const T* a;
  int64_t a_row, a_step;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc, k;
  GemmMode mode;
};

template <class Columns, class V>
HWY_INLINE void Store(const Columns& columns, V sum, GemmMode mode, typename Columns::T* c) {
  if (mode == GemmMode::kAdd) sum = hn::Add(columns.Load(c), sum);
  if (mode == GemmMode::kSubtract) sum = hn::Sub(columns.Load(c), sum);
  columns.Store(sum, c);
}

// `Rows` rows by one vector of C, `last`, or a whole one and `last` behind it.
template <int Rows, bool kTwo, class D, class Last>
HWY_INLINE void Block(D d, const Operands<hn::TFromD<D>>& o, const Last& last, int64_t row, int64_t column) {
  const Whole<D> whole{d};
  const int64_t second = column + (kTwo ? static_cast<int64_t>(hn::Lanes(d)) : 0);
  hn::Vec<D> left[Rows], right[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) left[r] = right[r] = hn::Zero(d);
  const auto* a = o.a + row * o.a_row;
  for (int64_t p = 0; p < o.k; ++p) {
    const auto b1 = last.Load(o.b + p * o.ldb + second);
    const auto b0 = kTwo ? whole.Load(o.b + p * o.ldb + column) : b1;
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto v = hn::Set(d, a[p * o.a_step + r * o.a_row]);
      right[r] = hn::MulAdd(v, b1, right[r]);
      if (kTwo) left[r] = hn::MulAdd(v, b0, left[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    auto* const c = o.c + (row + r) * o.ldc;
    if (kTwo) Store(whole, left[r], o.mode, c + column);
    Store(last, right[r], o.mode, c + second);
  }
}

template <bool kTwo, class D, class Last>
HWY_INLINE void Columns(D d, const Operands<hn::TFromD<D>>& o, const Last& last, int64_t m, int64_t column) {
  int64_t row = 0;
  for (; row + 6 <= m; row += 6) Block<6, kTwo>(d, o, last, row, column);
  for (; row + 2 <= m; row += 2) Block<2, kTwo>(d, o, last, row, column);
  if (row < m) Block<1, kTwo>(d, o, last, row, column);
}

template <typename T>
void Run(const GemmArgs& g) {
  Operands<T> o{
      static_cast<const T*>(g.a),
      g.transpose_a ? 1 : g.lda,
      g.transpose_a ? g.lda : 1,
      static_cast<const T*>(g.b),
      g.ldb,
      static_cast<T*>(g.c),
      g.ldc,
      g.k,
      g.mode};
  HWY_ALIGN T turned[kMostOfTurned];
  if (g.transpose_b) {
    constexpr int64_t kSquares = 16;  // from this size on
    if (g.n >= kSquares && g.k >= kSquares) {
      constexpr int64_t kSize = sizeof(T);
      strided::Block block;
      block.rows = g.k;
      block.dst_row = g.n * kSize;
      block.src_row = kSize;
      block.n = g.n;
      block.dst_stride = kSize;
      block.src_stride = g.ldb * kSize;
      strided::TransposeFunction(kSize)(reinterpret_cast<char*>(turned), reinterpret_cast<const char*>(o.b), block);
    } else {
      for (int64_t j = 0; j < g.n; ++j) {
        for (int64_t p = 0; p < g.k; ++p) turned[p * g.n + j] = o.b[j * g.ldb + p];
      }
    }
    o.b = turned;
    o.ldb = g.n;
  }
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t column = 0;
  const Whole<decltype(d)> whole{d};
  for (; column + 2 * lanes <= g.n; column += 2 * lanes) Columns<true>(d, o, whole, g.m, column);
#if MILLRACE_HAS_PARTS
  const int64_t rest = g.n - column;
  const Part part(d, rest > lanes ? rest - lanes : rest);
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
  const hn::CappedTag<T, 1> one;
  for (; column < g.n; ++column) Columns<false>(one, o, Whole<decltype(one)>{one}, g.m, column);
#endif
}

void RunSmall(DType dtype, const GemmArgs& g) { dtype == DType::kFloat ? Run<float>(g) : Run<double>(g); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(RunSmall);

bool IsSmallGemm(DType dtype, const GemmArgs& g) {
  constexpr int64_t kMostWork = 64 * 64 * 16;
  if (dtype != DType::kFloat && dtype != DType::kDouble) return false;
  if (g.m == 1 && g.transpose_b) return false;  // what it would copy it would read once
  return g.n >= 4 && g.m <= 64 && g.n <= 64 && g.k <= 256 && g.m * g.n * g.k <= kMostWork &&
         (!g.transpose_b || g.n * g.k <= kMostOfTurned);
}
void SmallGemm(DType dtype, const GemmArgs& g) { HWY_DYNAMIC_DISPATCH(RunSmall)(dtype, g); }

}  // namespace millrace
#endif
