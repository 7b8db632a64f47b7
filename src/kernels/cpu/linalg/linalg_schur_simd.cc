// SPDX-License-Identifier: Apache-2.0
// Plane rotations on rows are runs of vectors. Those on columns wait until all of a step are known: then each row meets
// them one after the other, some rows at a time, and what two rotations have in common stays in registers.
#include "kernels/cpu/linalg/linalg_schur_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linalg/linalg_schur_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/engine/vector_runs-inl.h"
#include "kernels/cpu/linalg/linalg_dense.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::dense {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using namespace millrace::HWY_NAMESPACE;  // vector_runs-inl.h

using C = complex128;
// (c, s) with c x + s y = r and -conj(s) x + c y = 0; c is real.
struct Rotation {
  double c = 1, re = 0, im = 0;
  Rotation() = default;
  Rotation(C x, C y) {
    constexpr double kSmall = 1e-140, kLarge = 1e140;  // squares of squares are neither lost nor too large between them
    const double x_square = std::norm(x), y_square = std::norm(y), square = x_square + y_square;
    if (x_square > kSmall && square < kLarge) {
      if (y == C(0)) return;
      const double by = 1 / std::sqrt(x_square * square);
      c = x_square * by;
      re = (x.real() * y.real() + x.imag() * y.imag()) * by;
      im = (x.imag() * y.real() - x.real() * y.imag()) * by;
      return;
    }
    Safely(x, y);
  }

 private:
  void Safely(C x, C y) {
    const double size = std::hypot(std::abs(x), std::abs(y));
    if (std::abs(y) == 0 || size == 0) return;
    C s;
    if (std::abs(x) == 0) {
      c = 0;
      s = std::conj(y) / std::abs(y);
    } else {
      c = std::abs(x) / size;
      s = x / std::abs(x) * std::conj(y) / size;
    }
    re = s.real();
    im = s.imag();
  }
};

#if MILLRACE_HAS_PARTS

using One = hn::FixedTag<double, 2>;  // a complex number

// A rotation as factors of vectors; `im` with alternating signs, so that it meets numbers whose parts changed places.
template <class D>
struct Factors {
  hn::Vec<D> c, re, im;
  HWY_INLINE Factors(D d, const Rotation& r)
      : c(hn::Set(d, r.c)), re(hn::Set(d, r.re)), im(hn::OddEven(hn::Set(d, r.im), hn::Set(d, -r.im))) {}
};

// Numbers [from, n) of row i and the one below.
HWY_INLINE void RotateRows(double* rows, int64_t n, int64_t i, int64_t from, const Rotation& r) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double *const x = rows + 2 * i * n, *const y = x + 2 * n;
  const auto turn = [&](auto how, const auto& f, int64_t k) HWY_ATTR {
    const auto a = how.Load(x + k), b = how.Load(y + k);
    const auto first = hn::MulAdd(f.im, hn::Reverse2(how.d, b), hn::MulAdd(f.re, b, hn::Mul(f.c, a)));
    const auto second = hn::MulAdd(f.im, hn::Reverse2(how.d, a), hn::NegMulAdd(f.re, a, hn::Mul(f.c, b)));
    how.Store(first, x + k);
    how.Store(second, y + k);
  };
  const Factors<decltype(d)> f(d, r);
  int64_t k = 2 * from;
  for (; k + lanes <= 2 * n; k += lanes) turn(Whole<decltype(d)>{d}, f, k);
  if (k < 2 * n) turn(Part(d, 2 * n - k), f, k);
}

// Rotations [from, to) of `at`, of which number j turns columns j and j + 1, on kRows rows from `row` on. Adjoint ones.
template <int kRows>
HWY_INLINE void RotateColumns(double* rows, int64_t n, int64_t row, const Rotation* at, int64_t from, int64_t to) {
  if (from >= to) return;
  const One d;
  double* const first = rows + 2 * row * n;
  hn::Vec<One> x[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) x[r] = hn::LoadU(d, first + 2 * (r * n + from));
  for (int64_t j = from; j < to; ++j) {
    const Factors<One> f(d, at[j]);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      double* const p = first + 2 * (r * n + j);
      const auto y = hn::LoadU(d, p + 2);
      hn::StoreU(hn::NegMulAdd(f.im, hn::Reverse2(d, y), hn::MulAdd(f.re, y, hn::Mul(f.c, x[r]))), d, p);
      x[r] = hn::NegMulAdd(f.im, hn::Reverse2(d, x[r]), hn::NegMulAdd(f.re, x[r], hn::Mul(f.c, y)));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) hn::StoreU(x[r], d, first + 2 * (r * n + to));
}

// The sum of x[k] y[k].
C Sum(const C* x_raw, const C* y_raw, int64_t n) {
  const auto *x = reinterpret_cast<const double*>(x_raw), *y = reinterpret_cast<const double*>(y_raw);
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto straight = hn::Zero(d), across = hn::Zero(d);
  const auto add = [&](auto how, int64_t k) HWY_ATTR {
    const auto a = how.Load(x + k), b = how.Load(y + k);
    straight = hn::MulAdd(a, b, straight);
    across = hn::MulAdd(a, hn::Reverse2(how.d, b), across);
  };
  int64_t k = 0;
  for (; k + lanes <= 2 * n; k += lanes) add(Whole<decltype(d)>{d}, k);
  if (k < 2 * n) add(Part(d, 2 * n - k), k);
  const auto minus = hn::OddEven(hn::Neg(straight), straight);
  return {hn::GetLane(hn::SumOfLanes(d, minus)), hn::GetLane(hn::SumOfLanes(d, across))};
}

