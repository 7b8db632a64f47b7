// SPDX-License-Identifier: Apache-2.0
// f32 tiles of Bessel functions: in double, many elements at a time, as far as float needs. Numbers outside the range
// that these serve go through the scalar functions, one by one.
//
// J and Y up to 8: polynomials in x^2; Y has the logarithm times J beside its own (Abramowitz and
// Stegun 9.1.13, 9.1.11). Beyond, sqrt(2 / (pi x)) (P cos(a) - Q sin(a)) and (P sin(a) + Q cos(a)) with a = x - pi / 4,
// or 3 pi / 4 for order 1 (9.2.5, 9.2.6), and polynomials for P and Q. I up to 8 and beyond: polynomials in x and 1 / x
// times exp(x). K up to 2: its power series (9.6.11, 9.6.13);
// beyond, a polynomial in 1 / x times exp(-x) / sqrt(x). All polynomials interpolate at Chebyshev nodes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise/elementwise_special.h"
#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_bessel_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_math-inl.h"
#include "kernels/cpu/elementwise/elementwise_served-inl.h"
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// By t = x^2 / 32 - 1; of order 1 what is beside a factor x. Error 5e-16.
constexpr double kJ0Near[] = {
    0.04582966485981377,   0.9303012472958572,     -0.6484692830871837,   -0.808088807669687,
    1.0383794611437207,    -0.5074680458471018,    0.14598884856759667,   -0.02847271861087088,
    0.004058078989123173,  -0.0004435459224678325, 3.847319790072644e-05, -2.717749155245886e-06,
    1.595610245905574e-07, -7.915395960077798e-09, 3.364023463084912e-10, -1.239160214767994e-11,
    3.734296822383638e-13, -9.737067119675448e-15, 5.26327952414889e-15};
constexpr double kJ1Near[] = {
    -0.05814382795599107,  0.08105866038589796,    0.15151665143806634,    -0.25959486528593034,
    0.15858376432721938,   -0.054745818212846416,  0.012456814392255154,   -0.002029039494575979,
    0.0002494945813940086, -2.404574864068474e-05, 1.868452524134454e-06,  -1.196708562697832e-07,
    6.431297219058165e-09, -2.942595961136013e-10, 1.1576887596712973e-11, -4.248124485928673e-13,
    3.276391503782684e-14, 5.789607476563779e-15,  -5.131697536045168e-15};
constexpr double kY0Near[] = {
    -0.3620273432371452,     -0.4179207423206952,    1.3609456599655454,      -0.21245999442065944,
    -0.6193407826303305,     0.4482460446356333,     -0.15453679652315708,    0.0338028569639754,
    -0.005235027670544876,   0.0006104345644762857,  -5.5818305326814416e-05, 4.122054116770143e-06,
    -2.514399468880571e-07,  1.2898370162063422e-08, -5.65670646126806e-10,   2.1243467890136108e-11,
    -1.8733985556267456e-13, 5.190909430691843e-14,  -1.0750248428074108e-13};
constexpr double kY1Near[] = {
    0.04510266206869483,     -0.20760857842830602,   0.09022750636730936,     0.12052035426888152,
    -0.12641995056569916,    0.05439011630794772,    -0.01413192339424489,    0.0025271340466733057,
    -0.0003337225701313824,  3.4063633786353764e-05, -2.7765055195204893e-06, 1.8524195333483657e-07,
    -1.0315497584209885e-08, 4.871742590101464e-10,  -1.965198939793514e-11,  6.570083983032444e-13,
    -8.362240940847961e-14,  1.0160596643884303e-14, 1.4235526337971452e-14};
// By t = 128 / x^2 - 1; Q without a factor 8 / x. Error 9e-16.
constexpr double kP0[] = {
    0.9994572757882526,     -0.0005363673192140698,  6.137416047542087e-06,  -2.0527446057368537e-07,
    1.2804017665568601e-08, -1.2122332034785681e-09, 1.5430831766681685e-10, -2.462947785534612e-11,
    5.538038392069764e-12,  -1.2977042280266143e-12};
