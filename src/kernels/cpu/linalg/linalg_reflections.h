// SPDX-License-Identifier: Apache-2.0
// Householder reflections H = I - tau v v^H that turn a vector into (beta, 0, ...) with a real beta, and products of
// many of them. Many at once are products of matrices (Schreiber and van Loan, A storage-efficient WY representation).
#pragma once

#include <cmath>
#include <complex>
#include <limits>

#include "kernels/cpu/linalg/linalg_dense.h"
#include "kernels/cpu/linalg/linalg_rows.h"

namespace millrace::dense {

template <typename T>
using RealOf = decltype(std::abs(T()));

template <typename T>
RealOf<T> Norm(const T* x, int64_t n) {
  using R = RealOf<T>;
  const R square = std::real(ConjugateDot(x, x, n));
  if (square > std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon() &&
      square < std::numeric_limits<R>::max()) {
    return std::sqrt(square);
  }
  R largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const R size = std::abs(x[i]);
    if (!(size <= largest)) largest = size;
  }
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  R sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::norm(x[i] / largest);
  return largest * std::sqrt(sum);
}

// x becomes v, whose first element is 1; the result is beta, with the sign that loses nothing. tau is 0 when x is a
// real multiple of the first unit vector already.
template <typename T>
RealOf<T> MakeReflection(T* x, int64_t n, T* tau) {
  using R = RealOf<T>;
  const T first = x[0];
  const R tail = Norm(x + 1, n - 1), imaginary = std::imag(first);
  x[0] = T(1);
  if (tail == 0 && imaginary == 0) {
    *tau = T(0);
    std::fill(x + 1, x + n, T(0));
    return std::real(first);
  }
  R beta = std::hypot(std::abs(first), tail);
  if (std::real(first) >= 0) beta = -beta;
  const T divisor = first - beta;
  for (int64_t i = 1; i < n; ++i) x[i] /= divisor;
  *tau = Conj((beta - first) / beta);
  return beta;
}

// `count` reflections of vectors of `size`. Row k of `vectors` is v_k, which is zero before element offset + k.
template <typename T>
struct Reflections {
  T* vectors = nullptr;
  T* tau = nullptr;
  int64_t count = 0, size = 0, offset = 0;
  T* vector(int64_t k) const { return vectors + k * size; }
  int64_t begin(int64_t k) const { return offset + k; }
};

// A product, of whose left factor complex numbers may be conjugated.
template <typename T>
void Multiply(const KernelContext* ctx, const GemmArgs& g, bool conjugate_a) {
  if constexpr (kIsReal<T>) {
    Gemm(ctx, DTypeOf<T>::value, g);
  } else {
    ComplexGemm(DTypeOf<T>::value, g, conjugate_a, false);
  }
}

// c, whose rows are those of v from `begin` on, becomes (I - tau v v^H) c. `work` has `columns` elements.
template <typename T>
void Reflect(const T* v, T tau, int64_t begin, int64_t end, T* c, int64_t ldc, int64_t columns, T* work) {
  if (tau == T(0) || columns == 0) return;
  if constexpr (!kIsReal<T>) {
    GemmArgs g;
    g.m = 1;
    g.n = columns;
    g.k = end - begin;
    g.a = v + begin;
    g.lda = end - begin;
    g.b = c + begin * ldc;
    g.ldb = ldc;
    g.c = work;
    g.ldc = columns;
    Multiply<T>(nullptr, g, true);
    for (int64_t j = 0; j < columns; ++j) work[j] = Times(tau, work[j]);
    GemmArgs s;
    s.m = end - begin;
    s.n = columns;
    s.k = 1;
    s.a = v + begin;
    s.lda = 1;
    s.b = work;
    s.ldb = columns;
    s.c = c + begin * ldc;
    s.ldc = ldc;
    s.mode = GemmMode::kSubtract;
    return Multiply<T>(nullptr, s, false);
  }
  std::fill(work, work + columns, T(0));
  for (int64_t i = begin; i < end; ++i) AddScaled(Conj(v[i]), c + i * ldc, work, columns);
  for (int64_t i = begin; i < end; ++i) AddScaled(-Times(tau, v[i]), work, c + i * ldc, columns);
}

inline constexpr int64_t kReflectionBlock = 32;
// Elements of `work` below, for a matrix of this many columns.
inline int64_t ReflectionWork(int64_t columns) {
  return 2 * kReflectionBlock * columns + kReflectionBlock * kReflectionBlock;
}

