// SPDX-License-Identifier: Apache-2.0
// Inverse and hyperbolic functions, and the complementary error function, for float: computed in double as far as float
// needs, so that nearly all results are rounded correctly. Free of branches like those of elementwise_math-inl.h.
// Included once per instruction set.
//
// atan: |x| is brought to at most tan(pi/8) by atan(a) = pi/2 - atan(1/a) and pi/4 + atan((a-1)/(a+1)); Taylor series.
// asin: Taylor series up to 1/2, beyond pi/2 - 2 asin(sqrt((1-a)/2)).
// erfc: exp(-x^2) (1 + 2x) erfcx(x) / (1 + 2x), where the middle is a polynomial in (x - 3.75) / (x + 3.75),
// interpolated at Chebyshev nodes over x >= 0 (Shepherd and Laframboise, Math. Comp. 36, 1981).
// clang-format off
#if defined(MILLRACE_ELEMENTWISE_INVERSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_ELEMENTWISE_INVERSE_INL_H_
#undef MILLRACE_ELEMENTWISE_INVERSE_INL_H_
#else
#define MILLRACE_ELEMENTWISE_INVERSE_INL_H_
#endif
// clang-format on

#include "kernels/cpu/elementwise/elementwise_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

constexpr double kPi = 3.14159265358979323846, kPiHalf = kPi / 2, kPiQuarter = kPi / 4;

constexpr int kAtanTerms = 11, kAsinTerms = 13;

struct AtanSeries {
  double value[kAtanTerms + 1] = {};  // (-1)^k / (2k + 1)
  constexpr AtanSeries() {
    for (int k = 0; k <= kAtanTerms; ++k) value[k] = (k & 1 ? -1.0 : 1.0) / (2 * k + 1);
  }
};
struct AsinSeries {
  double value[kAsinTerms + 1] = {};  // (2k)! / (4^k k!^2 (2k + 1))
  constexpr AsinSeries() {
    double binomial = 1;
    for (int k = 0; k <= kAsinTerms; ++k) {
      if (k > 0) binomial *= (2.0 * k - 1) / (2.0 * k);
      value[k] = binomial / (2 * k + 1);
    }
  }
};

// atan of a >= 0 (or NaN).
inline double AtanPositive(double a) {
  constexpr double kTanEighth = 0.41421356237309504880, kTanThreeEighths = 2.41421356237309504880;
  constexpr AtanSeries kSeries;
  const bool middle = a > kTanEighth, high = a > kTanThreeEighths;
  const double numerator = high ? -1.0 : (middle ? a - 1.0 : a), denominator = high ? a : (middle ? a + 1.0 : 1.0);
  const double t = numerator / denominator, z = t * t;
  double p = kSeries.value[kAtanTerms];
#pragma GCC unroll 24
  for (int k = kAtanTerms - 1; k >= 1; --k) p = p * z + kSeries.value[k];
  const double base = high ? kPiHalf : (middle ? kPiQuarter : 0.0);
  return base + (t + t * z * p);
}

inline float Atan(float x) {
  return std::copysign(static_cast<float>(AtanPositive(static_cast<double>(std::abs(x)))), x);
}

inline float Atan2(float y0, float x0) {
  const double y = static_cast<double>(y0), x = static_cast<double>(x0);
  const double ay = std::abs(y), ax = std::abs(x);
  const bool steep = ay > ax;
  const double low = steep ? ax : ay, high = steep ? ay : ax;
  constexpr double kLargest = std::numeric_limits<double>::max();
  const double ratio = low > kLargest ? 1.0 : low / (high == 0.0 ? 1.0 : high);
  const double a = AtanPositive(ratio);
  const double b = steep ? kPiHalf - a : a;
  const double c = std::copysign(1.0, x) < 0.0 ? kPi - b : b;
  const double r = std::copysign(c, y);
  return static_cast<float>((x != x) | (y != y) ? x + y : r);
}

