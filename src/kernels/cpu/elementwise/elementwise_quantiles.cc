// SPDX-License-Identifier: Apache-2.0
// Quantiles of the normal distribution and the inverse of the error function: a rational approximation (Acklam 2003),
// of which Halley's steps with the C library's erf and erfc make a double.
#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise/elementwise_special.h"

namespace millrace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSqrt2 = 1.41421356237309504880;
constexpr double kSqrtPi = 1.77245385090551602730;

template <size_t n>
double Polynomial(const double (&coefficients)[n], double x) {
  double sum = 0;
  for (const double c : coefficients) sum = sum * x + c;
  return sum;
}

// The quantile of 0 < p <= 1/2, with about nine digits.
double RoughQuantile(double p) {
  constexpr double kMiddleOver[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                    1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double kMiddleUnder[] = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                                     6.680131188771972e+01,  -1.328068155288572e+01, 1.0};
  constexpr double kTailOver[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                  -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double kTailUnder[] = {
      7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1.0};
  if (p < 0.02425) {
    const double q = std::sqrt(-2 * std::log(p));
    return Polynomial(kTailOver, q) / Polynomial(kTailUnder, q);
  }
  const double q = p - 0.5, r = q * q;
  return Polynomial(kMiddleOver, r) * q / Polynomial(kMiddleUnder, r);
}

// The quantile of 0 < p <= 1/2.
double LowerQuantile(double p) {
  double x = RoughQuantile(p);
  for (int i = 0; i < 2; ++i) {
    // By logarithms: the density may be too small for a number.
    const double error = 0.5 * std::erfc(-x / kSqrt2) / p - 1;
    const double step = error * std::exp(std::log(p) + x * x / 2) * kSqrt2 * kSqrtPi;
    x -= step / (1 + x * step / 2);
  }
  return x;
}

}  // namespace

double NormalQuantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  return p <= 0.5 ? LowerQuantile(p) : -LowerQuantile(1 - p);
}

double InverseErf(double x) {
  const double size = std::abs(x);
  if (!(size <= 1)) return kNan;
  if (size == 1) return std::copysign(kInfinity, x);
  if (size > 0.5) return std::copysign(LowerQuantile((1 - size) / 2) / kSqrt2, x);
  // Around 0 what counts is the error beside x.
  double y = size * kSqrtPi / 2;
  for (int i = 0; i < 5; ++i) {
    const double step = (std::erf(y) - size) * std::exp(y * y) * kSqrtPi / 2;
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

}  // namespace millrace