// Reflections [from, to) at once: c becomes H_from^H ... H_to-1^H c, or with `reverse` H_to-1 ... H_from c.
template <typename T>
void ReflectBlock(const KernelContext* ctx, const Reflections<T>& r, int64_t from, int64_t to, bool reverse, T* c,
                  int64_t ldc, int64_t columns, T* work) {
  const int64_t b = to - from, begin = r.begin(from), rows = r.size - begin;
  const T* v = r.vector(from) + begin;
  T *triangle = work, *product = work + b * b, *scaled = product + b * columns;
  // I - V T V^H, T upper triangular, a column at a time.
  std::fill(triangle, triangle + b * b, T(0));
  for (int64_t j = 0; j < b; ++j) {
    const T tau = Conj(r.tau[from + j]);
    triangle[j * b + j] = tau;
    T dots[kReflectionBlock];
    for (int64_t k = 0; k < j; ++k) dots[k] = ConjugateDot(v + k * r.size + j, v + j * r.size + j, rows - j);
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      for (int64_t k = i; k < j; ++k) sum += Times(triangle[i * b + k], dots[k]);
      triangle[i * b + j] = -Times(tau, sum);
    }
  }
  GemmArgs g;
  g.m = b;
  g.n = columns;
  g.k = rows;
  g.a = v;
  g.lda = r.size;
  g.b = c + begin * ldc;
  g.ldb = ldc;
  g.c = product;
  g.ldc = columns;
  Multiply<T>(ctx, g, true);
  std::fill(scaled, scaled + b * columns, T(0));
  for (int64_t i = 0; i < b; ++i) {
    for (int64_t j = 0; j < b; ++j) {
      const T factor = reverse ? Conj(triangle[j * b + i]) : triangle[i * b + j];
      if (factor != T(0)) AddScaled(factor, product + j * columns, scaled + i * columns, columns);
    }
  }
  GemmArgs s;
  s.m = rows;
  s.n = columns;
  s.k = b;
  s.a = v;
  s.lda = r.size;
  s.transpose_a = true;
  s.b = scaled;
  s.ldb = columns;
  s.c = c + begin * ldc;
  s.ldc = ldc;
  s.mode = GemmMode::kSubtract;
  Multiply<T>(ctx, s, false);
}

// Q c with Q = H_0^H H_1^H ...; c has r.size rows.
template <typename T>
void ApplyReflections(const KernelContext* ctx, const Reflections<T>& r, T* c, int64_t ldc, int64_t columns, T* work) {
  if (columns == 0) return;
  for (int64_t end = r.count; end > 0;) {
    const int64_t begin = std::max<int64_t>(0, (end - 1) / kReflectionBlock * kReflectionBlock);
    const bool block = end - begin > 8 && columns > 8;
    if (block) ReflectBlock(ctx, r, begin, end, false, c, ldc, columns, work);
    for (int64_t k = end; !block && k-- > begin;) {
      Reflect(r.vector(k), Conj(r.tau[k]), r.begin(k), r.size, c, ldc, columns, work);
    }
    end = begin;
  }
}

// a (m x n) becomes R above the diagonal and zeros below it; r gets min(m, n) reflections of size m.
template <typename T>
void FactorizeQr(const KernelContext* ctx, T* a, int64_t m, int64_t n, const Reflections<T>& r, T* work) {
  for (int64_t from = 0; from < r.count; from += kReflectionBlock) {
    const int64_t to = std::min(from + kReflectionBlock, r.count);
    const bool block = n - to > 8 && to - from > 8;
    const int64_t panel = block ? to : n;  // columns that see one reflection at a time
    for (int64_t k = from; k < to; ++k) {
      T* v = r.vector(k);
      for (int64_t i = k; i < m; ++i) v[i] = a[i * n + k];
      a[k * n + k] = MakeReflection(v + k, m - k, r.tau + k);
      for (int64_t i = k + 1; i < m; ++i) a[i * n + k] = T(0);
      Reflect(v, r.tau[k], k, m, a + k + 1, n, panel - k - 1, work);
    }
    if (block) ReflectBlock(ctx, r, from, to, true, a + to, n, n - to, work);
  }
}

// out (columns x rows) = the transpose of a (rows x columns), conjugated if wanted.
template <typename T>
void Transpose(const T* a, int64_t rows, int64_t columns, bool conjugate, T* out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const T v = a[i * columns + j];
      out[j * rows + i] = conjugate ? Conj(v) : v;
    }
  }
}

}  // namespace millrace::dense
