// SPDX-License-Identifier: Apache-2.0
// Complex tiles.
#include <cmath>
#include <complex>

#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// The textbook product, without the recovery of infinities that std::complex does.
template <typename C>
inline C Times(C a, C b) {
  return C(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}

#define MR_UNARY_OP(Name, expr)  \
  struct Name {                  \
    template <typename C>        \
    static inline auto Do(C a) { \
      return expr;               \
    }                            \
  };
MR_UNARY_OP(NegOp, -a)
MR_UNARY_OP(ConjOp, std::conj(a))
MR_UNARY_OP(SquareOp, Times(a, a))
MR_UNARY_OP(RealOp, a.real())
MR_UNARY_OP(ImagOp, a.imag())
MR_UNARY_OP(AbsOp, std::hypot(a.real(), a.imag()))
MR_UNARY_OP(AngleOp, std::arg(a))
MR_UNARY_OP(ReciprocalOp, C(1) / a)
MR_UNARY_OP(RsqrtOp, C(1) / std::sqrt(a))
MR_UNARY_OP(LogOp, std::log(a))
MR_UNARY_OP(SinOp, std::sin(a))
MR_UNARY_OP(CosOp, std::cos(a))
MR_UNARY_OP(TanOp, std::tan(a))
MR_UNARY_OP(AsinOp, std::asin(a))
MR_UNARY_OP(AcosOp, std::acos(a))
MR_UNARY_OP(AtanOp, std::atan(a))
MR_UNARY_OP(SinhOp, std::sinh(a))
MR_UNARY_OP(CoshOp, std::cosh(a))
MR_UNARY_OP(TanhOp, std::tanh(a))
MR_UNARY_OP(AsinhOp, std::asinh(a))
MR_UNARY_OP(AcoshOp, std::acosh(a))
MR_UNARY_OP(AtanhOp, std::atanh(a))
MR_UNARY_OP(SigmoidOp, C(1) / (C(1) + std::exp(-a)))
MR_UNARY_OP(SignOp, a == C(0) ? C(0) : a / std::abs(a))
#undef MR_UNARY_OP
// e^z - 1 without cancellation: (expm1 x) cos y + (cos y - 1), with cos y - 1 = -2 sin^2(y/2).
struct Expm1Op {
  template <typename C>
  static inline C Do(C a) {
    const auto x = a.real();
    const auto y = a.imag();
    const auto s = std::sin(y / 2);
    return C(std::expm1(x) * std::cos(y) - 2 * s * s, std::exp(x) * std::sin(y));
  }
};
// log(1+z) = (log1p(2x + x^2 + y^2) / 2, arg(1+z)).
struct Log1pOp {
  template <typename C>
  static inline C Do(C a) {
    const auto x = a.real();
    const auto y = a.imag();
    const auto norm = x * (2 + x) + y * y;
    const C u(1 + x, y);
    return C(std::abs(norm) < 1 ? std::log1p(norm) / 2 : std::log(std::abs(u)), std::arg(u));
  }
};

#define MR_BINARY_OP(Name, R, expr) \
  struct Name {                     \
    template <typename C>           \
    static inline R Do(C a, C b) {  \
      return expr;                  \
    }                               \
  };
MR_BINARY_OP(AddOp, C, a + b)
MR_BINARY_OP(SubOp, C, a - b)
MR_BINARY_OP(MulOp, C, Times(a, b))
MR_BINARY_OP(DivNoNanOp, C, b == C(0) ? C(0) : a / b)
MR_BINARY_OP(MulNoNanOp, C, b == C(0) ? C(0) : Times(a, b))
MR_BINARY_OP(XdivyOp, C, a == C(0) ? C(0) : a / b)
MR_BINARY_OP(XlogyOp, C, a == C(0) ? C(0) : Times(a, std::log(b)))
MR_BINARY_OP(Xlog1pyOp, C, a == C(0) ? C(0) : Times(a, Log1pOp::Do(b)))
MR_BINARY_OP(PowOp, C, std::pow(a, b))
MR_BINARY_OP(SquaredDifferenceOp, C, C(std::norm(a - b)))
MR_BINARY_OP(EqualOp, bool, a == b)
MR_BINARY_OP(NotEqualOp, bool, a != b)
// Of the output y and its gradient dy. The first three conjugate the derivative; for the other two the graph does.
MR_BINARY_OP(InvGradOp, C, b == C(0) ? C(0) : -Times(Times(std::conj(a), b), std::conj(a)))
MR_BINARY_OP(SqrtGradOp, C, b == C(0) ? C(0) : C(0.5) * b / std::conj(a))
MR_BINARY_OP(RsqrtGradOp, C, b == C(0) ? C(0) : Times(C(-0.5) * b, std::conj(Times(a, Times(a, a)))))
MR_BINARY_OP(SigmoidGradOp, C, Times(b, Times(a, C(1) - a)))
MR_BINARY_OP(TanhGradOp, C, Times(b, C(1) - Times(a, a)))
#undef MR_BINARY_OP

struct MakeComplexOp {
  template <typename T>
  static inline std::complex<T> Do(T re, T im) {
    return {re, im};
  }
};

template <typename C>
void AddBasic(TileTable& t) {
  using R = typename C::value_type;
  AddUnary<NegOp, C>(t, "Neg");
  AddUnary<ConjOp, C>(t, "Conj");
  AddUnary<SquareOp, C>(t, "Square");
  AddUnary<RealOp, C, R>(t, "Real");
  AddUnary<ImagOp, C, R>(t, "Imag");
  AddUnary<AbsOp, C, R>(t, "ComplexAbs", 6);
  AddBinary<AddOp, C>(t, "Add");
  AddBinary<SubOp, C>(t, "Sub");
  AddBinary<MulOp, C>(t, "Mul", 2);
  AddBinary<EqualOp, C, bool>(t, "Equal");
  AddBinary<NotEqualOp, C, bool>(t, "NotEqual");
  AddBinary<MakeComplexOp, R, C>(t, "Complex");
}

}  // namespace
}  // namespace HWY_NAMESPACE

