// SPDX-License-Identifier: Apache-2.0
// Ops that accumulate along one axis.
#include "graph/gradient.h"
#include "ops/math/math_ops.h"

namespace millrace {
namespace {

Status ScanShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  const PartialShape& in = c.input(0);
  MR_ASSIGN_OR_RETURN(const auto axis, c.ConstantInt(1));
  if (axis && in.has_rank()) MR_RETURN_IF_ERROR(c.Axis(*axis, in.rank()).status());
  c.set_output(0, in);
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
}

}  // namespace millrace
