// SPDX-License-Identifier: Apache-2.0
// Ops whose result is a truth value.
#include "ops/elementwise/elementwise_ops.h"

namespace millrace {
namespace {

// With incompatible_shape_error false, shapes that do not fit give a scalar, so nothing is certain before the step.
Status EqualityShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const bool error, c.Attr<bool>("incompatible_shape_error"));
  if (error) return BroadcastShape(c);
  bool incompatible = false;
  const PartialShape shape = BroadcastPartial(c.input(0), c.input(1), &incompatible);
  const bool certain = c.input(0).IsFullyDefined() && c.input(1).IsFullyDefined();
  c.set_output(0, certain && !incompatible ? shape : PartialShape::Unknown());
  return absl::OkStatus();
}

constexpr char kTruthValue[] = "the result is a truth value";

}  // namespace

void RegisterComparisonOps(OpRegistry& r) {
  struct Comparison {
    const char* schema;
    const char* doc;
  };
  const Comparison kComparisons[] = {
      {"Less(x:T, y:T) -> (z:bool) | T in REAL", "x < y with broadcasting."},
      {"LessEqual(x:T, y:T) -> (z:bool) | T in REAL", "x <= y with broadcasting."},
      {"Greater(x:T, y:T) -> (z:bool) | T in REAL", "x > y with broadcasting."},
      {"GreaterEqual(x:T, y:T) -> (z:bool) | T in REAL", "x >= y with broadcasting."},
  };
  for (const Comparison& f : kComparisons) {
    r.Add(f.schema)
        .Doc(f.doc)
        .Shape(BroadcastShape)
        .NotDifferentiable(kTruthValue)
        .Example("f32[2,3]~, f32[3]~")
        .Example("i32[3]{1 2 3}, i32[]{2}");
  }
  r.Add("Equal(x:T, y:T) -> (z:bool) | T in FC|INT|bool|str|QNT; incompatible_shape_error:bool=true | C")
      .Doc("x == y with broadcasting. Shapes that do not fit are an error, or the scalar false.")
      .Shape(EqualityShape)
      .NotDifferentiable(kTruthValue)
      .Example("i32[2,2]{1 2 3 4}, i32[2]{1 4}");
  r.Add("NotEqual(x:T, y:T) -> (z:bool) | T in FC|INT|bool|str|QNT; incompatible_shape_error:bool=true | C")
      .Doc("x != y with broadcasting. Shapes that do not fit are an error, or the scalar true.")
      .Shape(EqualityShape)
      .NotDifferentiable(kTruthValue)
      .Example("i32[2,2]{1 2 3 4}, i32[2]{1 4}");
  r.Add("ApproximateEqual(x:T, y:T) -> (z:bool) | T in NUM|qi16|qu16; tolerance:float=1e-05 | C")
      .Doc("Whether x and y, of one shape, differ by no more than the tolerance.")
      .Shape(MergedShape)
      .NotDifferentiable(kTruthValue)
      .Example("f32[3]{1 2 3}, f32[3]{1 2.5 3} | tolerance=0.1");
  r.Add("LogicalAnd(x:bool, y:bool) -> (z:bool) | C")
      .Doc("Whether both x and y are true.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kTruthValue)
      .Example("bool[2]{true false}, bool[]{true}");
  r.Add("LogicalOr(x:bool, y:bool) -> (z:bool) | C")
      .Doc("Whether x or y is true.")
      .Shape(BroadcastShape)
      .NotDifferentiable(kTruthValue)
      .Example("bool[2]{true false}, bool[]{false}");
}

}  // namespace millrace
