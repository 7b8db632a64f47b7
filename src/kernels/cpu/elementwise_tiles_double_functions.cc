// SPDX-License-Identifier: Apache-2.0
// f64 tiles of transcendental functions.
#include <algorithm>
#include <cmath>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise_tiles_double_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise_math-inl.h"
#include "kernels/cpu/elementwise_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#define MR_UNARY_OP(Name, expr)                        \
  struct Name {                                        \
    static inline double Do(double a) { return expr; } \
  };
MR_UNARY_OP(ExpOp, Exp(a))
MR_UNARY_OP(Expm1Op, Expm1(a))
MR_UNARY_OP(LogOp, Log(a))
MR_UNARY_OP(Log1pOp, Log1p(a))
MR_UNARY_OP(TanhOp, Tanh(a))
MR_UNARY_OP(SigmoidOp, Sigmoid(a))
MR_UNARY_OP(SoftplusOp, Softplus(a))
MR_UNARY_OP(EluOp, a < 0.0 ? Expm1(a) : a)
MR_UNARY_OP(SeluOp, a < 0.0 ? 1.7580993408473768599402175208123 * Expm1(a) : 1.0507009873554804934193349852946 * a)
#undef MR_UNARY_OP

struct SoftplusGradOp {
  static inline double Do(double g, double x) { return g / (Exp(-x) + 1.0); }
};
struct XlogyOp {
  static inline double Do(double a, double b) { return a == 0.0 ? 0.0 : a * Log(b); }
};

struct SinFn {
  static inline double Fast(double x) { return SinReduced<19>(x); }
  static inline double Slow(double x) { return std::sin(x); }
};
struct CosFn {
  static inline double Fast(double x) { return CosReduced<19>(x); }
  static inline double Slow(double x) { return std::cos(x); }
};

constexpr int64_t kBlock = 256;

// Vector code for blocks within the range of the reduction, the C library for the others.
template <class Fn>
void Trigonometric(const void* a_in, void* out_in, int64_t n) {
  const double* a = static_cast<const double*>(a_in);
  double* out = static_cast<double*>(out_in);
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t k = std::min(kBlock, n - i);
    uint64_t bad = 0;
    for (int64_t j = 0; j < k; ++j) bad |= std::abs(a[i + j]) <= kMaxAngle ? 0u : 1u;
    if (bad == 0) {
#pragma GCC ivdep
      for (int64_t j = 0; j < k; ++j) out[i + j] = Fn::Fast(a[i + j]);
    } else {
      for (int64_t j = 0; j < k; ++j) out[i + j] = Fn::Slow(a[i + j]);
    }
  }
}

void AddTiles(TileTable& t) {
  AddUnary<ExpOp, double>(t, "Exp", 2);
  AddUnary<Expm1Op, double>(t, "Expm1", 2);
  AddUnary<LogOp, double>(t, "Log", 3);
  AddUnary<Log1pOp, double>(t, "Log1p", 4);
  AddUnary<TanhOp, double>(t, "Tanh", 4);
  AddUnary<SigmoidOp, double>(t, "Sigmoid", 3);
  AddUnary<SoftplusOp, double>(t, "Softplus", 6);
  AddUnary<EluOp, double>(t, "Elu", 3);
  AddUnary<SeluOp, double>(t, "Selu", 3);
  AddBinary<SoftplusGradOp, double>(t, "SoftplusGrad", 3);
  AddBinary<XlogyOp, double>(t, "Xlogy", 3);
  TileFn f;
  f.in = f.out = DType::kDouble;
  f.cost = 4;
  f.unary = &Trigonometric<SinFn>;
  t.Add("Sin", f);
  f.unary = &Trigonometric<CosFn>;
  t.Add("Cos", f);
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
void AddDoubleFunctionTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
