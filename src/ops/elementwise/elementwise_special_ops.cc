// SPDX-License-Identifier: Apache-2.0
// Ops of special functions, of neighbouring floats, and of bits counted and packed.
#include "ops/elementwise/elementwise_ops.h"

namespace millrace {
namespace {

Status SetBoth(GradContext& c, Output ga, Output gx) {
  auto [a, x] = Unbroadcast(c.b(), c.x(0), c.x(1), ga, gx);
  c.set_dx(0, a);
  c.set_dx(1, x);
  return c.status();
}
Output Number(const GraphBuilder& b, Output like, double v) { return b.ScalarOf(BaseType(like.dtype()), v); }

double EpsilonOf(DType t) {
  switch (BaseType(t)) {
    case DType::kHalf: return 0x1p-10;
    case DType::kBFloat16: return 0x1p-7;
    case DType::kFloat: return 0x1p-23;
    default: return 0x1p-52;
  }
}

Status BesselI0eGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = c.x(0);
  c.set_dx(0, b.Mul(c.dy(), b.Sub(b.Op("BesselI1e", {x}), b.Mul(b.Op("Sign", {x}), c.y()))));
  return c.status();
}

// 1/2 next to zero, where the formula divides by x.
Status BesselI1eGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = c.x(0), zeros = b.ZerosLike(x), epsilon = Number(b, x, EpsilonOf(x.dtype()));
  const Output usable = b.Op("Greater", {b.Op("Abs", {x}), epsilon});
  const Output safe = b.Op("Select", {usable, x, b.Add(epsilon, zeros)});
  const Output inner = b.Add(b.Op("Sign", {safe}), b.Op("Reciprocal", {safe}));
  const Output slope = b.Sub(b.Op("BesselI0e", {safe}), b.Mul(c.y(), inner));
  c.set_dx(0, b.Mul(c.dy(), b.Op("Select", {usable, slope, b.Add(Number(b, x, 0.5), zeros)})));
  return c.status();
}

// x^(a-1) exp(-x) / Gamma(a), the derivative of P(a, x) by x.
Output GammaDensity(const GraphBuilder& b, Output a, Output x) {
  const Output log = b.Op("Xlogy", {b.Sub(a, Number(b, a, 1)), x});
  return b.Op("Exp", {b.Sub(b.Sub(log, x), b.Op("Lgamma", {a}))});
}
Status IgammaGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output a = c.x(0), x = c.x(1);
  return SetBoth(c, b.Mul(c.dy(), b.Op("IgammaGradA", {a, x})), b.Mul(c.dy(), GammaDensity(b, a, x)));
}
Status IgammacGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output a = c.x(0), x = c.x(1), g = b.Neg(c.dy());
  return SetBoth(c, b.Mul(g, b.Op("IgammaGradA", {a, x})), b.Mul(g, GammaDensity(b, a, x)));
}

Status BetaincShape(ShapeContext& c) {
  PartialShape out = PartialShape::Scalar();
  bool unknown = false;
  for (int i = 0; i < 3; ++i) {
    const PartialShape& in = c.input(i);
    if (!in.has_rank()) {
      unknown = true;
    } else if (in.rank() > 0) {
      if (out.rank() == 0) {
        out = in;
      } else {
        MR_ASSIGN_OR_RETURN(out, c.Merge(out, in, "the shapes of a, b and x"));
      }
    }
  }
  if (!unknown || out.rank() > 0) c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// By x only.
Status BetaincGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output p = c.x(0), q = c.x(1), x = c.x(2), one = Number(b, x, 1);
  const auto log_gamma = [&](Output v) { return b.Op("Lgamma", {v}); };
  const Output log_beta = b.Sub(b.Add(log_gamma(p), log_gamma(q)), log_gamma(b.Add(p, q)));
  const Output left = b.Op("Xlogy", {b.Sub(p, one), x});
  const Output right = b.Mul(b.Sub(q, one), b.Op("Log1p", {b.Neg(x)}));
  const Output slope = b.Op("Exp", {b.Sub(b.Add(right, left), log_beta)});
  c.set_dx(2, b.Reshape(SumToShapeOf(b, b.Mul(c.dy(), slope), x), b.Shape(x)));
  return c.status();
}

