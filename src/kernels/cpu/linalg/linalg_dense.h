// SPDX-License-Identifier: Apache-2.0
// Factorisations of one dense matrix and substitution in triangular ones. Row-major. Blocked: most of the work is
// matrix products, done by linalg_gemm.h for real types.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cpu/engine/linalg_gemm.h"

namespace millrace::dense {

inline float Conj(float v) { return v; }
inline double Conj(double v) { return v; }
template <typename R>
std::complex<R> Conj(std::complex<R> v) {
  return std::conj(v);
}

inline float Times(float a, float b) { return a * b; }
inline double Times(double a, double b) { return a * b; }
// Without the detour that gives infinities their right product.
template <typename R>
std::complex<R> Times(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <typename T>
inline constexpr bool kIsReal = std::is_floating_point_v<T>;
inline constexpr int64_t kBlock = 64;

// A matrix seen as it is, or as its conjugate transpose.
template <typename T>
struct View {
  const T* data;
  int64_t stride;
  bool adjoint = false;
  T operator()(int64_t i, int64_t j) const { return adjoint ? Conj(data[j * stride + i]) : data[i * stride + j]; }
  View At(int64_t i, int64_t j) const { return {data + (adjoint ? j * stride + i : i * stride + j), stride, adjoint}; }
};

// C -= A B with C m x n.
template <typename T>
void SubtractProduct(const KernelContext* ctx, View<T> a, View<T> b, int64_t m, int64_t n, int64_t k, T* c,
                     int64_t ldc) {
  if (m == 0 || n == 0 || k == 0) return;
  if constexpr (kIsReal<T>) {
    if (m * n * k > 512) {
      GemmArgs g;
      g.m = m;
      g.n = n;
      g.k = k;
      g.a = a.data;
      g.lda = a.stride;
      g.transpose_a = a.adjoint;
      g.b = b.data;
      g.ldb = b.stride;
      g.transpose_b = b.adjoint;
      g.c = c;
      g.ldc = ldc;
      g.mode = GemmMode::kSubtract;
      return Gemm(ctx, DTypeOf<T>::value, g);
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    if (b.adjoint) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += Times(a(i, p), b(p, j));
        row[j] -= sum;
      }
      continue;
    }
    for (int64_t p = 0; p < k; ++p) {
      const T v = a(i, p);
      const T* other = b.data + p * b.stride;
      for (int64_t j = 0; j < n; ++j) row[j] -= Times(v, other[j]);
    }
  }
}

// X becomes A^-1 X with A n x n triangular, X n x m. `lower` is about A as the view shows it.
template <typename T>
void SolveTriangle(const KernelContext* ctx, View<T> a, bool lower, bool unit, int64_t n, T* x, int64_t ldx,
                   int64_t m) {
  auto solve_row = [&](int64_t i, int64_t begin, int64_t end) {
    T* row = x + i * ldx;
    for (int64_t p = begin; p < end; ++p) {
      const T v = a(i, p);
      const T* other = x + p * ldx;
      for (int64_t j = 0; j < m; ++j) row[j] -= Times(v, other[j]);
    }
    if (unit) return;
    const T diagonal = a(i, i);
    for (int64_t j = 0; j < m; ++j) row[j] /= diagonal;
  };
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = (lower ? b : blocks - 1 - b) * kBlock, end = std::min(begin + kBlock, n);
    if (lower) {
      SubtractProduct(ctx, a.At(begin, 0), View<T>{x, ldx}, end - begin, m, begin, x + begin * ldx, ldx);
      for (int64_t i = begin; i < end; ++i) solve_row(i, begin, i);
    } else {
      SubtractProduct(
          ctx, a.At(begin, end), View<T>{x + end * ldx, ldx}, end - begin, m, n - end, x + begin * ldx, ldx);
      for (int64_t i = end; i-- > begin;) solve_row(i, i + 1, end);
    }
  }
}

