// SPDX-License-Identifier: Apache-2.0
// Ops: random numbers of a stream whose position is the value of a variable.
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kRandom[] = "random numbers do not depend on the inputs";
constexpr char kNoExample[] = "it needs a variable";

template <int kShape>
Status FilledShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(kShape, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(kShape));
  c.set_output(0, shape);
  return absl::OkStatus();
}

// resource, algorithm, shape, and scalars.
Status StatefulShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (i != 2) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  }
  return FilledShape<2>(c);
}

Status StatefulBinomialShape(ShapeContext& c) {
  for (const int scalar : {0, 1}) MR_RETURN_IF_ERROR(c.RequireScalar(scalar));
  return FilledShape<2>(c);
}

Status OlderShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  return FilledShape<1>(c);
}

Status ReadAndSkipShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  c.set_output(0, PartialShape::Of({3}));
  return absl::OkStatus();
}

Status SkipShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return absl::OkStatus();
}

struct Filled {
  const char* name;
  const char* more_inputs;
  const char* dtype;
  const char* doc;
};

}  // namespace

void RegisterRandomStateOps(OpRegistry& r) {
  for (const Filled& op :
       {Filled{"StatefulStandardNormalV2", "", "f32", "Standard normal numbers"},
        Filled{"StatefulUniform", "", "f32", "Numbers uniform in [0, 1)"},
        Filled{"StatefulTruncatedNormal", "", "f32", "Standard normal numbers of magnitude below 2"},
        Filled{
            "StatefulUniformInt", ", minval:dtype, maxval:dtype", "i64", "Whole numbers uniform in [minval, maxval)"},
        Filled{"StatefulUniformFullInt", "", "u64", "Whole numbers of which every bit is random"}}) {
    r.Add(absl::StrCat(op.name, "(resource:res, algorithm:i64, shape:shape_dtype", op.more_inputs,
                       ") -> (output:dtype) | dtype:type=", op.dtype, "; shape_dtype:type=i64 | S"))
        .Doc(absl::StrCat(op.doc,
                          ", of the stream whose position is in a variable of int64: two elements of counter and one "
                          "of key. The position goes on behind the numbers. The algorithm is 1, which is Philox."))
        .Shape(StatefulShape)
        .NotDifferentiable(kRandom)
        .NoExample(kNoExample);
  }
  r.Add(
       "StatefulStandardNormal(resource:res, shape:shape_dtype) -> (output:dtype) | dtype:type=f32; "
       "shape_dtype:type=i64 | S D29")
      .Deprecated("use StatefulStandardNormalV2 instead")
      .Doc("StatefulStandardNormalV2 with the algorithm before the position in the variable.")
      .Shape(OlderShape)
      .NotDifferentiable(kRandom)
      .NoExample(kNoExample);
  r.Add(
       "StatefulRandomBinomial(resource:res, algorithm:i64, shape:S, counts:T, probs:T) -> (output:dtype) | S in IDX; "
       "T in HFD|IDX=f64; dtype in HFD|IDX=i64 | S")
      .Doc(
          "Binomial numbers of a stream whose position is in a variable: of `counts` trials, which succeed with a "
          "chance "
          "of `probs`. These are scalars, or vectors with one element for each row of the shape.")
      .Shape(StatefulBinomialShape)
      .NotDifferentiable(kRandom)
      .NoExample(kNoExample);
  r.Add("RngSkip(resource:res, algorithm:i64, delta:i64) -> () | S")
      .Doc("Moves the position in a variable on, as making delta numbers does.")
      .Shape(SkipShape)
      .NotDifferentiable(kRandom)
      .NoExample(kNoExample);
  r.Add("RngReadAndSkip(resource:res, alg:i32, delta:u64) -> (value:i64) | S")
      .Doc("RngSkip that gives the position before, as it is in the variable: counter and key, [3].")
      .Shape(ReadAndSkipShape)
      .NotDifferentiable(kRandom)
      .NoExample(kNoExample);
  r.Add("NonDeterministicInts(shape:shape_dtype) -> (output:dtype) | dtype:type=i64; shape_dtype:type=i64 | S")
      .Doc("Whole numbers of which every bit is random, other ones whenever it runs.")
      .Shape(FilledShape<0>)
      .NotDifferentiable(kRandom)
      .Example("i64[2]{2 3}");
}

}  // namespace millrace
