// SPDX-License-Identifier: Apache-2.0
// Transcendental functions for one number at a time, free of branches and calls, so that the compiler makes vector code
// of a loop over them. T is float or double. Included once per instruction set. They, and what tiles make of them, are
// HWY_INLINE: GCC stops to inline where a function or file has grown, and a loop with a call left in it is no vector.
//
// exp: x = n ln2 + r with |r| <= ln2/2, Taylor series of e^r, scaled by 2^n in two steps (so that denormals come out).
// log: x = 2^k m with m in [sqrt(1/2), sqrt(2)), log m = 2 atanh(s) with s = (m-1)/(m+1), as a series in s^2.
// sin: x = q pi/2 + r with pi/2 in parts whose products with q are exact (Cody and Waite), Taylor series of sin r, cos
// r. The rest reduces to these.
// clang-format off
#if defined(MILLRACE_ELEMENTWISE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_ELEMENTWISE_MATH_INL_H_
#undef MILLRACE_ELEMENTWISE_MATH_INL_H_
#else
#define MILLRACE_ELEMENTWISE_MATH_INL_H_
#endif
// clang-format on

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
struct FloatTraits;
template <>
struct FloatTraits<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kRound = 0x1.8p23f;     // adding it rounds to an integer in the low bits
  static constexpr float kIntBase = 0x1p23f;     // its low bits count integers
  static constexpr float kLn2High = 0x1.63p-1f;  // few bits: its product with an exponent is exact
  static constexpr float kLn2Low = -2.12194440054690583e-4f;
  static constexpr float kExpLow = -104.0f, kExpHigh = 89.0f;
  static constexpr Bits kSqrtHalf = 0x3f3504f3u;
  static constexpr int kExpTerms = 7, kLogTerms = 5;
};
template <>
struct FloatTraits<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kIntBase = 0x1p52;
  static constexpr double kLn2High = 0x1.62e42feep-1;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kExpLow = -746.0, kExpHigh = 710.0;
  static constexpr Bits kSqrtHalf = 0x3fe6a09e667f3bcdull;
  static constexpr int kExpTerms = 13, kLogTerms = 11;
};

template <typename T>
HWY_INLINE T FromBits(typename FloatTraits<T>::Bits b) {
  return std::bit_cast<T>(b);
}
template <typename T>
HWY_INLINE typename FloatTraits<T>::Bits ToBits(T v) {
  return std::bit_cast<typename FloatTraits<T>::Bits>(v);
}

// 2^n, where t = n + kRound and n fits the exponent.
template <typename T>
HWY_INLINE T PowerOfTwo(T t) {
  using F = FloatTraits<T>;
  return FromBits<T>((ToBits(t) + F::kBias) << F::kMantissa);
}

// 1 / k!, with the signs of sine and cosine if `alternating`: -1/2!, -1/3!, 1/4!, 1/5!, -1/6!, ...
template <typename T>
struct Reciprocals {
  T value[24] = {};
  constexpr explicit Reciprocals(bool alternating) {
    double factorial = 1;
    for (int k = 0; k < 24; ++k) {
      if (k > 1) factorial *= k;
      value[k] = static_cast<T>((alternating && (k & 2) ? -1 : 1) / factorial);
    }
  }
};
// 2 / (2k + 1): the series of 2 atanh.
template <typename T>
struct OddReciprocals {
  T value[12] = {};
  constexpr OddReciprocals() {
    for (int k = 0; k < 12; ++k) value[k] = static_cast<T>(2.0 / (2 * k + 1));
  }
};

// How many terms of the series give results within 1e-10 of themselves in double: for what is rounded to float.
constexpr int kFloatExpTerms = 9, kFloatLogTerms = 5;

// (e^r - 1 - r) / r^2.
template <int kTerms, typename T>
HWY_INLINE T ExpTail(T r) {
  constexpr Reciprocals<T> kSeries(false);
  T p = kSeries.value[kTerms];
#pragma GCC unroll 24
  for (int k = kTerms - 1; k >= 2; --k) p = p * r + kSeries.value[k];
  return p;
}

