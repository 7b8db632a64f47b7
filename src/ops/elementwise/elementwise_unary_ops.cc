// SPDX-License-Identifier: Apache-2.0
// Ops of one number: arithmetic, functions, complex parts, Cast. With g the gradient that comes in, each gradient is
// g times the conjugate of the derivative.
#include "ops/elementwise/elementwise_ops.h"

namespace millrace {
namespace {

constexpr double kTwoOverRootPi = 1.12837916709551257390;

// Most gradients read: the input is e, the result is f(b, x or y, g).
Output One(const GraphBuilder& b, Output like) { return b.ScalarOf(BaseType(like.dtype()), 1); }
Output Number(const GraphBuilder& b, Output like, double v) { return b.ScalarOf(BaseType(like.dtype()), v); }
Output Reciprocal(const GraphBuilder& b, Output x) { return b.Op("Reciprocal", {x}); }
Output Square(const GraphBuilder& b, Output x) { return b.Op("Square", {x}); }

Status AbsGrad(GradContext& c) {
  c.set_dx(0, c.b().Mul(c.dy(), c.b().Op("Sign", {c.x(0)})));
  return c.status();
}
Status NegGrad(GradContext& c) {
  c.set_dx(0, c.b().Neg(c.dy()));
  return c.status();
}
Status SignGrad(GradContext& c) {
  c.set_dx(0, c.b().ZerosLike(c.x(0)));
  return c.status();
}
Status SquareGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  c.set_dx(0, b.Mul(c.dy(), b.Mul(Number(b, x, 2), x)));
  return c.status();
}
Status ReciprocalGradient(GradContext& c) {
  c.set_dx(0, c.b().Op("ReciprocalGrad", {c.y(), c.dy()}));
  return c.status();
}
Status ReciprocalGradGradient(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output a = b.Conj(c.x(0));
  const Output g = b.Conj(c.dy());
  c.set_dx(0, b.Mul(b.Mul(b.Mul(Number(b, a, -2), g), c.x(1)), a));
  c.set_dx(1, b.Op("ReciprocalGrad", {a, c.dy()}));
  return c.status();
}
Status SqrtGradient(GradContext& c) {
  c.set_dx(0, c.b().Op("SqrtGrad", {c.y(), c.dy()}));
  return c.status();
}
Status SqrtGradGradient(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output ga = b.Div(c.dy(), c.x(0));
  c.set_dx(0, b.Mul(b.Neg(b.Conj(ga)), c.y()));
  c.set_dx(1, b.Mul(Number(b, ga, 0.5), ga));
  return c.status();
}
Status RsqrtGradient(GradContext& c) {
  c.set_dx(0, c.b().Op("RsqrtGrad", {c.y(), c.dy()}));
  return c.status();
}
Status RsqrtGradGradient(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output a = b.Conj(c.x(0));
  const Output g = b.Conj(c.dy());
  c.set_dx(0, b.Mul(b.Mul(b.Mul(Number(b, a, -1.5), g), c.x(1)), Square(b, a)));
  c.set_dx(1, b.Op("RsqrtGrad", {a, c.dy()}));
  return c.status();
}
Status ExpGrad(GradContext& c) {
  c.set_dx(0, c.b().Mul(c.dy(), c.b().Conj(c.y())));
  return c.status();
}
Status Expm1Grad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Mul(c.dy(), b.Op("Exp", {b.Conj(c.x(0))})));
  return c.status();
}
Status LogGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Mul(c.dy(), Reciprocal(b, b.Conj(c.x(0)))));
  return c.status();
}
Status Log1pGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  c.set_dx(0, b.Mul(c.dy(), Reciprocal(b, b.Add(One(b, x), x))));
  return c.status();
}
Status SinGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Mul(c.dy(), b.Op("Cos", {b.Conj(c.x(0))})));
  return c.status();
}
Status CosGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Neg(b.Mul(c.dy(), b.Op("Sin", {b.Conj(c.x(0))}))));
  return c.status();
}
Status TanGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Mul(c.dy(), Square(b, Reciprocal(b, b.Op("Cos", {b.Conj(c.x(0))})))));
  return c.status();
}
// 1 / sqrt(1 - x^2).
Output AsinDerivative(const GraphBuilder& b, Output x) {
  return Reciprocal(b, b.Op("Sqrt", {b.Sub(One(b, x), Square(b, x))}));
}
Status AsinGrad(GradContext& c) {
  c.set_dx(0, c.b().Mul(c.dy(), AsinDerivative(c.b(), c.b().Conj(c.x(0)))));
  return c.status();
}
Status AcosGrad(GradContext& c) {
  c.set_dx(0, c.b().Neg(c.b().Mul(c.dy(), AsinDerivative(c.b(), c.b().Conj(c.x(0))))));
  return c.status();
}
Status AtanGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  c.set_dx(0, b.Mul(c.dy(), Reciprocal(b, b.Add(One(b, x), Square(b, x)))));
  return c.status();
}
Status SinhGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Mul(c.dy(), b.Op("Cosh", {b.Conj(c.x(0))})));
  return c.status();
}
Status CoshGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Mul(c.dy(), b.Op("Sinh", {b.Conj(c.x(0))})));
  return c.status();
}
Status AsinhGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Div(c.dy(), b.Op("Cosh", {b.Conj(c.y())})));
  return c.status();
}
Status AcoshGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Div(c.dy(), b.Op("Sinh", {b.Conj(c.y())})));
  return c.status();
}
Status AtanhGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  c.set_dx(0, b.Mul(c.dy(), Reciprocal(b, b.Sub(One(b, x), Square(b, x)))));
  return c.status();
}
Status TanhGradient(GradContext& c) {
  c.set_dx(0, c.b().Op("TanhGrad", {c.b().Conj(c.y()), c.dy()}));
  return c.status();
}
Status TanhGradGradient(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output a = b.Conj(c.x(0));
  c.set_dx(0, b.Mul(b.Mul(b.Mul(c.dy(), Number(b, a, -2)), b.Conj(c.x(1))), a));
  c.set_dx(1, b.Op("TanhGrad", {a, c.dy()}));
  return c.status();
}
Status SigmoidGradient(GradContext& c) {
  c.set_dx(0, c.b().Op("SigmoidGrad", {c.b().Conj(c.y()), c.dy()}));
  return c.status();
}
Status SigmoidGradGradient(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output a = b.Conj(c.x(0));
  const Output gb = b.Mul(c.dy(), b.Conj(c.x(1)));
  c.set_dx(0, b.Sub(gb, b.Mul(b.Mul(Number(b, gb, 2), gb), a)));
  c.set_dx(1, b.Op("SigmoidGrad", {a, c.dy()}));
  return c.status();
}
Output ErfDerivative(const GraphBuilder& b, Output x) {
  return b.Mul(Number(b, x, kTwoOverRootPi), b.Op("Exp", {b.Neg(Square(b, x))}));
}
Status ErfGrad(GradContext& c) {
  c.set_dx(0, c.b().Mul(c.dy(), ErfDerivative(c.b(), c.x(0))));
  return c.status();
}
Status ErfcGrad(GradContext& c) {
  c.set_dx(0, c.b().Neg(c.b().Mul(c.dy(), ErfDerivative(c.b(), c.x(0)))));
  return c.status();
}
Status LgammaGrad(GradContext& c) {
  c.set_dx(0, c.b().Mul(c.dy(), c.b().Op("Digamma", {c.x(0)})));
  return c.status();
}
Status DigammaGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  c.set_dx(0, b.Mul(c.dy(), b.Op("Polygamma", {One(b, c.x(0)), c.x(0)})));
  return c.status();
}
Status CastGrad(GradContext& c) {
  const DType from = BaseType(c.x(0).dtype());
  const DType to = BaseType(c.y().dtype());
  auto continuous = [](DType t) { return IsFloating(t) || IsComplex(t); };
  if (continuous(from) && continuous(to)) c.set_dx(0, c.b().Cast(c.dy(), from));
  return c.status();
}

