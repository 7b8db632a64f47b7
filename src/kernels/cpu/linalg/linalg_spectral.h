// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of a Hermitian matrix, singular values of any matrix. Reflections make the matrix real and tridiagonal
// (or bidiagonal), plane rotations make it diagonal (linalg_diagonalize.h), and both are gathered in the vectors. The
// matrix is scaled by a power of two first, so that nothing overflows.
#pragma once

#include <numeric>

#include "kernels/cpu/linalg/linalg_diagonalize.h"
#include "kernels/cpu/linalg/linalg_reflections.h"
#include "kernels/cpu/linalg/linalg_stack.h"

namespace millrace::dense {

// 2^-k with elements times it at most 1 in size; 0 when some element is not finite.
template <typename T>
RealOf<T> ScaleOf(const T* a, int64_t n) {
  using R = RealOf<T>;
  R largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const R size = std::max(std::abs(std::real(a[i])), std::abs(std::imag(a[i])));
    if (!std::isfinite(std::real(a[i])) || !std::isfinite(std::imag(a[i]))) return 0;
    largest = std::max(largest, size);
  }
  if (largest == 0) return 1;
  const int shift = std::clamp(
      -std::ilogb(largest) - 1, std::numeric_limits<R>::min_exponent + 2, std::numeric_limits<R>::max_exponent - 2);
  return std::ldexp(R(1), shift);
}

// The rows of a real or complex matrix seen as real, for rotations; on the threads of ctx.
template <typename T>
void RotateAll(const KernelContext* ctx, absl::Span<const Rotation> rotations, T* rows, int64_t columns) {
  using R = RealOf<T>;
  constexpr int64_t kParts = sizeof(T) / sizeof(R), kStrip = 512;
  R* real = reinterpret_cast<R*>(rows);
  const int64_t width = columns * kParts, count = static_cast<int64_t>(rotations.size());
  auto strips = [&](int64_t begin, int64_t end) {
    Rotate(rotations.data(), count, real, width, begin * kStrip, std::min(end * kStrip, width));
  };
  const int64_t n = (width + kStrip - 1) / kStrip;
  if (!ctx || n == 1) return strips(0, n);
  ctx->ParallelFor(n, static_cast<double>(count) * kStrip * 0.5, strips);
}

// a (n x n, Hermitian, its lower triangle) becomes T = Q^H a Q, given by its diagonal d and e beside it; Q is
// H_0^H H_1^H ... with r of offset 1. `work` has 3 n elements.
template <typename T>
void Tridiagonalize(T* a, int64_t n, const Reflections<T>& r, double* d, double* e, T* work) {
  using R = RealOf<T>;
  T *u = work, *other = work + n, *conjugate = work + 2 * n;
  for (int64_t k = 0; k + 1 < n; ++k) {
    T* v = r.vector(k);
    const int64_t begin = k + 1, size = n - begin;
    for (int64_t i = begin; i < n; ++i) v[i] = a[i * n + k];
    e[k] = static_cast<double>(MakeReflection(v + begin, size, r.tau + k));
    d[k] = static_cast<double>(std::real(a[k * n + k]));
    const T tau = r.tau[k];
    if (tau == T(0)) continue;
    if constexpr (kIsReal<T>) {
      TimesSymmetric(a + begin * n + begin, n, size, v + begin, other + begin);
      const T middle = ConjugateDot(other + begin, v + begin, size);
      for (int64_t i = begin; i < n; ++i) u[i] = tau * other[i] - tau * tau * middle / 2 * v[i];
      SubtractSymmetric(v + begin, u + begin, size, a + begin * n + begin, n);
      continue;
    }
    // other = v^H A, so that A v is its conjugate; u = conj(tau) A v - |tau|^2 (v^H A v) v / 2.
    for (int64_t i = begin; i < n; ++i) conjugate[i] = Conj(v[i]);
    std::fill(other, other + n, T(0));
    for (int64_t i = begin; i < n; ++i) {
      const T* row = a + i * n;
      AddScaled(conjugate[i], row + begin, other + begin, i - begin);
      other[i] += Times(conjugate[i], row[i]) + Conj(ConjugateDot(conjugate + begin, row + begin, i - begin));
    }
    for (int64_t i = begin; i < n; ++i) u[i] = Times(Conj(tau), Conj(other[i]));
    R middle = 0;
    for (int64_t i = begin; i < n; ++i) middle += std::real(Times(other[i], v[i]));
    AddScaled(T(-std::norm(tau) * middle / 2), v + begin, u + begin, size);
    // A -= v u^H + u v^H.
    for (int64_t i = begin; i < n; ++i) other[i] = Conj(u[i]);
    for (int64_t i = begin; i < n; ++i) {
      T* row = a + i * n + begin;
      AddScaled(-v[i], other + begin, row, i - begin + 1);
      AddScaled(-u[i], conjugate + begin, row, i - begin + 1);
    }
  }
  if (n > 0) d[n - 1] = static_cast<double>(std::real(a[n * n - 1]));
}