constexpr double kP1[] = {
    1.0009070262780815,      0.0008988049416716909,  -7.959694663581933e-06, 2.45367639875203e-07,
    -1.4708787285088823e-08, 1.3604283237164054e-09, -1.70564037816407e-10,  2.6934153981213644e-11,
    -5.99580030686337e-12,   1.395861821191286e-12};
constexpr double kQ0[] = {
    -0.015555113879514113,  6.833149099446327e-05, -1.4771388032911786e-06, 7.106212839650844e-08,
    -5.668946998404194e-09, 6.433889370346021e-10, -9.407491731086358e-11,  1.6788318450748244e-11,
    -4.270500077695194e-12, 1.089337989989805e-12};
constexpr double kQ1[] = {
    0.04677687402744961,   -9.621458822163328e-05, 1.8212018198987366e-06, -8.291958561587442e-08,
    6.420379002403476e-09, -7.152283169896335e-10, 1.0327925368705834e-10, -1.8264336585383883e-11,
    4.603873850437627e-12, -1.1676818848258305e-12};
// By t = 4 / x - 1. Relative error 1.4e-12.
constexpr double kK0Far[] = {
    1.2185953385144563,     -0.031071461829012964,   0.003032891707874574,  -0.0004797689061749068,
    9.956214380593478e-05,  -2.4736784828858656e-05, 6.993002216163451e-06, -2.183942804384735e-06,
    7.678527068344376e-07,  -2.856088543508959e-07,  6.913322546754262e-08, -2.138635584282188e-08,
    3.8009838478701076e-08, -1.8491795165816297e-08};
constexpr double kK1Far[] = {
    1.363151890370136,       0.10334973775850202,   -0.005566729764195891,  0.00073572398553301,
    -0.0001395920265722897,  3.28456434253069e-05,  -8.950740425123668e-06, 2.7218987800053185e-06,
    -9.351155618768748e-07,  3.417885759718606e-07, -8.368094111078538e-08, 2.5976672419164067e-08,
    -4.3621740835659235e-08, 2.1051961487182004e-08};

// exp(-x) I by t = x / 4 - 1, of order 1 without a factor x, and sqrt(x) exp(-x) I by t = 16 / x - 1. Relative error
// 3e-12.
constexpr double kI0Near[] = {
    0.20700192122391162,   -0.11300432689708961,    0.09451562856149173,    -0.08904344040741814,
    0.08734341515335539,   -0.08496340556489483,    0.0792752448852817,     -0.06954090184028668,
    0.05677685021150051,   -0.04298789141579962,    0.030178937910833186,   -0.01967483114498218,
    0.011956416890214986,  -0.006812568064658479,   0.0036256969855884735,  -0.0017780021729591102,
    0.0008430036290115775, -0.00041964930155076685, 0.00017593375055675382, -4.098517520802606e-05,
    1.66445311885083e-05,  -1.810708622982812e-05,  6.197195412207821e-06};
constexpr double kI1Near[] = {
    0.04468770987560138,    -0.06112433803079891,    0.06805759991164916,    -0.06848260610657865,
    0.06376740361193584,    -0.055280041794341005,   0.044674574506078736,   -0.03367132490339548,
    0.023685998891408,      -0.015571511791501378,   0.00958406416257019,    -0.005533751040458924,
    0.0030053980623333853,  -0.0015409830104144626,  0.0007453662856961997,  -0.0003376268311401723,
    0.0001470928322427721,  -6.528420011709193e-05,  2.5586902236887732e-05, -6.5461126290474125e-06,
    2.4347106751344157e-06, -2.0803477796914283e-06, 6.760783582003862e-07};
