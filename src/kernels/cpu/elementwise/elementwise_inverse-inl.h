// SPDX-License-Identifier: Apache-2.0
// Inverse and hyperbolic functions, and the complementary error function, for float: computed in double as far as float
// needs, so that nearly all results are rounded correctly. Free of branches like those of elementwise_math-inl.h.
// Included once per instruction set.
//
// atan: |x| is brought to at most tan(pi/8) by atan(a) = pi/2 - atan(1/a) and pi/4 + atan((a-1)/(a+1)).
// asin: up to 1/2 a polynomial, beyond pi/2 - 2 asin(sqrt((1-a)/2)).
// All polynomials are interpolated at Chebyshev nodes.
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

// The sum of c[k] z^k.
template <size_t N>
inline double Polynomial(const double (&c)[N], double z) {
  double p = c[N - 1];
#pragma GCC unroll 16
  for (int k = static_cast<int>(N) - 2; k >= 0; --k) p = p * z + c[k];
  return p;
}

// atan of a quotient of at most tan(pi/8), within 1e-10 of itself.
inline double AtanOfSmall(double numerator, double denominator) {
  constexpr double kCoefficients[] = {-0.333333332792548001, 0.199999772586883856,   -0.142841511936286139,
                                      0.11071365021884794,   -0.0862467614524949365, 0.0504813851207974439};
  const double t = numerator / denominator, z = t * t;
  return t + t * z * Polynomial(kCoefficients, z);
}
constexpr double kTanEighth = 0.41421356237309504880, kTanThreeEighths = 2.41421356237309504880;  // of pi

inline float Atan(float x) {
  const double a = std::abs(static_cast<double>(x));
  const bool middle = a > kTanEighth, high = a > kTanThreeEighths;
  const double numerator = high ? -1.0 : (middle ? a - 1.0 : a), denominator = high ? a : (middle ? a + 1.0 : 1.0);
  const double base = high ? kPiHalf : (middle ? kPiQuarter : 0.0);
  return std::copysign(static_cast<float>(base + AtanOfSmall(numerator, denominator)), x);
}

inline float Atan2(float y0, float x0) {
  const double y = static_cast<double>(y0), x = static_cast<double>(x0);
  const double ay = std::abs(y), ax = std::abs(x);
  const bool steep = ay > ax;
  const double low = steep ? ax : ay, high = steep ? ay : ax;
  constexpr double kLargest = std::numeric_limits<double>::max();
  const bool both = low > kLargest, middle = (low > kTanEighth * high) & !both;  // both infinite: the angle of (1, 1)
  const double numerator = both ? 0.0 : (middle ? low - high : low);
  const double denominator = both | (high == 0.0) ? 1.0 : (middle ? low + high : high);
  const double a = (both | middle ? kPiQuarter : 0.0) + AtanOfSmall(numerator, denominator);
  const double b = steep ? kPiHalf - a : a;
  const double c = std::copysign(1.0, x) < 0.0 ? kPi - b : b;
  const double r = std::copysign(c, y);
  return static_cast<float>((x != x) | (y != y) ? x + y : r);
}

// (asin(x) - x) / x for z = x^2 <= 1/4, relative to 1 + that within 1e-10.
inline double AsinTail(double z) {
  constexpr double kCoefficients[] = {
      0.166666666860856439, 0.0749999240440183822, 0.0446476638881348454, 0.0302691387285891839,
      0.023611817008891751, 0.0105744155169129084, 0.0309745403713550731};
  return z * Polynomial(kCoefficients, z);
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
  const double e = Expm1<double, kFloatExpTerms>(a);
  return std::copysign(static_cast<float>(0.5 * (e + e / (e + 1.0))), x);
}
inline float Cosh(float x) {
  const double e = Exp<double, kFloatExpTerms>(std::abs(static_cast<double>(x)));
  return static_cast<float>(0.5 * e + 0.5 / e);
}

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kSquareIsAll = 1e9;  // beyond, a^2 + 1 is a^2

inline float Asinh(float x0) {
  const double x = static_cast<double>(x0), a = std::abs(x);
  const bool large = a > kSquareIsAll;
  const double u = large ? 1.0 : a;
  const double y = Log1p<double, kFloatLogTerms>(u + u * u / (1.0 + std::sqrt(u * u + 1.0))),
               far = Log<double, kFloatLogTerms>(large ? a : 1.0) + kLn2;
  return static_cast<float>(std::copysign(large ? far : (a != a ? a : y), x));
}
inline float Acosh(float x0) {
  const double x = static_cast<double>(x0);
  const bool large = x > kSquareIsAll;
  const double t = (large ? 2.0 : x) - 1.0;
  const double y = Log1p<double, kFloatLogTerms>(t + std::sqrt(2.0 * t + t * t)),
               far = Log<double, kFloatLogTerms>(large ? x : 1.0) + kLn2;
  return static_cast<float>(x >= 1.0 ? (large ? far : y) : std::numeric_limits<double>::quiet_NaN());
}
// Half the logarithm of (1 + a) / (1 - a), 2^k of it apart; for the rest r that is atanh((r - 1) / (r + 1)).
inline float Atanh(float x0) {
  using Double = FloatTraits<double>;
  constexpr uint64_t kOne = Double::kBias << Double::kMantissa, kFraction = (uint64_t{1} << Double::kMantissa) - 1;
  constexpr double kSeries[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13};
  const double x = static_cast<double>(x0), a = std::abs(x), above = 1.0 + a, below = 1.0 - a;
  const uint64_t shifted = ToBits(above / below) + (kOne - Double::kSqrtHalf);
  const double biased = FromBits<double>((shifted >> Double::kMantissa) | ToBits(Double::kIntBase)) - Double::kIntBase;
  const double k = biased - static_cast<double>(Double::kBias), other = below * FromBits<double>(shifted & ~kFraction);
  const double s = k == 0.0 ? a : (above - other) / (above + other), z = s * s;
  const double y = k * (kLn2 / 2) + (s + s * z * Polynomial(kSeries, z));
  const double end = a == 1.0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return static_cast<float>(std::copysign(a < 1.0 ? y : end, x));
}

inline float Erfc(float x0) {
  constexpr double kCoefficients[] = {
      1.23751263000301116,      -0.140240598712723394,   0.00358549742896320538,  0.0822767509534636774,
      -0.108805252038982436,    0.0923041217464418116,   -0.0586853365860814558,  0.0283634737904088516,
      -0.00977028671456577224,  0.00175220949869046201,  0.000330344209358225749, -0.000285154338899130791,
      0.0000219879659838701643, 0.0000187807362851928217};
  const double x = static_cast<double>(x0);
  double a = std::abs(x);
  a = a > 12.0 ? 12.0 : a;  // erfc(12) is below the least float
  const double wide = 1.0 + 2.0 * a, far = a + 3.75, r = 1.0 / (wide * far);
  const double y = Exp<double, kFloatExpTerms>(-a * a) * Polynomial(kCoefficients, (a - 3.75) * wide * r) * (far * r);
  return static_cast<float>(x < 0.0 ? 2.0 - y : y);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif  // once per instruction set
