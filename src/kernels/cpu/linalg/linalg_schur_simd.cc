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

// ---- real matrices ----

// y += the sum of f[r] x[r], rows of n numbers.
template <int kRows>
HWY_INLINE void AddRows(const double* f, const double* x, int64_t stride, double* HWY_RESTRICT y, int64_t n) {
  ForVectors<double>(n, [&](auto how, int64_t k) HWY_ATTR {
    auto sum = how.Load(y + k);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum = hn::MulAdd(hn::Set(how.d, f[r]), how.Load(x + r * stride + k), sum);
    how.Store(sum, y + k);
  });
}

// Rows [begin, end) of a, of n numbers each, become (I - tau v v^T) times them; v is that of row 0.
void ReflectRows(const double* v, double tau, int64_t begin, int64_t end, double* a, int64_t stride, int64_t n,
                 double* work) {
  std::fill_n(work, n, 0.0);
  int64_t i = begin;
  for (; i + 4 <= end; i += 4) AddRows<4>(v + i, a + i * stride, stride, work, n);
  for (; i < end; ++i) AddRows<1>(v + i, a + i * stride, stride, work, n);
  for (i = begin; i < end; ++i) {
    const double by = -tau * v[i];
    AddRows<1>(&by, work, 0, a + i * stride, n);
  }
}

double Dot(const double* x, const double* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  int64_t k = 0;
  for (; k + lanes <= n; k += lanes) sum = hn::MulAdd(hn::LoadU(d, x + k), hn::LoadU(d, y + k), sum);
  double total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; k < n; ++k) total += x[k] * y[k];
  return total;
}

// I - tau v v^T with v = (1, v1, v2), which turns a vector into (beta, 0, 0).
struct Reflection {
  double v1 = 0, v2 = 0, tau = 0, beta = 0;
  Reflection() = default;
  Reflection(double x, double y, double z) : beta(x) {
    const double scale = std::max({std::abs(x), std::abs(y), std::abs(z)});
    if (scale == 0 || (y == 0 && z == 0)) return;
    const double a = x / scale, b = y / scale, c = z / scale;
    const double norm = std::copysign(std::sqrt(a * a + b * b + c * c), a), first = a + norm;
    v1 = b / first;
    v2 = c / first;
    tau = first / norm;
    beta = -norm * scale;
  }
};

// Numbers [from, n) of row i and the two below; of one below where v2 is of no row.
HWY_INLINE void ReflectThree(double* rows, int64_t n, int64_t i, int64_t from, bool three, const Reflection& r) {
  double *const x = rows + i * n + from, *const y = x + n, *const z = three ? y + n : y;
  ForVectors<double>(n - from, [&](auto how, int64_t k) HWY_ATTR {
    const auto v1 = hn::Set(how.d, r.v1), v2 = hn::Set(how.d, r.v2), tau = hn::Set(how.d, r.tau);
    const auto a = how.Load(x + k), b = how.Load(y + k);
    auto sum = hn::MulAdd(v1, b, a);
    if (three) {
      const auto c = how.Load(z + k);
      sum = hn::Mul(tau, hn::MulAdd(v2, c, sum));
      how.Store(hn::NegMulAdd(sum, v2, c), z + k);
    } else {
      sum = hn::Mul(tau, sum);
    }
    how.Store(hn::Sub(a, sum), x + k);
    how.Store(hn::NegMulAdd(sum, v1, b), y + k);
  });
}

// Reflections [from, to) of `at`, of which number k reflects columns k to k + 2, on kRows rows from `row` on.
template <int kRows>
HWY_INLINE void ReflectColumns(double* rows, int64_t n, int64_t row, const Reflection* at, int64_t from, int64_t to) {
  if (from >= to) return;
  double* const first = rows + row * n;
  double x[kRows], y[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) x[r] = first[r * n + from], y[r] = first[r * n + from + 1];
  for (int64_t k = from; k < to; ++k) {
    const double v1 = at[k].v1, v2 = at[k].v2, tau = at[k].tau, first_by = tau * v1, second_by = tau * v2;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      double* const p = first + r * n + k;
      const double z = p[2], sum = tau * x[r] + (first_by * y[r] + second_by * z);
      p[0] = x[r] - sum;
      x[r] = y[r] - sum * v1;
      y[r] = z - sum * v2;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) first[r * n + to] = x[r], first[r * n + to + 1] = y[r];
}

// One number of a row and the next.
HWY_INLINE void ReflectPair(double* p, const Reflection& r) {
  const double sum = r.tau * (p[0] + r.v1 * p[1]);
  p[0] -= sum;
  p[1] -= sum * r.v1;
}

