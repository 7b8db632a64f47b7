// SPDX-License-Identifier: Apache-2.0
// Ops of two numbers, with broadcasting: every gradient is summed down to the shape of its operand.
#include "ops/elementwise/elementwise_ops.h"

namespace millrace {
namespace {

Status SetBoth(GradContext& c, Output gx, Output gy) {
  auto [x, y] = Unbroadcast(c.b(), c.x(0), c.x(1), gx, gy);
  c.set_dx(0, x);
  c.set_dx(1, y);
  return c.status();
}
Output Number(const GraphBuilder& b, Output like, double v) { return b.ScalarOf(BaseType(like.dtype()), v); }

Status AddGrad(GradContext& c) { return SetBoth(c, c.dy(), c.dy()); }
Status SubGrad(GradContext& c) { return SetBoth(c, c.dy(), c.b().Neg(c.dy())); }
Status MulGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  return SetBoth(c, b.Mul(c.dy(), b.Conj(c.x(1))), b.Mul(b.Conj(c.x(0)), c.dy()));
}
Status MulNoNanGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  return SetBoth(c, b.Op("MulNoNan", {c.dy(), b.Conj(c.x(1))}), b.Op("MulNoNan", {b.Conj(c.x(0)), c.dy()}));
}
Status DivGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  const Output y = b.Conj(c.x(1));
  return SetBoth(c, b.Div(c.dy(), y), b.Mul(c.dy(), b.Div(b.Div(b.Neg(x), y), y)));
}
Status DivNoNanGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  const Output y = b.Conj(c.x(1));
  const Output twice = b.Op("DivNoNan", {b.Op("DivNoNan", {b.Neg(x), y}), y});
  return SetBoth(c, b.Op("DivNoNan", {c.dy(), y}), b.Mul(c.dy(), twice));
}
Status FloorModGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output quotient = b.Op("FloorDiv", {c.x(0), c.x(1)});
  return SetBoth(c, c.dy(), b.Mul(c.dy(), b.Neg(quotient)));
}
// d/dy is z log x; the logarithm counts as 0 where it is not real (x <= 0), or infinite.
Status PowGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  const Output y = b.Conj(c.x(1));
  const Output zero = Number(b, x, 0);
  const Output gx = b.Mul(b.Mul(c.dy(), y), b.Op("Pow", {x, b.Sub(y, Number(b, y, 1))}));
  const Output usable = IsComplex(BaseType(x.dtype())) ? b.Op("NotEqual", {x, zero}) : b.Op("Greater", {x, zero});
  const Output safe = b.Op("Select", {usable, x, b.OnesLike(x)});
  const Output log = b.Op("Select", {usable, b.Op("Log", {safe}), b.ZerosLike(x)});
  return SetBoth(c, gx, b.Mul(b.Mul(c.dy(), b.Conj(c.y())), log));
}
// The side that is chosen gets the gradient; ties go to x.
Status ChoiceGrad(GradContext& c, const char* x_chosen) {
  const GraphBuilder& b = c.b();
  const Output mask = b.Op(x_chosen, {c.x(0), c.x(1)});
  const Output zeros = b.ZerosLike(c.dy());
  return SetBoth(c, b.Op("Select", {mask, c.dy(), zeros}), b.Op("Select", {mask, zeros, c.dy()}));
}
Status MaximumGrad(GradContext& c) { return ChoiceGrad(c, "GreaterEqual"); }
Status MinimumGrad(GradContext& c) { return ChoiceGrad(c, "LessEqual"); }
Status SquaredDifferenceGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output d = b.Mul(b.Mul(Number(b, c.dy(), 2), c.dy()), b.Sub(c.x(0), c.x(1)));
  return SetBoth(c, d, b.Neg(d));
}
Output NotZero(const GraphBuilder& b, Output x) {
  return b.Cast(b.Op("NotEqual", {x, Number(b, x, 0)}), BaseType(x.dtype()));
}
Status XdivyGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  const Output y = b.Conj(c.x(1));
  const Output by_x = b.Op("Xdivy", {NotZero(b, x), y});
  const Output by_y = b.Op("Xdivy", {b.Neg(x), b.Op("Square", {y})});
  return SetBoth(c, b.Mul(c.dy(), by_x), b.Mul(c.dy(), by_y));
}
Status XlogyGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  const Output y = b.Conj(c.x(1));
  const Output by_x = b.Op("Xlogy", {NotZero(b, x), y});
  const Output by_y = b.Op("Xdivy", {x, y});
  return SetBoth(c, b.Mul(c.dy(), by_x), b.Mul(c.dy(), by_y));
}
Status Xlog1pyGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = b.Conj(c.x(0));
  const Output y = b.Conj(c.x(1));
  const Output by_x = b.Op("Xlog1py", {NotZero(b, x), y});
  const Output by_y = b.Op("Xdivy", {x, b.Add(y, Number(b, y, 1))});
  return SetBoth(c, b.Mul(c.dy(), by_x), b.Mul(c.dy(), by_y));
}
// Inputs in the order y, x.
Status Atan2Grad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output y = c.x(0);
  const Output x = c.x(1);
  const Output scaled = b.Div(c.dy(), b.Add(b.Op("Square", {x}), b.Op("Square", {y})));
  return SetBoth(c, b.Mul(x, scaled), b.Mul(b.Neg(y), scaled));
}
Status ZetaGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output s = c.x(0);
  const Output next = b.Op("Zeta", {b.Add(s, Number(b, s, 1)), c.x(1)});
  c.set_dx(1, SumToShapeOf(b, b.Mul(b.Mul(b.Neg(s), next), c.dy()), c.x(1)));
  return c.status();
}
Status PolygammaGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output next = b.Op("Polygamma", {b.Add(c.x(0), Number(b, c.x(0), 1)), c.x(1)});
  c.set_dx(1, SumToShapeOf(b, b.Mul(next, c.dy()), c.x(1)));
  return c.status();
}
Status EachInputGrad(GradContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_dx(i, c.dy());
  return c.status();
}
Status CrossGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("Cross", {c.x(1), c.dy()}));
  c.set_dx(1, c.b().Op("Cross", {c.dy(), c.x(0)}));
  return c.status();
}

