// SPDX-License-Identifier: Apache-2.0
// f32 tiles of Digamma, Lgamma, Zeta, Polygamma, the incomplete gamma functions and what they and samples of the gamma
// distribution change by its shape a, and the incomplete beta function:
// the formulas of elementwise_special.cc and elementwise_tiles_scalar.cc in double, many elements at a time, as far as
// float needs. Blocks with an element outside the range that these serve go through the scalar functions.
//
// Incomplete gamma functions take another number of terms for each element: elements are sorted into those of the
// series and those of the continued fraction, and lanes of one kind go on until all have settled. Fractions are
// evaluated by their numerators and denominators (Abramowitz and Stegun 3.10.1), without a division in each step.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stop_scope.h"
#include "kernels/cpu/elementwise/elementwise_special.h"
#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_special_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_math-inl.h"
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 256;
constexpr double kHalfLogTwoPi = 0.91893853320467274178;

// x (x + 1) ... (x + 9), and how the sum of the reciprocals of these ten follows from it.
struct TenFactors {
  double product, derivative;
  explicit TenFactors(double x) : product(x), derivative(1.0) {
#pragma GCC unroll 9
    for (int i = 1; i < 10; ++i) {
      derivative = derivative * (x + i) + product;
      product = product * (x + i);
    }
  }
};

// Of 0 < x < infinity: ten steps of the recurrence where x is less than 10, then the asymptotic series.
HWY_INLINE double DigammaOfPositive(double x) {
  const bool near = x < 10.0;
  const TenFactors ten(near ? x : 1.0);
  const double y = near ? x + 10.0 : x, inverse = 1.0 / y, z = inverse * inverse;
  const double tail =
      z *
      (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  const double sum = near ? ten.derivative / ten.product : 0.0;
  return LogNormal(y) - 0.5 * inverse - tail - sum;
}
inline float DigammaPositive(float x) { return static_cast<float>(DigammaOfPositive(static_cast<double>(x))); }

// log Gamma(x) for 0 < x < infinity, within about 1e-14 of itself or of 1. It chooses between values and not between
// ways: loops over it are vectors only without branches.
HWY_INLINE double LogGammaPositive(double x) {
  const bool near = x < 10.0;
  const TenFactors ten(near ? x : 1.0);
  const double y = near ? x + 10.0 : x, inverse = 1.0 / y, z = inverse * inverse;
  const double tail =
      inverse *
      (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * 691.0 / 360360)))));
  const double log_factors = LogNormal(ten.product);
  return (y - 0.5) * LogNormal(y) - y + kHalfLogTwoPi + tail - (near ? log_factors : 0.0);
}

// log Gamma(x) for 0 < x < infinity. Around its zeros 1 and 2 its Taylor series, by powers of w = 1 - x or 2 - x, whose
// coefficients are zeta(k) / k and (zeta(k) - 1) / k; Euler's constant stands for zeta(1).
HWY_INLINE float LgammaPositive(float x0) {
  constexpr double kZetaOver[] = {
      0.577215664901532861, 0.822467033424113218, 0.400685634386531428, 0.270580808427784548,
      0.207385551028673985, 0.16955717699740819,  0.144049896768846118, 0.125509669524743042,
      0.11133426586956469,  0.100099457512781809, 0.0909540171458290422};
  const double x = static_cast<double>(x0);
  const bool two = x > 1.5;
  const double w = (two ? 2.0 : 1.0) - x, one = two ? 1.0 : 0.0;
  double series = 0.0;
#pragma GCC unroll 11
  for (int k = 11; k >= 1; --k) series = series * w + (kZetaOver[k - 1] - one / k);
  const double elsewhere = LogGammaPositive(x);
  return static_cast<float>(std::abs(w) < 0.125 ? series * w : elsewhere);
}

