// SPDX-License-Identifier: Apache-2.0
// Ops that accumulate along one axis.
#include "graph/gradient.h"
#include "ops/math/math_ops.h"

namespace millrace {
namespace {

Status ScanShape(ShapeContext& c) {
  c.set_output(0, c.input(0));  // a step checks the axis, as in TensorFlow
  return absl::OkStatus();
}

// The same sums from the other end: what comes after instead of what comes before.
Output SumBackwards(GradContext& c, Output g, bool exclusive, bool reverse) {
  return c.b().Op("Cumsum", {g, c.x(1)}, {{"exclusive", exclusive}, {"reverse", !reverse}});
}

Status CumsumGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const bool exclusive, c.Attr<bool>("exclusive"));
  MR_ASSIGN_OR_RETURN(const bool reverse, c.Attr<bool>("reverse"));
  c.set_dx(0, SumBackwards(c, c.dy(), exclusive, reverse));
  return c.status();
}

Status CumprodGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const bool exclusive, c.Attr<bool>("exclusive"));
  MR_ASSIGN_OR_RETURN(const bool reverse, c.Attr<bool>("reverse"));
  const GraphBuilder& b = c.b();
  Output sums = SumBackwards(c, b.Mul(c.y(), c.dy()), exclusive, reverse);
  c.set_dx(0, b.Op("DivNoNan", {sums, c.x(0)}));
  return c.status();
}

// exp(L - s) = g exp(x) sum ..., with gradients of either sign apart, since only positive numbers have logarithms.
Status LogsumexpGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const bool exclusive, c.Attr<bool>("exclusive"));
  MR_ASSIGN_OR_RETURN(const bool reverse, c.Attr<bool>("reverse"));
  const GraphBuilder& b = c.b();
  const Output g = c.dy(), x = c.x(0);
  const DType t = BaseType(x.dtype());
  const double least = t == DType::kHalf ? -65504 : t == DType::kDouble ? -1.7976931348623157e308 : -3.38e38;
  const Output zero = b.ScalarOf(t, 0), lowest = b.Add(b.ScalarOf(t, least), b.ZerosLike(g));
  const auto part = [&](Output positive) {
    const Output some = b.Op("Greater", {positive, zero});
    const Output safe = b.Op("Select", {some, positive, b.OnesLike(positive)});
    const Output log = b.Op("Select", {some, b.Op("Log", {safe}), lowest});
    const Output sums =
        b.Op("CumulativeLogsumexp", {b.Sub(log, c.y()), c.x(1)}, {{"exclusive", exclusive}, {"reverse", !reverse}});
    return b.Op("Exp", {b.Add(sums, x)});
  };
  c.set_dx(0, b.Sub(part(g), part(b.Neg(g))));
  return c.status();
}

constexpr char kScan[] =
    "(x:T, axis:Tidx) -> (out:T) | exclusive:bool=false; reverse:bool=false; T in NUM; Tidx in IDX=i32";

}  // namespace

void RegisterScanOps(OpRegistry& registry) {
  registry.Add(absl::StrCat("Cumsum", kScan))
      .Doc(
          "Running sums along one axis: element i is the sum of the elements up to i, or before i when exclusive; from "
          "the end when reverse.")
      .Shape(ScanShape)
      .Gradient(CumsumGrad)
      .Example("f32[2,3]~, i32[]{1}")
      .Example("f64[4,2]~, i64[]{-2} | exclusive=true; reverse=true");
  registry.Add(absl::StrCat("Cumprod", kScan))
      .Doc(
          "Running products along one axis: element i is the product of the elements up to i, or before i when "
          "exclusive; from the end when reverse.")
      .Shape(ScanShape)
      .Gradient(CumprodGrad)
      .Example("f32[2,3]+, i32[]{1}")
      .Example("f64[4,2]+, i64[]{-2} | exclusive=true; reverse=true");
  registry
      .Add(
          "CumulativeLogsumexp(x:T, axis:Tidx) -> (out:T) | exclusive:bool=false; reverse:bool=false; T in FLT; "
          "Tidx in IDX=i32")
      .Doc(
          "Running logarithms of sums of exponentials along one axis. Where nothing is summed (exclusive) the result "
          "is minus infinity.")
      .Shape(ScanShape)
      .Gradient(LogsumexpGrad)
      .Example("f64[2,3]~, i32[]{1}")
      .Example("f64[4,2]~, i64[]{-2} | reverse=true");
}

}  // namespace millrace
