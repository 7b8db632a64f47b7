// SPDX-License-Identifier: Apache-2.0
// Golub and Van Loan, Matrix computations: the implicit QR step with Wilkinson's shift (8.3.5), and its form for B^T B
// that never makes that product (8.6.2). Each sweep chases one bulge along an unreduced block; what falls under epsilon
// beside its neighbours splits the block. Comparisons are written so that NaN splits, too.
#include "kernels/cpu/linalg/linalg_diagonalize.h"

#include <algorithm>
#include <cmath>

namespace millrace::dense {
namespace {

constexpr int64_t kSweepsPerValue = 60;

// The root of x^2 + z^2. Not `exact`: a unit in the last place of a double matters to nobody. What would overflow or
// lose digits as squares is left to the C library, as what is exact is.
double Length(double x, double z, bool exact) {
  const double square = x * x + z * z;
  return !exact && square > 1e-280 && square < 1e280 ? std::sqrt(square) : std::hypot(x, z);
}

// Whether `epsilon` is that of a matrix of doubles.
bool IsOfDoubles(double epsilon) { return epsilon < 1e-12; }

struct Plane {
  double c = 1, s = 0, r = 0;
};
// c x + s z = r, c z - s x = 0.
Plane Zeroing(double x, double z, bool exact) {
  const double r = Length(x, z, exact);
  if (!(r > 0)) return {1, 0, r};
  return {x / r, z / r, r};
}

// The eigenvalue of [[a, b], [b, c]] nearer to c.
double WilkinsonShift(double a, double b, double c, bool exact) {
  const double half = (a - c) / 2, root = Length(half, b, exact);
  const double below = half < 0 ? half - root : half + root;
  return below == 0 ? c : c - b / below * b;
}

// Rotations wait until there are many: a pass over the rows then costs less.
class Queue {
 public:
  Queue(RotateRows rotate, absl::Span<Rotation> memory) : rotate_(rotate), memory_(memory) {}
  void Add(size_t i, size_t j, const Plane& p) {
    memory_[count_++] = {static_cast<int64_t>(i), static_cast<int64_t>(j), p.c, p.s};
    if (count_ == memory_.size()) Flush();
  }
  void Flush() {
    if (count_ > 0) rotate_(memory_.first(count_));
    count_ = 0;
  }