constexpr double kI0Far[] = {
    0.40217650944503514,   0.003360551977964521,   0.00013621607130301626, 1.114320083914407e-05,
    1.483907453200379e-06, 2.959350804250279e-07,  8.826073676008223e-08,  4.471096741520157e-08,
    2.340095301462635e-08, -3.011379241207075e-09, -1.117796500466326e-08, -1.8372389350614544e-09,
    1.4704897775631919e-09};
constexpr double kI1Far[] = {
    0.38939845902583864,     -0.009749577187214347,   -0.00021923576006330895, -1.5038723315570043e-05,
    -1.8349817262214345e-06, -3.4688653545040155e-07, -9.947371850954028e-08,  -4.877702519122594e-08,
    -2.5485465769494098e-08, 2.5943355704457125e-09,  1.1655202407698372e-08,  2.0844834905783418e-09,
    -1.4742630026817882e-09};

// Below this the polynomials about 0 serve J, Y and I, and the series K.
constexpr double kFirstFar = 8.0, kModifiedFar = 2.0;
constexpr double kTwoOverPi = 0.63661977236758134308, kSqrtOneOverPi = 0.56418958354775628695;

// J or Y of order kOrder.
template <int kOrder, bool kSecond>
struct BesselFn {
  static HWY_INLINE bool Serves(float x) {
    return ((kSecond ? x : std::abs(x)) <= static_cast<float>(kMaxAngle)) & (kSecond ? x > 0.0f : x == x);
  }
  static double Slow(double x) {
    if constexpr (kSecond) return kOrder == 0 ? BesselY0(x) : BesselY1(x);
    return kOrder == 0 ? BesselJ0(x) : BesselJ1(x);
  }
  static HWY_INLINE float Do(float x0) {
    const double x = std::abs(static_cast<double>(x0));
    const bool is_near = x <= kFirstFar;
    const double v = is_near ? x : kFirstFar, t = v * v * (1.0 / 32) - 1.0;
    double near = ByPowers(kOrder == 0 ? kJ0Near : kJ1Near, t);
    if constexpr (kSecond) {
      near = kTwoOverPi * LogNormal(0.5 * v) * near + ByPowers(kOrder == 0 ? kY0Near : kY1Near, t);
    }
    if constexpr (kOrder == 1) near *= v;
    if constexpr (kSecond && kOrder == 1) near -= kTwoOverPi / v;
    const double u = is_near ? kFirstFar : x, inverse = kFirstFar / u, s = 2.0 * inverse * inverse - 1.0;
    const double p = ByPowers(kOrder == 0 ? kP0 : kP1, s), q = inverse * ByPowers(kOrder == 0 ? kQ0 : kQ1, s);
    const ReducedAngle a = ReduceAngle<17>(u);
    const bool odd = a.quadrant & 1;
    const double sin = FromBits<double>(ToBits(odd ? a.cos : a.sin) ^ ((a.quadrant & 2) << 62));
    const double cos = FromBits<double>(ToBits(odd ? a.sin : a.cos) ^ (((a.quadrant + 1) & 2) << 62));
    // sqrt(2) times the cosine and the sine of a.
    const double c = kOrder == 0 ? cos + sin : sin - cos, d = kOrder == 0 ? sin - cos : -sin - cos;
    const double far = (kSecond ? p * d + q * c : p * c - q * d) * kSqrtOneOverPi / std::sqrt(u);
    const double y = is_near ? near : far;
    return static_cast<float>(kOrder == 1 && !kSecond ? y * std::copysign(1.0, static_cast<double>(x0)) : y);
  }
};