// Of 1 < s <= 16 and 0 < q < 1e6: eight terms, then the Euler-Maclaurin formula.
HWY_INLINE double ZetaNear(double s, double q) {
  const auto power = [s](double a) { return Exp(-s * LogNormal(a)); };
  double sum = 0.0;
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) sum += power(q + k);
  const double a = q + 8.0, last = power(a), inverse = 1.0 / a, square = inverse * inverse;
  sum += last * a / (s - 1.0) + 0.5 * last;
  double factor = s * last * inverse;
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    sum += kEulerMaclaurin[j] * factor;
    factor *= (s + (2 * j + 1)) * (s + (2 * j + 2)) * square;
  }
  return sum;
}

struct Xlog1pyOp {
  static HWY_INLINE float Do(float a, float b) {
    const double y = static_cast<double>(a) * Log1p<double, 7>(static_cast<double>(b));
    return a == 0.0f ? 0.0f : static_cast<float>(y);
  }
};

// Blocks of positive numbers through Fast, others through Slow.
template <float (*Fast)(float), double (*Slow)(double)>
void RunPositive(const void* in_raw, void* out_raw, int64_t n) {
  const float* in = static_cast<const float*>(in_raw);
  float* out = static_cast<float*>(out_raw);
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t k = std::min(kBlock, n - i);
    int other = 0;
    for (int64_t j = 0; j < k; ++j) {
      other |= (in[i + j] > 0.0f) & (in[i + j] <= std::numeric_limits<float>::max()) ? 0 : 1;
    }
    if (other == 0) {
#pragma GCC ivdep
      for (int64_t j = 0; j < k; ++j) out[i + j] = Fast(in[i + j]);
    } else {
      for (int64_t j = 0; j < k; ++j) out[i + j] = static_cast<float>(Slow(static_cast<double>(in[i + j])));
    }
  }
}

// Functions of pairs: Fast for those where Serves is true, Slow for others.
struct ZetaFn {
  static bool Serves(float s, float q) { return (s > 1.0f) & (s <= 16.0f) & (q > 0.0f) & (q < 1e6f); }
  static float Slow(float s, float q) {
    return static_cast<float>(Zeta(static_cast<double>(s), static_cast<double>(q)));
  }
  static void Fast(const float* s, const float* q, float* out, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<float>(ZetaNear(static_cast<double>(s[i]), static_cast<double>(q[i])));
    }
  }
};

// (-1)^(n + 1) n! zeta(n + 1, x), of whole n.
struct PolygammaFn {
  static constexpr int kMost = 15;
  static bool Serves(float n, float x) {
    return (n >= 1.0f) & (n <= static_cast<float>(kMost)) & (std::floor(n) == n) & (x > 0.0f) & (x < 1e6f);
  }
  static float Slow(float n, float x) {
    return static_cast<float>(Polygamma(static_cast<double>(n), static_cast<double>(x)));
  }
  struct Factors {
    double value[kMost + 1] = {-1};
    constexpr Factors() {
      for (int n = 1; n <= kMost; ++n) value[n] = -n * value[n - 1];
    }
  };
  static void Fast(const float* n, const float* x, float* out, int64_t count) {
    static constexpr Factors kFactors;
    double factors[kBlock];
    for (int64_t i = 0; i < count; ++i) factors[i] = kFactors.value[static_cast<int>(n[i])];
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const double s = static_cast<double>(n[i]) + 1.0;
      out[i] = static_cast<float>(factors[i] * ZetaNear(s, static_cast<double>(x[i])));
    }
  }
};

// Lanes of one kind, filled from a block and worked off when they are full.
constexpr int kLanes = 16;
struct Lanes {
  double a[kLanes], x[kLanes], value[kLanes];
  double by_a[kLanes];  // how the value changes by a, where that is asked for
  int64_t place[kLanes];
  int count = 0;

  void Put(float new_a, float new_x, int64_t new_place) {
    a[count] = static_cast<double>(new_a);
    x[count] = static_cast<double>(new_x);
    place[count++] = new_place;
  }
  // Lanes that nobody filled settle with the others.
  void FillUp() {
    std::fill(a + count, a + kLanes, a[0]);
    std::fill(x + count, x + kLanes, x[0]);
  }
};
constexpr double kSettled = 1e-13;
constexpr int kSteps = 8;         // between looks at whether all have settled
constexpr int kMostSteps = 4096;  // far more than the range of Serves wants

