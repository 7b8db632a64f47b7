// SPDX-License-Identifier: Apache-2.0
// Rows of B are runs of numbers, in which parts alternate: a row of C is what they make with the real parts of A, and
// what they make with the imaginary ones, whose lanes then change places. Blocks of C stay in registers. B is copied
// where it is transposed or conjugated, some of it at a time.
#include "kernels/cpu/engine/linalg_complex_simd.h"

#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/linalg_complex_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Strides count parts, of which a complex number has two.
template <typename T>
struct Operands {
  const T* a;
  int64_t a_row, a_step;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc, k;
  GemmMode mode;
  bool conjugate_a;
};

#if MILLRACE_HAS_PARTS

template <class How, class V, typename T>
HWY_INLINE void Put(const How& how, const Operands<T>& o, V real, V imaginary, T* c) {
  const V swapped = hn::Reverse2(how.d, imaginary);
  const V plus = hn::Add(real, swapped), minus = hn::Sub(real, swapped);
  V sum = o.conjugate_a ? hn::OddEven(minus, plus) : hn::OddEven(plus, minus);
  if (o.mode == GemmMode::kAdd) sum = hn::Add(how.Load(c), sum);
  if (o.mode == GemmMode::kSubtract) sum = hn::Sub(how.Load(c), sum);
  how.Store(sum, c);
}

template <int Rows, class How>
HWY_INLINE void Block(const How& how, const Operands<typename How::T>& o, int64_t row, int64_t column) {
  using V = typename How::V;
  const auto d = how.d;
  V real[Rows], imaginary[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) real[r] = imaginary[r] = hn::Zero(d);
  const auto* a = o.a + row * o.a_row;
  for (int64_t p = 0; p < o.k; ++p) {
    const V b = how.Load(o.b + p * o.ldb + column);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto* const v = a + p * o.a_step + r * o.a_row;
      real[r] = hn::MulAdd(hn::Set(d, v[0]), b, real[r]);
      imaginary[r] = hn::MulAdd(hn::Set(d, v[1]), b, imaginary[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) Put(how, o, real[r], imaginary[r], o.c + (row + r) * o.ldc + column);
}

// One row by `kCount` vectors, so that there are sums enough to wait for.
template <int kCount, class D>
HWY_INLINE void Row(D d, const Operands<hn::TFromD<D>>& o, int64_t column) {
  using V = hn::Vec<D>;
  const Whole<D> how{d};
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V real[kCount], imaginary[kCount];
#pragma GCC unroll 8
  for (int v = 0; v < kCount; ++v) real[v] = imaginary[v] = hn::Zero(d);
  const auto* a = o.a;
  for (int64_t p = 0; p < o.k; ++p, a += o.a_step) {
    const V re = hn::Set(d, a[0]), im = hn::Set(d, a[1]);
#pragma GCC unroll 8
    for (int v = 0; v < kCount; ++v) {
      const V b = how.Load(o.b + p * o.ldb + column + v * lanes);
      real[v] = hn::MulAdd(re, b, real[v]);
      imaginary[v] = hn::MulAdd(im, b, imaginary[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kCount; ++v) Put(how, o, real[v], imaginary[v], o.c + column + v * lanes);
}

template <class How>
HWY_INLINE void Columns(const How& how, const Operands<typename How::T>& o, int64_t m, int64_t column) {
  int64_t row = 0;
  for (; row + 6 <= m; row += 6) Block<6>(how, o, row, column);
  for (; row + 2 <= m; row += 2) Block<2>(how, o, row, column);
  if (row < m) Block<1>(how, o, row, column);
}

// n numbers in a row of C.
template <typename T>
void Rows(const Operands<T>& o, int64_t m, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t column = 0;
  if (m == 1) {
    constexpr int kCount = 4;
    for (; column + kCount * lanes <= 2 * n; column += kCount * lanes) Row<kCount>(d, o, column);
  }
  for (; column + lanes <= 2 * n; column += lanes) Columns(Whole<decltype(d)>{d}, o, m, column);
  if (column < 2 * n) Columns(Part(d, 2 * n - column), o, m, column);
}

#else

template <typename T>
void Rows(const Operands<T>& o, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T straight[2] = {}, across[2] = {};
      for (int64_t p = 0; p < o.k; ++p) {
        const T *const a = o.a + i * o.a_row + p * o.a_step, *const b = o.b + p * o.ldb + 2 * j;
        straight[0] += a[0] * b[0], straight[1] += a[0] * b[1];
        across[0] += a[1] * b[1], across[1] += a[1] * b[0];
      }
      const T sign = o.conjugate_a ? T(-1) : T(1);
      const T sum[2] = {straight[0] - sign * across[0], straight[1] + sign * across[1]};
      T* const c = o.c + i * o.ldc + 2 * j;
      for (int part = 0; part < 2; ++part) {
        c[part] = o.mode == GemmMode::kSet   ? sum[part]
                  : o.mode == GemmMode::kAdd ? c[part] + sum[part]
                                             : c[part] - sum[part];
      }
    }
  }
}

#endif

template <typename T>
void Run(const GemmArgs& g, bool conjugate_a, bool conjugate_b) {
  constexpr int64_t kDepth = 64, kWidth = 32;  // of what is copied of B
  const T *const a = static_cast<const T*>(g.a), *const b = static_cast<const T*>(g.b);
  Operands<T> o;
  o.a_row = 2 * (g.transpose_a ? 1 : g.lda);
  o.a_step = 2 * (g.transpose_a ? g.lda : 1);
  o.ldc = 2 * g.ldc;
  o.conjugate_a = conjugate_a;
  if ((!g.transpose_b && !conjugate_b) || g.k == 0) {
    o.a = a;
    o.b = b;
    o.ldb = 2 * g.ldb;
    o.c = static_cast<T*>(g.c);
    o.k = g.k;
    o.mode = g.mode;
    return Rows(o, g.m, g.n);
  }
  HWY_ALIGN T copy[2 * kDepth * kWidth];
  const T sign = conjugate_b ? T(-1) : T(1);
  const int64_t b_column = 2 * (g.transpose_b ? g.ldb : 1), b_step = 2 * (g.transpose_b ? 1 : g.ldb);
  o.b = copy;
  for (int64_t column = 0; column < g.n; column += kWidth) {
    const int64_t n = std::min(kWidth, g.n - column);
    o.c = static_cast<T*>(g.c) + 2 * column;
    o.ldb = 2 * n;
    for (int64_t from = 0; from < g.k; from += kDepth) {
      o.k = std::min(kDepth, g.k - from);
      for (int64_t j = 0; j < n; ++j) {
        const T* in = b + (column + j) * b_column + from * b_step;
        for (int64_t p = 0; p < o.k; ++p, in += b_step) {
          copy[p * o.ldb + 2 * j] = in[0];
          copy[p * o.ldb + 2 * j + 1] = sign * in[1];
        }
      }
      o.a = a + from * o.a_step;
      o.mode = from > 0 && g.mode == GemmMode::kSet ? GemmMode::kAdd : g.mode;
      Rows(o, g.m, n);
    }
  }
}

void RunComplex(DType dtype, const GemmArgs& g, bool conjugate_a, bool conjugate_b) {
  dtype == DType::kComplex64 ? Run<float>(g, conjugate_a, conjugate_b) : Run<double>(g, conjugate_a, conjugate_b);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(RunComplex);

void ComplexGemm(DType dtype, const GemmArgs& g, bool conjugate_a, bool conjugate_b) {
  HWY_DYNAMIC_DISPATCH(RunComplex)(dtype, g, conjugate_a, conjugate_b);
}

}  // namespace millrace
#endif
