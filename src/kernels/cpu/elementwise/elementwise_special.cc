// SPDX-License-Identifier: Apache-2.0
// Incomplete gamma function: the series below x = a + 1 and Lentz's form of the continued fraction above (Abramowitz
// and Stegun 6.5.29, 6.5.31). Incomplete beta function: the continued fraction 26.5.8 on that side of its mean where it
// converges fast. The factor in front of them would lose its digits for large arguments if it were formed from
// logarithms of gamma functions: beyond 10 it is written with Stirling's series and log(1 + t) - t.
#include "kernels/cpu/elementwise/elementwise_special.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/stop_scope.h"

namespace millrace {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
// Near x = a the series and the fraction take some multiple of sqrt(a) terms.
constexpr int kMaxTerms = 200000;

// A number and its derivative by one variable.
struct Dual {
  double v = 0, d = 0;
  Dual() = default;
  Dual(double value, double derivative = 0) : v(value), d(derivative) {}  // NOLINT: constants mix in
};
Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
Dual operator/(Dual a, Dual b) { return {a.v / b.v, (a.d - a.v / b.v * b.d) / b.v}; }

double ValueOf(double x) { return x; }
double ValueOf(Dual x) { return x.v; }
double Exp(double x) { return std::exp(x); }
Dual Exp(Dual x) { return {std::exp(x.v), std::exp(x.v) * x.d}; }
double Sqrt(double x) { return std::sqrt(x); }
Dual Sqrt(Dual x) { return {std::sqrt(x.v), x.d * 0.5 / std::sqrt(x.v)}; }
double LogGammaOf(double x) { return LogGamma(x); }
Dual LogGammaOf(Dual x) { return {LogGamma(x.v), Digamma(x.v) * x.d}; }
// Whether adding `term` to `sum` changes nothing any more.
bool Settled(double term, double sum) { return std::abs(term) <= std::abs(sum) * (kEpsilon / 4); }
bool Settled(Dual term, Dual sum) { return Settled(term.v, sum.v) && Settled(term.d, std::abs(sum.d) + 1e-300); }

// log(1 + t) - t.
double LogExcess(double t) {
  if (std::abs(t) > 0.3) return std::log1p(t) - t;
  // With s = t / (2 + t): log(1 + t) = 2 (s + s^3/3 + ...), and t = 2 s + s t.
  const double s = t / (2 + t), square = s * s;
  double sum = 0, power = s * square;
  for (int k = 3; k < 60; k += 2) {
    const double term = power / k;
    sum += term;
    if (std::abs(term) < std::abs(sum) * kEpsilon / 4) break;
    power *= square;
  }
  return 2 * sum - s * t;
}
// The same of t = x / a - 1, also where x is so much smaller that t is -1.
double LogExcessOfRatio(double a, double x) {
  const double t = (x - a) / a, ratio = x / a;
  if (t >= -0.5) return LogExcess(t);
  return (ratio >= std::numeric_limits<double>::min() ? std::log(ratio) : std::log(x) - std::log(a)) - t;
}
Dual LogExcessOfRatio(Dual a, double x) { return {LogExcessOfRatio(a.v, x), (x - a.v) / a.v / a.v * a.d}; }

// log Gamma(a) less (a - 1/2) log a - a + log(2 pi) / 2, for a >= 10.
template <typename N>
N StirlingRest(N a) {
  const N z = N(1) / (a * a);
  return (N(1.0 / 12) - z * (N(1.0 / 360) - z * (N(1.0 / 1260) - z * (N(1.0 / 1680) - z * N(1.0 / 1188))))) / a;
}

// x^a exp(-x) / Gamma(a).
template <typename N>
N GammaFactor(N a, double x) {
  if (ValueOf(a) < 10) return Exp(a * N(std::log(x)) - N(x) - LogGammaOf(a));
  return Sqrt(a * N(0.5 / kPi)) * Exp(a * LogExcessOfRatio(a, x) - StirlingRest(a));
}

// P / factor by its power series.
template <typename N>
N GammaSeries(N a, double x) {
  N term = N(1) / a, sum = term;
  StopNowAndThen pause;
  for (int n = 1; n < kMaxTerms; ++n) {
    pause();
    term = term * (N(x) / (a + N(n)));  // the quotient waits for no term
    sum = sum + term;
    if (Settled(term, sum)) break;
  }
  return sum;
}

// Q / factor by its continued fraction, as Lentz evaluates it.
template <typename N>
N GammaFraction(N a, double x) {
  constexpr double kTiny = 1e-300;
  N b = N(x + 1) - a, c = N(1 / kTiny), d = N(1) / b, h = d;
  StopNowAndThen pause;
  for (int n = 1; n < kMaxTerms; ++n) {
    pause();
    const N an = N(n) * (a - N(n));
    b = b + N(2);
    d = an * d + b;
    if (std::abs(ValueOf(d)) < kTiny) d = N(kTiny);
    c = b + an / c;
    if (std::abs(ValueOf(c)) < kTiny) c = N(kTiny);
    d = N(1) / d;
    const N step = c * d;
    h = h * step;
    if (Settled(step - N(1), N(1))) break;
  }
  return h;
}

// ln of gamma(a + b) / gamma(b); by Stirling's series where two large numbers would cancel.
double LogGammaRatio(double a, double b) {
  if (b < 10) return LogGamma(a + b) - LogGamma(b);
  return (b - 0.5) * std::log1p(a / b) + a * (std::log(a + b) - 1) + StirlingRest(a + b) - StirlingRest(b);
}

// x^a (1 - x)^b / B(a, b).
double BetaFactor(double a, double b, double x) {
  const double sum = a + b;
  if (a < 10 || b < 10) {
    const double small = std::min(a, b), large = std::max(a, b);
    return std::exp(a * std::log(x) + b * std::log1p(-x) + LogGammaRatio(small, large) - LogGamma(small));
  }
  const double mean = a / sum, rest = b / sum;
  const double ta = (x - mean) / mean, tb = (mean - x) / rest;
  return std::sqrt(a * rest * 0.5 / kPi) *
         std::exp(a * LogExcess(ta) + b * LogExcess(tb) + StirlingRest(sum) - StirlingRest(a) - StirlingRest(b));
}

double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double h = d;
  StopNowAndThen pause;
  const auto next = [&](double an) {
    d = 1 + an * d;
    c = 1 + an / c;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    if (std::abs(c) < kTiny) c = kTiny;
    h *= c * d;
  };
  for (int i = 1; i < kMaxTerms; ++i) {
    pause();
    const double m = i;
    // Ratios first: products of large numbers are infinite.
    next(m / (a + 2 * m - 1) * ((b - m) / (a + 2 * m)) * x);
    next(-(a + m) / (a + 2 * m) * ((a + b + m) / (a + 2 * m + 1)) * x);
    if (std::abs(c * d - 1) <= kEpsilon) break;
  }
  return h;
}

}  // namespace