// I of order kOrder, times exp(-|x|) if kScaled.
template <int kOrder, bool kScaled>
struct ModifiedFirstOp {
  static HWY_INLINE float Do(float x0) {
    const double x = std::abs(static_cast<double>(x0));
    const bool is_near = x <= kFirstFar;
    const double v = is_near ? x : kFirstFar, u = is_near ? kFirstFar : x;
    double near = ByPowers(kOrder == 0 ? kI0Near : kI1Near, v * 0.25 - 1.0);
    if constexpr (kOrder == 1) near *= v;
    const double far = ByPowers(kOrder == 0 ? kI0Far : kI1Far, 16.0 / u - 1.0) / std::sqrt(u);
    double y = is_near ? near : far;
    if constexpr (!kScaled) y = x > 200.0 ? std::numeric_limits<double>::infinity() : y * Exp(x);
    return static_cast<float>(kOrder == 0 ? y : std::copysign(y, static_cast<double>(x0)));
  }
};

// Of powers of q = x^2 / 4: I of order kOrder, and with it -log(x / 2), K; both without a factor x / 2 of order 1.
template <int kOrder>
struct ModifiedSeries {
  static constexpr int kTerms = 12;
  double first[kTerms] = {}, second[kTerms] = {};
  constexpr ModifiedSeries() {
    double term = 1, harmonic = -0.57721566490153286061;  // minus Euler's constant
    for (int k = 0; k < kTerms; ++k) {
      if (k > 0) {
        term /= k * (k + kOrder);
        harmonic += 1.0 / k;
      }
      first[k] = term;
      second[k] = term * (kOrder == 0 ? harmonic : -harmonic - 0.5 / (k + 1));
    }
  }
};
// K of order kOrder, times exp(x) if kScaled.
template <int kOrder, bool kScaled>
struct ModifiedSecondFn {
  static HWY_INLINE bool Serves(float x) { return (x > 0.0f) & (x <= std::numeric_limits<float>::max()); }
  static double Slow(double x) {
    if constexpr (kScaled) return kOrder == 0 ? BesselK0Scaled(x) : BesselK1Scaled(x);
    return kOrder == 0 ? BesselK0(x) : BesselK1(x);
  }
  static HWY_INLINE float Do(float x0) {
    static constexpr ModifiedSeries<kOrder> kSeries;
    const double x = static_cast<double>(x0);
    const bool is_near = x <= kModifiedFar;
    const double v = is_near ? x : kModifiedFar, q = v * v * 0.25, log = LogNormal(0.5 * v);
    const double first = ByPowers(kSeries.first, q), second = ByPowers(kSeries.second, q);
    const double near = kOrder == 0 ? second - log * first : 1.0 / v + 0.5 * v * (log * first + second);
    const double u = is_near ? kModifiedFar : x;
    const double far = ByPowers(kOrder == 0 ? kK0Far : kK1Far, 4.0 / u - 1.0) / std::sqrt(u);
    const double scaled = kScaled ? (is_near ? x : 0.0) : (is_near ? 0.0 : -x);
    return static_cast<float>((is_near ? near : far) * Exp(scaled));
  }
};

void AddTiles(TileTable& t) {
  AddUnary<ModifiedFirstOp<0, false>, float>(t, "BesselI0", 4);
  AddUnary<ModifiedFirstOp<1, false>, float>(t, "BesselI1", 4);
  AddUnary<ModifiedFirstOp<0, true>, float>(t, "BesselI0e", 3);
  AddUnary<ModifiedFirstOp<1, true>, float>(t, "BesselI1e", 3);
  AddServed<BesselFn<0, false>>(t, "BesselJ0", 8);
  AddServed<BesselFn<1, false>>(t, "BesselJ1", 8);
  AddServed<BesselFn<0, true>>(t, "BesselY0", 10);
  AddServed<BesselFn<1, true>>(t, "BesselY1", 10);
  AddServed<ModifiedSecondFn<0, false>>(t, "BesselK0", 8);
  AddServed<ModifiedSecondFn<1, false>>(t, "BesselK1", 8);
  AddServed<ModifiedSecondFn<0, true>>(t, "BesselK0e", 8);
  AddServed<ModifiedSecondFn<1, true>>(t, "BesselK1e", 8);
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
void AddBesselFunctionTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