 private:
  RotateRows rotate_;
  absl::Span<Rotation> memory_;
  size_t count_ = 0;
};

Status DoesNotEnd() {
  return InvalidArgument("the decomposition was not successful, the input might not be valid (not finite)");
}

// [lo, hi] of the tridiagonal matrix; hi > lo.
void TridiagonalSweep(absl::Span<double> d, absl::Span<double> e, size_t lo, size_t hi, bool exact, Queue& queue) {
  double x = d[lo] - WilkinsonShift(d[hi - 1], e[hi - 1], d[hi], exact), z = e[lo];
  for (size_t k = lo; k < hi; ++k) {
    const Plane p = Zeroing(x, z, exact);
    if (k > lo) e[k - 1] = p.r;
    const double a = d[k], b = e[k], g = d[k + 1], cs = p.c * p.s, cc = p.c * p.c, ss = p.s * p.s;
    d[k] = cc * a + 2 * cs * b + ss * g;
    d[k + 1] = ss * a - 2 * cs * b + cc * g;
    e[k] = cs * (g - a) + (cc - ss) * b;
    if (k + 1 < hi) {
      x = e[k];
      z = p.s * e[k + 1];
      e[k + 1] *= p.c;
    }
    queue.Add(k, k + 1, p);
  }
}

void BidiagonalSweep(absl::Span<double> d, absl::Span<double> e, size_t lo, size_t hi, bool exact, Queue& left,
                     Queue& right) {
  const double above = hi - 1 > lo ? e[hi - 2] : 0;
  const double shift = WilkinsonShift(
      d[hi - 1] * d[hi - 1] + above * above, d[hi - 1] * e[hi - 1], d[hi] * d[hi] + e[hi - 1] * e[hi - 1], exact);
  double y = d[lo] * d[lo] - shift, z = d[lo] * e[lo];
  for (size_t k = lo; k < hi; ++k) {
    const Plane p = Zeroing(y, z, exact);
    if (k > lo) e[k - 1] = p.r;
    const double f = d[k], g = e[k], h = d[k + 1];
    const Plane q = Zeroing(p.c * f + p.s * g, p.s * h, exact);
    const double beside = p.c * g - p.s * f, below = p.c * h;
    d[k] = q.r;
    d[k + 1] = q.c * below - q.s * beside;
    e[k] = q.c * beside + q.s * below;
    y = e[k];
    if (k + 1 < hi) {
      z = q.s * e[k + 1];
      e[k + 1] *= q.c;
    }
    right.Add(k, k + 1, p);
    left.Add(k, k + 1, q);
  }
}

// d[k] is nothing: e[k] is rotated out of its row, to the right. k < hi.
void ClearRow(absl::Span<double> d, absl::Span<double> e, size_t k, size_t hi, bool exact, Queue& left) {
  double f = e[k];
  e[k] = d[k] = 0;
  for (size_t j = k + 1; j <= hi && f != 0; ++j) {
    const Plane p = Zeroing(d[j], f, exact);
    d[j] = p.r;
    f = 0;
    if (j < hi) {
      f = -p.s * e[j];
      e[j] *= p.c;
    }
    left.Add(j, k, p);
  }
}

// d[hi] is nothing: e[hi - 1] is rotated out of its column, upwards.
void ClearColumn(absl::Span<double> d, absl::Span<double> e, size_t lo, size_t hi, bool exact, Queue& right) {
  double f = e[hi - 1];
  e[hi - 1] = d[hi] = 0;
  for (size_t j = hi; j-- > lo && f != 0;) {
    const Plane p = Zeroing(d[j], f, exact);
    d[j] = p.r;
    f = 0;
    if (j > lo) {
      f = -p.s * e[j - 1];
      e[j - 1] *= p.c;
    }
    right.Add(j, hi, p);
  }
}

// Splits where an element is nothing; the block that ends at hi begins at the result.
size_t BeginOfBlock(absl::Span<const double> d, absl::Span<double> e, size_t hi, double epsilon) {
  size_t lo = hi;
  while (lo > 0) {
    if (!(std::abs(e[lo - 1]) > epsilon * (std::abs(d[lo - 1]) + std::abs(d[lo])))) {
      e[lo - 1] = 0;
      break;
    }
    --lo;
  }
  return lo;
}

}  // namespace

Status Iteration::Check() const { return cancellation ? cancellation->reason() : absl::OkStatus(); }

Status DiagonalizeTridiagonal(absl::Span<double> d, absl::Span<double> e, double epsilon, const Iteration& iteration,
                              RotateRows rotate) {
  const size_t n = d.size();
  const bool exact = IsOfDoubles(epsilon);
  Queue queue(rotate, iteration.memory);
  int64_t sweeps = kSweepsPerValue * static_cast<int64_t>(n);
  for (size_t hi = n; hi-- > 1;) {
    for (size_t lo; (lo = BeginOfBlock(d, e, hi, epsilon)) < hi;) {
      if (sweeps-- <= 0) return DoesNotEnd();
      MR_RETURN_IF_ERROR(iteration.Check());
      TridiagonalSweep(d, e, lo, hi, exact, queue);
    }
  }
  queue.Flush();
  return absl::OkStatus();
}

Status DiagonalizeBidiagonal(absl::Span<double> d, absl::Span<double> e, double epsilon, const Iteration& iteration,
                             RotateRows rotate_left, RotateRows rotate_right) {
  const size_t n = d.size();
  const bool exact = IsOfDoubles(epsilon);
  double size = 0;
  for (const double v : d) size = std::max(size, std::abs(v));
  for (const double v : e) size = std::max(size, std::abs(v));
  const double nothing = epsilon * size;
  const size_t half = iteration.memory.size() / 2;
  Queue left(rotate_left, iteration.memory.first(half)), right(rotate_right, iteration.memory.subspan(half));
  int64_t sweeps = kSweepsPerValue * static_cast<int64_t>(n);
  for (size_t hi = n; hi-- > 1;) {
    for (size_t lo; (lo = BeginOfBlock(d, e, hi, epsilon)) < hi;) {
      if (sweeps-- <= 0) return DoesNotEnd();
      MR_RETURN_IF_ERROR(iteration.Check());
      size_t zero = lo;
      while (zero <= hi && std::abs(d[zero]) > nothing) ++zero;
      if (zero < hi) {
        ClearRow(d, e, zero, hi, exact, left);
      } else if (zero == hi) {
        ClearColumn(d, e, lo, hi, exact, right);
      } else {
        BidiagonalSweep(d, e, lo, hi, exact, left, right);
      }
    }
  }
  left.Flush();
  right.Flush();
  return absl::OkStatus();
}

}  // namespace millrace::dense
