// SPDX-License-Identifier: Apache-2.0
// f32 tiles of inverse and error functions for processors with AVX-512, in double as far as float needs: nearly all
// results are rounded correctly. The others have those of elementwise_inverse-inl.h.
//
// Where that header has one long polynomial these have eight short ones, whose coefficients are permuted from registers
// to the lanes that want them; the index is that of the argument's interval, and the first interval, which is expanded
// about 0, keeps small arguments exact. Quotients and roots are estimates of 14 bits, improved to 40. All polynomials
// are interpolated at Chebyshev nodes.
//
// atan2: of the lesser over the greater, and pi/2 minus that where the angle is steep.
// asin: up to 1/2 a polynomial, beyond pi/2 - 2 asin(sqrt((1-a)/2)).
// erfc: exp(-a^2) erfcx(a), with erfcx by a / (a + 2).
#include <algorithm>
#include <cmath>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_piecewise_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using F = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using VF = hn::Vec<F>;
using Mask = hn::Mask<D>;
constexpr D kD;
constexpr F kF;

constexpr double kPi = 3.14159265358979323846, kPiHalf = kPi / 2;

// Tables: row j has the coefficients of the j-th power, a column each interval. Relative errors 4e-10, 2e-10, 7e-11.
alignas(64) constexpr double kErf[9][8] = {
    {0, 0.71115563365351513, 0.92290012825645823, 0.98667167121918244, 0.99853728341331885, 0.99989937807788036,
     0.99999569722053632, 0.99999988627274343},
    {1.1283791666913349, 0.64293107127740829, 0.23652112200053715, 0.052774995451008208, 0.0071423192152653835,
     0.00058627728647705246, 2.9189011702225461e-5, 8.8142885609616658e-7},
    {1.0364395133652126e-7, -0.48219830198834533, -0.29565140348078724, -0.092356242645400866, -0.01607021779170187,
     -0.0016122624589234024, -9.4864331391007257e-5, -3.3053693140969253e-6},
    {-0.37613077934393238, 0.02678835001786172, 0.16753589054389098, 0.090157386935237549, 0.021724512431024657,
     0.002760380311600983, 0.0001958126322149411, 7.9703271464859688e-6},
    {7.1389281907127416e-5, 0.15068698901177438, -0.0061593142448205993, -0.048102259439278312, -0.019083385297273117,
     -0.003258107383686746, -0.00028656957464033933, -1.3841539144233533e-5},
    {0.11226234974778116, -0.053217072841222658, -0.047186562328067336, 0.0066184728751590714, 0.010660061221885527,
     0.0027562905842042729, 0.00031362877275904791, 1.8330080670868591e-5},
    {0.0025543609017053238, -0.026873651101866976, 0.021296085355927081, 0.008965908153190296, -0.0029042632939352662,
     -0.0016576889976623198, -0.00026351470024332089, -1.925549076040073e-5},
    {-0.03328215988502597, 0.017885346553102985, 0.0037451869442022796, -0.005933097163841728, -0.00072154282977136832,
     0.00063581912675180406, 0.00017359722154729182, 1.7144525192668482e-5},
    {0.0087195003359160113, 0.0023265719863550949, -0.0055867888189130254, 0.00066868996782898355,
     0.00099758566156690503, -8.129268505391004e-5, -8.1950019604641583e-5, -1.1495461796416182e-5},
};
alignas(64) constexpr double kAtan[7][8] = {
    {0, 0.18534794999569476, 0.30288486837497141, 0.41241044159738731, 0.51238946031073771, 0.60228734613496418,
     0.68231655487474808, 0.75315128096219439},
    {1.0000000002483629, 0.96603773562586335, 0.91103202881776432, 0.83934426278144268, 0.75964391723494854,
     0.67904509295319744, 0.60235294116689499, 0.53222453217040613},
    {-1.4313187856669705e-7, -0.17498041937493976, -0.25936854866132798, -0.30821822097033435, -0.32459562050458243,
     -0.31700778887112267, -0.29479861599591173, -0.2655590181746327},
    {-0.33331993841837673, -0.26881642311284032, -0.17820505907053746, -0.083924895994681359, -0.0074208012979416292,
     0.043623053222439953, 0.071427545567713307, 0.082250406925019166},
    {-0.00045966138670300377, 0.15755444250490995, 0.19424727152208818, 0.17557765966910012, 0.12804493461934383,
     0.07708377095998197, 0.036350361116111254, 0.0091090734896903487},
    {0.20715852390304419, 0.10991695691753992, 0.0092926390669945395, -0.060383816443864628, -0.083822750786277909,
     -0.075230317536393888, -0.054289283205271195, -0.033594288053544689},
    {-0.051765057925035907, -0.13398442445701417, -0.12182595804992353, -0.061043424805154827, -0.005141920666812703,
     0.023552389833641864, 0.029594873122020875, 0.02464011345982869},
};
alignas(64) constexpr double kErfcx[7][8] = {
    {0.87995484146983862, 0.67078778529476152, 0.49994575154826109, 0.36313154401871962, 0.25539567631050574,
     0.17154528752820926, 0.10659389741536432, 0.056140992743822586},
    {-2.0658216884105336, -1.7042369439075796, -1.3774097241129223, -1.0927332598194195, -0.85437169523056815,
     -0.66247423913483364, -0.51328427255949113, -0.40027047946946263},
    {1.6917122532653161, 1.5554169141179633, 1.380385167245721, 1.1785156065312908, 0.96663277700620763,
     0.76335161027773142, 0.58439545434311829, 0.43853806931006456},
    {-0.34335448733661522, -0.47146187572379618, -0.57273469958341915, -0.62990894509096042, -0.63182760416744528,
     -0.57977153077346744, -0.48952694782489074, -0.38532980280881226},
    {-0.30491459316674698, -0.26491870799716344, -0.18410108581312826, -0.068735321492923023, 0.059726184360198402,
     0.16836598699161262, 0.22816180225905757, 0.23239607902255106},
    {0.03716652158590755, 0.10860819592951887, 0.18036975514646774, 0.22762086868166018, 0.22324173424231429,
     0.15741666985825818, 0.055482417210652824, -0.033549996143094587},
    {0.098400337087436752, 0.11249600638117287, 0.096588108044605634, 0.038065904490667281, -0.054156359749885173,
     -0.13693130405276968, -0.15573017490541982, -0.10300326126930513},
};
// What is subtracted from the argument in each interval.
alignas(64) constexpr double kErfCentres[8] = {0, 0.75, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75};
alignas(64) constexpr double kAtanCentres[8] = {0, 0.1875, 0.3125, 0.4375, 0.5625, 0.6875, 0.8125, 0.9375};
alignas(64) constexpr double kErfcxCentres[8] = {
    1.0 / 18, 3.0 / 18, 5.0 / 18, 7.0 / 18, 9.0 / 18, 11.0 / 18, 13.0 / 18, 15.0 / 18};
