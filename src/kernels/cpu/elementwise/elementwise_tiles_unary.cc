// SPDX-License-Identifier: Apache-2.0
// Unary tiles of a few instructions each.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_unary.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

#define MR_UNARY_OP(Name, R, expr) \
  struct Name {                    \
    template <typename T>          \
    static inline R Do(T a) {      \
      return expr;                 \
    }                              \
  };
MR_UNARY_OP(ReciprocalOp, T, T(1) / a)
MR_UNARY_OP(SqrtOp, T, std::sqrt(a))
MR_UNARY_OP(RsqrtOp, T, T(1) / std::sqrt(a))
MR_UNARY_OP(FloorOp, T, std::floor(a))
MR_UNARY_OP(CeilOp, T, std::ceil(a))
MR_UNARY_OP(RintOp, T, std::rint(a))
MR_UNARY_OP(FabsOp, T, std::abs(a))
MR_UNARY_OP(SoftsignOp, T, a / (T(1) + std::abs(a)))
MR_UNARY_OP(IsNanOp, bool, a != a)
MR_UNARY_OP(IsInfOp, bool, std::abs(a) == std::numeric_limits<T>::infinity())
MR_UNARY_OP(IsFiniteOp, bool, std::abs(a) < std::numeric_limits<T>::infinity())
MR_UNARY_OP(ReluOp, T, a < T(0) ? T(0) : a)
MR_UNARY_OP(Relu6Op, T, a<T(0) ? T(0) : a> T(6) ? T(6) : a)
MR_UNARY_OP(InvertOp, T, ~a)
MR_UNARY_OP(IdentityOp, T, a)
MR_UNARY_OP(IntegerSignOp, T, static_cast<T>((a > T(0)) - (a < T(0))))
MR_UNARY_OP(FloatNegOp, T, -a)
MR_UNARY_OP(IntegerNegOp, T, static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(a)))
MR_UNARY_OP(IntegerAbsOp, T,
            static_cast<T>(a < 0 ? Wrapping<T>(0) - static_cast<Wrapping<T>>(a) : static_cast<Wrapping<T>>(a)))
MR_UNARY_OP(SquareOp, T, static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(a)))
#undef MR_UNARY_OP
struct FloatSignOp {
  template <typename T>
  static inline T Do(T a) {
    const T unit = std::copysign(T(1), a), sign = a == T(0) ? T(0) : unit;
    return a != a ? a : sign;
  }
};

#if HWY_TARGET == HWY_AVX3
// The processor's estimate of 14 bits, improved once by the series of (1 - e)^(-1/2), with e exact to 2^-45. Zero and
// infinity give no number there; for them the estimate is right.
void RsqrtFloats(const void* in_raw, void* out_raw, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const float* in = static_cast<const float*>(in_raw);
  float* out = static_cast<float*>(out_raw);
  const auto improved = [](auto d, auto x) HWY_ATTR {
    const auto y = hn::ApproximateReciprocalSqrt(x);
    const auto h = hn::Mul(x, y), low = hn::MulSub(x, y, h);
    const auto e = hn::NegMulAdd(low, y, hn::NegMulAdd(h, y, hn::Set(d, 1.0f)));
    const auto better = hn::MulAdd(hn::Mul(y, e), hn::MulAdd(e, hn::Set(d, 0.375f), hn::Set(d, 0.5f)), y);
    return hn::IfThenElse(hn::IsNaN(better), y, better);
  };
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(improved(d, hn::LoadU(d, in + i)), d, out + i);
  if (i == n) return;
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  std::copy(in + i, in + n, rest);
  hn::Store(improved(d, hn::Load(d, rest)), d, rest);
  std::copy(rest, rest + (n - i), out + i);
}
#endif

template <typename T>
void AddForFloats(TileTable& t) {
  AddUnary<FabsOp, T>(t, "Abs");
  AddUnary<FloatNegOp, T>(t, "Neg");
  AddUnary<FloatSignOp, T>(t, "Sign");
  AddUnary<SquareOp, T>(t, "Square");
  AddUnary<ReciprocalOp, T>(t, "Reciprocal");
  AddUnary<SqrtOp, T>(t, "Sqrt");
  AddUnary<RsqrtOp, T>(t, "Rsqrt");
  AddUnary<FloorOp, T>(t, "Floor");
  AddUnary<CeilOp, T>(t, "Ceil");
  AddUnary<RintOp, T>(t, "Rint");
  AddUnary<SoftsignOp, T>(t, "Softsign");
  AddUnary<IsNanOp, T, bool>(t, "IsNan");
  AddUnary<IsInfOp, T, bool>(t, "IsInf");
  AddUnary<IsFiniteOp, T, bool>(t, "IsFinite");
  AddUnary<ReluOp, T>(t, "Relu");
  AddUnary<Relu6Op, T>(t, "Relu6");
}

template <typename T>
void AddForIntegers(TileTable& t) {
  AddUnary<IntegerAbsOp, T>(t, "Abs");
  AddUnary<IntegerNegOp, T>(t, "Neg");
  AddUnary<IntegerSignOp, T>(t, "Sign");
  AddUnary<SquareOp, T>(t, "Square");
  AddUnary<InvertOp, T>(t, "Invert");
  AddUnary<IdentityOp, T>(t, "Rint");
  AddUnary<ReluOp, T>(t, "Relu");
  AddUnary<Relu6Op, T>(t, "Relu6");
}

void AddTiles(TileTable& t) {
  AddForFloats<float>(t);
#if HWY_TARGET == HWY_AVX3
  TileFn rsqrt = *t.Find("Rsqrt", DType::kFloat);
  rsqrt.unary = &RsqrtFloats;
  t.Add("Rsqrt", rsqrt);
#endif
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
void AddUnaryTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