// P / factor by its power series.
void Series(Lanes& lanes) {
  double term[kLanes], sum[kLanes];
  for (int l = 0; l < kLanes; ++l) sum[l] = term[l] = 1.0 / lanes.a[l];
  for (int step = 1; step < kMostSteps; step += kSteps) {
    for (int k = 0; k < kSteps; ++k) {
      const double n = step + k;
      for (int l = 0; l < kLanes; ++l) {
        term[l] *= lanes.x[l] / (lanes.a[l] + n);
        sum[l] += term[l];
      }
    }
    int open = 0;
    for (int l = 0; l < kLanes; ++l) open |= term[l] > sum[l] * kSettled ? 1 : 0;
    if (open == 0) break;
  }
  for (int l = 0; l < kLanes; ++l) lanes.value[l] = sum[l];
}

// Q / factor by its continued fraction.
void Fraction(Lanes& lanes) {
  double p0[kLanes], q0[kLanes], p1[kLanes], q1[kLanes], before[kLanes];  // the last but one and the last
  for (int l = 0; l < kLanes; ++l) {
    p0[l] = 0.0;
    q0[l] = 1.0;
    p1[l] = 1.0;
    q1[l] = lanes.x[l] + 1.0 - lanes.a[l];
    before[l] = 0.0;
  }
  for (int step = 1; step < kMostSteps; step += kSteps) {
    for (int k = 0; k < kSteps; ++k) {
      const double n = step + k;
      for (int l = 0; l < kLanes; ++l) {
        const double an = n * (lanes.a[l] - n), bn = lanes.x[l] + 1.0 - lanes.a[l] + 2.0 * n;
        const double p = bn * p1[l] + an * p0[l], q = bn * q1[l] + an * q0[l];
        p0[l] = p1[l];
        q0[l] = q1[l];
        p1[l] = p;
        q1[l] = q;
      }
    }
    int open = 0;
    for (int l = 0; l < kLanes; ++l) {  // divided by the denominator, so that nothing overflows
      const double inverse = 1.0 / q1[l], value = p1[l] * inverse;
      open |= std::abs(value - before[l]) > value * kSettled ? 1 : 0;
      before[l] = value;
      p0[l] *= inverse;
      q0[l] *= inverse;
      p1[l] = value;
      q1[l] = 1.0;
    }
    if (open == 0) break;
  }
  for (int l = 0; l < kLanes; ++l) lanes.value[l] = before[l];
}

// The series and its derivative by a.
void SeriesByA(Lanes& lanes) {
  double term[kLanes], sum[kLanes], term_by_a[kLanes], sum_by_a[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    sum[l] = term[l] = 1.0 / lanes.a[l];
    sum_by_a[l] = term_by_a[l] = -term[l] * term[l];
  }
  for (int step = 1; step < kMostSteps; step += kSteps) {
    for (int k = 0; k < kSteps; ++k) {
      const double n = step + k;
      for (int l = 0; l < kLanes; ++l) {
        const double inverse = 1.0 / (lanes.a[l] + n), ratio = lanes.x[l] * inverse;
        term[l] *= ratio;
        term_by_a[l] = term_by_a[l] * ratio - term[l] * inverse;
        sum[l] += term[l];
        sum_by_a[l] += term_by_a[l];
      }
    }
    int open = 0;
    for (int l = 0; l < kLanes; ++l) open |= term_by_a[l] < sum_by_a[l] * kSettled ? 1 : 0;  // both negative
    if (open == 0) break;
  }
  for (int l = 0; l < kLanes; ++l) {
    lanes.value[l] = sum[l];
    lanes.by_a[l] = sum_by_a[l];
  }
}

