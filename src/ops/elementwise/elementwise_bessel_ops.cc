// SPDX-License-Identifier: Apache-2.0
// Ops: Bessel functions of orders 0 and 1, the inverse of the error function and quantiles of the normal distribution.
#include "ops/elementwise/elementwise_ops.h"

namespace millrace {
namespace {

Output Number(const GraphBuilder& b, Output like, double v) { return b.ScalarOf(BaseType(like.dtype()), v); }

// The derivative of order 0 is that of order 1, perhaps with another sign.
template <const char* kOther, bool kNegative>
Status OrderZeroGrad(GradContext& c) {
  const Output slope = c.b().Op(kOther, {c.x(0)});
  c.set_dx(0, c.b().Mul(c.dy(), kNegative ? c.b().Neg(slope) : slope));
  return c.status();
}

// The derivative of order 1: order 0, perhaps with another sign, less y / x; at 0, where a first kind has one, 1/2.
template <const char* kOther, bool kNegative, bool kIsFirstKind>
Status OrderOneGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = c.x(0), other = b.Op(kOther, {x}), zeros = b.ZerosLike(x);
  Output by_x = x, is_zero;
  if (kIsFirstKind) {
    is_zero = b.Op("Equal", {x, Number(b, x, 0)});
    by_x = b.Op("Select", {is_zero, b.Add(zeros, Number(b, x, 1)), x});
  }
  Output slope = b.Sub(kNegative ? b.Neg(other) : other, b.Div(c.y(), by_x));
  if (kIsFirstKind) slope = b.Op("Select", {is_zero, b.Add(zeros, Number(b, x, 0.5)), slope});
  c.set_dx(0, b.Mul(c.dy(), slope));
  return c.status();
}

// (exp(x) K_0)' = exp(x) (K_0 - K_1).
Status K0eGrad(GradContext& c) {
  c.set_dx(0, c.b().Mul(c.dy(), c.b().Sub(c.y(), c.b().Op("BesselK1e", {c.x(0)}))));
  return c.status();
}
// (exp(x) K_1)' = exp(x) (K_1 (1 - 1/x) - K_0).
Status K1eGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = c.x(0);
  const Output own = b.Mul(c.y(), b.Sub(Number(b, x, 1), b.Op("Reciprocal", {x})));
  c.set_dx(0, b.Mul(c.dy(), b.Sub(own, b.Op("BesselK0e", {x}))));
  return c.status();
}

// An inverse has the inverse slope: of the error function sqrt(pi) / 2 exp(y^2).
Status ErfinvGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output slope = b.Mul(Number(b, c.y(), 0.88622692545275801365), b.Op("Exp", {b.Op("Square", {c.y()})}));
  c.set_dx(0, b.Mul(c.dy(), slope));
  return c.status();
}
// Of the distribution function sqrt(2 pi) exp(y^2 / 2).
Status NdtriGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output half_square = b.Mul(b.Op("Square", {c.y()}), Number(b, c.y(), 0.5));
  c.set_dx(0, b.Mul(c.dy(), b.Mul(Number(b, c.y(), 2.50662827463100050242), b.Op("Exp", {half_square}))));
  return c.status();
}

constexpr char kI0[] = "BesselI0", kI1[] = "BesselI1", kJ0[] = "BesselJ0", kJ1[] = "BesselJ1", kK0[] = "BesselK0",
               kK1[] = "BesselK1", kY0[] = "BesselY0", kY1[] = "BesselY1";
constexpr char kModified[] = "The modified Bessel function ", kPlain[] = "The Bessel function ";
constexpr char kFirst[] = "of the first kind of order ", kSecond[] = "of the second kind of order ";

struct Function {
  const char* name;
  std::string doc;
  GradientFn gradient;
  const char* example;
};

}  // namespace

void RegisterBesselOps(OpRegistry& r) {
  const std::string infinite = "; infinite where x is not positive.";
  const char* const any = "f64[2,3]~";
  const char* const positive = "f64[2,3]+";
  for (const Function& f : {
           Function{kI0, absl::StrCat(kModified, kFirst, "0."), OrderZeroGrad<kI1, false>, any},
           Function{kI1, absl::StrCat(kModified, kFirst, "1."), OrderOneGrad<kI0, false, true>, any},
           Function{kJ0, absl::StrCat(kPlain, kFirst, "0."), OrderZeroGrad<kJ1, true>, any},
           Function{kJ1, absl::StrCat(kPlain, kFirst, "1."), OrderOneGrad<kJ0, false, true>, any},
           Function{kK0, absl::StrCat(kModified, kSecond, "0", infinite), OrderZeroGrad<kK1, true>, positive},
           Function{kK1, absl::StrCat(kModified, kSecond, "1", infinite), OrderOneGrad<kK0, true, false>, positive},
           Function{"BesselK0e", "exp(x) times BesselK0.", K0eGrad, positive},
           Function{"BesselK1e", "exp(x) times BesselK1.", K1eGrad, positive},
           Function{kY0, absl::StrCat(kPlain, kSecond, "0; -infinity where x is not positive."),
                    OrderZeroGrad<kY1, true>, positive},
           Function{kY1, absl::StrCat(kPlain, kSecond, "1; -infinity where x is not positive."),
                    OrderOneGrad<kY0, false, false>, positive},
           Function{"Erfinv", "The number whose error function is x. NaN outside of [-1, 1].", ErfinvGrad,
                    "f64[3]{-0.5 0.1 0.9}"},
           Function{
               "Ndtri", "The number below which a share x of a standard normal distribution is. NaN outside of [0, 1].",
               NdtriGrad, "f64[3]{0.02 0.3 0.9}"},
       }) {
    r.Add(absl::StrCat(f.name, "(x:T) -> (y:T) | T in FLT"))
        .Doc(f.doc)
        .Shape(UnchangedShape)
        .Gradient(f.gradient)
        .Example(f.example);
  }
}

}  // namespace millrace