// (asin(x) - x) / x for z = x^2 <= 1/4.
inline double AsinTail(double z) {
  constexpr AsinSeries kSeries;
  double p = kSeries.value[kAsinTerms];
#pragma GCC unroll 28
  for (int k = kAsinTerms - 1; k >= 1; --k) p = p * z + kSeries.value[k];
  return p * z;
}

inline float Asin(float x0) {
  const double x = static_cast<double>(x0), a = std::abs(x);
  const bool outer = a > 0.5;
  const double z = outer ? (1.0 - a) * 0.5 : a * a;
  const double s = outer ? std::sqrt(z) : a;
  const double y = s + s * AsinTail(z);
  return static_cast<float>(std::copysign(outer ? kPiHalf - 2.0 * y : y, x));
}

inline float Acos(float x0) {
  const double x = static_cast<double>(x0), a = std::abs(x);
  const bool outer = a > 0.5;
  const double z = outer ? (1.0 - a) * 0.5 : a * a;
  const double s = outer ? std::sqrt(z) : x;
  const double y = s + s * AsinTail(z);
  const double of_negative = kPi - 2.0 * y;
  return static_cast<float>(outer ? (x < 0.0 ? of_negative : 2.0 * y) : kPiHalf - y);
}

// exp(a) overflows in no double that the clamped |x| gives, but in float.
inline float Sinh(float x) {
  double a = std::abs(static_cast<double>(x));
  a = a > 100.0 ? 100.0 : a;
  const double e = Expm1(a);
  return std::copysign(static_cast<float>(0.5 * (e + e / (e + 1.0))), x);
}
inline float Cosh(float x) {
  const double e = Exp(std::abs(static_cast<double>(x)));
  return static_cast<float>(0.5 * e + 0.5 / e);
}

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kSquareIsAll = 1e9;  // beyond, a^2 + 1 is a^2

inline float Asinh(float x0) {
  const double x = static_cast<double>(x0), a = std::abs(x);
  const bool large = a > kSquareIsAll;
  const double u = large ? 1.0 : a;
  const double y = Log1p(u + u * u / (1.0 + std::sqrt(u * u + 1.0))), far = Log(large ? a : 1.0) + kLn2;
  return static_cast<float>(std::copysign(large ? far : (a != a ? a : y), x));
}
inline float Acosh(float x0) {
  const double x = static_cast<double>(x0);
  const bool large = x > kSquareIsAll;
  const double t = (large ? 2.0 : x) - 1.0;
  const double y = Log1p(t + std::sqrt(2.0 * t + t * t)), far = Log(large ? x : 1.0) + kLn2;
  return static_cast<float>(x >= 1.0 ? (large ? far : y) : std::numeric_limits<double>::quiet_NaN());
}
inline float Atanh(float x0) {
  const double x = static_cast<double>(x0), a = std::abs(x);
  return static_cast<float>(std::copysign(0.5 * Log1p(2.0 * a / (1.0 - a)), x));
}

inline float Erfc(float x0) {
  constexpr double kCoefficients[] = {
      1.23751263080713913,      -0.140240598585721259,    0.00358541941803169771,  0.0822767385121101171,
      -0.10880401320203339,     0.0923043207359041957,    -0.0586927266288093599,  0.0283622802346676265,
      -0.0097492695404400215,   0.00175561871386963233,   0.000299634777895418124, -0.000290153321605989132,
      0.0000442523846747494651, 0.0000224156013246532595, -6.34449552349832615e-6, -1.03834324327341455e-6};
  const double x = static_cast<double>(x0);
  double a = std::abs(x);
  a = a > 12.0 ? 12.0 : a;  // erfc(12) is below the least float
  const double t = (a - 3.75) / (a + 3.75);
  double p = kCoefficients[15];
#pragma GCC unroll 16
  for (int k = 14; k >= 0; --k) p = p * t + kCoefficients[k];
  const double y = Exp(-a * a) * p / (1.0 + 2.0 * a);
  return static_cast<float>(x < 0.0 ? 2.0 - y : y);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif  // once per instruction set