#else

void RotateRows(double* rows, int64_t n, int64_t i, int64_t from, const Rotation& r) {
  C* const x = reinterpret_cast<C*>(rows) + i * n;
  const C s(r.re, r.im);
  for (int64_t k = from; k < n; ++k) {
    const C first = r.c * x[k] + Times(s, x[n + k]);
    x[n + k] = r.c * x[n + k] - Times(std::conj(s), x[k]);
    x[k] = first;
  }
}

template <int kRows>
void RotateColumns(double* rows, int64_t n, int64_t row, const Rotation* at, int64_t from, int64_t to) {
  for (int64_t i = row; i < row + kRows; ++i) {
    C* const x = reinterpret_cast<C*>(rows) + i * n;
    for (int64_t j = from; j < to; ++j) {
      const C s(at[j].re, at[j].im), first = at[j].c * x[j] + Times(std::conj(s), x[j + 1]);
      x[j + 1] = at[j].c * x[j + 1] - Times(s, x[j]);
      x[j] = first;
    }
  }
}

// The sum of x[k] y[k].
C Sum(const C* x, const C* y, int64_t n) {
  C sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += Times(x[k], y[k]);
  return sum;
}

#endif

// Rotations [begin, end) on the columns of all rows that they can change: row i meets those from i - 1 on.
void RotateAllColumns(double* rows, int64_t n, const Rotation* rotations, int64_t begin, int64_t end) {
  constexpr int kRows = 4;
  int64_t row = 0;
  for (; row + kRows <= end + 1; row += kRows) {
    const int64_t all = std::clamp(row + kRows - 2, begin, end);  // from here on every row has them
    for (int r = 0; r < kRows; ++r) {
      RotateColumns<1>(rows, n, row + r, rotations, std::max(begin, row + r - 1), all);
    }
    RotateColumns<kRows>(rows, n, row, rotations, all, end);
  }
  for (; row <= end; ++row) RotateColumns<1>(rows, n, row, rotations, std::max(begin, row - 1), end);
}

double Size(C v) { return std::abs(v.real()) + std::abs(v.imag()); }

// Of the last 2 x 2 block the eigenvalue that is closer to its corner.
C Shift(C a, C b, C c, C d) {
  const C mean = (a + d) * 0.5, root = std::sqrt((a - d) * (a - d) * 0.25 + b * c);
  return std::norm(mean + root - d) < std::norm(mean - root - d) ? mean + root : mean - root;
}

bool ToSchur(C* t, C* adjoint, int64_t n) {
  double *const rows = reinterpret_cast<double*>(t), *const turned = reinterpret_cast<double*>(adjoint);
  const auto at = [&](int64_t i, int64_t j) -> C& { return t[i * n + j]; };
  std::vector<Rotation> rotations(static_cast<size_t>(n));
  int tries = 0;
  for (int64_t end = n - 1; end > 0;) {
    StopIfAsked();
    int64_t begin = end;
    for (; begin > 0; --begin) {
      const double size = Size(at(begin, begin)) + Size(at(begin - 1, begin - 1));
      if (Size(at(begin, begin - 1)) <= std::numeric_limits<double>::epsilon() * size) {
        at(begin, begin - 1) = 0;
        break;
      }
    }
    if (begin == end) {
      --end;
      tries = 0;
      continue;
    }
    if (++tries > 60) return false;
    C shift = Shift(at(end - 1, end - 1), at(end - 1, end), at(end, end - 1), at(end, end));
    // Now and then something else.
    if (tries % 10 == 0) shift = Size(at(end, end - 1)) + Size(at(end - 1, end > 1 ? end - 2 : 0));
    for (int64_t i = begin; i <= end; ++i) at(i, i) -= shift;
    for (int64_t i = begin; i < end; ++i) {
      Rotation& r = rotations[static_cast<size_t>(i)];
      r = Rotation(at(i, i), at(i + 1, i));
      RotateRows(rows, n, i, i, r);
      at(i + 1, i) = 0;
      RotateRows(turned, n, i, 0, r);
    }
    RotateAllColumns(rows, n, rotations.data(), begin, end);
    for (int64_t i = begin; i <= end; ++i) at(i, i) += shift;
  }
  return true;
}

void TriangularRoot(const C* t, C* r, int64_t n) {
  std::vector<C> column(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    StopIfAsked();
    const C corner = std::sqrt(t[j * n + j]);
    column[static_cast<size_t>(j)] = r[j * n + j] = corner;
    for (int64_t i = j - 1; i >= 0; --i) {
      const C rest = t[i * n + j] - Sum(r + i * n + i + 1, column.data() + i + 1, j - i - 1);
      const C v = rest == C(0) ? C(0) : rest / (r[i * n + i] + corner);
      column[static_cast<size_t>(i)] = r[i * n + j] = v;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::dense {

HWY_EXPORT(ToSchur);
HWY_EXPORT(TriangularRoot);

bool HessenbergToSchur(complex128* t, complex128* adjoint, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ToSchur)(t, adjoint, n);
}
void RootOfTriangle(const complex128* t, complex128* r, int64_t n) { HWY_DYNAMIC_DISPATCH(TriangularRoot)(t, r, n); }

}  // namespace millrace::dense
#endif