alignas(64) constexpr double kEighthPowers[8] = {
    1.0,
    1.0905077326652577,
    1.1892071150027211,
    1.2968395546510097,
    1.414213562373095,
    1.5422108254079408,
    1.6817928305074291,
    1.8340080864093425};

HWY_INLINE V Set(double v) { return hn::Set(kD, v); }

// The interval of v >= 0, intervals being 1 / `per_unit` long; a NaN has any.
HWY_INLINE __m512i Interval(V v, double per_unit) { return _mm512_cvttpd_epi64(hn::Mul(v, Set(per_unit)).raw); }
HWY_INLINE V Look(const double (&row)[8], __m512i index) {
  return V{_mm512_permutexvar_pd(index, _mm512_load_pd(row))};
}
template <size_t N>
HWY_INLINE V Piecewise(const double (&rows)[N][8], const double (&centres)[8], __m512i index, V v) {
  const V h = hn::Sub(v, Look(centres, index));
  V p = Look(rows[N - 1], index);
#pragma GCC unroll 16
  for (int j = static_cast<int>(N) - 2; j >= 0; --j) p = hn::MulAdd(p, h, Look(rows[j], index));
  return p;
}

// 1 / v for positive normal v, within 2^-40 of itself.
HWY_INLINE V Inverse(V v) {
  const V y = V{_mm512_rcp14_pd(v.raw)}, e = hn::NegMulAdd(v, y, Set(1.0));
  return hn::MulAdd(y, hn::MulAdd(e, e, e), y);
}
// The root of z >= 0, within 2^-40 of itself.
HWY_INLINE V Root(V z0) {
  const V z = hn::Max(z0, Set(1e-300));
  const V y = V{_mm512_rsqrt14_pd(z.raw)}, s = hn::Mul(z, y), e = hn::NegMulAdd(s, y, Set(1.0));
  return hn::MulAdd(hn::Mul(s, e), hn::MulAdd(e, Set(0.375), Set(0.5)), s);
}

// Bounds in this order of the operands keep a NaN.
HWY_INLINE V AtMost(double most, V v) { return hn::Min(Set(most), v); }

// fn of both halves of a vector of floats, in double.
template <class Fn>
HWY_INLINE VF ByHalves(VF x, Fn fn) {
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x.raw));
  const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.raw, 1));
  const __m256 a = _mm512_cvtpd_ps(fn(V{low}).raw), b = _mm512_cvtpd_ps(fn(V{high}).raw);
  return VF{_mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1)};
}

struct ErfOp {
  static HWY_INLINE VF Do(VF x) {
    return hn::CopySign(
        ByHalves(hn::Abs(x),
                 [](V v) HWY_ATTR {
                   const V a = AtMost(3.9999999, v);  // beyond, erf rounds to 1
                   return Piecewise(kErf, kErfCentres, Interval(a, 2.0), a);
                 }),
        x);
  }
};

// atan of 0 <= q <= 1.
HWY_INLINE V AtanOfUnit(V q) { return Piecewise(kAtan, kAtanCentres, Interval(q, 7.9999999), q); }

struct Atan2Op {
  static HWY_INLINE VF Do(VF y, VF x) {
    const VF ay = hn::Abs(y), ax = hn::Abs(x), inf = hn::Inf(kF), one = hn::Set(kF, 1.0f);
    VF low = hn::Min(ay, ax), high = hn::Max(ay, ax);
    // Two infinities have the angle of (1, 1), one of (0, 1), as have two zeros.
    const auto far = hn::Eq(high, inf);
    low = hn::IfThenElse(far, hn::IfThenElseZero(hn::Eq(low, inf), one), low);
    high = hn::IfThenElse(hn::Or(far, hn::Eq(high, hn::Zero(kF))), one, high);
    const __mmask16 steep = hn::Gt(ay, ax).raw, back = _mm512_movepi32_mask(_mm512_castps_si512(x.raw));
    const auto half = [&](__m256 low_half, __m256 high_half, int shift) HWY_ATTR {
      const V q = hn::Mul(V{_mm512_cvtps_pd(low_half)}, Inverse(V{_mm512_cvtps_pd(high_half)}));
      V p = AtanOfUnit(AtMost(1.0, q));
      const Mask is_steep{static_cast<__mmask8>(steep >> shift)}, is_back{static_cast<__mmask8>(back >> shift)};
      p = hn::IfThenElse(is_steep, hn::Sub(Set(kPiHalf), p), p);
      return _mm512_cvtpd_ps(hn::IfThenElse(is_back, hn::Sub(Set(kPi), p), p).raw);
    };
    const __m256 a = half(_mm512_castps512_ps256(low.raw), _mm512_castps512_ps256(high.raw), 0);
    const __m256 b = half(_mm512_extractf32x8_ps(low.raw, 1), _mm512_extractf32x8_ps(high.raw, 1), 8);
    const VF r = hn::CopySign(VF{_mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1)}, y);
    const auto unordered = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
    return hn::IfThenElse(unordered, hn::Add(x, y), r);
  }
};

// s + s * ((asin(s) - s) / s) for z = s^2 <= 1/4, within 1e-10 of itself.
HWY_INLINE V AsinOf(V s, V z) {
  constexpr double kCoefficients[] = {
      0.166666666860856439, 0.0749999240440183822, 0.0446476638881348454, 0.0302691387285891839,
      0.023611817008891751, 0.0105744155169129084, 0.0309745403713550731};
  V p = Set(kCoefficients[6]);
#pragma GCC unroll 8
  for (int j = 5; j >= 0; --j) p = hn::MulAdd(p, z, Set(kCoefficients[j]));
  return hn::MulAdd(hn::Mul(s, z), p, s);
}

struct AsinOp {
  static HWY_INLINE VF Do(VF x) {
    return hn::CopySign(
        ByHalves(hn::Abs(x),
                 [](V a) HWY_ATTR {
                   const Mask outer = hn::Gt(a, Set(0.5));
                   const V far = hn::NegMulAdd(a, Set(0.5), Set(0.5));
                   const V z = hn::IfThenElse(outer, far, hn::Mul(a, a));
                   const V y = AsinOf(hn::IfThenElse(outer, Root(far), a), z);
                   const V r = hn::IfThenElse(outer, hn::NegMulAdd(y, Set(2.0), Set(kPiHalf)), y);
                   return hn::IfThenElse(hn::Gt(a, Set(1.0)), hn::NaN(kD), r);
                 }),
        x);
  }
};
struct AcosOp {
  static HWY_INLINE VF Do(VF x) {
    return ByHalves(x, [](V v) HWY_ATTR {
      const V a = hn::Abs(v);
      const Mask outer = hn::Gt(a, Set(0.5));
      const V far = hn::NegMulAdd(a, Set(0.5), Set(0.5));
      const V z = hn::IfThenElse(outer, far, hn::Mul(a, a));
      // Outside: 2 y, or pi - 2 y for negative arguments; inside pi/2 - y.
      const V y = AsinOf(hn::CopySign(hn::IfThenElse(outer, Root(far), a), v), z);
      const V scaled = hn::IfThenElse(outer, hn::Add(y, y), hn::Sub(hn::Zero(kD), y));
      const V base = hn::IfThenElse(outer, hn::IfThenElseZero(hn::Lt(v, hn::Zero(kD)), Set(kPi)), Set(kPiHalf));
      return hn::IfThenElse(hn::Gt(a, Set(1.0)), hn::NaN(kD), hn::Add(base, scaled));
    });
  }
};