// Column k of `to` is row order[k] of `rows` (n x n). Some rows of `to` at a time: they stay in cache.
template <typename T>
void TransposeRows(const T* rows, int64_t n, const int64_t* order, T* to, int64_t to_stride) {
  constexpr int64_t kRows = 16;
  for (int64_t from = 0; from < n; from += kRows) {
    const int64_t end = std::min(from + kRows, n);
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t i = from; i < end; ++i) to[i * to_stride + k] = rows[order[k] * n + i];
    }
  }
}

// Eigenvalues (ascending) of the Hermitian matrix whose lower triangle is that of `in`; vectors as columns of v unless
// null, rows `n` apart.
template <typename T>
Status Eigen(const KernelContext* ctx, const CancellationManager* cancellation, const T* in, int64_t n, T* values,
             T* v) {
  using R = RealOf<T>;
  if (n == 0) return absl::OkStatus();
  Workspace memory;
  for (int i = 0; i < (v ? 3 : 2); ++i) memory.Plan<T>(n * n);
  memory.Plan<T>(n);
  memory.Plan<T>(ReflectionWork(n));
  memory.Plan<double>(2 * n);
  memory.Plan<int64_t>(n);
  memory.Plan<Rotation>(8 * n);
  MR_RETURN_IF_ERROR(memory.Allocate());
  T* a = memory.Take<T>(n * n);
  for (int64_t i = 0; i < n; ++i) {
    std::copy(in + i * n, in + i * n + i, a + i * n);
    a[i * n + i] = std::real(in[i * n + i]);
  }
  const R scale = ScaleOf(a, n * n);
  if (scale == 0) return InvalidArgument("the eigenvalues of a matrix with elements that are not finite");
  for (int64_t i = 0; i < n * n; ++i) a[i] *= scale;
  Reflections<T> r{memory.Take<T>(n * n), memory.Take<T>(n), n - 1, n, 1};
  T* work = memory.Take<T>(ReflectionWork(n));
  double* d = memory.Take<double>(2 * n);
  double* e = d + n;
  Tridiagonalize(a, n, r, d, e, work);
  const Iteration iteration{cancellation, absl::MakeSpan(memory.Take<Rotation>(8 * n), static_cast<size_t>(8 * n))};
  T* rows = nullptr;  // the eigenvectors
  if (v) {
    rows = memory.Take<T>(n * n);
    std::fill(a, a + n * n, T(0));
    for (int64_t i = 0; i < n; ++i) a[i * n + i] = T(1);
    ApplyReflections(ctx, r, a, n, n, work);
    Transpose(a, n, n, false, rows);
  }
  auto rotate = [&](absl::Span<const Rotation> rotations) {
    if (rows) RotateAll(ctx, rotations, rows, n);
  };
  const size_t size = static_cast<size_t>(n);
  MR_RETURN_IF_ERROR(
      DiagonalizeTridiagonal({d, size}, {e, size - 1}, std::numeric_limits<R>::epsilon() / 2, iteration, rotate));
  int64_t* order = memory.Take<int64_t>(n);
  std::iota(order, order + n, int64_t{0});
  std::stable_sort(order, order + n, [&](int64_t x, int64_t y) { return d[x] < d[y]; });
  for (int64_t k = 0; k < n; ++k) values[k] = T(static_cast<R>(d[order[k]]) / scale);
  if (v) TransposeRows(rows, n, order, v, n);
  return absl::OkStatus();
}