class RealSteps {
 public:
  RealSteps(double* t, double* adjoint, int64_t n)
      : t_(t), adjoint_(adjoint), n_(n), reflections_(static_cast<size_t>(n)), memory_(static_cast<size_t>(2 * n)) {}

  bool Run() {
    Hessenberg();
    int tries = 0;
    for (int64_t end = n_ - 1; end > 0;) {
      StopIfAsked();
      const int64_t begin = Begin(end);
      if (begin + 1 >= end) {
        if (begin < end) SplitReal(begin);
        end = begin - 1;
        tries = 0;
        continue;
      }
      if (++tries > 60) return false;
      Step(begin, end, tries);
    }
    return true;
  }

 private:
  double& At(int64_t i, int64_t j) { return t_[i * n_ + j]; }

  void Hessenberg() {
    double *const v = memory_.data(), *const work = v + n_;
    for (int64_t k = 0; k + 2 < n_; ++k) {
      StopIfAsked();
      const int64_t begin = k + 1, size = n_ - begin;
      double scale = 0;
      for (int64_t i = begin + 1; i < n_; ++i) scale = std::max(scale, std::abs(At(i, k)));
      if (scale == 0) continue;
      scale = std::max(scale, std::abs(At(begin, k)));
      double square = 0;
      for (int64_t i = begin; i < n_; ++i) {
        v[i] = At(i, k) / scale;
        square += v[i] * v[i];
        At(i, k) = 0;
      }
      const double norm = std::copysign(std::sqrt(square), v[begin]), first = v[begin] + norm, tau = first / norm;
      At(begin, k) = -norm * scale;
      v[begin] = 1;
      for (int64_t i = begin + 1; i < n_; ++i) v[i] /= first;
      ReflectRows(v, tau, begin, n_, t_ + begin, n_, size, work);
      ReflectRows(v, tau, begin, n_, adjoint_, n_, n_, work);
      for (int64_t i = 0; i < n_; ++i) {
        double* const row = t_ + i * n_ + begin;
        const double by = -tau * Dot(row, v + begin, size);
        AddRows<1>(&by, v + begin, 0, row, size);
      }
    }
  }

  // Where the part that ends here begins.
  int64_t Begin(int64_t end) {
    for (int64_t i = end; i > 0; --i) {
      const double size = std::abs(At(i, i)) + std::abs(At(i - 1, i - 1));
      if (std::abs(At(i, i - 1)) <= std::numeric_limits<double>::epsilon() * size) {
        At(i, i - 1) = 0;
        return i;
      }
    }
    return 0;
  }

  void Step(int64_t begin, int64_t end, int tries) {
    double x = At(end, end), y = At(end - 1, end - 1), w = At(end, end - 1) * At(end - 1, end);
    if (tries % 10 == 0) {  // now and then something else
      const double size = std::abs(At(end, end - 1)) + std::abs(At(end - 1, end - 2));
      x = y = 0.75 * size + At(end, end);
      w = -0.4375 * size * size;
    }
    // A step may begin late, behind two small numbers that would take from it what the shifts say.
    double p = 0, q = 0, u = 0;
    int64_t first = end - 2;
    for (;; --first) {
      const double corner = At(first, first), r = x - corner, s = y - corner;
      p = (r * s - w) / At(first + 1, first) + At(first, first + 1);
      q = At(first + 1, first + 1) - corner - r - s;
      u = At(first + 2, first + 1);
      if (first == begin) break;
      const double around = std::abs(At(first - 1, first - 1)) + std::abs(corner) + std::abs(At(first + 1, first + 1));
      const double lost = std::abs(At(first, first - 1)) * (std::abs(q) + std::abs(u));
      if (lost <= std::numeric_limits<double>::epsilon() * std::abs(p) * around) break;
    }
    for (int64_t k = first; k < end; ++k) {
      const bool three = k + 2 <= end;
      if (k > first) p = At(k, k - 1), q = At(k + 1, k - 1), u = three ? At(k + 2, k - 1) : 0;
      Reflection& h = reflections_[static_cast<size_t>(k)];
      h = Reflection(p, q, u);
      if (k > first) {
        At(k, k - 1) = h.beta;
        At(k + 1, k - 1) = 0;
        if (three) At(k + 2, k - 1) = 0;
      } else if (k > begin) {
        At(k, k - 1) *= 1 - h.tau;
      }
      ReflectThree(t_, n_, k, k, three, h);
      ReflectThree(adjoint_, n_, k, 0, three, h);
      // The rows that the next ones need now; those above wait.
      for (int64_t i = k + 1; i <= std::min(k + 3, end); ++i) {
        three ? ReflectColumns<1>(t_, n_, i, reflections_.data(), k, k + 1) : ReflectPair(t_ + i * n_ + k, h);
      }
    }
    Late(first, end);
  }

