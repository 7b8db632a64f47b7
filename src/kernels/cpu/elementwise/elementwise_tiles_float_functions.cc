// SPDX-License-Identifier: Apache-2.0
// f32 tiles of transcendental functions. Errors: see elementwise_tiles_test.cc.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_float_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_functions-inl.h"
#include "kernels/cpu/elementwise/elementwise_inverse-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// erf(x) / x as a polynomial in (x^2 - 8) / 8, interpolated at Chebyshev nodes over |x| <= 4; relative error 4e-10.
// Beyond, erf rounds to 1 in float.
inline float ErfFloat(float x) {
  constexpr double kCoefficients[] = {
      0.3535309956434049,    -0.17657623580039228,   0.13167511777582963,   -0.10771029288641266,
      0.09020894134279632,   -0.07473048679705468,   0.05988782958300683,   -0.04574431267502724,
      0.033053291696067265,  -0.022562558293108114,  0.014381038744396328,  -0.008384044276092753,
      0.0047749462205666495, -0.0029097129559724944, 0.0014101528932398749, -0.00032551962727953547,
      0.0001732295034487736, -0.0002464220145300619, 9.403816578637098e-05};
  double v = std::abs(static_cast<double>(x));
  v = v > 4.0 ? 4.0 : v;
  const double t = (v * v - 8.0) * 0.125;
  double p = kCoefficients[18];
#pragma GCC unroll 20
  for (int i = 17; i >= 0; --i) p = p * t + kCoefficients[i];
  return std::copysign(static_cast<float>(p * v), x);
}

#define MR_FLOAT_OP(Name, expr)                      \
  struct Name {                                      \
    static inline float Do(float a) { return expr; } \
  };
MR_FLOAT_OP(ErfOp, ErfFloat(a))
MR_FLOAT_OP(AtanOp, Atan(a))
MR_FLOAT_OP(AsinOp, Asin(a))
MR_FLOAT_OP(AcosOp, Acos(a))
MR_FLOAT_OP(SinhOp, Sinh(a))
MR_FLOAT_OP(CoshOp, Cosh(a))
MR_FLOAT_OP(AsinhOp, Asinh(a))
MR_FLOAT_OP(AcoshOp, Acosh(a))
MR_FLOAT_OP(AtanhOp, Atanh(a))
MR_FLOAT_OP(ErfcOp, Erfc(a))
#undef MR_FLOAT_OP
struct Atan2Op {
  static inline float Do(float y, float x) { return Atan2(y, x); }
};
// A logarithm that keeps its digits in products with exponents.
constexpr int kPowerLogTerms = 7;
// base not 0 and both finite; the double arithmetic gives the float result rounded almost always correctly.
HWY_INLINE float PowFinite(float a, float b) {
  const double log = LogNormal<double, kPowerLogTerms>(std::abs(static_cast<double>(a)));
  const double power = Exp<double, kFloatExpTerms>(static_cast<double>(b) * log);
  const float half = b * 0.5f;  // of an odd integer, no integer
  const bool integer = std::floor(b) == b, odd = integer & (std::floor(half) != half), negative = a < 0.0f;
  // Bits that are set and not ways that are chosen: loops over it are vectors only without branches.
  const uint32_t sign = negative & odd ? 0x80000000u : 0u, nan = negative & !integer ? 0x7fc00000u : 0u;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(power)) ^ sign) | nan);
}

struct TanFn {
  static inline float Fast(float x) { return static_cast<float>(TanReduced<13>(x)); }
  static inline float Slow(float x) { return std::tan(x); }
};

// AStep is 0 or 1.
template <int AStep>
void Pow(const void* a_in, const void* b_in, void* out_in, int64_t n) {
  const float* a = static_cast<const float*>(a_in);
  const float* b = static_cast<const float*>(b_in);
  float* out = static_cast<float*>(out_in);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (n == 0) return;
  const float a0 = a[0];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t k = std::min(kBlock, n - i);
    uint32_t bad = 0;
    for (int64_t j = 0; j < k; ++j) {
      const float x = AStep ? a[i + j] : a0, y = b[i + j];
      bad |= ((x != 0.0f) & (std::abs(x) < kInf) & (std::abs(y) < kInf)) ? 0u : 1u;
    }
    if (bad == 0) {
#pragma GCC ivdep
      for (int64_t j = 0; j < k; ++j) out[i + j] = PowFinite(AStep ? a[i + j] : a0, b[i + j]);
    } else {
      for (int64_t j = 0; j < k; ++j) out[i + j] = std::pow(AStep ? a[i + j] : a0, b[i + j]);
    }
  }
}
// The exponent as often as a block is long: of one number the compiler makes branches, and no vector code.
void PowOfRepeated(const float* a, float b, float* out, int64_t n) {
  float exponents[kBlock];
  std::fill_n(exponents, kBlock, b);
  for (int64_t i = 0; i < n; i += kBlock) Pow<1>(a + i, exponents, out + i, std::min(kBlock, n - i));
}
// Small integer exponents by multiplication in double, which rounds like the general way.
void PowVS(const void* a, const void* b, void* out, int64_t n) {
  const float exponent = *static_cast<const float*>(b);
  const float* x = static_cast<const float*>(a);
  float* y = static_cast<float*>(out);
  if (exponent == 2.0f) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
    return;
  }
  if (!(std::abs(exponent) <= 8.0f) || std::floor(exponent) != exponent) return PowOfRepeated(x, exponent, y, n);
  const int power = static_cast<int>(std::abs(exponent));
  const bool one = power & 1, two = power & 2, four = power & 4, eight = power & 8, negative = exponent < 0.0f;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]), v2 = v * v, v4 = v2 * v2;
    const double p = (one ? v : 1.0) * (two ? v2 : 1.0) * (four ? v4 : 1.0) * (eight ? v4 * v4 : 1.0);
    y[i] = static_cast<float>(negative ? 1.0 / p : p);
  }
}