// a (n x n) becomes B = P^H a Q, real upper bidiagonal with diagonal d and e above it. `work` has n elements.
template <typename T>
void Bidiagonalize(T* a, int64_t n, const Reflections<T>& left, const Reflections<T>& right, double* d, double* e,
                   T* work) {
  for (int64_t k = 0; k < n; ++k) {
    T* v = left.vector(k);
    for (int64_t i = k; i < n; ++i) v[i] = a[i * n + k];
    d[k] = static_cast<double>(MakeReflection(v + k, n - k, left.tau + k));
    Reflect(v, left.tau[k], k, n, a + k + 1, n, n - k - 1, work);
    if (k + 1 == n) break;
    T* w = right.vector(k);
    const int64_t begin = k + 1, size = n - begin;
    for (int64_t j = begin; j < n; ++j) w[j] = Conj(a[k * n + j]);
    e[k] = static_cast<double>(MakeReflection(w + begin, size, right.tau + k));
    const T tau = Conj(right.tau[k]);
    if (tau == T(0)) continue;
    // Rows times H^H: a - conj(tau) (a w) w^H.
    for (int64_t j = begin; j < n; ++j) work[j] = Conj(w[j]);
    for (int64_t i = k + 1; i < n; ++i) {
      T* row = a + i * n + begin;
      AddScaled(-Times(tau, ConjugateDot(work + begin, row, size)), work + begin, row, size);
    }
  }
}

// What Svd gives: values (descending, min(m, n)), and unless null u (m x u_columns) and v (n x v_columns), row-major.
template <typename T>
struct SvdResult {
  T* values = nullptr;
  T* u = nullptr;
  T* v = nullptr;
  int64_t u_columns = 0, v_columns = 0;  // min(m, n), or the number of rows
};

// `in` is m x n with m >= n > 0.
template <typename T>
class Svd {
 public:
  Svd(const KernelContext* ctx, const CancellationManager* cancellation, int64_t m, int64_t n)
      : ctx_(ctx), cancellation_(cancellation), m_(m), n_(n), tall_(m > n) {}

  // `adjoint`: the matrix is the conjugate transpose of `in`, which is n x m.
  Status Run(const T* in, bool adjoint, const SvdResult<T>& result) {
    MR_RETURN_IF_ERROR(Allocate(result));
    T* const whole = tall_ ? tall_matrix_ : a_;
    if (adjoint) {
      Transpose(in, n_, m_, true, whole);
    } else {
      std::copy(in, in + m_ * n_, whole);
    }
    const R scale = ScaleOf(whole, m_ * n_);
    if (scale == 0) return Fill(result), absl::OkStatus();
    for (int64_t i = 0; i < m_ * n_; ++i) whole[i] *= scale;
    if (tall_) {
      FactorizeQr(ctx_, whole, m_, n_, qr_, work_);
      std::copy(whole, whole + n_ * n_, a_);
    }
    Bidiagonalize(a_, n_, left_, right_, d_, e_, work_);
    if (result.u) {
      RowsOf(left_, left_rows_);
      RowsOf(right_, right_rows_);
    }
    MR_RETURN_IF_ERROR(Diagonalize(result.u != nullptr));
    Gather(scale, result);
    return absl::OkStatus();
  }

 private:
  using R = RealOf<T>;

