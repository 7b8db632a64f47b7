// SPDX-License-Identifier: Apache-2.0
// f32 tiles of the inverse of the error function and of quantiles of the normal distribution, in double as far as float
// needs: erfinv(x) = x g(w) with w = -log(1 - x^2), and g by a polynomial in w up to 5, by others in sqrt(w) beyond,
// which interpolate at Chebyshev nodes. Arguments without a number as result go through the scalar functions.
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

void AddTiles(TileTable& t) {
  AddServed<ErfinvFn>(t, "Erfinv", 6);
  AddServed<NdtriFn>(t, "Ndtri", 8);
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