// The remainder of the rounded-down (Floor) or truncated quotient. Where that is below 2^26 its product with b is exact
// in double, and a quotient that is no integer is not rounded to one; blocks with others go through the C library.
template <bool Floor>
struct FloatMod {
  static inline float Fast(float a, float b) {
    const double q = static_cast<double>(a) / static_cast<double>(b);
    const double n = Floor ? std::floor(q) : std::trunc(q);
    const float m = static_cast<float>(static_cast<double>(a) - n * static_cast<double>(b));
    return m == 0.0f ? std::copysign(0.0f, a) : m;
  }
  static inline float Slow(float a, float b) {
    const float m = std::fmod(a, b);
    return Floor && m != 0.0f && (b < 0.0f) != (m < 0.0f) ? m + b : m;
  }
  template <int AStep, int BStep>
  static void Run(const void* a_in, const void* b_in, void* out_in, int64_t n) {
    const float* a = static_cast<const float*>(a_in);
    const float* b = static_cast<const float*>(b_in);
    float* out = static_cast<float*>(out_in);
    if (n == 0) return;
    const float a0 = a[0], b0 = b[0];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t k = std::min(kBlock, n - i);
      uint32_t bad = 0;
      for (int64_t j = 0; j < k; ++j) {
        const float x = AStep ? a[i + j] : a0, y = BStep ? b[i + j] : b0;
        bad |= (std::abs(x) < std::abs(y) * 0x1p26f) & (std::abs(y) < 0x1p100f) ? 0u : 1u;
      }
      if (bad == 0) {
#pragma GCC ivdep
        for (int64_t j = 0; j < k; ++j) out[i + j] = Fast(AStep ? a[i + j] : a0, BStep ? b[i + j] : b0);
      } else {
        for (int64_t j = 0; j < k; ++j) out[i + j] = Slow(AStep ? a[i + j] : a0, BStep ? b[i + j] : b0);
      }
    }
  }
  static void Add(TileTable& t, const char* name) {
    TileFn f;
    f.in = f.out = DType::kFloat;
    f.cost = 2;
    f.vv = &Run<1, 1>;
    f.vs = &Run<1, 0>;
    f.sv = &Run<0, 1>;
    t.Add(name, f);
  }
};

void AddTiles(TileTable& t) {
  AddUnary<ExpOp, float>(t, "Exp");
  AddUnary<Expm1Op, float>(t, "Expm1");
  AddUnary<LogOp, float>(t, "Log");
  AddUnary<Log1pOp, float>(t, "Log1p", 2);
  AddUnary<TanhOp, float>(t, "Tanh", 2);
  AddUnary<SigmoidOp, float>(t, "Sigmoid", 2);
  AddUnary<SoftplusOp, float>(t, "Softplus", 2);
  AddUnary<EluOp, float>(t, "Elu");
  AddUnary<SeluOp, float>(t, "Selu");
  AddUnary<ErfOp, float>(t, "Erf", 2);
  AddBinary<SoftplusGradOp, float>(t, "SoftplusGrad", 2);
  AddBinary<XlogyOp, float>(t, "Xlogy", 2);
  AddUnary<AtanOp, float>(t, "Atan", 3);
  AddUnary<AsinOp, float>(t, "Asin", 3);
  AddUnary<AcosOp, float>(t, "Acos", 3);
  AddUnary<SinhOp, float>(t, "Sinh", 3);
  AddUnary<CoshOp, float>(t, "Cosh", 3);
  AddUnary<AsinhOp, float>(t, "Asinh", 6);
  AddUnary<AcoshOp, float>(t, "Acosh", 6);
  AddUnary<AtanhOp, float>(t, "Atanh", 3);
  AddUnary<ErfcOp, float>(t, "Erfc", 6);
  AddBinary<Atan2Op, float>(t, "Atan2", 6);
  TileFn f;
  f.in = f.out = DType::kFloat;
  f.cost = 3;
  f.unary = &Trigonometric<SinFn, float>;
  t.Add("Sin", f);
  f.unary = &Trigonometric<CosFn, float>;
  t.Add("Cos", f);
  f.unary = &Trigonometric<TanFn, float>;
  t.Add("Tan", f);
  f.unary = nullptr;
  f.cost = 5;
  f.vv = &Pow<1>;
  f.vs = &PowVS;
  f.sv = &Pow<0>;
  t.Add("Pow", f);
  FloatMod<true>::Add(t, "FloorMod");
  FloatMod<false>::Add(t, "Mod");
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
void AddFloatFunctionTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