  void Late(int64_t begin, int64_t end) {
    constexpr int kRows = 4;
    const Reflection* const all = reflections_.data();
    int64_t row = 0;
    for (; row + kRows <= end; row += kRows) {
      const int64_t from = std::clamp(row + kRows - 1, begin, end - 1);  // from here on every row has them
      for (int r = 0; r < kRows; ++r) ReflectColumns<1>(t_, n_, row + r, all, std::max(begin, row + r), from);
      ReflectColumns<kRows>(t_, n_, row, all, from, end - 1);
    }
    for (; row < end; ++row) ReflectColumns<1>(t_, n_, row, all, std::max(begin, row), end - 1);
    for (int64_t i = 0; i < end; ++i) ReflectPair(t_ + i * n_ + end - 1, all[end - 1]);
  }

  // The two by two numbers from (i, i) on become triangular if their eigenvalues are real.
  void SplitReal(int64_t i) {
    const double a = At(i, i), b = At(i, i + 1), c = At(i + 1, i), d = At(i + 1, i + 1);
    const double half = (a - d) / 2, square = half * half + b * c;
    if (!(square >= 0)) return;
    const double root = half + std::copysign(std::sqrt(square), half);  // an eigenvalue less d: a vector is (root, c)
    const Reflection h(root, c, 0);
    ReflectThree(t_, n_, i, i, false, h);
    ReflectThree(adjoint_, n_, i, 0, false, h);
    for (int64_t row = 0; row < i + 2; ++row) ReflectPair(t_ + row * n_ + i, h);
    At(i + 1, i) = 0;
  }

  double *t_, *adjoint_;
  int64_t n_;
  std::vector<Reflection> reflections_;
  std::vector<double> memory_;
};

bool ToRealSchur(double* t, double* adjoint, int64_t n) { return RealSteps(t, adjoint, n).Run(); }

void Split(C* t, C* adjoint, int64_t n) {
  double *const rows = reinterpret_cast<double*>(t), *const turned = reinterpret_cast<double*>(adjoint);
  std::vector<Rotation> rotations(static_cast<size_t>(n));
  for (int64_t i = 0; i + 1 < n; ++i) {
    C* const p = t + i * n + i;
    const C a = p[0], b = p[1], c = p[n], d = p[n + 1];
    if (c == C(0)) continue;
    const C value = Shift(a, b, c, d);
    const Rotation r(value - d, c);  // an eigenvector
    rotations[static_cast<size_t>(i)] = r;
    RotateRows(rows, n, i, i, r);
    RotateRows(turned, n, i, 0, r);
    for (int64_t row = 0; row < i + 2; ++row) RotateColumns<1>(rows, n, row, rotations.data(), i, i + 1);
    p[n] = 0;
  }
}

void RealTriangularRoot(const double* t, double* r, int64_t n) {
  std::vector<double> column(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    StopIfAsked();
    const double corner = std::sqrt(t[j * n + j]);
    column[static_cast<size_t>(j)] = r[j * n + j] = corner;
    for (int64_t i = j - 1; i >= 0; --i) {
      const double rest = t[i * n + j] - Dot(r + i * n + i + 1, column.data() + i + 1, j - i - 1);
      const double v = rest == 0 ? 0 : rest / (r[i * n + i] + corner);
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
HWY_EXPORT(ToRealSchur);
HWY_EXPORT(Split);
HWY_EXPORT(RealTriangularRoot);

bool HessenbergToSchur(complex128* t, complex128* adjoint, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ToSchur)(t, adjoint, n);
}
void RootOfTriangle(const complex128* t, complex128* r, int64_t n) { HWY_DYNAMIC_DISPATCH(TriangularRoot)(t, r, n); }
bool RealSchur(double* t, double* adjoint, int64_t n) { return HWY_DYNAMIC_DISPATCH(ToRealSchur)(t, adjoint, n); }
void SplitBlocks(complex128* t, complex128* adjoint, int64_t n) { HWY_DYNAMIC_DISPATCH(Split)(t, adjoint, n); }
void RootOfTriangle(const double* t, double* r, int64_t n) { HWY_DYNAMIC_DISPATCH(RealTriangularRoot)(t, r, n); }

}  // namespace millrace::dense
#endif