// The fraction and its derivative by a.
void FractionByA(Lanes& lanes) {
  double p0[kLanes], q0[kLanes], p1[kLanes], q1[kLanes], before[kLanes];  // the last but one and the last
  double dp0[kLanes], dq0[kLanes], dp1[kLanes], dq1[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    p0[l] = dp0[l] = dq0[l] = dp1[l] = before[l] = 0.0;
    q0[l] = p1[l] = 1.0;
    q1[l] = lanes.x[l] + 1.0 - lanes.a[l];
    dq1[l] = -1.0;
  }
  for (int step = 1; step < kMostSteps; step += kSteps) {
    for (int k = 0; k < kSteps; ++k) {
      const double n = step + k;
      for (int l = 0; l < kLanes; ++l) {
        const double an = n * (lanes.a[l] - n), bn = lanes.x[l] + 1.0 - lanes.a[l] + 2.0 * n;
        const double p = bn * p1[l] + an * p0[l], q = bn * q1[l] + an * q0[l];
        const double dp = bn * dp1[l] + an * dp0[l] + (n * p0[l] - p1[l]);
        const double dq = bn * dq1[l] + an * dq0[l] + (n * q0[l] - q1[l]);
        p0[l] = p1[l];
        q0[l] = q1[l];
        p1[l] = p;
        q1[l] = q;
        dp0[l] = dp1[l];
        dq0[l] = dq1[l];
        dp1[l] = dp;
        dq1[l] = dq;
      }
    }
    int open = 0;
    for (int l = 0; l < kLanes; ++l) {  // all divided by the denominator, which is 1 then whatever a is
      const double inverse = 1.0 / q1[l], change = dq1[l] * inverse;
      p0[l] *= inverse;
      q0[l] *= inverse;
      p1[l] *= inverse;
      dp0[l] = dp0[l] * inverse - p0[l] * change;
      dq0[l] = dq0[l] * inverse - q0[l] * change;
      dp1[l] = dp1[l] * inverse - p1[l] * change;
      q1[l] = 1.0;
      dq1[l] = 0.0;
      open |= std::abs(dp1[l] - before[l]) > std::abs(dp1[l]) * kSettled ? 1 : 0;
      before[l] = dp1[l];
    }
    if (open == 0) break;
  }
  for (int l = 0; l < kLanes; ++l) {
    lanes.value[l] = p1[l];
    lanes.by_a[l] = dp1[l];
  }
}

// Pairs of a and x, sorted into those of the fraction and those of the series.
template <class Fn>
void RunLanes(const float* a, const float* x, float* out, int64_t n) {
  Lanes series, fraction;
  StopIfAsked();
  float results[kBlock];  // out may be a or x
  const auto work_off_fraction = [&] {
    fraction.FillUp();
    Fn::template WorkOff<true>(fraction);
    for (int l = 0; l < fraction.count; ++l) results[fraction.place[l]] = static_cast<float>(fraction.value[l]);
    fraction.count = 0;
  };
  const auto work_off_series = [&] {
    series.FillUp();
    Fn::template WorkOff<false>(series);
    for (int l = 0; l < series.count; ++l) results[series.place[l]] = static_cast<float>(series.value[l]);
    series.count = 0;
  };
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] > 1.0f && x[i] > a[i]) {
      fraction.Put(a[i], x[i], i);
      if (fraction.count == kLanes) work_off_fraction();
    } else {
      series.Put(a[i], x[i], i);
      if (series.count == kLanes) work_off_series();
    }
  }
  if (fraction.count > 0) work_off_fraction();
  if (series.count > 0) work_off_series();
  std::copy(results, results + n, out);
}
HWY_INLINE bool LanesServe(float a, float x) { return (a >= 0.01f) & (a <= 1000.0f) & (x > 0.0f) & (x <= 1000.0f); }

// The lower function P or the upper one Q, which is 1 - P.
template <bool kUpper>
struct IncompleteGammaFn {
  static bool Serves(float a, float x) { return LanesServe(a, x); }
  static float Slow(float a0, float x0) {
    const double a = static_cast<double>(a0), x = static_cast<double>(x0);
    return static_cast<float>(kUpper ? IncompleteGammaQ(a, x) : IncompleteGammaP(a, x));
  }
  template <bool kFraction>
  static void WorkOff(Lanes& lanes) {
    kFraction ? Fraction(lanes) : Series(lanes);
    for (int l = 0; l < kLanes; ++l) {
      const double factor = Exp(lanes.a[l] * LogNormal(lanes.x[l]) - lanes.x[l] - LogGammaPositive(lanes.a[l]));
      const double v = factor * lanes.value[l];
      lanes.value[l] = kFraction == kUpper ? v : 1.0 - v;
    }
  }
  static void Fast(const float* a, const float* x, float* out, int64_t n) { RunLanes<IncompleteGammaFn>(a, x, out, n); }
};

