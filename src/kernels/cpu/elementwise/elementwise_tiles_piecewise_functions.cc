// SPDX-License-Identifier: Apache-2.0
// f32 tiles of inverse and error functions and tanh for processors with AVX-512. The others have those of
// elementwise_inverse-inl.h and elementwise_math-inl.h.
//
// erf, tanh and atan2: where those have one long polynomial these have 32 short ones, about points x0 at equal
// distances, whose coefficients are permuted from registers to the lanes that want them. The point of an argument is
// the nearest, so that h = x - x0 is exact, and f = C + c h + p(h) h^2 is summed with what the first two leave out: at
// most 0.505 ulp, 1.5 for tanh. A polynomial about 0 keeps small arguments exact. atan2 is that of the lesser over the
// greater; pi/2 minus that where the angle is steep. erfc: up to 1 as 1 - erf(x); beyond exp(-a^2) erfcx(a) in double,
// with erfcx by a / (a + 2) and its eight polynomials.
//
// atan is atan2 of the argument or its inverse. asin and acos: of a, up to 1/2, by one series of few terms; it gives so
// little of the sum that its own rounding hardly shows: at most 0.55 ulp, 0.68 for acos. Beyond, asin(a) = pi/2 - 2
// asin(sqrt((1-a)/2)). Quotient and root are two floats.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_piecewise_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_lookup_tables.h"
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

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

constexpr float kPiHalf = 1.57079637f, kPiHalfLow = -4.37113883e-8f;

// Row j has the coefficients of the j-th power, a column each interval. Relative error 7e-11.
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

HWY_INLINE VF SetF(float v) { return hn::Set(kF, v); }
HWY_INLINE VF ZeroF() { return hn::Zero(kF); }
HWY_INLINE VF Look(const float (&row)[32], __m512i index) {
  return VF{_mm512_permutex2var_ps(_mm512_load_ps(row), index, _mm512_load_ps(row + 16))};
}

// The point of a table that is nearest to an argument, and how far that is.
struct Place {
  VF h;
  __m512i column;
};
// `step` is a number of few bits, so that its multiples are exact. A NaN has any column, and h is NaN.
HWY_INLINE Place Locate(float step, VF v) {
  const VF magic = SetF(0x1.8p23f), shifted = hn::MulAdd(v, SetF(1.0f / step), magic);
  return {hn::NegMulAdd(hn::Sub(shifted, magic), SetF(step), v), _mm512_castps_si512(shifted.raw)};
}
template <size_t N>
HWY_INLINE VF Polynomial(const LookupTable<N>& rows, size_t from, Place at) {
  VF p = Look(rows[N - 1], at.column);
#pragma GCC unroll 16
  for (size_t j = N - 1; j-- > from;) p = hn::MulAdd(p, at.h, Look(rows[j], at.column));
  return p;
}
// What an argument is beyond x0 + h.
struct Nothing {
  HWY_INLINE VF Reach(VF h) const { return h; }
  HWY_INLINE VF Rise(VF, VF rest) const { return rest; }
};
struct Low {
  VF low;
  // The slope changes on the way to x0 + h: what `low` adds to p(h) h^2 is about 2 p(h) h low.
  HWY_INLINE VF Reach(VF h) const { return hn::MulAdd(low, SetF(2.0f), h); }
  HWY_INLINE VF Rise(VF slope, VF rest) const { return hn::MulAdd(slope, low, rest); }
};
// f(x0 + h + low) in two floats.
struct Twofold {
  VF high, low;
};
template <class Beyond, size_t N>
HWY_INLINE Twofold LookupTwofold(const LookupTable<N>& rows, Place at, Beyond low) {
  const VF c = Look(rows[0], at.column), slope = Look(rows[2], at.column);
  const VF t = hn::Mul(slope, at.h), sum = hn::Add(c, t);
  const VF rest = low.Rise(slope, hn::Add(hn::MulSub(slope, at.h, t), Look(rows[1], at.column)));
  const VF lost = hn::Add(hn::Sub(c, sum), t);
  return {sum, hn::MulAdd(Polynomial(rows, 3, at), low.Reach(at.h), hn::Add(lost, rest))};
}
// f(x0 + h + low).
template <class Beyond, size_t N>
HWY_INLINE VF Lookup(const LookupTable<N>& rows, Place at, Beyond low) {
  const Twofold f = LookupTwofold(rows, at, low);
  return hn::Add(f.high, f.low);
}
// base + f(x0 + h + low), or base - f where `flip` has the sign bit, and no other. |base| is 0 or not less than |f|.
template <class Beyond, size_t N>
HWY_INLINE VF LookupFrom(VF base, VF base_low, VF flip, const LookupTable<N>& rows, Place at, Beyond low) {
  const Twofold f = LookupTwofold(rows, at, low);
  const VF high = hn::Xor(f.high, flip), sum = hn::Add(base, high);
  const VF lost = hn::Add(hn::Sub(base, sum), high);
  return hn::Add(sum, hn::Add(lost, hn::Add(hn::Xor(f.low, flip), base_low)));
}

// Bounds in this order of the operands keep a NaN.
HWY_INLINE VF MagnitudeUpTo(float most, VF v) { return hn::Min(SetF(most), hn::Abs(v)); }

struct ErfOp {
  static HWY_INLINE VF Do(VF x) {
    const VF a = MagnitudeUpTo(3.93f, x);  // beyond, erf rounds to 1
    const VF y = Lookup(kErf, Locate(0.125f, a), Nothing());
    // There what a product leaves out would be no float.
    const auto tiny = hn::And(hn::Lt(a, SetF(0x1p-90f)), hn::Gt(a, ZeroF()));
    if (HWY_UNLIKELY(!hn::AllFalse(kF, tiny))) {
      const VF line = ByHalves(a, [](V v) HWY_ATTR { return hn::Mul(v, Set(1.12837916709551257390)); });
      return hn::CopySign(hn::IfThenElse(tiny, line, y), x);
    }
    return hn::CopySign(y, x);
  }
};

struct TanhOp {
  static HWY_INLINE VF Do(VF x) {
    return hn::CopySign(Polynomial(kTanh, 0, Locate(0.3125f, MagnitudeUpTo(9.6f, x))), x);  // beyond, it rounds to 1
  }
};

constexpr float kAtanStep = 33.0f / 1024;

// c[0] + c[1] z + ..., even and odd powers apart, which do not wait for each other.
template <size_t N>
HWY_INLINE VF Series(const float (&c)[N], VF z) {
  const VF square = hn::Mul(z, z);
  VF last = SetF(c[N - 1]), other = SetF(c[N - 2]);
#pragma GCC unroll 16
  for (size_t j = N - 2; j-- > 0;) {
    const VF p = hn::MulAdd(last, square, SetF(c[j]));
    last = other;
    other = p;
  }
  return hn::MulAdd(last, z, other);
}
struct AtanOp {
  static HWY_INLINE VF Do(VF x) {
    const VF a = MagnitudeUpTo(1e30f, x), one = SetF(1.0f), inverse = hn::Div(one, a);
    const auto steep = hn::Gt(a, one);
    const VF low = hn::IfThenElseZero(steep, hn::Mul(hn::NegMulAdd(a, inverse, one), inverse));
    const Place at = Locate(kAtanStep, hn::IfThenElse(steep, inverse, a));
    const VF base = hn::IfThenElseZero(steep, SetF(kPiHalf)), base_low = hn::IfThenElseZero(steep, SetF(kPiHalfLow));
    return hn::CopySign(LookupFrom(base, base_low, hn::IfThenElseZero(steep, SetF(-0.0f)), kAtan, at, Low{low}), x);
  }
};

struct Atan2Op {
  static HWY_INLINE VF Do(VF y, VF x) {
    const VF ay = hn::Abs(y), ax = hn::Abs(x), inf = hn::Inf(kF), one = SetF(1.0f);
    VF low = hn::Min(ay, ax), high = hn::Max(ay, ax);
    // Two infinities have the angle of (1, 1), one of (0, 1), as have two zeros.
    const auto far = hn::Eq(high, inf);
    low = hn::IfThenElse(far, hn::IfThenElseZero(hn::Eq(low, inf), one), low);
    high = hn::IfThenElse(hn::Or(far, hn::Eq(high, ZeroF())), one, high);
    // So that what the quotient leaves out is a float.
    const auto small = hn::Lt(high, SetF(0x1p-40f));
    low = hn::IfThenElse(small, hn::Mul(low, SetF(0x1p80f)), low);
    high = hn::IfThenElse(small, hn::Mul(high, SetF(0x1p80f)), high);
    const VF q = hn::Div(low, high);
    const VF q_low = hn::Mul(hn::NegMulAdd(q, high, low), VF{_mm512_rcp14_ps(high.raw)});
    const auto steep = hn::Gt(ay, ax), back = hn::Mask<F>{_mm512_movepi32_mask(_mm512_castps_si512(x.raw))};
    const VF turn = hn::IfThenElseZero(back, SetF(2 * kPiHalf)),
             turn_low = hn::IfThenElseZero(back, SetF(2 * kPiHalfLow));
    const VF base = hn::IfThenElse(steep, SetF(kPiHalf), turn),
             base_low = hn::IfThenElse(steep, SetF(kPiHalfLow), turn_low);
    const VF flip = hn::IfThenElseZero(hn::Xor(steep, back), SetF(-0.0f));
    const VF r = hn::CopySign(LookupFrom(base, base_low, flip, kAtan, Locate(kAtanStep, q), Low{q_low}), y);
    const auto unordered = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
    return hn::IfThenElse(unordered, hn::Add(x, y), r);
  }
};

// The root of (1 - |x|) / 2 for |x| > 1/2 with the sign of `sign`, what twice it leaves out, and the square that the
// arc sine of the root, else of x, is a series in. NaN where |x| > 1.
template <bool kExact>
struct HalfAngle {
  HWY_INLINE HalfAngle(VF x, VF sign) {
    const VF a = hn::Abs(x), half = SetF(0.5f), outer_z = hn::NegMulAdd(a, half, half);
    // Of 0 too a number, the inverse.
    const VF inverse = hn::Or(VF{_mm512_rsqrt14_ps(hn::Add(outer_z, SetF(1e-30f)).raw)}, sign);
    outer = hn::Not(hn::Le(a, half));
    root = kExact ? hn::Or(hn::Sqrt(outer_z), sign) : hn::Mul(outer_z, inverse);
    twice_low = hn::IfThenElseZero(outer, hn::Mul(hn::NegMulAdd(root, root, outer_z), inverse));
    z = hn::IfThenElse(outer, outer_z, hn::Mul(x, x));
  }
  // base + arc sine of v, z being its square, twice_low what it leaves out; base is 0, pi/2 or pi, and not less than
  // |v| where it is not 0. The arc sine is v + v z (kLead + rest): the exact one sums the largest part of the product,
  // that with kLead, without an error of its own.
  HWY_INLINE VF AngleFrom(VF base, VF v) const {
    const VF sum = hn::Add(base, v), lost = hn::Add(hn::Sub(base, sum), v);
    if constexpr (kExact) {
      constexpr float kSlope = 1.045f, kLead = 0.17578125f,
                      kSeries[] = {
                          -0.00911465128f, 0.0750051111f, 0.044515714f, 0.0318176188f, 0.0144025812f, 0.037565235f};
      const VF low = hn::MulAdd(base, SetF(kPiHalfLow / kPiHalf), hn::MulAdd(twice_low, SetF(kSlope), lost));
      const VF lead = SetF(kLead), cube = hn::Mul(v, z), z_low = hn::IfThenZeroElse(outer, hn::MulSub(v, v, z));
      const VF cube_low = hn::MulAdd(v, z_low, hn::MulSub(v, z, cube)), small = hn::MulAdd(cube_low, lead, low);
      return hn::Add(sum, hn::MulAdd(cube, lead, hn::MulAdd(cube, Series(kSeries, z), small)));
    } else {
      constexpr float kSeries[] = {0.166667536f, 0.0749525204f, 0.0454760417f, 0.0241520926f, 0.0422117971f};
      const VF low = hn::MulAdd(base, SetF(kPiHalfLow / kPiHalf), hn::Add(twice_low, lost));
      const VF tail = hn::Mul(z, Series(kSeries, z));
      return hn::Add(sum, hn::MulAdd(v, tail, hn::MulAdd(twice_low, tail, low)));
    }
  }
  hn::Mask<F> outer;
  VF root, twice_low, z;
};

struct AsinOp {
  static HWY_INLINE VF Do(VF x) {
    const HalfAngle<true> half(x, SetF(-0.0f));
    const VF v = hn::IfThenElse(half.outer, hn::Add(half.root, half.root), hn::Abs(x));
    return hn::CopySign(half.AngleFrom(hn::IfThenElseZero(half.outer, SetF(kPiHalf)), v), x);
  }
};
// The exact way would take a quarter longer.
struct AcosOp {
  static HWY_INLINE VF Do(VF x) {
    const HalfAngle<false> half(x, hn::And(x, SetF(-0.0f)));
    const VF v = hn::IfThenElse(half.outer, hn::Add(half.root, half.root), hn::Neg(x));
    const VF turn = hn::IfThenElseZero(hn::Lt(x, ZeroF()), SetF(2 * kPiHalf));
    return half.AngleFrom(hn::IfThenElse(half.outer, turn, SetF(kPiHalf)), v);
  }
};

struct ErfcOp {
  static constexpr float kNear = 0x1.f8p-1f;  // the table's end
  // 1 - erf(x) for |x| < kNear.
  static HWY_INLINE VF Near(VF x) {
    const VF flip = hn::AndNot(x, SetF(-0.0f));
    return LookupFrom(SetF(1.0f), ZeroF(), flip, kErfNear, Locate(1.0f / 32, hn::Abs(x)), Nothing());
  }
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

// Near for vectors whose arguments are nearly all near; those that are not are collected, and Do computes them.
void Erfc(const void* in_raw, void* out_raw, int64_t n) {
  const float* in = static_cast<const float*>(in_raw);
  float* out = static_cast<float*>(out_raw);
  constexpr int64_t kLanes = hn::MaxLanes(kF), kBlock = 512;
  HWY_ALIGN float far[kBlock + kLanes];
  HWY_ALIGN int32_t places[kBlock + kLanes];
  int64_t i = 0;
  while (i + kLanes <= n) {
    const float* const from = in + i;
    float* const to = out + i;
    const int64_t block = std::min(kBlock, (n - i) / kLanes * kLanes);
    int64_t count = 0;
    for (int64_t j = 0; j < block; j += kLanes) {
      const VF x = hn::LoadU(kF, from + j);
      const __mmask16 beyond = _mm512_cmp_ps_mask(hn::Abs(x).raw, SetF(ErfcOp::kNear).raw, _CMP_NLT_UQ);
      if (HWY_UNLIKELY(__builtin_popcount(beyond) > kLanes / 2)) {
        hn::StoreU(ErfcOp::Do(x), kF, to + j);
        continue;
      }
      hn::StoreU(ErfcOp::Near(x), kF, to + j);
      if (HWY_LIKELY(beyond == 0)) continue;
      const __m512i lanes = _mm512_add_epi32(
          _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
          _mm512_set1_epi32(static_cast<int>(j)));
      _mm512_storeu_ps(far + count, _mm512_maskz_compress_ps(beyond, x.raw));
      _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi32(beyond, lanes));
      count += __builtin_popcount(beyond);
    }
    for (int64_t j = 0; j < count; j += kLanes) hn::Store(ErfcOp::Do(hn::Load(kF, far + j)), kF, far + j);
    for (int64_t j = 0; j < count; ++j) to[places[j]] = far[j];
    i += block;
  }
  UnaryRun<float, ErfcOp>(in + i, out + i, n - i);
}

void ReplaceUnary(TileTable& t, const char* name, void (*run)(const void*, void*, int64_t)) {
  TileFn f;
  f.in = f.out = DType::kFloat;
  f.cost = 1.5f;
  f.unary = run;
  t.Add(name, f);
}

void AddTiles(TileTable& t) {
  ReplaceUnary(t, "Tanh", &UnaryRun<float, TanhOp>);
  ReplaceUnary(t, "Erf", &UnaryRun<float, ErfOp>);
  ReplaceUnary(t, "Erfc", &Erfc);
  ReplaceUnary(t, "Asin", &UnaryRun<float, AsinOp>);
  ReplaceUnary(t, "Acos", &UnaryRun<float, AcosOp>);
  ReplaceUnary(t, "Atan", &UnaryRun<float, AtanOp>);
  TileFn f;
  f.in = f.out = DType::kFloat;
  f.cost = 2;
  f.vv = &BinaryRun<float, Atan2Op, 1, 1>;
  f.vs = &BinaryRun<float, Atan2Op, 1, 0>;
  f.sv = &BinaryRun<float, Atan2Op, 0, 1>;
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