template <typename T, int kTerms = FloatTraits<T>::kExpTerms>
HWY_INLINE T Exp(T x) {
  using F = FloatTraits<T>;
  x = x < F::kExpLow ? F::kExpLow : x;
  x = x > F::kExpHigh ? F::kExpHigh : x;
  const T n = (x * static_cast<T>(1.44269504088896340736) + F::kRound) - F::kRound;
  const T r = (x - n * F::kLn2High) - n * F::kLn2Low;
  const T y = T(1) + (r + r * r * ExpTail<kTerms>(r));
  const T half = n * T(0.5) + F::kRound;
  return y * PowerOfTwo(half) * PowerOfTwo((n - (half - F::kRound)) + F::kRound);
}

template <typename T, int kTerms = FloatTraits<T>::kExpTerms>
HWY_INLINE T Expm1(T x0) {
  using F = FloatTraits<T>;
  T x = x0 < T(-40) ? T(-40) : x0;
  x = x > F::kExpHigh ? F::kExpHigh : x;
  const T n = (x * static_cast<T>(1.44269504088896340736) + F::kRound) - F::kRound;
  const T r = (x - n * F::kLn2High) - n * F::kLn2Low;
  const T p = r + r * r * ExpTail<kTerms>(r);
  const T s = PowerOfTwo((n - T(1)) + F::kRound);
  const T y = (s * p + (s - T(0.5))) * T(2);
  return x0 == T(0) ? x0 : y;
}

// log(x / 2^(bias - kBias)) of a positive normal number: with kBias as bias, its log.
template <typename T, int kTerms = FloatTraits<T>::kLogTerms>
HWY_INLINE T LogOfScaled(T x, T bias) {
  using F = FloatTraits<T>;
  using Bits = typename F::Bits;
  constexpr Bits kOne = F::kBias << F::kMantissa;
  const Bits shifted = ToBits(x) + (kOne - F::kSqrtHalf);
  const T m = FromBits<T>((shifted & ((Bits{1} << F::kMantissa) - 1)) + F::kSqrtHalf);
  const T k = (FromBits<T>((shifted >> F::kMantissa) | ToBits(F::kIntBase)) - F::kIntBase) - bias;
  const T f = m - T(1);
  const T s = f / (T(2) + f);
  const T z = s * s;
  constexpr OddReciprocals<T> kSeries;
  T p = kSeries.value[kTerms];
#pragma GCC unroll 24
  for (int i = kTerms - 1; i >= 1; --i) p = p * z + kSeries.value[i];
  const T half_square = T(0.5) * f * f;
  return k * F::kLn2High - ((half_square - (s * (half_square + z * p) + k * F::kLn2Low)) - f);
}

// log of a positive normal number, as each positive float is in double. It has nothing to choose, so that loops over
// several of them are vectors.
template <typename T, int kTerms = FloatTraits<T>::kLogTerms>
HWY_INLINE T LogNormal(T x) {
  return LogOfScaled<T, kTerms>(x, static_cast<T>(FloatTraits<T>::kBias));
}

// log of a positive finite number.
template <typename T, int kTerms = FloatTraits<T>::kLogTerms>
HWY_INLINE T LogPositive(T x) {
  using F = FloatTraits<T>;
  constexpr int kShift = F::kMantissa + 2;
  const bool tiny = x < std::numeric_limits<T>::min();
  const T scaled = tiny ? x * static_cast<T>(typename F::Bits{1} << kShift) : x;
  return LogOfScaled<T, kTerms>(scaled, tiny ? static_cast<T>(F::kBias + kShift) : static_cast<T>(F::kBias));
}

template <typename T, int kTerms = FloatTraits<T>::kLogTerms>
HWY_INLINE T Log(T x) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  T y = LogPositive<T, kTerms>(x);
  y = x < kInf ? y : x;
  y = x == T(0) ? -kInf : y;
  return x < T(0) ? std::numeric_limits<T>::quiet_NaN() : y;
}

