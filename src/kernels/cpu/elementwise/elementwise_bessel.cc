// SPDX-License-Identifier: Apache-2.0
// Bessel functions of orders 0 and 1. Modified ones: of the first kind the power series up to |x| = 20, whose terms are
// all positive, of the second kind the library's; beyond 20 both have Hankel's asymptotic series (Abramowitz and Stegun
// 9.6.10, 9.7.1, 9.7.2). Others are the C library's.
#include <math.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise/elementwise_special.h"

namespace millrace {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFar = 20;

// The sum of Hankel's series at x >= 20, with alternating signs for the first kind.
double HankelSum(int order, double x, double sign) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 30 && std::abs(term) > kEpsilon / 4; ++k) {
    const double odd = 2 * k - 1;
    term *= sign * (mu - odd * odd) / (8 * x * k);
    sum += term;
  }
  return sum;
}

// exp(-x) I_order(x) for x >= 0 and order 0 or 1.
double FirstKindScaled(int order, double x) {
  if (x > kFar) return HankelSum(order, x, -1) / std::sqrt(2 * kPi * x);
  const double q = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 200 && term > sum * kEpsilon / 4; ++k) {
    term *= q / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum * std::exp(-x);
}

// exp(x) K_order(x), and as TensorFlow infinite where x is not positive.
double SecondKindScaled(int order, double x) {
  if (std::isnan(x)) return x;
  if (x <= 0) return kInfinity;
  if (x > kFar) return HankelSum(order, x, 1) * std::sqrt(kPi / (2 * x));
  return std::cyl_bessel_k(order, x) * std::exp(x);
}

// y exp(x), where exp(x) alone may be infinite.
double TimesExp(double y, double x) {
  const double half = std::exp(x / 2);
  return y * half * half;
}

}  // namespace

double BesselI0Scaled(double x) { return std::isnan(x) ? x : FirstKindScaled(0, std::abs(x)); }
double BesselI1Scaled(double x) { return std::isnan(x) ? x : std::copysign(FirstKindScaled(1, std::abs(x)), x); }
double BesselI0(double x) { return std::isinf(x) ? kInfinity : TimesExp(BesselI0Scaled(x), std::abs(x)); }
double BesselI1(double x) { return std::isinf(x) ? x : TimesExp(BesselI1Scaled(x), std::abs(x)); }

double BesselK0Scaled(double x) { return SecondKindScaled(0, x); }
double BesselK1Scaled(double x) { return SecondKindScaled(1, x); }
double BesselK0(double x) { return x > 0 ? TimesExp(BesselK0Scaled(x), -x) : BesselK0Scaled(x); }
double BesselK1(double x) { return x > 0 ? TimesExp(BesselK1Scaled(x), -x) : BesselK1Scaled(x); }

double BesselJ0(double x) { return ::j0(x); }
double BesselJ1(double x) { return ::j1(x); }
double BesselY0(double x) { return x <= 0 ? -kInfinity : ::y0(x); }
double BesselY1(double x) { return x <= 0 ? -kInfinity : ::y1(x); }

}  // namespace millrace
