// SPDX-License-Identifier: Apache-2.0
// Binary tiles that every wide number type has: sums, products, comparisons, bits.
#include <cmath>
#include <type_traits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_arithmetic.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// The type to add and multiply in: integers wrap.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

#define MR_WRAPPING_OP(Name, expr)                \
  struct Name {                                   \
    template <typename T>                         \
    static inline T Do(T a, T b) {                \
      const auto x = static_cast<Wrapping<T>>(a); \
      const auto y = static_cast<Wrapping<T>>(b); \
      return static_cast<T>(expr);                \
    }                                             \
  };
MR_WRAPPING_OP(AddOp, x + y)
MR_WRAPPING_OP(SubOp, x - y)
MR_WRAPPING_OP(MulOp, x* y)
MR_WRAPPING_OP(SquaredDifferenceOp, (x - y) * (x - y))
#undef MR_WRAPPING_OP

#define MR_BINARY_OP(Name, R, expr) \
  struct Name {                     \
    template <typename T>           \
    static inline R Do(T a, T b) {  \
      return expr;                  \
    }                               \
  };
MR_BINARY_OP(DivOp, T, a / b)
MR_BINARY_OP(FloorDivOp, T, std::floor(a / b))
MR_BINARY_OP(TruncateDivOp, T, std::trunc(a / b))
// NaN in either operand gives NaN.
MR_BINARY_OP(MaximumOp, T, a > b || a != a ? a : b)
MR_BINARY_OP(MinimumOp, T, a < b || a != a ? a : b)
MR_BINARY_OP(LessOp, bool, a < b)
MR_BINARY_OP(LessEqualOp, bool, a <= b)
MR_BINARY_OP(GreaterOp, bool, a > b)
MR_BINARY_OP(GreaterEqualOp, bool, a >= b)
MR_BINARY_OP(EqualOp, bool, a == b)
MR_BINARY_OP(NotEqualOp, bool, a != b)
MR_BINARY_OP(AndOp, T, a& b)
MR_BINARY_OP(OrOp, T, a | b)
MR_BINARY_OP(XorOp, T, a ^ b)
MR_BINARY_OP(DivNoNanOp, T, b == T(0) ? T(0) : a / b)
MR_BINARY_OP(MulNoNanOp, T, b == T(0) ? T(0) : a * b)
MR_BINARY_OP(XdivyOp, T, a == T(0) ? T(0) : a / b)
// Gradients: of the outputs y by dy, and of features by gradients.
// A gradient of zero stays zero where the derivative is infinite.
MR_BINARY_OP(InvGradOp, T, b == T(0) ? T(0) : -b * a * a)
MR_BINARY_OP(SqrtGradOp, T, b == T(0) ? T(0) : b * T(0.5) / a)
MR_BINARY_OP(RsqrtGradOp, T, b == T(0) ? T(0) : T(-0.5) * b * (a * a * a))
MR_BINARY_OP(SigmoidGradOp, T, b* a*(T(1) - a))
MR_BINARY_OP(TanhGradOp, T, b*(T(1) - a * a))
// Products, so that an infinite or NaN gradient shows even where the unit is off.
MR_BINARY_OP(ReluGradOp, T, a*(b > T(0) ? T(1) : T(0)))
MR_BINARY_OP(Relu6GradOp, T, a*((b > T(0)) & (b < T(6)) ? T(1) : T(0)))
MR_BINARY_OP(EluGradOp, T, b < T(0) ? a * (b + T(1)) : a)
MR_BINARY_OP(SeluGradOp, T,
             b < T(0) ? a * (b + T(1.7580993408473768599402175208123)) : a * T(1.0507009873554804934193349852946))
MR_BINARY_OP(LeakyReluOp, T, a > T(0) ? a : a * b)
#undef MR_BINARY_OP
struct SoftsignGradOp {
  template <typename T>
  static inline T Do(T g, T x) {
    const T d = T(1) + std::abs(x);
    return g / (d * d);
  }
};