Status CrossShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape a, c.WithRankAtLeast(0, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.WithRankAtLeast(1, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape both, c.Merge(a, b, "operands"));
  if (both.has_rank()) MR_RETURN_IF_ERROR(c.MergeDim(both.dim(both.rank() - 1), 3, "last dimension").status());
  c.set_output(0, both);
  return absl::OkStatus();
}

constexpr char kSteps[] = "constant between its steps";
constexpr char kNoFormula[] = "no gradient is defined for the truncated remainder; FloorMod has one";
constexpr char kBits[] = "an operation on bits";

void RegisterArithmetic(OpRegistry& r) {
  r.Add("Add(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8|str")
      .Doc("x + y with broadcasting; strings are joined.")
      .Shape(BroadcastShape)
      .Gradient(AddGrad)
      .Example("f32[2,3]~, f32[3]~")
      .Example("str[1]{\"a\"}, str[1]{\"b\"}");
  r.Add("AddV2(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8|u16|u32|u64 | CA")
      .Doc("x + y with broadcasting. Integers wrap.")
      .Shape(BroadcastShape)
      .Gradient(AddGrad)
      .Example("f32[2,3]~, f32[3]~")
      .Example("!i32[2]{1 2}, !i32[]{5}");
  r.Add("Sub(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8|u16|u32|u64")
      .Traits({OpTrait::kZeroIsNeutral})
      .Doc("x - y with broadcasting. Integers wrap.")
      .Shape(BroadcastShape)
      .Gradient(SubGrad)
      .Example("f32[2,3]~, f32[2,1]~");
  r.Add("Mul(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8|u16|u32|u64 | C")
      .Traits({OpTrait::kOneIsNeutral, OpTrait::kOneIsNeutralLeft})
      .Doc("x * y with broadcasting. Integers wrap.")
      .Shape(BroadcastShape)
      .Gradient(MulGrad)
      .Example("f32[2,3]~, f32[3]~")
      .Example("f32[2,1]~, f32[]~");
  r.Add("MulNoNan(x:T, y:T) -> (z:T) | T in FC")
      .Doc("x * y, but 0 where y is 0 even when x is infinite or NaN.")
      .Shape(BroadcastShape)
      .Gradient(MulNoNanGrad)
      .Example("f32[2,3]~, f32[3]+");
  r.Add("Div(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8|u16|u32|u64")
      .Traits({OpTrait::kOneIsNeutral})
      .Doc("x / y with broadcasting; integer quotients lose their fraction.")
      .Shape(BroadcastShape)
      .Gradient(DivGrad)
      .Example("f32[2,3]~, f32[3]+");
  r.Add("RealDiv(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8|u16|u32|u64")
      .Traits({OpTrait::kOneIsNeutral})
      .Doc("x / y with broadcasting.")
      .Shape(BroadcastShape)
      .Gradient(DivGrad)
      .Example("f32[2,3]~, f32[3]+");
  r.Add("DivNoNan(x:T, y:T) -> (z:T) | T in FC")
      .Doc("x / y, but 0 where y is 0.")
      .Shape(BroadcastShape)
      .Gradient(DivNoNanGrad)
      .Example("f32[2,3]~, f32[3]+");
  r.Add("FloorDiv(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8|u16|u32|u64")
      .Doc("The largest integer not above x / y.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kSteps)
      .Example("!f32[3]{5 -5 7}, !f32[]{2}");
  r.Add("TruncateDiv(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8|u16|u32|u64")
      .Doc("x / y without its fraction.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kSteps)
      .Example("i32[3]{5 -5 7}, i32[]{2}");
  r.Add("FloorMod(x:T, y:T) -> (z:T) | T in FLT|IDX|i8|i16|u8|u16|u32|u64")
      .Doc("The remainder that goes with FloorDiv; it has the sign of y.")
      .Shape(BroadcastShape)
      .Gradient(FloorModGrad)
      .Example("f32[3]{5.3 -5.2 7.1}, f32[]{2}");
  r.Add("Mod(x:T, y:T) -> (z:T) | T in FLT|IDX")
      .Doc("The remainder that goes with TruncateDiv; it has the sign of x.")
      .Shape(BroadcastShape)
      .NoGradient(kNoFormula)
      .Example("!f32[3]{5.3 -5.2 7.1}, !f32[]{2}");
  r.Add("TruncateMod(x:T, y:T) -> (z:T) | T in FLT|IDX")
      .Doc("The remainder that goes with TruncateDiv; it has the sign of x.")
      .Shape(BroadcastShape)
      .NoGradient(kNoFormula)
      .Example("!f32[3]{5.3 -5.2 7.1}, !f32[]{2}");
  r.Add("Pow(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16")
      .Doc("x raised to y with broadcasting. Integers wrap; a negative integer exponent is an error.")
      .Shape(BroadcastShape)
      .Gradient(PowGrad)
      .Example("f32[2,3]+, f32[3]~")
      .Example("!i32[3]{2 3 -2}, !i32[]{3}");
  r.Add("Maximum(x:T, y:T) -> (z:T) | T in FLT|IDX|i8|i16|u8|u16|u32|u64")
      .Doc("The larger of x and y; NaN when one of them is.")
      .Shape(BroadcastShape)
      .Gradient(MaximumGrad)
      .Example("f32[2,3]~, f32[3]~");
  r.Add("Minimum(x:T, y:T) -> (z:T) | T in FLT|IDX|i8|i16|u8|u16|u32|u64")
      .Doc("The smaller of x and y; NaN when one of them is.")
      .Shape(BroadcastShape)
      .Gradient(MinimumGrad)
      .Example("f32[2,3]~, f32[3]~");
  r.Add("SquaredDifference(x:T, y:T) -> (z:T) | T in FC|IDX | C")
      .Doc("The square of x - y; of its modulus for complex numbers.")
      .Shape(BroadcastShape)
      .Gradient(SquaredDifferenceGrad)
      .Example("f32[2,3]~, f32[3]~");
  r.Add("Xdivy(x:T, y:T) -> (z:T) | T in FC")
      .Doc("x / y, but 0 where x is 0.")
      .Shape(BroadcastShape)
      .Gradient(XdivyGrad)
      .Example("f32[2,3]~, f32[3]+");
  r.Add("Xlogy(x:T, y:T) -> (z:T) | T in FC")
      .Doc("x * log(y), but 0 where x is 0.")
      .Shape(BroadcastShape)
      .Gradient(XlogyGrad)
      .Example("f32[2,3]~, f32[3]+");
  r.Add("Xlog1py(x:T, y:T) -> (z:T) | T in FC")
      .Doc("x * log(1 + y), but 0 where x is 0.")
      .Shape(BroadcastShape)
      .Gradient(Xlog1pyGrad)
      .Example("f32[2,3]~, f32[3]+");
  r.Add("Atan2(y:T, x:T) -> (z:T) | T in FLT")
      .Doc("The angle of the point (x, y) in radians, in (-pi, pi].")
      .Shape(BroadcastShape)
      .Gradient(Atan2Grad)
      .Example("f32[2,3]+, f32[3]+");
  r.Add("Zeta(x:T, q:T) -> (z:T) | T in FD")
      .Doc("The Hurwitz zeta function: the sum of (q + k)^-x over k >= 0.")
      .Shape(BroadcastShape)
      .Gradient(ZetaGrad)
      .Example("!f32[2]{2 3.5}, f32[2]+");
  r.Add("Polygamma(a:T, x:T) -> (z:T) | T in FD")
      .Doc("The a-th derivative of the digamma function at x.")
      .Shape(BroadcastShape)
      .Gradient(PolygammaGrad)
      .Example("!f32[2]{1 2}, f32[2]+");
}

void RegisterBits(OpRegistry& r) {
  r.Add("BitwiseAnd(x:T, y:T) -> (z:T) | T in INT | C")
      .Doc("The bits set in both x and y.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kBits)
      .Example("i32[3]{12 10 -1}, i32[]{6}");
  r.Add("BitwiseOr(x:T, y:T) -> (z:T) | T in INT | C")
      .Doc("The bits set in x or y.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kBits)
      .Example("i32[3]{12 10 -1}, i32[]{6}");
  r.Add("BitwiseXor(x:T, y:T) -> (z:T) | T in INT | C")
      .Doc("The bits set in one of x and y only.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kBits)
      .Example("i32[3]{12 10 -1}, i32[]{6}");
  r.Add("LeftShift(x:T, y:T) -> (z:T) | T in INT")
      .Doc("x shifted left by y bits; distances outside the width of the type count as its nearest end.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kBits)
      .Example("i32[3]{12 10 -1}, i32[]{3}");
  r.Add("RightShift(x:T, y:T) -> (z:T) | T in INT")
      .Doc("x shifted right by y bits, keeping the sign; distances outside the width count as its nearest end.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kBits)
      .Example("i32[3]{12 10 -1}, i32[]{3}");
}

void RegisterSums(OpRegistry& r) {
  r.Add("AddN(inputs:N*T) -> (sum:T) | N:int>=1; T in NUM|qi16|qu16|var | CA")
      .Doc("The sum of tensors of one shape.")
      .Shape(MergedShape)
      .Gradient(EachInputGrad)
      .Example("f32[2,3]~, f32[2,3]~, f32[2,3]~ | N=3");
  r.Add("AccumulateNV2(inputs:N*T) -> (sum:T) | N:int>=1; T in NUM|qi16|qu16; shape:shape | CA")
      .Doc("The sum of tensors of one shape, which is also stated as an attribute.")
      .Shape(MergedShape)
      .Gradient(EachInputGrad)
      .Example("f32[2,3]~, f32[2,3]~ | N=2; shape=[2,3]");
  r.Add("Cross(a:T, b:T) -> (product:T) | T in REAL")
      .Doc("The vector products of triples along the last dimension.")
      .Shape(CrossShape)
      .Gradient(CrossGrad)
      .Example("f32[2,3]~, f32[2,3]~");
}

}  // namespace

void RegisterBinaryMathOps(OpRegistry& r) {
  RegisterArithmetic(r);
  RegisterBits(r);
  RegisterSums(r);
}

}  // namespace millrace