  Status Allocate(const SvdResult<T>& result) {
    const int64_t square = n_ * n_, widest = std::max(n_, result.u_columns), turns = 16 * n_;
    const int squares = result.u ? 5 : 3;
    for (int i = 0; i < squares; ++i) memory_.Plan<T>(square);
    if (tall_) {
      for (int i = 0; i < 2; ++i) memory_.Plan<T>(m_ * n_);
      memory_.Plan<T>(n_);
    }
    for (int i = 0; i < 2; ++i) memory_.Plan<T>(n_);
    memory_.Plan<T>(ReflectionWork(widest));
    memory_.Plan<double>(2 * n_);
    memory_.Plan<int64_t>(n_);
    memory_.Plan<Rotation>(turns);
    MR_RETURN_IF_ERROR(memory_.Allocate());
    a_ = memory_.Take<T>(square);
    left_ = {memory_.Take<T>(square), memory_.Take<T>(n_), n_, n_, 0};
    right_ = {memory_.Take<T>(square), memory_.Take<T>(n_), n_ - 1, n_, 1};
    if (result.u) {
      left_rows_ = memory_.Take<T>(square);
      right_rows_ = memory_.Take<T>(square);
    }
    if (tall_) {
      tall_matrix_ = memory_.Take<T>(m_ * n_);
      qr_ = {memory_.Take<T>(m_ * n_), memory_.Take<T>(n_), n_, m_, 0};
    }
    work_ = memory_.Take<T>(ReflectionWork(widest));
    d_ = memory_.Take<double>(2 * n_);
    e_ = d_ + n_;
    order_ = memory_.Take<int64_t>(n_);
    rotations_ = absl::MakeSpan(memory_.Take<Rotation>(turns), static_cast<size_t>(turns));
    return absl::OkStatus();
  }

  // The transpose of H_0^H H_1^H ...
  void RowsOf(const Reflections<T>& r, T* rows) {
    std::fill(a_, a_ + n_ * n_, T(0));
    for (int64_t i = 0; i < n_; ++i) a_[i * n_ + i] = T(1);
    ApplyReflections(ctx_, r, a_, n_, n_, work_);
    Transpose(a_, n_, n_, false, rows);
  }

  Status Diagonalize(bool vectors) {
    auto into = [&](T* rows) {
      return [this, vectors, rows](absl::Span<const Rotation> rotations) {
        if (vectors) RotateAll(ctx_, rotations, rows, n_);
      };
    };
    auto left = into(left_rows_), right = into(right_rows_);
    const size_t n = static_cast<size_t>(n_);
    MR_RETURN_IF_ERROR(DiagonalizeBidiagonal(
        {d_, n}, {e_, n - 1}, std::numeric_limits<R>::epsilon() / 2, {cancellation_, rotations_}, left, right));
    for (int64_t k = 0; k < n_; ++k) {
      if (!std::signbit(d_[k])) continue;
      d_[k] = -d_[k];
      for (int64_t j = 0; vectors && j < n_; ++j) right_rows_[k * n_ + j] = -right_rows_[k * n_ + j];
    }
    return absl::OkStatus();
  }

  void Gather(R scale, const SvdResult<T>& result) {
    std::iota(order_, order_ + n_, int64_t{0});
    std::stable_sort(order_, order_ + n_, [&](int64_t x, int64_t y) { return d_[x] > d_[y]; });
    for (int64_t k = 0; k < n_; ++k) result.values[k] = T(static_cast<R>(d_[order_[k]]) / scale);
    if (!result.u) return;
    // B = P D Q^T, so A = (left P) D (right Q)^H.
    const int64_t columns = result.u_columns;
    std::fill(result.u, result.u + m_ * columns, T(0));
    TransposeRows(left_rows_, n_, order_, result.u, columns);
    TransposeRows(right_rows_, n_, order_, result.v, result.v_columns);
    for (int64_t k = n_; k < columns; ++k) result.u[k * columns + k] = T(1);
    if (tall_) ApplyReflections(ctx_, qr_, result.u, columns, columns, work_);
  }

  void Fill(const SvdResult<T>& result) const {
    const T nan = T(std::numeric_limits<R>::quiet_NaN());
    std::fill(result.values, result.values + n_, nan);
    if (!result.u) return;
    std::fill(result.u, result.u + m_ * result.u_columns, nan);
    std::fill(result.v, result.v + n_ * result.v_columns, nan);
  }

  const KernelContext* ctx_;
  const CancellationManager* cancellation_;
  int64_t m_, n_;
  bool tall_;
  Workspace memory_;
  T *a_ = nullptr, *tall_matrix_ = nullptr, *left_rows_ = nullptr, *right_rows_ = nullptr, *work_ = nullptr;
  Reflections<T> qr_, left_, right_;
  double *d_ = nullptr, *e_ = nullptr;
  int64_t* order_ = nullptr;
  absl::Span<Rotation> rotations_;
};

}  // namespace millrace::dense
