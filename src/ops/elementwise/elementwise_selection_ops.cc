// SPDX-License-Identifier: Apache-2.0
// Ops that choose or repeat elements: Select, ClipByValue, BroadcastTo and the shape arithmetic of broadcasting.
#include <algorithm>

#include "ops/elementwise/elementwise_ops.h"

namespace millrace {
namespace {

// The condition has the shape of the values, or is a scalar, or a vector of their first dimension.
Status SelectShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape values, c.Merge(c.input(1), c.input(2), "'t' and 'e'"));
  const PartialShape& cond = c.input(0);
  if (cond.has_rank() && cond.rank() > 0) {
    if (cond.rank() > 1) {
      MR_ASSIGN_OR_RETURN(values, c.Merge(values, cond, "condition and values"));
    } else if (values.has_rank()) {
      if (values.rank() == 0) return InvalidArgument("Select: a vector condition needs values of rank 1 or more");
      MR_RETURN_IF_ERROR(c.MergeDim(cond.dim(0), values.dim(0), "rows of condition and values").status());
    }
  }
  c.set_output(0, values);
  return absl::OkStatus();
}
Status SelectGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output zeros = b.ZerosLike(c.dy());
  c.set_dx(1, b.Op("Select", {c.x(0), c.dy(), zeros}));
  c.set_dx(2, b.Op("Select", {c.x(0), zeros, c.dy()}));
  return c.status();
}

Status SelectV2Shape(ShapeContext& c) {
  bool incompatible = false;
  const PartialShape values = BroadcastPartial(c.input(1), c.input(2), &incompatible);
  if (!incompatible) {
    const PartialShape all = BroadcastPartial(c.input(0), values, &incompatible);
    if (!incompatible) {
      c.set_output(0, all);
      return absl::OkStatus();
    }
  }
  return InvalidArgument("SelectV2: condition ", c.input(0).ToString(), ", then ", c.input(1).ToString(), " and else ",
                         c.input(2).ToString(), " do not broadcast");
}
Status SelectV2Grad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output zero = b.ScalarOf(BaseType(c.dy().dtype()), 0);
  c.set_dx(1, SumToShapeOf(b, b.Op("SelectV2", {c.x(0), c.dy(), zero}), c.x(1)));
  c.set_dx(2, SumToShapeOf(b, b.Op("SelectV2", {c.x(0), zero, c.dy()}), c.x(2)));
  return c.status();
}

// Each place gives its gradient to the operand that it took its value from.
Status ClipByValueGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output below = b.Op("Less", {c.x(0), c.x(1)});
  const Output above = b.Op("Greater", {c.x(0), c.x(2)});
  const Output zeros = b.ZerosLike(c.dy());
  c.set_dx(0, b.Op("Select", {b.Op("LogicalOr", {below, above}), zeros, c.dy()}));
  c.set_dx(1, SumToShapeOf(b, b.Op("Select", {below, c.dy(), zeros}), c.x(1)));
  c.set_dx(2, SumToShapeOf(b, b.Op("Select", {above, c.dy(), zeros}), c.x(2)));
  return c.status();
}

Status BroadcastToShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape to, c.InputAsShape(1));
  const PartialShape& from = c.input(0);
  if (!to.has_rank() || !from.has_rank()) {
    c.set_output(0, to);
    return absl::OkStatus();
  }
  std::vector<int64_t> dims = to.dims();
  bool fits = from.rank() <= to.rank();
  for (int i = 0; fits && i < from.rank(); ++i) {
    const int j = i + to.rank() - from.rank();
    if (!from.has_dim(i) || from.dim(i) == 1) continue;
    fits = !to.has_dim(j) || from.dim(i) == to.dim(j);
    dims[static_cast<size_t>(j)] = from.dim(i);  // only a size of 1 becomes another
  }
  if (!fits) return InvalidArgument("BroadcastTo: ", from.ToString(), " does not broadcast to ", to.ToString());
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}
Status BroadcastToGrad(GradContext& c) {
  c.set_dx(0, SumToShapeOf(c.b(), c.dy(), c.x(0)));
  return c.status();
}

Status BroadcastArgsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 1));
  const bool known = a.has_dim(0) && b.has_dim(0);
  c.set_output(0, PartialShape::Of({known ? std::max(a.dim(0), b.dim(0)) : -1}));
  return absl::OkStatus();
}
Status BroadcastGradientArgsShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, PartialShape::UnknownOfRank(1));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

}  // namespace

void RegisterSelectionOps(OpRegistry& r) {
  r.Add("Select(condition:bool, t:T, e:T) -> (output:T) | T:type")
      .Doc(
          "Takes elements from t where the condition is true, else from e. The condition has their shape, or is one "
          "truth value, or one per row.")
      .Shape(SelectShape)
      .Gradient(SelectGrad)
      .Example("bool[2,2]{true false false true}, f32[2,2]~, f32[2,2]~")
      .Example("bool[2]{true false}, f32[2,3]~, f32[2,3]~");
  r.Add("SelectV2(condition:bool, t:T, e:T) -> (output:T) | T:type")
      .Doc("Takes elements from t where the condition is true, else from e; all three broadcast.")
      .Shape(SelectV2Shape)
      .Gradient(SelectV2Grad)
      .Example("bool[2,1]{true false}, f32[2,3]~, f32[3]~");
  r.Add("ClipByValue(t:T, clip_value_min:T, clip_value_max:T) -> (output:T) | T in NUM|qi16|qu16")
      .Doc("Each element moved into [clip_value_min, clip_value_max]. The bounds are scalars or of the shape of t.")
      .Shape(UnchangedShape)
      .Gradient(ClipByValueGrad)
      .Example("f32[2,3]~, f32[]{-0.5}, f32[]{0.5}");
  r.Add("BroadcastTo(input:T, shape:Tidx) -> (output:T) | T:type; Tidx in IDX=i32")
      .Doc("Repeats the input along dimensions of size 1 and along new leading ones, to the given shape.")
      .Shape(BroadcastToShape)
      .Gradient(BroadcastToGrad)
      .Example("f32[3]~, i32[2]{2 3}")
      .Example("f32[2,1]~, i32[2]{2 3}");
  r.Add("BroadcastArgs(s0:T, s1:T) -> (r0:T) | T in IDX=i32")
      .Doc("The shape that two shapes broadcast to.")
      .Shape(BroadcastArgsShape)
      .NotDifferentiable("the result is a shape")
      .Example("i32[2]{2 1}, i32[1]{3}");
  r.Add("BroadcastGradientArgs(s0:T, s1:T) -> (r0:T, r1:T) | T in IDX=i32")
      .Doc("For two shapes that broadcast: the axes over which each side's gradient is to be summed.")
      .Shape(BroadcastGradientArgsShape)
      .NotDifferentiable("the result is a list of axes")
      .Example("i32[2]{2 1}, i32[1]{3}");
}

}  // namespace millrace