#if MILLRACE_HAS_PARTS
// Minimum and Maximum at once: a between the two numbers at `bounds`. A loop of both is no vector code with GCC 12.
template <typename T>
void Clip(const void* a_in, const void* bounds, void* out_in, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const T* a = static_cast<const T*>(a_in);
  const T low = static_cast<const T*>(bounds)[0], high = static_cast<const T*>(bounds)[1];
  T* out = static_cast<T*>(out_in);
  ForVectors<T>(n, [&](auto how, int64_t i) HWY_ATTR {
    const auto stays = [](auto kept, auto v) HWY_ATTR {
      if constexpr (std::is_floating_point_v<T>) return hn::Or(kept, hn::IsNaN(v));
      return kept;
    };
    const auto x = how.Load(a + i), least = hn::Set(how.d, low), most = hn::Set(how.d, high);
    const auto v = hn::IfThenElse(stays(hn::Lt(x, most), x), x, most);
    how.Store(hn::IfThenElse(stays(hn::Gt(v, least), v), v, least), out + i);
  });
}
#endif

template <typename T>
void AddForAll(TileTable& t) {
#if MILLRACE_HAS_PARTS
  TileFn clip;
  clip.in = clip.out = DTypeOf<T>::value;
  clip.vs = &Clip<T>;
  t.Add("Clip", clip);
#endif
  AddBinary<AddOp, T>(t, "Add");
  AddBinary<SubOp, T>(t, "Sub");
  AddBinary<MulOp, T>(t, "Mul");
  AddBinary<SquaredDifferenceOp, T>(t, "SquaredDifference");
  AddBinary<MaximumOp, T>(t, "Maximum");
  AddBinary<MinimumOp, T>(t, "Minimum");
  AddBinary<LessOp, T, bool>(t, "Less");
  AddBinary<LessEqualOp, T, bool>(t, "LessEqual");
  AddBinary<EqualOp, T, bool>(t, "Equal");
  AddBinary<NotEqualOp, T, bool>(t, "NotEqual");
  AddBinary<GreaterOp, T, bool>(t, "Greater");
  AddBinary<GreaterEqualOp, T, bool>(t, "GreaterEqual");
  AddBinary<ReluGradOp, T>(t, "ReluGrad");
  AddBinary<Relu6GradOp, T>(t, "Relu6Grad");
}

template <typename T>
void AddForFloats(TileTable& t) {
  AddForAll<T>(t);
  AddBinary<DivOp, T>(t, "RealDiv");
  AddBinary<FloorDivOp, T>(t, "FloorDiv");
  AddBinary<TruncateDivOp, T>(t, "TruncateDiv");
  AddBinary<DivNoNanOp, T>(t, "DivNoNan");
  AddBinary<MulNoNanOp, T>(t, "MulNoNan");
  AddBinary<XdivyOp, T>(t, "Xdivy");
  AddBinary<InvGradOp, T>(t, "ReciprocalGrad");
  AddBinary<SqrtGradOp, T>(t, "SqrtGrad");
  AddBinary<RsqrtGradOp, T>(t, "RsqrtGrad");
  AddBinary<SigmoidGradOp, T>(t, "SigmoidGrad");
  AddBinary<TanhGradOp, T>(t, "TanhGrad");
  AddBinary<EluGradOp, T>(t, "EluGrad");
  AddBinary<SeluGradOp, T>(t, "SeluGrad");
  AddBinary<SoftsignGradOp, T>(t, "SoftsignGrad");
  AddBinary<LeakyReluOp, T>(t, "LeakyRelu");
}

template <typename T>
void AddForIntegers(TileTable& t) {
  AddForAll<T>(t);
  AddBinary<AndOp, T>(t, "BitwiseAnd");
  AddBinary<OrOp, T>(t, "BitwiseOr");
  AddBinary<XorOp, T>(t, "BitwiseXor");
}

void AddTiles(TileTable& t) {
  AddForFloats<float>(t);
  AddForFloats<double>(t);
  AddForIntegers<int32_t>(t);
  AddForIntegers<int64_t>(t);
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
void AddArithmeticTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