// The lower triangle of `a` becomes its Cholesky factor; false when it is not positive definite.
template <typename T>
bool Cholesky(const KernelContext* ctx, T* a, int64_t n) {
  using Real = decltype(std::abs(T()));
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    const View<T> done{a + begin * n, n}, done_adjoint{a + begin * n, n, true};
    SubtractProduct(ctx, done, done_adjoint, end - begin, end - begin, begin, a + begin * n + begin, n);
    for (int64_t j = begin; j < end; ++j) {
      Real pivot = std::real(a[j * n + j]);
      for (int64_t p = begin; p < j; ++p) pivot -= std::norm(a[j * n + p]);
      if (!(pivot > 0)) return false;
      pivot = std::sqrt(pivot);
      a[j * n + j] = pivot;
      for (int64_t i = j + 1; i < end; ++i) {
        T v = a[i * n + j];
        for (int64_t p = begin; p < j; ++p) v -= Times(a[i * n + p], Conj(a[j * n + p]));
        a[i * n + j] = v / pivot;
      }
    }
    // The rows below: X with X L^H = what is left of them.
    SubtractProduct(ctx, View<T>{a + end * n, n}, done_adjoint, n - end, end - begin, begin, a + end * n + begin, n);
    for (int64_t i = end; i < n; ++i) {
      for (int64_t j = begin; j < end; ++j) {
        T v = a[i * n + j];
        for (int64_t p = begin; p < j; ++p) v -= Times(a[i * n + p], Conj(a[j * n + p]));
        a[i * n + j] = v / std::real(a[j * n + j]);
      }
    }
  }
  return true;
}

// `a` becomes L (unit diagonal, below) and U (above) with rows exchanged: step i swapped rows i and pivots[i]. False
// when some pivot is zero or not a number; the factors are complete all the same.
template <typename T>
bool Factorize(const KernelContext* ctx, T* a, int64_t n, int64_t* pivots) {
  constexpr int64_t kPanel = 32;
  bool regular = true;
  for (int64_t begin = 0; begin < n; begin += kPanel) {
    const int64_t end = std::min(begin + kPanel, n);
    for (int64_t j = begin; j < end; ++j) {
      int64_t best = j;
      for (int64_t i = j + 1; i < n; ++i) {
        if (std::abs(a[i * n + j]) > std::abs(a[best * n + j])) best = i;
      }
      pivots[j] = best;
      if (best != j) std::swap_ranges(a + j * n, a + (j + 1) * n, a + best * n);
      const T pivot = a[j * n + j];
      if (!(std::abs(pivot) > 0)) {
        if (j == 0 || std::abs(pivot) == 0) regular = false;  // a NaN that came up later makes the rest NaN
        if (std::abs(pivot) == 0) continue;
      }
      for (int64_t i = j + 1; i < n; ++i) {
        const T factor = a[i * n + j] / pivot;
        a[i * n + j] = factor;
        for (int64_t p = j + 1; p < end; ++p) a[i * n + p] -= Times(factor, a[j * n + p]);
      }
    }
    const int64_t rest = n - end;
    SolveTriangle(ctx, View<T>{a + begin * n + begin, n}, true, true, end - begin, a + begin * n + end, n, rest);
    SubtractProduct(ctx, View<T>{a + end * n + begin, n}, View<T>{a + begin * n + end, n}, rest, rest, end - begin,
                    a + end * n + end, n);
  }
  return regular;
}

// X becomes A^-1 X, from the factors of A.
template <typename T>
void SolveFactorized(const KernelContext* ctx, const T* factors, const int64_t* pivots, int64_t n, T* x, int64_t m) {
  for (int64_t i = 0; i < n; ++i) {
    if (pivots[i] != i) std::swap_ranges(x + i * m, x + (i + 1) * m, x + pivots[i] * m);
  }
  SolveTriangle(ctx, View<T>{factors, n}, true, true, n, x, m, m);
  SolveTriangle(ctx, View<T>{factors, n}, false, false, n, x, m, m);
}

// out = a, or its conjugate transpose.
template <typename T>
void CopyMatrix(const T* a, int64_t n, bool adjoint, T* out) {
  if (!adjoint) {
    std::copy(a, a + n * n, out);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) out[j * n + i] = Conj(a[i * n + j]);
  }
}

// The product of the diagonal of the factors, with the exponent kept apart so that nothing overflows on the way.
template <typename T>
T DeterminantOfFactors(const T* factors, const int64_t* pivots, int64_t n) {
  T product = 1;
  int64_t exponent = 0;
  for (int64_t i = 0; i < n; ++i) {
    product = Times(product, factors[i * n + i]);
    if (pivots[i] != i) product = -product;
    const auto size = std::abs(product);
    if (!(size > 0) || !std::isfinite(size)) return product;
    const int shift = std::ilogb(size);
    exponent += shift;
    if constexpr (kIsReal<T>) {
      product = std::ldexp(product, -shift);
    } else {
      product = {std::ldexp(product.real(), -shift), std::ldexp(product.imag(), -shift)};
    }
  }
  const int shift = static_cast<int>(std::clamp<int64_t>(exponent, -100000, 100000));
  if constexpr (kIsReal<T>) {
    return std::ldexp(product, shift);
  } else {
    return {std::ldexp(product.real(), shift), std::ldexp(product.imag(), shift)};
  }
}

}  // namespace millrace::dense