Output MakeComplex(const GraphBuilder& b, Output re, Output im) {
  const DType part = BaseType(re.dtype());
  const DType whole = part == DType::kDouble ? DType::kComplex128 : DType::kComplex64;
  return b.Op("Complex", {re, im}, {{"T", part}, {"Tout", whole}});
}
Output Part(const GraphBuilder& b, const char* op, Output x) {
  const DType whole = BaseType(x.dtype());
  const DType part = whole == DType::kComplex128 ? DType::kDouble : DType::kFloat;
  return b.Op(op, {x}, {{"T", whole}, {"Tout", part}});
}
Status ConjGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("Conj", {c.dy()}));
  return c.status();
}
Status RealGrad(GradContext& c) {
  c.set_dx(0, MakeComplex(c.b(), c.dy(), Number(c.b(), c.dy(), 0)));
  return c.status();
}
Status ImagGrad(GradContext& c) {
  c.set_dx(0, MakeComplex(c.b(), Number(c.b(), c.dy(), 0), c.dy()));
  return c.status();
}
Status AngleGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output z = Reciprocal(b, MakeComplex(b, Part(b, "Imag", c.x(0)), Part(b, "Real", c.x(0))));
  c.set_dx(0, b.Mul(b.Neg(MakeComplex(b, c.dy(), Number(b, c.dy(), 0))), z));
  return c.status();
}
Status ComplexAbsGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output zero = Number(b, c.dy(), 0);
  const Output gx = b.Mul(MakeComplex(b, c.dy(), zero), c.x(0));
  c.set_dx(0, b.Op("DivNoNan", {gx, MakeComplex(b, c.y(), zero)}));
  return c.status();
}
Status ComplexGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  auto [re, im] = Unbroadcast(b, c.x(0), c.x(1), Part(b, "Real", c.dy()), Part(b, "Imag", c.dy()));
  c.set_dx(0, re);
  c.set_dx(1, im);
  return c.status();
}