// What P changes by a; or a sample x, which is that by implicit differentiation, divided by minus the density.
template <bool kSample>
struct GammaByAFn {
  static bool Serves(float a, float x) { return LanesServe(a, x); }
  static float Slow(float a0, float x0) {
    const double a = static_cast<double>(a0), x = static_cast<double>(x0);
    return static_cast<float>(kSample ? GammaSampleByA(a, x) : IncompleteGammaPByA(a, x));
  }
  template <bool kFraction>
  static void WorkOff(Lanes& lanes) {
    kFraction ? FractionByA(lanes) : SeriesByA(lanes);
    for (int l = 0; l < kLanes; ++l) {
      const double a = lanes.a[l], x = lanes.x[l], log = LogNormal(x);
      const double slope = (log - DigammaOfPositive(a)) * lanes.value[l] + lanes.by_a[l];
      const double factor = kSample ? -x : Exp(a * log - x - LogGammaPositive(a));
      lanes.value[l] = (kFraction ? -factor : factor) * slope;
    }
  }
  static void Fast(const float* a, const float* x, float* out, int64_t n) { RunLanes<GammaByAFn>(a, x, out, n); }
};

// Lanes of the incomplete beta function on that side of its mean where the fraction converges fast; `upper` where that
// is the side of 1 - x.
struct BetaLanes {
  double a[kLanes], b[kLanes], x[kLanes], value[kLanes];
  int64_t place[kLanes];
  bool upper[kLanes];
  int count = 0;
};

void BetaFraction(BetaLanes& lanes) {
  double p0[kLanes], q0[kLanes], p1[kLanes], q1[kLanes], before[kLanes];  // the last but one and the last
  for (int l = 0; l < kLanes; ++l) {
    p0[l] = before[l] = 0.0;
    q0[l] = p1[l] = q1[l] = 1.0;
  }
  for (int step = 1; step < kMostSteps; step += kSteps) {
    for (int k = 0; k < kSteps; ++k) {
      const double m = step + k;
      for (int l = 0; l < kLanes; ++l) {
        const double a = lanes.a[l], b = lanes.b[l], low = a + (2.0 * m - 2.0), high = a + 2.0 * m;
        const double scale = lanes.x[l] / (low * (a + (2.0 * m - 1.0)) * high);
        const double odd = -(a + (m - 1.0)) * (a + b + (m - 1.0)) * high * scale, even = m * (b - m) * low * scale;
        const double p = p1[l] + odd * p0[l], q = q1[l] + odd * q0[l];
        p0[l] = p;
        q0[l] = q;
        p1[l] = p + even * p1[l];
        q1[l] = q + even * q1[l];
      }
    }
    int open = 0;
    for (int l = 0; l < kLanes; ++l) {
      const double inverse = 1.0 / q1[l], value = p1[l] * inverse;
      open |= std::abs(value - before[l]) > std::abs(value) * kSettled ? 1 : 0;
      before[l] = value;
      p0[l] *= inverse;
      q0[l] *= inverse;
      p1[l] = value;
      q1[l] = 1.0;
    }
    if (open == 0) break;
  }
  for (int l = 0; l < kLanes; ++l) lanes.value[l] = before[l];
}

void WorkOff(BetaLanes& lanes, float* out) {
  for (int l = lanes.count; l < kLanes; ++l) {  // settle with the others
    lanes.a[l] = lanes.a[0];
    lanes.b[l] = lanes.b[0];
    lanes.x[l] = lanes.x[0];
  }
  BetaFraction(lanes);
  for (int l = 0; l < kLanes; ++l) {
    const double a = lanes.a[l], b = lanes.b[l], x = lanes.x[l];
    const double factor = Exp(a * LogNormal(x) + b * LogNormal(1.0 - x) + LogGammaPositive(a + b) -
                              LogGammaPositive(a) - LogGammaPositive(b));
    lanes.value[l] *= factor / a;
  }
  for (int l = 0; l < lanes.count; ++l) {
    out[lanes.place[l]] = static_cast<float>(lanes.upper[l] ? 1.0 - lanes.value[l] : lanes.value[l]);
  }
  lanes.count = 0;
}

