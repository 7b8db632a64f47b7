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

#include "kernels/cpu/engine/linalg_complex_simd.h"
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

// What sizes are compared by: of complex64 the square in double, which is exact enough, and needs no root.
template <typename T>
auto SizeOf(T v) {
  return std::abs(v);
}
inline double SizeOf(complex64 v) {
  const double re = static_cast<double>(v.real()), im = static_cast<double>(v.imag());
  return re * re + im * im;
}

template <typename T>
T Quotient(T a, T b) {
  return a / b;
}
// In double, where nothing overflows on the way.
inline complex64 Quotient(complex64 a, complex64 b) {
  const double ar = static_cast<double>(a.real()), ai = static_cast<double>(a.imag());
  const double br = static_cast<double>(b.real()), bi = static_cast<double>(b.imag());
  const double by = 1 / (br * br + bi * bi);
  const complex64 v(static_cast<float>((ar * br + ai * bi) * by), static_cast<float>((ai * br - ar * bi) * by));
  return std::isfinite(v.real()) && std::isfinite(v.imag()) ? v : a / b;
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
  if (m * n * k > (kIsReal<T> ? 512 : 64)) {
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
    if constexpr (kIsReal<T>) return Gemm(ctx, DTypeOf<T>::value, g);
    return ComplexGemm(DTypeOf<T>::value, g, a.adjoint, b.adjoint);
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

// Where recursion halves n rows: both parts whole leaves, but for the last one.
inline constexpr int64_t kLeaf = 8;
inline int64_t HalfOf(int64_t n) { return (n / 2 + kLeaf - 1) / kLeaf * kLeaf; }

// X becomes A^-1 X with A n x n triangular, X n x m. `lower` is about A as the view shows it. By halves, so that nearly
// all is products.
template <typename T>
void SolveTriangle(const KernelContext* ctx, View<T> a, bool lower, bool unit, int64_t n, T* x, int64_t ldx,
                   int64_t m) {
  if (n > kLeaf) {
    const int64_t half = HalfOf(n);
    T* const rest = x + half * ldx;
    if (lower) {
      SolveTriangle(ctx, a, lower, unit, half, x, ldx, m);
      SubtractProduct(ctx, a.At(half, 0), View<T>{x, ldx}, n - half, m, half, rest, ldx);
      SolveTriangle(ctx, a.At(half, half), lower, unit, n - half, rest, ldx, m);
    } else {
      SolveTriangle(ctx, a.At(half, half), lower, unit, n - half, rest, ldx, m);
      SubtractProduct(ctx, a.At(0, half), View<T>{rest, ldx}, half, m, n - half, x, ldx);
      SolveTriangle(ctx, a, lower, unit, half, x, ldx, m);
    }
    return;
  }
  auto solve_row = [&](int64_t i, int64_t begin, int64_t end) {
    T* row = x + i * ldx;
    for (int64_t p = begin; p < end; ++p) {
      const T v = a(i, p);
      const T* other = x + p * ldx;
      for (int64_t j = 0; j < m; ++j) row[j] -= Times(v, other[j]);
    }
    if (unit) return;
    const T diagonal = a(i, i);
    for (int64_t j = 0; j < m; ++j) row[j] = Quotient(row[j], diagonal);
  };
  if (lower) {
    for (int64_t i = 0; i < n; ++i) solve_row(i, 0, i);
  } else {
    for (int64_t i = n; i-- > 0;) solve_row(i, i + 1, n);
  }
}

// X becomes X L^-H with L n x n lower triangular, X m x n; both have rows of `stride`.
template <typename T>
void SolveAdjointFromRight(const KernelContext* ctx, const T* l, int64_t n, T* x, int64_t m, int64_t stride) {
  if (n > kLeaf) {
    const int64_t half = HalfOf(n);
    SolveAdjointFromRight(ctx, l, half, x, m, stride);
    SubtractProduct(
        ctx, View<T>{x, stride}, View<T>{l + half * stride, stride, true}, m, n - half, half, x + half, stride);
    return SolveAdjointFromRight(ctx, l + half * stride + half, n - half, x + half, m, stride);
  }
  for (T* row = x; m > 0; --m, row += stride) {
    for (int64_t j = 0; j < n; ++j) {
      T v = row[j];
      for (int64_t p = 0; p < j; ++p) v -= Times(row[p], Conj(l[j * stride + p]));
      row[j] = v / std::real(l[j * stride + j]);
    }
  }
}

// The lower triangle of `a`, n x n with rows of `stride`, becomes its Cholesky factor; false when it is not positive
// definite. The upper one may change.
template <typename T>
bool CholeskyPart(const KernelContext* ctx, T* a, int64_t n, int64_t stride) {
  if (n > kLeaf) {
    const int64_t half = HalfOf(n);
    T *const below = a + half * stride, *const rest = below + half;
    if (!CholeskyPart(ctx, a, half, stride)) return false;
    SolveAdjointFromRight(ctx, a, half, below, n - half, stride);
    SubtractProduct(ctx, View<T>{below, stride}, View<T>{below, stride, true}, n - half, n - half, half, rest, stride);
    return CholeskyPart(ctx, rest, n - half, stride);
  }
  using Real = decltype(std::abs(T()));
  for (int64_t j = 0; j < n; ++j) {
    Real pivot = std::real(a[j * stride + j]);
    for (int64_t p = 0; p < j; ++p) pivot -= std::norm(a[j * stride + p]);
    if (!(pivot > 0)) return false;
    pivot = std::sqrt(pivot);
    a[j * stride + j] = pivot;
    for (int64_t i = j + 1; i < n; ++i) {
      T v = a[i * stride + j];
      for (int64_t p = 0; p < j; ++p) v -= Times(a[i * stride + p], Conj(a[j * stride + p]));
      a[i * stride + j] = v / pivot;
    }
  }
  return true;
}
template <typename T>
bool Cholesky(const KernelContext* ctx, T* a, int64_t n) {
  return CholeskyPart(ctx, a, n, n);
}

// `a` becomes L (unit diagonal, below) and U (above) with rows exchanged: step i swapped rows i and pivots[i]. False
// when some pivot is zero or not a number; the factors are complete all the same.
template <typename T>
bool Factorize(const KernelContext* ctx, T* a, int64_t n, int64_t* pivots) {
  constexpr int64_t kPanel = kIsReal<T> ? 32 : 8;
  bool regular = true;
  for (int64_t begin = 0; begin < n; begin += kPanel) {
    const int64_t end = std::min(begin + kPanel, n);
    for (int64_t j = begin; j < end; ++j) {
      int64_t best = j;
      for (int64_t i = j + 1; i < n; ++i) {
        if (SizeOf(a[i * n + j]) > SizeOf(a[best * n + j])) best = i;
      }
      pivots[j] = best;
      if (best != j) std::swap_ranges(a + j * n, a + (j + 1) * n, a + best * n);
      const T pivot = a[j * n + j];
      if (!(std::abs(pivot) > 0)) {
        if (j == 0 || std::abs(pivot) == 0) regular = false;  // a NaN that came up later makes the rest NaN
        if (std::abs(pivot) == 0) continue;
      }
      for (int64_t i = j + 1; i < n; ++i) {
        const T factor = Quotient(a[i * n + j], pivot);
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