struct ErfcOp {
  static HWY_INLINE VF Do(VF x) {
    return ByHalves(x, [](V v) HWY_ATTR {
      const V a = AtMost(10.2, hn::Abs(v));  // beyond, erfc is below the least float
      const V t = hn::Mul(a, Inverse(hn::Add(a, Set(2.0))));
      const V tail = Piecewise(kErfcx, kErfcxCentres, Interval(t, 9.0), t);
      // exp(-a^2) by eighths of powers of two.
      constexpr double kMagic = 0x1.8p52, kPerEighth = 11.5415603271117072587, kEighthLn2 = 0.0866433975699931636772;
      constexpr double kCoefficients[] = {
          1.0, 1.0, 0.499999997248097977, 0.166666666273542035, 0.0416705767507226881, 0.00833389191208986624};
      const V w = hn::Mul(a, a), shifted = hn::NegMulAdd(w, Set(kPerEighth), Set(kMagic));
      const V n = hn::Sub(shifted, Set(kMagic)), r = hn::NegMulAdd(n, Set(kEighthLn2), hn::Neg(w));
      V p = Set(kCoefficients[5]);
#pragma GCC unroll 8
      for (int j = 4; j >= 0; --j) p = hn::MulAdd(p, r, Set(kCoefficients[j]));
      const __m512i bits = _mm512_castpd_si512(shifted.raw);
      const __m512i exponent = _mm512_slli_epi64(_mm512_srai_epi64(_mm512_slli_epi64(bits, 13), 16), 52);
      const V power = Look(kEighthPowers, bits);
      const V scale = V{_mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(power.raw), exponent))};
      const V y = hn::Mul(hn::Mul(p, scale), tail);
      return hn::IfThenElse(hn::Lt(v, hn::Zero(kD)), hn::Sub(Set(2.0), y), y);
    });
  }
};

// Whole vectors; the last one of a run is filled up.
template <class Op>
void Unary(const void* in_raw, void* out_raw, int64_t n) {
  const float* in = static_cast<const float*>(in_raw);
  float* out = static_cast<float*>(out_raw);
  constexpr int64_t kLanes = hn::MaxLanes(kF);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(Op::Do(hn::LoadU(kF, in + i)), kF, out + i);
  if (i == n) return;
  HWY_ALIGN float rest[kLanes] = {};
  std::copy(in + i, in + n, rest);
  hn::Store(Op::Do(hn::Load(kF, rest)), kF, rest);
  std::copy(rest, rest + (n - i), out + i);
}

// Steps are 1, or 0 for an operand that is one element.
template <class Op, int AStep, int BStep>
void Binary(const void* a_raw, const void* b_raw, void* out_raw, int64_t n) {
  const float* a = static_cast<const float*>(a_raw);
  const float* b = static_cast<const float*>(b_raw);
  float* out = static_cast<float*>(out_raw);
  if (n == 0) return;
  constexpr int64_t kLanes = hn::MaxLanes(kF);
  const VF one_a = hn::Set(kF, a[0]), one_b = hn::Set(kF, b[0]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(Op::Do(AStep ? hn::LoadU(kF, a + i) : one_a, BStep ? hn::LoadU(kF, b + i) : one_b), kF, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float x[kLanes] = {}, y[kLanes] = {};
  std::copy(a + AStep * i, a + AStep * n, x);
  std::copy(b + BStep * i, b + BStep * n, y);
  hn::Store(Op::Do(AStep ? hn::Load(kF, x) : one_a, BStep ? hn::Load(kF, y) : one_b), kF, x);
  std::copy(x, x + (n - i), out + i);
}

template <class Op>
void ReplaceUnary(TileTable& t, const char* name) {
  TileFn f;
  f.in = f.out = DType::kFloat;
  f.cost = 1.5f;
  f.unary = &Unary<Op>;
  t.Add(name, f);
}

void AddTiles(TileTable& t) {
  ReplaceUnary<ErfOp>(t, "Erf");
  ReplaceUnary<ErfcOp>(t, "Erfc");
  ReplaceUnary<AsinOp>(t, "Asin");
  ReplaceUnary<AcosOp>(t, "Acos");
  TileFn f;
  f.in = f.out = DType::kFloat;
  f.cost = 2;
  f.vv = &Binary<Atan2Op, 1, 1>;
  f.vs = &Binary<Atan2Op, 1, 0>;
  f.sv = &Binary<Atan2Op, 0, 1>;
  t.Add("Atan2", f);
}

#else

void AddTiles(TileTable&) {}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {
HWY_EXPORT(AddTiles);
}  // namespace
void AddPiecewiseFunctionTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
