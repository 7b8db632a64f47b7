// SPDX-License-Identifier: Apache-2.0
// Tiles of the inverse of the error function and of quantiles of the normal distribution: erfinv(x) = x g(w) with
// w = -log(1 - x^2), and g by a polynomial in w up to 5, by others in sqrt(w) beyond, which interpolate at Chebyshev
// nodes. Those of f32 are in double as far as float needs; those of f64 have more terms, and up to 1/2 one in x^2.
// Arguments without a number as result, and quantiles of tiny doubles, go through the scalar functions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise/elementwise_special.h"
#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_quantile_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_math-inl.h"
#include "kernels/cpu/elementwise/elementwise_served-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

constexpr double kFarW = 5.0;
// g by w / 2.5 - 1, by (sqrt(w) - 3.1643721817180075) / 0.9283042042182177 up to w = 16.75, and by
// (sqrt(w) - 7.157600268033331) / 3.0649238820971054 up to 104.5. Relative errors 1.8e-12, 8e-12 and 8e-11.
constexpr double kNear[] = {
    1.5014093511111335,      0.6166006918278023,      -0.02610823582101904,   -0.019573559821483264,
    0.008525401863652884,    -0.00048791206831178994, -0.0008341429063831044, 0.00029225781418326717,
    2.050071161871563e-05,   -4.160382699219087e-05,  8.593226812567496e-06,  3.0938497481847667e-06,
    -1.7855558292406462e-06, -5.006546203698848e-08,  1.6053065454713078e-07};
constexpr double kFar[] = {
    2.997849355725535,      0.9322494205931701,      0.005563058040538562,   -0.0037926289393751833,
    0.002470638891381975,   -0.0015392986084559978,  0.0007466625979881592,  -0.00020815457404538214,
    -2.475956228153756e-05, 5.896898012810169e-05,   -2.761468650124422e-05, 1.760989393388882e-06,
    4.147530043523804e-06,  -1.3810577313253332e-06, -4.026817441812276e-08};
constexpr double kFarthest[] = {
    7.0279618869947615,     3.0907752578677856,      -0.0047799270897505445, 0.00027999716562295685,
    0.00043124013961511656, -0.0003654178029961413,  0.00021697648149704307, -0.00010902107710208821,
    5.0176272294096296e-05, -3.15533268395536e-05,   1.8798689766957143e-05, 1.7257128193308617e-06,
    -4.838143206065126e-06, -3.7820543688528985e-06, 3.0284958710872756e-06};

// g of -log(r), r = 1 - x^2 a positive normal number.
template <bool kFarthestToo>
HWY_INLINE double InverseErfOverX(double r) {
  const double w = -LogNormal(r);
  const bool is_near = w <= kFarW;
  const double near = ByPowers(kNear, (is_near ? w : kFarW) * 0.4 - 1.0);
  const double root = std::sqrt(is_near ? kFarW : w);
  double far = ByPowers(kFar, (root - 3.1643721817180075) * (1.0 / 0.9283042042182177));
  if constexpr (kFarthestToo) {
    const double farthest = ByPowers(kFarthest, (root - 7.157600268033331) * (1.0 / 3.0649238820971054));
    far = w > 16.75 ? farthest : far;
  }
  return is_near ? near : far;
}