void AddComplexTiles(TileTable& t) {
  using namespace HWY_NAMESPACE;  // NOLINT
  using C = complex128;
  AddBasic<complex64>(t);
  AddBasic<complex128>(t);
  // The rest only in complex128; complex64 converts.
  AddUnary<AngleOp, C, double>(t, "Angle", 20);
  AddUnary<ReciprocalOp, C>(t, "Reciprocal", 5);
  AddUnary<RsqrtOp, C>(t, "Rsqrt", 30);
  AddUnary<Expm1Op, C>(t, "Expm1", 40);
  AddUnary<LogOp, C>(t, "Log", 30);
  AddUnary<Log1pOp, C>(t, "Log1p", 40);
  AddUnary<SinOp, C>(t, "Sin", 40);
  AddUnary<CosOp, C>(t, "Cos", 40);
  AddUnary<TanOp, C>(t, "Tan", 40);
  AddUnary<AsinOp, C>(t, "Asin", 60);
  AddUnary<AcosOp, C>(t, "Acos", 60);
  AddUnary<AtanOp, C>(t, "Atan", 60);
  AddUnary<SinhOp, C>(t, "Sinh", 40);
  AddUnary<CoshOp, C>(t, "Cosh", 40);
  AddUnary<TanhOp, C>(t, "Tanh", 40);
  AddUnary<AsinhOp, C>(t, "Asinh", 60);
  AddUnary<AcoshOp, C>(t, "Acosh", 60);
  AddUnary<AtanhOp, C>(t, "Atanh", 60);
  AddUnary<SigmoidOp, C>(t, "Sigmoid", 30);
  AddUnary<SignOp, C>(t, "Sign", 10);
  AddBinary<DivNoNanOp, C>(t, "DivNoNan", 6);
  AddBinary<MulNoNanOp, C>(t, "MulNoNan", 3);
  AddBinary<XdivyOp, C>(t, "Xdivy", 6);
  AddBinary<XlogyOp, C>(t, "Xlogy", 30);
  AddBinary<Xlog1pyOp, C>(t, "Xlog1py", 40);
  AddBinary<PowOp, C>(t, "Pow", 80);
  AddBinary<SquaredDifferenceOp, C>(t, "SquaredDifference", 2);
  AddBinary<InvGradOp, C>(t, "ReciprocalGrad", 3);
  AddBinary<SqrtGradOp, C>(t, "SqrtGrad", 6);
  AddBinary<RsqrtGradOp, C>(t, "RsqrtGrad", 4);
  AddBinary<SigmoidGradOp, C>(t, "SigmoidGrad", 3);
  AddBinary<TanhGradOp, C>(t, "TanhGrad", 3);
}

}  // namespace millrace