constexpr char kSteps[] = "constant between its steps";
constexpr char kTruthValue[] = "the result is a truth value";

void RegisterArithmetic(OpRegistry& r) {
  r.Add("Abs(x:T) -> (y:T) | T in FLT|IDX|i8|i16")
      .Doc("The absolute value of each element; the smallest integer stays as it is.")
      .Shape(UnchangedShape)
      .Gradient(AbsGrad)
      .Example("f32[2,3]{-1 2 -3 0.5 -0.25 4}")
      .Example("!i32[3]{-2 0 5}");
  r.Add("Neg(x:T) -> (y:T) | T in FC|IDX|i8|i16")
      .Doc("The negative of each element.")
      .Shape(UnchangedShape)
      .Gradient(NegGrad)
      .Example("f32[2,3]~")
      .Example("!i64[2]{3 -4}");
  r.Add("Sign(x:T) -> (y:T) | T in FC|IDX|i8|i16")
      .Doc("-1, 0 or 1 by the sign of each element; x / |x| for complex numbers.")
      .Shape(UnchangedShape)
      .Gradient(SignGrad)
      .Example("f32[4]{-2 0.5 3 -0.25}");
  r.Add("Square(x:T) -> (y:T) | T in FC|IDX|i8|i16|u8|u16|u32|u64")
      .Doc("The square of each element.")
      .Shape(UnchangedShape)
      .Gradient(SquareGrad)
      .Example("f32[2,3]~")
      .Example("!i32[3]{-2 0 5}");
  for (const char* schema :
       {"Inv(x:T) -> (y:T) | T in FC|IDX|i8|i16", "Reciprocal(x:T) -> (y:T) | T in FC|IDX|i8|i16"}) {
    r.Add(schema)
        .Doc("One divided by each element.")
        .Shape(UnchangedShape)
        .Gradient(ReciprocalGradient)
        .Example("f32[2,3]+");
  }
  for (const char* schema : {"InvGrad(y:T, dy:T) -> (z:T) | T in FC", "ReciprocalGrad(y:T, dy:T) -> (z:T) | T in FC"}) {
    r.Add(schema)
        .Doc("The gradient of the reciprocal from its result: -dy * y * y.")
        .Shape(UnchangedShape)
        .Gradient(ReciprocalGradGradient)
        .Example("f32[4]+, f32[4]~");
  }
  r.Add("Sqrt(x:T) -> (y:T) | T in FC")
      .Doc("The square root of each element; NaN below zero.")
      .Shape(UnchangedShape)
      .Gradient(SqrtGradient)
      .Example("f32[2,3]+");
  r.Add("SqrtGrad(y:T, dy:T) -> (z:T) | T in FC")
      .Doc("The gradient of Sqrt from its result: dy * 0.5 / y.")
      .Shape(UnchangedShape)
      .Gradient(SqrtGradGradient)
      .Example("f32[4]+, f32[4]~");
  r.Add("Rsqrt(x:T) -> (y:T) | T in FC")
      .Doc("One divided by the square root of each element.")
      .Shape(UnchangedShape)
      .Gradient(RsqrtGradient)
      .Example("f32[2,3]+");
  r.Add("RsqrtGrad(y:T, dy:T) -> (z:T) | T in FC")
      .Doc("The gradient of Rsqrt from its result: -0.5 * dy * y^3.")
      .Shape(UnchangedShape)
      .Gradient(RsqrtGradGradient)
      .Example("f32[4]+, f32[4]~");
  r.Add("Floor(x:T) -> (y:T) | T in FLT")
      .Doc("The largest integer not above each element.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kSteps)
      .Example("f32[4]{-1.5 0.25 2 7.75}");
  r.Add("Ceil(x:T) -> (y:T) | T in FLT")
      .Doc("The smallest integer not below each element.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kSteps)
      .Example("f32[4]{-1.5 0.25 2 7.75}");
  r.Add("Rint(x:T) -> (y:T) | T in FLT")
      .Doc("The nearest integer to each element; halves go to the even one.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kSteps)
      .Example("f32[4]{-1.5 0.25 2.5 7.75}");
  r.Add("Round(x:T) -> (y:T) | T in FC|IDX|i8|i16")
      .Doc("The nearest integer to each element; halves go to the even one.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kSteps)
      .Example("f32[4]{-1.5 0.25 2.5 7.75}");
  for (const char* schema : {"IsNan(x:T) -> (y:bool) | T in FLT", "IsInf(x:T) -> (y:bool) | T in FLT",
                             "IsFinite(x:T) -> (y:bool) | T in FLT"}) {
    r.Add(schema)
        .Doc("Tells per element whether it is what the name says: not a number, infinite, or neither.")
        .Shape(UnchangedShape)
        .NotDifferentiable(kTruthValue)
        .Example("f32[2,3]~");
  }
  r.Add("Invert(x:T) -> (y:T) | T in INT")
      .Doc("Flips every bit of each element.")
      .Shape(UnchangedShape)
      .NotDifferentiable("an operation on bits")
      .Example("i32[3]{0 1 -7}");
  r.Add("LogicalNot(x:bool) -> (y:bool)")
      .Doc("The opposite truth value of each element.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kTruthValue)
      .Example("bool[2]{true false}");
}

void RegisterFunctions(OpRegistry& r) {
  struct Function {
    const char* schema;
    const char* doc;
    GradientFn gradient;
    const char* example;
  };
  const Function kFunctions[] = {
      {"Exp(x:T) -> (y:T) | T in FC", "e raised to each element.", ExpGrad, "f32[2,3]~"},
      {"Expm1(x:T) -> (y:T) | T in FC", "exp(x) - 1, accurate near zero too.", Expm1Grad, "f32[2,3]~"},
      {"Log(x:T) -> (y:T) | T in FC", "The natural logarithm of each element.", LogGrad, "f32[2,3]+"},
      {"Log1p(x:T) -> (y:T) | T in FC", "log(1 + x), accurate near zero too.", Log1pGrad, "f32[2,3]/"},
      {"Sin(x:T) -> (y:T) | T in FC", "The sine of each element, in radians.", SinGrad, "f32[2,3]~"},
      {"Cos(x:T) -> (y:T) | T in FC", "The cosine of each element, in radians.", CosGrad, "f32[2,3]~"},
      {"Tan(x:T) -> (y:T) | T in FC|IDX", "The tangent of each element, in radians.", TanGrad, "f32[2,3]/"},
      {"Asin(x:T) -> (y:T) | T in FC|IDX", "The angle whose sine is x, in [-pi/2, pi/2].", AsinGrad, "f32[2,3]/"},
      {"Acos(x:T) -> (y:T) | T in FC|IDX|i8|i16", "The angle whose cosine is x, in [0, pi].", AcosGrad, "f32[2,3]/"},
      {"Atan(x:T) -> (y:T) | T in FC|IDX", "The angle whose tangent is x, in (-pi/2, pi/2).", AtanGrad, "f32[2,3]~"},
      {"Sinh(x:T) -> (y:T) | T in FC", "The hyperbolic sine of each element.", SinhGrad, "f32[2,3]~"},
      {"Cosh(x:T) -> (y:T) | T in FC", "The hyperbolic cosine of each element.", CoshGrad, "f32[2,3]~"},
      {"Tanh(x:T) -> (y:T) | T in FC", "The hyperbolic tangent of each element.", TanhGradient, "f32[2,3]~"},
      {"Asinh(x:T) -> (y:T) | T in FC", "The inverse of the hyperbolic sine.", AsinhGrad, "f32[2,3]~"},
      {"Acosh(x:T) -> (y:T) | T in FC", "The inverse of the hyperbolic cosine; NaN below one.", AcoshGrad,
       "f32[4]{1.25 1.5 2 7}"},
      {"Atanh(x:T) -> (y:T) | T in FC", "The inverse of the hyperbolic tangent; NaN outside [-1, 1].", AtanhGrad,
       "f32[2,3]/"},
      {"Sigmoid(x:T) -> (y:T) | T in FC", "The logistic function 1 / (1 + exp(-x)).", SigmoidGradient, "f32[2,3]~"},
      {"Erf(x:T) -> (y:T) | T in FLT", "The error function of each element.", ErfGrad, "f32[2,3]~"},
      {"Erfc(x:T) -> (y:T) | T in FLT", "The complementary error function, 1 - erf(x).", ErfcGrad, "f32[2,3]~"},
      {"Lgamma(x:T) -> (y:T) | T in FLT", "The logarithm of the absolute value of the gamma function.", LgammaGrad,
       "f32[2,3]+"},
      {"Digamma(x:T) -> (y:T) | T in FLT", "The derivative of Lgamma; NaN at zero and the negative integers.",
       DigammaGrad, "f32[2,3]+"},
  };
  for (const Function& f : kFunctions) {
    r.Add(f.schema).Doc(f.doc).Shape(UnchangedShape).Gradient(f.gradient).Example(f.example);
  }
  r.Add("TanhGrad(y:T, dy:T) -> (z:T) | T in FC")
      .Doc("The gradient of Tanh from its result: dy * (1 - y * y).")
      .Shape(UnchangedShape)
      .Gradient(TanhGradGradient)
      .Example("f32[4]/, f32[4]~");
  r.Add("SigmoidGrad(y:T, dy:T) -> (z:T) | T in FC")
      .Doc("The gradient of Sigmoid from its result: dy * y * (1 - y).")
      .Shape(UnchangedShape)
      .Gradient(SigmoidGradGradient)
      .Example("f32[4]/, f32[4]~");
}

// float goes with complex64, double with complex128.
Status CheckPrecision(const ShapeContext& c, const char* complex, const char* real) {
  MR_ASSIGN_OR_RETURN(const DType whole, c.Attr<DType>(complex));
  MR_ASSIGN_OR_RETURN(const DType part, c.Attr<DType>(real));
  if ((whole == DType::kComplex64) == (part == DType::kFloat)) return absl::OkStatus();
  return InvalidArgument(DTypeName(whole), " has no parts of ", DTypeName(part));
}
Status ComplexShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckPrecision(c, "Tout", "T"));
  return BroadcastShape(c);
}
Status PartShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckPrecision(c, "T", "Tout"));
  return UnchangedShape(c);
}

void RegisterComplexParts(OpRegistry& r) {
  r.Add("Complex(real:T, imag:T) -> (out:Tout) | T in FD=f32; Tout in CPX=c64")
      .Doc("Complex numbers with the given real and imaginary parts, which broadcast.")
      .Shape(ComplexShape)
      .Gradient(ComplexGrad)
      .Example("f32[2,3]~, f32[3]~");
  r.Add("Real(input:T) -> (output:Tout) | T in CPX=c64; Tout in FD=f32")
      .Doc("The real part of each element.")
      .Shape(PartShape)
      .Gradient(RealGrad)
      .Example("!c64[2]{1 2}");
  r.Add("Imag(input:T) -> (output:Tout) | T in CPX=c64; Tout in FD=f32")
      .Doc("The imaginary part of each element.")
      .Shape(PartShape)
      .Gradient(ImagGrad)
      .Example("!c64[2]{1 2}");
  r.Add("Angle(input:T) -> (output:Tout) | T in CPX=c64; Tout in FD=f32")
      .Doc("The argument of each element in radians, in (-pi, pi].")
      .Shape(PartShape)
      .Gradient(AngleGrad)
      .Example("!c64[2]{1 -2}");
  r.Add("ComplexAbs(x:T) -> (y:Tout) | T in CPX=c64; Tout in FD=f32")
      .Doc("The modulus of each element.")
      .Shape(PartShape)
      .Gradient(ComplexAbsGrad)
      .Example("!c64[2]{1 -2}");
  r.Add("Conj(input:T) -> (output:T) | T in CPX|var=c64")
      .Doc("The complex conjugate of each element.")
      .Shape(UnchangedShape)
      .Gradient(ConjGrad)
      .Example("!c64[2]{1 -2}");
  r.Add("Cast(x:SrcT) -> (y:DstT) | SrcT:type; DstT:type; Truncate:bool=false")
      .Doc(
          "Each element in another type. Floats lose their fraction on the way to integers, integers wrap, complex "
          "numbers lose their imaginary part. With Truncate, narrower floats drop bits instead of rounding.")
      .Shape(UnchangedShape)
      .Gradient(CastGrad)
      .Example("f32[2,3]~ | DstT=f64")
      .Example("!i32[3]{1 -2 300} | DstT=u8");
}

}  // namespace

void RegisterUnaryMathOps(OpRegistry& r) {
  RegisterArithmetic(r);
  RegisterFunctions(r);
  RegisterComplexParts(r);
}

}  // namespace millrace