Status NextAfterGrad(GradContext& c) { return SetBoth(c, c.dy(), c.b().ZerosLike(c.dy())); }

Status BitpackShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, 1));
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  if (!in.has_rank()) return absl::OkStatus();
  std::vector<int64_t> dims = in.dims();
  if (dims.back() >= 0) {
    if (dims.back() % 8 != 0) {
      return InvalidArgument("the last dimension of input must be divisible by 8, got ", in.ToString());
    }
    dims.back() /= 8;
  }
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

}  // namespace

void RegisterSpecialMathOps(OpRegistry& r) {
  r.Add("BesselI0e(x:T) -> (y:T) | T in FLT")
      .Doc("exp(-|x|) times the modified Bessel function of the first kind of order 0.")
      .Shape(UnchangedShape)
      .Gradient(BesselI0eGrad)
      .Example("f32[2,3]~");
  r.Add("BesselI1e(x:T) -> (y:T) | T in FLT")
      .Doc("exp(-|x|) times the modified Bessel function of the first kind of order 1.")
      .Shape(UnchangedShape)
      .Gradient(BesselI1eGrad)
      .Example("f32[2,3]~");
  r.Add("Igamma(a:T, x:T) -> (z:T) | T in FD")
      .Doc("The regularised lower incomplete gamma function P(a, x), with broadcasting. NaN unless a > 0 and x >= 0.")
      .Shape(BroadcastShape)
      .Gradient(IgammaGrad)
      .Example("f64[2,3]+, f64[3]+");
  r.Add("Igammac(a:T, x:T) -> (z:T) | T in FD")
      .Doc("The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x). See Igamma.")
      .Shape(BroadcastShape)
      .Gradient(IgammacGrad)
      .Example("f64[2,3]+, f64[3]+");
  r.Add("IgammaGradA(a:T, x:T) -> (z:T) | T in FD")
      .Doc("The derivative of Igamma by a.")
      .Shape(BroadcastShape)
      .NoGradient("second derivatives of the incomplete gamma function have no formula here")
      .Example("!f64[3]+, !f64[3]+");
  r.Add("RandomGammaGrad(alpha:T, sample:T) -> (output:T) | T in FD")
      .Doc(
          "The derivative of Gamma(alpha, 1) samples by alpha, of each at its place in the distribution (implicit "
          "reparameterisation), with broadcasting.")
      .Shape(BroadcastShape)
      .NoGradient("second derivatives of the incomplete gamma function have no formula here")
      .Example("!f64[3]+, !f64[2,3]+");
  r.Add("Betainc(a:T, b:T, x:T) -> (z:T) | T in FD")
      .Doc(
          "The regularised incomplete beta function I_x(a, b). Operands are scalars or of one shape. NaN unless a > 0, "
          "b > 0 and 0 <= x <= 1. Its gradient is that by x.")
      .Shape(BetaincShape)
      .Gradient(BetaincGrad)
      .Example("!f64[3]+, !f64[3]+, f64[3]{0.2 0.5 0.9}")
      .Example("!f64[]{2}, !f64[3]+, f64[]{0.3}");
  r.Add("NextAfter(x1:T, x2:T) -> (output:T) | T in FD=f32")
      .Doc("The float next to x1 in the direction of x2, with broadcasting.")
      .Shape(BroadcastShape)
      .Gradient(NextAfterGrad)
      .Example("f64[2,3]~, f64[3]~");
  r.Add("PopulationCount(x:T) -> (y:u8) | T in INT")
      .Doc("The number of bits that are set.")
      .Shape(UnchangedShape)
      .NotDifferentiable("bits have no derivative")
      .Example("i32[4]{0 1 255 -1}");
  r.Add("CompareAndBitpack(input:T, threshold:T) -> (output:u8) | T in HFD|IDX|i8|i16|bool")
      .Doc(
          "Whether elements are above the threshold (of bools: whether they are true), eight along the last dimension "
          "in a byte, the first in its highest bit.")
      .Shape(BitpackShape)
      .NotDifferentiable("comparisons have no derivative")
      .Example("f32[2,8]~, f32[]{0}");
}

}  // namespace millrace