struct ErfinvFn {
  static HWY_INLINE bool Serves(float x) { return std::abs(x) < 1.0f; }
  static double Slow(double x) { return InverseErf(x); }
  static HWY_INLINE float Do(float x0) {
    const double x = static_cast<double>(x0);
    return static_cast<float>(x * InverseErfOverX<false>((1.0 - x) * (1.0 + x)));
  }
};
// sqrt(2) erfinv(2 p - 1).
struct NdtriFn {
  static HWY_INLINE bool Serves(float p) { return (p > 0.0f) & (p < 1.0f); }
  static double Slow(double p) { return NormalQuantile(p); }
  static HWY_INLINE float Do(float p0) {
    const double p = static_cast<double>(p0);
    return static_cast<float>((2.0 * p - 1.0) * 1.41421356237309504880 * InverseErfOverX<true>(4.0 * p * (1.0 - p)));
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // where what follows is fused

// The same for doubles: erfinv(x) = x (c + x^2 p(8 x^2 - 1)) for |x| up to 1/2; else g = c + u p(u) with u = w - 2.625;
// u = sqrt(w) - 3.15625 from w = 5 on, sqrt(w) - 5.28125 from 16.75 to 42. Relative errors below 3e-17.
constexpr double kSmallOfDouble[] = {
    0.24945153279609664,    0.01908790958029914,    0.0018243091817854533, 0.000193888859611292,
    2.1927148470368468e-05, 2.5828005205110127e-06, 3.130907796672966e-07, 3.8771433951590164e-08,
    4.880912589317428e-09,  6.225601228894138e-10,  8.025539035075113e-11, 1.04184322023459e-11,
    1.365031142051205e-12,  1.9277152298740108e-13, 2.5574337413221833e-14};
constexpr double kNearOfDouble[] = {
    0.24553892499857968,     -0.00462673201119545,    -0.0011444927646078852,  0.00021435985800550476,
    -7.4003220524938414e-06, -2.9935989936905924e-06, 4.862541552525818e-07,   1.87076341308092e-09,
    -9.637426054886708e-09,  1.0403226368698581e-09,  7.441881684904566e-11,   -2.8929017234991406e-11,
    1.7219807076926582e-12,  3.900809101507751e-13,   -7.810802101392764e-14,  7.406684740577374e-16,
    1.530065905398141e-15,   -1.805887764792511e-16,  -1.4308430332325397e-17, 4.749542348570176e-18,
    -1.5810435659550898e-20, -5.752062728916379e-20};
constexpr double kFarOfDouble[] = {
    1.0041441056630829,      0.006572396421998707,    -0.004850557993368848,   0.0034187986612773096,
    -0.0022903843647789934,  0.0011866634560838056,   -0.0003464800938516487,  -5.3843829411137684e-05,
    0.00011790280329051059,  -5.742130179324604e-05,  5.994596254070317e-06,   8.945531824463188e-06,
    -5.815512319471433e-06,  1.1818433696911481e-06,  5.026208530578274e-07,   -4.6232299228379995e-07,
    1.4135211266487556e-07,  1.0690392234921768e-08,  -3.2054137128611376e-08, 1.4276051119480566e-08,
    -4.4825276087557794e-10, -2.0882446368619532e-09, 6.129291433765732e-10};
constexpr double kFarthestOfDouble[] = {
    1.0101775991893203,      -0.00028807059853109814, -0.00014328747366239907, 5.3002614844134195e-05,
    -1.3451413094659583e-05, 2.980699732007476e-06,   -6.155814910422618e-07,  1.2333343127669505e-07,
    -2.5871058672257174e-08, 6.802539110774209e-09,   -2.65289590889381e-09,   1.3476575931707798e-09,
    -6.78796102616816e-10,   2.9038667138322726e-10,  -1.1799020545367223e-10, 5.092716046600965e-11,
    -1.1890885922829117e-11, -2.9289725551123264e-12, 1.6028118575144025e-12};

// A number and what it lacks.
struct Split {
  double high, low;
};

// `factor` times erfinv(x) / x, with r = 1 - x^2 a positive normal number.
HWY_INLINE double InverseErfOfDouble(Split factor, double x, double r) {
  constexpr Split kMiddle = {0.886226925452758, -3.8332932499128993e-17};  // half the root of pi
  constexpr Split kNearest = {1.5321717215377202, -9.311779060407754e-18};
  constexpr Split kFurther = {2.9896930838294757, -1.921678897443298e-16};
  constexpr Split kFurthest = {5.134038093375294, -1.0240774681413472e-16};
  const double square = x * x;
  const double small = kMiddle.low + square * ByPowers(kSmallOfDouble, (square - 0.125) * 8.0);
  const double w = -LogNormal(r), beyond = w > kFarW ? w : kFarW;
  const double u = (w > kFarW ? kFarW : w) - 2.625;
  const double near = kNearest.low + u * ByPowers(kNearOfDouble, u);
  const double root = std::sqrt(beyond), rest = std::fma(-root, root, beyond) * (0.5 / root);
  const double v = (root - 3.15625) + rest, z = (root - 5.28125) + rest;
  const double far = kFurther.low + v * ByPowers(kFarOfDouble, v);
  const double farthest = kFurthest.low + z * ByPowers(kFarthestOfDouble, z);
  const bool is_small = square <= 0.25, is_near = w <= kFarW, is_far = w <= 16.75;
  const double high = is_small ? kMiddle.high : is_near ? kNearest.high : is_far ? kFurther.high : kFurthest.high;
  const double low = is_small ? small : is_near ? near : is_far ? far : farthest;
  return factor.high * high + (factor.high * low + factor.low * high);
}

struct ErfinvOfDoubleFn {
  static HWY_INLINE bool Serves(double x) { return std::abs(x) < 1.0; }
  static double Slow(double x) { return InverseErf(x); }
  static HWY_INLINE double Do(double x) { return InverseErfOfDouble({x, 0.0}, x, (1.0 - x) * (1.0 + x)); }
};
struct NdtriOfDoubleFn {
  static HWY_INLINE bool Serves(double p) { return (p > 1e-17) & (p < 1.0); }
  static double Slow(double p) { return NormalQuantile(p); }
  static HWY_INLINE double Do(double p) {
    constexpr Split kRoot = {1.4142135623730951, -9.667293313452913e-17};  // of 2
    const double x = 2.0 * p - 1.0, high = x * kRoot.high;
    // What 2 p - 1 lost where p is small, and what the product did.
    const double lost = 2.0 * p - (x + 1.0);
    const double low = std::fma(x, kRoot.high, -high) + (x * kRoot.low + lost * kRoot.high);
    return InverseErfOfDouble({high, low}, x, 4.0 * p * (1.0 - p));
  }
};

#endif

void AddTiles(TileTable& t) {
  AddServed<ErfinvFn>(t, "Erfinv", 6);
  AddServed<NdtriFn>(t, "Ndtri", 8);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  AddServed<ErfinvOfDoubleFn, double>(t, "Erfinv", 10);
  AddServed<NdtriOfDoubleFn, double>(t, "Ndtri", 10);
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {
HWY_EXPORT(AddTiles);
}  // namespace
void AddQuantileFunctionTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