void IncompleteBetasOf(const float* const operands[3], const int64_t steps[3], float* out, int64_t n) {
  BetaLanes lanes;
  for (int64_t i = 0; i < n; ++i) {
    if (i % kBlock == 0) StopIfAsked();
    const auto operand = [&](int k) { return static_cast<double>(operands[k][i * steps[k]]); };
    const double a = operand(0), b = operand(1), x = operand(2);
    const bool served = (a >= 0.01) & (a <= 1000.0) & (b >= 0.01) & (b <= 1000.0) & (x > 0.0) & (x < 1.0);
    if (!served) {
      out[i] = static_cast<float>(IncompleteBeta(a, b, x));
      continue;
    }
    const bool upper = x > (a + 1.0) / (a + b + 2.0);
    lanes.a[lanes.count] = upper ? b : a;
    lanes.b[lanes.count] = upper ? a : b;
    lanes.x[lanes.count] = upper ? 1.0 - x : x;
    lanes.upper[lanes.count] = upper;
    lanes.place[lanes.count] = i;
    if (++lanes.count == kLanes) WorkOff(lanes, out);
  }
  if (lanes.count > 0) WorkOff(lanes, out);
}

// Steps are 1, or 0 for an operand that is one element.
template <class Fn, int AStep, int BStep>
void RunPair(const void* a_raw, const void* b_raw, void* out_raw, int64_t n) {
  const float* a = static_cast<const float*>(a_raw);
  const float* b = static_cast<const float*>(b_raw);
  float* out = static_cast<float*>(out_raw);
  if (n == 0) return;
  float a_block[kBlock], b_block[kBlock];
  std::fill(a_block, a_block + kBlock, a[0]);
  std::fill(b_block, b_block + kBlock, b[0]);
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t k = std::min(kBlock, n - i);
    const float *x = AStep ? a + i : a_block, *y = BStep ? b + i : b_block;
    int other = 0;
    for (int64_t j = 0; j < k; ++j) other |= Fn::Serves(x[j], y[j]) ? 0 : 1;
    if (other == 0) {
      Fn::Fast(x, y, out + i, k);
    } else {
      for (int64_t j = 0; j < k; ++j) out[i + j] = Fn::Slow(x[j], y[j]);
    }
  }
}

template <class Fn>
void AddPair(TileTable& t, const char* name, float cost) {
  TileFn f;
  f.in = f.out = DType::kFloat;
  f.cost = cost;
  f.vv = &RunPair<Fn, 1, 1>;
  f.vs = &RunPair<Fn, 1, 0>;
  f.sv = &RunPair<Fn, 0, 1>;
  t.Add(name, f);
}

void AddTiles(TileTable& t) {
  TileFn f;
  f.in = f.out = DType::kFloat;
  f.cost = 6;
  f.unary = &RunPositive<DigammaPositive, Digamma>;
  t.Add("Digamma", f);
  f.unary = &RunPositive<LgammaPositive, LogGamma>;
  t.Add("Lgamma", f);
  AddBinary<Xlog1pyOp, float>(t, "Xlog1py", 4);
  AddPair<ZetaFn>(t, "Zeta", 40);
  AddPair<PolygammaFn>(t, "Polygamma", 40);
  AddPair<IncompleteGammaFn<false>>(t, "Igamma", 60);
  AddPair<IncompleteGammaFn<true>>(t, "Igammac", 60);
  AddPair<GammaByAFn<false>>(t, "IgammaGradA", 80);
  AddPair<GammaByAFn<true>>(t, "RandomGammaGrad", 80);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {
HWY_EXPORT(AddTiles);
HWY_EXPORT(IncompleteBetasOf);
}  // namespace
void IncompleteBetas(const float* const operands[3], const int64_t steps[3], float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(IncompleteBetasOf)(operands, steps, out, n);
}
void AddSpecialFunctionTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