template <typename T, int kTerms = FloatTraits<T>::kLogTerms>
HWY_INLINE T Log1p(T x) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const T u = T(1) + x;
  T y = LogPositive<T, kTerms>(u) + (x - (u - T(1))) / u;
  y = x < kInf ? y : x;
  y = x == T(-1) ? -kInf : y;
  y = x == T(0) ? x : y;
  return x < T(-1) ? std::numeric_limits<T>::quiet_NaN() : y;
}

// From e = exp(2|x|) - 1: e / (e + 2), or 1 - 2 / (e + 2) where that loses nothing.
template <typename T>
HWY_INLINE T Tanh(T x) {
  using F = FloatTraits<T>;
  const T a = std::abs(x);
  const bool large = a > T(0.5);
  const T y = a > T(20) ? T(40) : T(2) * a;  // there tanh is 1
  const T n = (y * static_cast<T>(1.44269504088896340736) + F::kRound) - F::kRound;
  const T r = (y - n * F::kLn2High) - n * F::kLn2Low;
  const T s = PowerOfTwo(n + F::kRound);
  const T e = s * (r + r * r * ExpTail<F::kExpTerms>(r)) + (s - T(1));
  const T q = (large ? T(2) : e) / (e + T(2));
  return std::copysign(large ? T(1) - q : q, x);
}

template <typename T>
HWY_INLINE T Sigmoid(T x) {
  const T e = Exp(-std::abs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

template <typename T>
HWY_INLINE T Softplus(T x) {
  const T e = Exp(-std::abs(x)), u = T(1) + e;
  return (x > T(0) ? x : T(0)) + (LogNormal(u) + (e - (u - T(1))) / u);  // log1p(e), as e is in [0, 1] or NaN
}

// Largest |x| that the reduction below serves.
constexpr double kMaxAngle = 1e6;

struct ReducedAngle {
  double r, sin, cos;
  uint64_t quadrant;  // low two bits
};

// `Degree` about that of the series: 17 for double, 11 for float results.
template <int Degree>
HWY_INLINE ReducedAngle ReduceAngle(double x) {
  using F = FloatTraits<double>;
  ReducedAngle a;
  const double t = x * 0.63661977236758134308 + F::kRound;
  const double n = t - F::kRound;
  a.quadrant = ToBits(t);
  a.r = ((x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
  const double z = a.r * a.r;
  constexpr Reciprocals<double> kSeries(true);
  double s = kSeries.value[Degree], c = kSeries.value[Degree - 1];
#pragma GCC unroll 24
  for (int k = Degree - 2; k >= 3; k -= 2) s = s * z + kSeries.value[k];
#pragma GCC unroll 24
  for (int k = Degree - 3; k >= 4; k -= 2) c = c * z + kSeries.value[k];
  a.sin = a.r + a.r * z * s;
  a.cos = 1.0 - (0.5 * z - z * z * c);
  return a;
}

template <int Degree>
HWY_INLINE double SinReduced(double x) {
  const ReducedAngle a = ReduceAngle<Degree>(x);
  const double y = (a.quadrant & 1) ? a.cos : a.sin;
  const double signed_y = FromBits<double>(ToBits(y) ^ ((a.quadrant & 2) << 62));
  return x == 0.0 ? x : signed_y;
}
template <int Degree>
HWY_INLINE double CosReduced(double x) {
  const ReducedAngle a = ReduceAngle<Degree>(x);
  const double y = (a.quadrant & 1) ? a.sin : a.cos;
  return FromBits<double>(ToBits(y) ^ (((a.quadrant + 1) & 2) << 62));
}
template <int Degree>
HWY_INLINE double TanReduced(double x) {
  const ReducedAngle a = ReduceAngle<Degree>(x);
  const bool odd = a.quadrant & 1;
  const double y = (odd ? -a.cos : a.sin) / (odd ? a.sin : a.cos);
  return x == 0.0 ? x : y;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif
