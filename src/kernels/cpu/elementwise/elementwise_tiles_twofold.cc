// SPDX-License-Identifier: Apache-2.0
// f64 tiles of atan, atan2 and atanh for AVX2, of erf and erfc too for AVX-512, with results of two doubles before the
// last rounding: at most 0.51 ulp for angles, 0.6 for atanh and erf, 0.8 for erfc. The others have the C
// library's.
//
// atan(low / high) of 0 <= low <= high is atan(c) + atan(r) with c the nearest multiple of 17/256 and
// r = (low - c high) / (high + c low), which is small: a short series. atanh(x) is half the logarithm of (1 + x) / (1 -
// x), with 2^k the power of two nearest to that k log(2) / 2 + atanh(s), s = (1 + x - 2^k (1 - x)) / (1 + x + 2^k (1 -
// x)), again a short series. erf is a polynomial of sixteen about the middle of its interval. erfc is 1 - erf(x) up to
// 1, and exp(-a^2) erfcx(a) beyond, exp by sixteenths of powers of two and erfcx by sixteen polynomials.
//
// Nothing here may be fused but what says so: sums tell what they lost.
#include "kernels/cpu/elementwise/elementwise_twofold.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_twofold.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"
#include "kernels/cpu/elementwise/elementwise_twofold_tables.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
using Integers = hn::Vec<hn::RebindToSigned<D>>;
using Mask = hn::Mask<D>;
constexpr D kD;

constexpr double kPiHalf = 0x1.921fb54442d18p+0, kPiHalfLow = 0x1.1a62633145c07p-54;
constexpr double kMagic = 0x1.8p52;  // adding it rounds to an integer in the low bits

HWY_INLINE V Set(double v) { return hn::Set(kD, v); }
HWY_INLINE V Zero() { return hn::Zero(kD); }
HWY_INLINE V SignWhere(Mask mask) { return hn::IfThenElseZero(mask, Set(-0.0)); }
// Bounds in this order of the operands keep a NaN.
HWY_INLINE V AtMost(double most, V v) { return hn::Min(Set(most), v); }

#if HWY_TARGET == HWY_AVX3
// Within 2^-14 of itself.
HWY_INLINE V Inverse(V v) { return V{_mm512_rcp14_pd(v.raw)}; }
// The low four bits of `index` choose the column.
HWY_INLINE V Look(const double (&row)[16], Integers index) {
  return V{_mm512_permutex2var_pd(_mm512_load_pd(row), index.raw, _mm512_load_pd(row + 8))};
}
#else
HWY_INLINE V Inverse(V v) { return hn::Div(Set(1.0), v); }
HWY_INLINE V Look(const double (&row)[16], Integers index) {
  const hn::RebindToSigned<D> d;
  return hn::GatherIndex(kD, row, hn::And(index, hn::Set(d, 15)));
}
#endif

struct Twofold {
  V high, low;
};
// a + b + b_low with |a| >= |b| or a = 0.
HWY_INLINE Twofold Sum(V a, V b, V b_low) {
  const V sum = hn::Add(a, b);
  return {sum, hn::Add(hn::Add(hn::Sub(a, sum), b), b_low)};
}
HWY_INLINE V Rounded(Twofold v) { return hn::Add(v.high, v.low); }
// base + v, or base - v where `flip` has the sign bit, and no other. base is 0 or its magnitude not less than v's.
HWY_INLINE V RoundedFrom(V base, V base_low, V flip, Twofold v) {
  return Rounded(Sum(base, hn::Xor(v.high, flip), hn::Add(hn::Xor(v.low, flip), base_low)));
}

// a + b, whichever is larger.
HWY_INLINE Twofold AnySum(V a, V b) {
  const V sum = hn::Add(a, b), part = hn::Sub(sum, a);
  return {sum, hn::Add(hn::Sub(a, hn::Sub(sum, part)), hn::Sub(b, part))};
}

// The sum of c[k] z^k.
template <size_t N>
HWY_INLINE V Polynomial(const double (&c)[N], V z) {
  V p = Set(c[N - 1]);
#pragma GCC unroll 16
  for (size_t k = N - 1; k-- > 0;) p = hn::MulAdd(p, z, Set(c[k]));
  return p;
}

// The angle whose tangent is low / high, for 0 <= low <= high in the range where products keep their digits.
HWY_INLINE Twofold AngleOf(V low, V high) {
  constexpr double kStep = 17.0 / 256;
  // Rounded down where that is in doubt, so that no c is twice the quotient.
  const V quotient = hn::Mul(low, Inverse(high));
  const V shifted = hn::MulAdd(quotient, Set((1.0 - 0x1p-12) / kStep), Set(kMagic));
  const auto index = hn::BitCast(hn::RebindToSigned<D>(), shifted);
  const V c = hn::Mul(hn::Sub(shifted, Set(kMagic)), Set(kStep));
  const V product = hn::Mul(c, high), product_low = hn::MulSub(c, high, product);
  const V numerator = hn::Sub(low, product), denominator = hn::MulAdd(c, low, high);
  const V denominator_low = hn::MulAdd(c, low, hn::Sub(high, denominator));
  const V r = hn::Div(numerator, denominator);
  const V rest = hn::Sub(hn::NegMulAdd(r, denominator, numerator), hn::MulAdd(r, denominator_low, product_low));
  // Where it could be seen, it is no subnormal number.
  const V r_low = hn::IfThenElseZero(hn::Gt(quotient, Set(0x1p-40)), hn::Mul(rest, Inverse(denominator)));
  constexpr double kSeries[] = {-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11};
  const V z = hn::Mul(r, r), tail = hn::MulAdd(hn::Mul(r, z), Polynomial(kSeries, z), r_low);
  return Sum(Look(kAtanTwofold[0], index), r, hn::Add(Look(kAtanTwofold[1], index), tail));
}

struct AtanOp {
  static HWY_INLINE V Do(V x) {
    const V a = AtMost(1e300, hn::Abs(x)), one = Set(1.0);
    const auto steep = hn::Gt(a, one);
    const V base = hn::IfThenElseZero(steep, Set(kPiHalf)), base_low = hn::IfThenElseZero(steep, Set(kPiHalfLow));
    const Twofold angle = AngleOf(hn::IfThenElse(steep, one, a), hn::IfThenElse(steep, a, one));
    return hn::CopySign(RoundedFrom(base, base_low, SignWhere(steep), angle), x);
  }
};

struct Atan2Op {
  static HWY_INLINE V Do(V y, V x) {
    const V ay = hn::Abs(y), ax = hn::Abs(x), inf = hn::Inf(kD), one = Set(1.0);
    V low = hn::Min(ay, ax), high = hn::Max(ay, ax);
    // Two infinities have the angle of (1, 1), one of (0, 1), as have two zeros.
    const auto far = hn::Eq(high, inf);
    low = hn::IfThenElse(far, hn::IfThenElseZero(hn::Eq(low, inf), one), low);
    high = hn::IfThenElse(hn::Or(far, hn::Eq(high, Zero())), one, high);
    // So that no sum overflows, and what products leave out are numbers.
    const V scale = hn::IfThenElse(
        hn::Lt(high, Set(0x1p-800)), Set(0x1p200), hn::IfThenElse(hn::Gt(high, Set(0x1p1000)), Set(0x1p-100), one));
    const Twofold angle = AngleOf(hn::Mul(low, scale), hn::Mul(high, scale));
    const auto steep = hn::Gt(ay, ax), back = hn::Lt(hn::CopySign(one, x), Zero());
    const V turn = hn::IfThenElseZero(back, Set(2 * kPiHalf)), turn_low = hn::IfThenElseZero(back, Set(2 * kPiHalfLow));
    const V base = hn::IfThenElse(steep, Set(kPiHalf), turn),
            base_low = hn::IfThenElse(steep, Set(kPiHalfLow), turn_low);
    const V r = hn::CopySign(RoundedFrom(base, base_low, SignWhere(hn::Xor(steep, back)), angle), y);
    return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), r);
  }
};

struct AtanhOp {
  static HWY_INLINE V Do(V x) {
    const hn::RebindToUnsigned<D> du;
    const V a = hn::Abs(x), one = Set(1.0);
    const Twofold above = Sum(one, a, Zero()), below = Sum(one, hn::Neg(a), Zero());
    // The exponent of what is left for a quotient in [sqrt(1/2), sqrt(2)).
    constexpr uint64_t kOne = 0x3ff0000000000000, kSqrtHalf = 0x3fe6a09e667f3bcd;
    const auto quotient = hn::BitCast(du, hn::Mul(above.high, Inverse(below.high)));
    const auto biased = hn::ShiftRight<52>(hn::Add(quotient, hn::Set(du, kOne - kSqrtHalf)));
    const V power = hn::BitCast(kD, hn::ShiftLeft<52>(biased));
    const V k = hn::Sub(hn::BitCast(kD, hn::Or(biased, hn::BitCast(du, Set(0x1p52)))), Set(0x1p52 + 1023));
    const V other = hn::Mul(below.high, power), other_low = hn::Mul(below.low, power);
    const V numerator = hn::Sub(above.high, other),
            numerator_low = hn::Sub(above.low, other_low);  // the first is exact
    const Twofold denominator = Sum(above.high, other, hn::Add(above.low, other_low));
    const auto near = hn::Eq(k, Zero());  // where s is the argument
    const V ratio = hn::Div(numerator, denominator.high), s = hn::IfThenElse(near, a, ratio);
    const V rest =
        hn::Add(hn::NegMulAdd(s, denominator.high, numerator), hn::NegMulAdd(s, denominator.low, numerator_low));
    const V s_low = hn::IfThenZeroElse(near, hn::Mul(rest, Inverse(denominator.high)));
    constexpr double kSeries[] = {
        1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
    constexpr double kLn2Half = 0x1.62e42fefa0000p-2, kLn2HalfLow = 0x1.cf79abc9e3b3ap-41;  // k times it is exact
    const V z = hn::Mul(s, s), tail = hn::MulAdd(hn::Mul(s, z), Polynomial(kSeries, z), s_low);
    const V y = Rounded(Sum(hn::Mul(k, Set(kLn2Half)), s, hn::MulAdd(k, Set(kLn2HalfLow), tail)));
    const V beyond = hn::IfThenElse(hn::Eq(a, one), hn::Inf(kD), hn::NaN(kD));
    return hn::CopySign(hn::IfThenElse(hn::Lt(a, one), y, beyond), x);
  }
};

#if HWY_TARGET == HWY_AVX3

// Coefficients of rows `from` on. Even and odd powers apart, which do not wait for each other.
template <size_t kFrom, size_t N>
HWY_INLINE V Polynomial(const TwofoldTable<N>& rows, Integers index, V h) {
  const V square = hn::Mul(h, h);
  V last = Look(rows[N - 1], index), other = Look(rows[N - 2], index);
#pragma GCC unroll 16
  for (size_t j = N - 2; j-- > kFrom;) {
    const V p = hn::MulAdd(last, square, Look(rows[j], index));
    last = other;
    other = p;
  }
  return hn::MulAdd(last, h, other);
}

// erf of 0 <= a <= 5.93.
HWY_INLINE Twofold ErfOf(V a) {
  constexpr double kStep = 49.0 / 128;
  const V shifted = hn::MulAdd(a, Set(1.0 / kStep), Set(kMagic));
  const auto index = hn::BitCast(hn::RebindToSigned<D>(), shifted);
  const V h = hn::NegMulAdd(hn::Sub(shifted, Set(kMagic)), Set(kStep), a);
  const V slope = Look(kErfTwofold[2], index), rise = hn::Mul(slope, h);
  const V rest = hn::MulAdd(Polynomial<3>(kErfTwofold, index, h), h, hn::MulSub(slope, h, rise));
  return Sum(Look(kErfTwofold[0], index), rise, hn::Add(rest, Look(kErfTwofold[1], index)));
}
constexpr double kErfEnd = 5.93;  // beyond, erf rounds to 1

struct ErfOp {
  static HWY_INLINE V Do(V x) { return hn::CopySign(Rounded(ErfOf(AtMost(kErfEnd, hn::Abs(x)))), x); }
};

// erfc of a >= 1.
HWY_INLINE V ErfcFar(V a0) {
  const V a = AtMost(30.0, a0);  // beyond, erfc is below the least double
  // erfcx
  const auto interval = hn::ShiftRight<50>(hn::BitCast(hn::RebindToSigned<D>(), hn::Add(a, Set(1.0))));
  const V h = hn::Sub(a, Look(kErfcxTwofold[0], interval));
  const V rise = hn::Mul(Polynomial<3>(kErfcxTwofold, interval, h), h);
  const Twofold tail = Sum(Look(kErfcxTwofold[1], interval), rise, Look(kErfcxTwofold[2], interval));
  // exp(-a^2)
  constexpr double kPerSixteenth = 23.083120654223414, kLn2Sixteenth = 0x1.62e42fefa0000p-5,
                   kLn2SixteenthLow = 0x1.cf79abc9e3b3ap-44;
  const V square = hn::Mul(a, a), square_low = hn::MulSub(a, a, square);
  const V shifted = hn::NegMulAdd(square, Set(kPerSixteenth), Set(kMagic)), n = hn::Sub(shifted, Set(kMagic));
  const V r = hn::Sub(
      hn::NegMulAdd(n, Set(kLn2SixteenthLow), hn::NegMulAdd(n, Set(kLn2Sixteenth), hn::Neg(square))), square_low);
  constexpr double kSeries[] = {1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320};
  const auto index = hn::BitCast(hn::RebindToSigned<D>(), shifted);
  const V power = Look(kSixteenthPowers[0], index);
  const Twofold exp = Sum(power, hn::Mul(power, hn::Mul(r, Polynomial(kSeries, r))), Look(kSixteenthPowers[1], index));
  const V y = hn::MulAdd(exp.high, tail.high, hn::MulAdd(exp.high, tail.low, hn::Mul(exp.low, tail.high)));
  return V{_mm512_scalef_pd(y.raw, hn::Floor(hn::Mul(n, Set(1.0 / 16))).raw)};
}

struct ErfcOp {
  static HWY_INLINE V Do(V x) {
    const auto far = hn::Ge(x, Set(1.0));
    if (hn::AllTrue(kD, far)) return ErfcFar(x);
    const V flip = hn::AndNot(x, Set(-0.0));
    const V near = RoundedFrom(Set(1.0), Zero(), flip, ErfOf(AtMost(kErfEnd, hn::Abs(x))));
    if (hn::AllFalse(kD, far)) return near;
    return hn::IfThenElse(far, ErfcFar(hn::IfThenElse(far, x, Set(1.0))), near);
  }
};

#endif

// |a|^2.
HWY_INLINE Twofold SquareOfSize(V re, V im) {
  const V x = hn::Max(hn::Abs(re), hn::Abs(im)), y = hn::Min(hn::Abs(re), hn::Abs(im));
  const V p = hn::Mul(x, x), q = hn::Mul(y, y);
  return Sum(p, q, hn::Add(hn::MulSub(x, x, p), hn::MulSub(y, y, q)));
}

bool SizesOf(const double* re, const double* im, int64_t n, double* sizes) {
  ForVectors<double>(n, [&](auto how, int64_t i) HWY_ATTR {
    const Twofold square = SquareOfSize(how.Load(re + i), how.Load(im + i));
    const V root = hn::Sqrt(square.high);
    const V rest = hn::Add(hn::NegMulAdd(root, root, square.high), square.low);
    how.Store(hn::MulAdd(rest, hn::Div(Set(0.5), root), root), sizes + i);
  });
  return true;
}

// Near 1 from |a|^2 - 1, whose digits are all there.
bool LogPartsOf(const double* re, const double* im, int64_t n, double* u, double* c) {
  ForVectors<double>(n, [&](auto how, int64_t i) HWY_ATTR {
    const V a = hn::Abs(how.Load(re + i)), b = hn::Abs(how.Load(im + i)), one = Set(1.0);
    const V x = hn::Max(a, b), y = hn::Min(a, b);
    const V p = hn::Mul(x, x), q = hn::Mul(y, y);
    const V p_low = hn::MulSub(x, x, p), q_low = hn::MulSub(y, y, q);
    const Twofold square = Sum(p, q, hn::Add(p_low, q_low));
    // The sum of p - 1, q and what the squares lost, and what each addition lost.
    const Twofold lows = AnySum(p_low, q_low), first = AnySum(p, Set(-1.0)), second = AnySum(first.high, q);
    const Twofold third = AnySum(second.low, first.low), fourth = AnySum(third.high, lows.high);
    const Twofold all = AnySum(second.high, fourth.high);
    const V rest = hn::Add(hn::Add(hn::Add(third.low, fourth.low), lows.low), all.low);
    const V t = hn::Add(all.high, rest), t_low = hn::Sub(rest, hn::Sub(t, all.high));
    const V above = hn::Add(one, t);
    const auto near = hn::And(hn::Gt(square.high, Set(0.5)), hn::Lt(square.high, Set(2.0)));
    how.Store(hn::IfThenElse(near, above, square.high), u + i);
    const V correction = hn::IfThenElse(near, hn::Add(hn::Sub(t, hn::Sub(above, one)), t_low), square.low);
    how.Store(hn::Div(correction, hn::IfThenElse(near, above, square.high)), c + i);
  });
  return true;
}

void AddTiles(TileTable& t) {
  TileFn f;
  f.in = f.out = DType::kDouble;
  f.cost = 3;
  f.unary = &UnaryRun<double, AtanOp>;
  t.Add("Atan", f);
  f.unary = &UnaryRun<double, AtanhOp>;
  t.Add("Atanh", f);
#if HWY_TARGET == HWY_AVX3
  f.unary = &UnaryRun<double, ErfOp>;
  t.Add("Erf", f);
  f.cost = 4;
  f.unary = &UnaryRun<double, ErfcOp>;
  t.Add("Erfc", f);
#endif
  f.unary = nullptr;
  f.cost = 4;
  f.vv = &BinaryRun<double, Atan2Op, 1, 1>;
  f.vs = &BinaryRun<double, Atan2Op, 1, 0>;
  f.sv = &BinaryRun<double, Atan2Op, 0, 1>;
  t.Add("Atan2", f);
}

#else

bool SizesOf(const double*, const double*, int64_t, double*) { return false; }
bool LogPartsOf(const double*, const double*, int64_t, double*, double*) { return false; }
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
HWY_EXPORT(SizesOf);
HWY_EXPORT(LogPartsOf);
}  // namespace
bool Sizes(const double* re, const double* im, int64_t n, double* sizes) {
  return HWY_DYNAMIC_DISPATCH(SizesOf)(re, im, n, sizes);
}
bool LogParts(const double* re, const double* im, int64_t n, double* u, double* c) {
  return HWY_DYNAMIC_DISPATCH(LogPartsOf)(re, im, n, u, c);
}
void AddTwofoldTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