double IncompleteGammaP(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0) return kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 1;
  if (x > 1 && x > a) return 1 - GammaFactor(a, x) * GammaFraction(a, x);
  return GammaFactor(a, x) * GammaSeries(a, x);
}

double IncompleteGammaQ(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0) return kNan;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 1;
  if (std::isinf(x)) return 0;
  if (x > 1 && x > a) return GammaFactor(a, x) * GammaFraction(a, x);
  return 1 - GammaFactor(a, x) * GammaSeries(a, x);
}

double IncompleteGammaPByA(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0) return kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 0;
  const Dual by_a(a, 1);
  if (x > 1 && x > a) return -(GammaFactor(by_a, x) * GammaFraction(by_a, x)).d;
  return (GammaFactor(by_a, x) * GammaSeries(by_a, x)).d;
}

// By implicit differentiation (Figurnov, Mohamed and Mnih, 2018): -(dP/da) / (dP/dx), where dP/dx is factor / x and P
// is factor times what a series or a fraction gives, so that the factor, which may underflow, cancels.
double GammaSampleByA(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0 || std::isinf(a) || std::isinf(x)) return kNan;
  if (x == 0) return 0;
  const Dual by_a(a, 1);
  double log_factor_by_a = std::log(x) - Digamma(a);
  if (a >= 10) {
    log_factor_by_a = 0.5 / a + (by_a * LogExcessOfRatio(by_a, x) - StirlingRest(by_a)).d;
  }
  const bool above = x > 1 && x > a;
  const Dual rest = above ? GammaFraction(by_a, x) : GammaSeries(by_a, x);
  const double slope = x * (log_factor_by_a * rest.v + rest.d);
  return above ? slope : -slope;
}

double IncompleteBeta(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1)) return kNan;
  if (x == 0 || x == 1) return x;
  if (std::isinf(a) || std::isinf(b)) return std::isinf(a) && std::isinf(b) ? kNan : std::isinf(a) ? 0 : 1;
  if (x <= (a + 1) / (a + b + 2)) return BetaFactor(a, b, x) * BetaFraction(a, b, x) / a;
  return 1 - BetaFactor(b, a, 1 - x) * BetaFraction(b, a, 1 - x) / b;
}

// Recurrence up to 10, then the asymptotic series; reflection below zero.
double LogGamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);  // std::lgamma writes a global
}

double Digamma(double x) {
  if (x <= 0 && std::floor(x) == x) return kNan;
  if (x < 0) return Digamma(1 - x) - kPi / std::tan(kPi * (x - std::rint(x)));
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  const double z = 1 / (x * x);
  const double tail =
      z *
      (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return sum + std::log(x) - 0.5 / x - tail;
}

double Zeta(double s, double q) {
  if (s == 1) return std::numeric_limits<double>::infinity();
  if (!(s > 1) || std::isnan(q)) return kNan;
  if (q <= 0) {
    if (std::floor(q) == q) return std::numeric_limits<double>::infinity();
    if (std::floor(s) != s || q < -1e4) return kNan;
  }
  double sum = 0;
  double a = q;
  for (; a < 12; a += 1) sum += std::pow(a, -s);
  if (std::isinf(a)) return sum;
  const double power = std::pow(a, -s);
  sum += power * a / (s - 1) + 0.5 * power;
  double factor = s * power / a;
  double k = s + 1;
  for (const double weight : kEulerMaclaurin) {
    const double add = weight * factor;
    sum += add;
    if (std::abs(add) < std::abs(sum) * 1e-17) break;
    factor *= k * (k + 1) / (a * a);
    k += 2;
  }
  return sum;
}

double Polygamma(double n, double x) {
  if (!(n >= 0) || std::floor(n) != n) return kNan;
  if (n == 0) return Digamma(x);
  const double value = std::tgamma(n + 1) * Zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -value : value;
}

}  // namespace millrace
