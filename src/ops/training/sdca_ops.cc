// SPDX-License-Identifier: Apache-2.0
// Ops: stochastic dual coordinate ascent for linear models (Shalev-Shwartz and Zhang 2013).
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kOptimizerInputs[] =
    "sparse_example_indices:num_sparse_features*i64, sparse_feature_indices:num_sparse_features*i64, "
    "sparse_feature_values:num_sparse_features_with_values*f32, dense_features:num_dense_features*f32, "
    "example_weights:f32, example_labels:f32, sparse_indices:num_sparse_features*i64, "
    "sparse_weights:num_sparse_features*f32, dense_weights:num_dense_features*f32, example_state_data:f32";
constexpr char kOptimizerDoc[] =
    "One pass over the examples of a batch: each example's dual variable goes to where the dual objective is highest, "
    "the others kept, and the weights follow. An example has features in sparse groups (`sparse_example_indices`, "
    "sorted, says whose a feature is; a group without values has ones) and in rows of dense ones. `sparse_indices` are "
    "the features that `sparse_weights` are of. A row of the state is (dual variable, primal loss, dual loss, weight "
    "of the example); the losses are those before the pass. The order of the examples is drawn from the state, so that "
    "equal inputs give equal results; with `";

// What is added to weights has their shapes.
Status OptimizerShape(ShapeContext& c) {
  const auto like = [&](const char* weights, const char* deltas) {
    const ArgRange from = c.input_arg(weights), to = c.output_arg(deltas);
    for (int i = 0; i < to.end - to.begin; ++i) c.set_output(to.begin + i, c.input(from.begin + i));
  };
  like("sparse_weights", "out_delta_sparse_weights");
  like("dense_weights", "out_delta_dense_weights");
  c.set_output(0, PartialShape::Of({-1, 4}));
  return absl::OkStatus();
}

Status FprintShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape texts, c.WithRank(0, 1));
  c.set_output(0, PartialShape::Of({texts.has_rank() ? texts.dim(0) : -1, 2}));
  return absl::OkStatus();
}

void DeclareOptimizer(OpRegistry& r, const char* name, const char* adaptive) {
  r.Add(absl::StrCat(
            name, "(", kOptimizerInputs,
            ") -> (out_example_state_data:f32, out_delta_sparse_weights:num_sparse_features*f32, "
            "out_delta_dense_weights:num_dense_features*f32) | loss_type in "
            "{logistic_loss,squared_loss,hinge_loss,smooth_hinge_loss,poisson_loss}; ",
            adaptive,
            ":bool=false; num_sparse_features:int>=0; num_sparse_features_with_values:int>=0; "
            "num_dense_features:int>=0; l1:float; l2:float; num_loss_partitions:int>=1; "
            "num_inner_iterations:int>=1"))
      .Doc(absl::StrCat(kOptimizerDoc, adaptive, "` those whose dual variables are far off come more often."))
      .Shape(OptimizerShape)
      .NotDifferentiable("an update is not differentiated")
      .Example(absl::StrCat(
          "i64[3]{0 1 1}, i64[3]{5 5 7}, f32[3]{1 2 3}, f32[2,2]~, f32[2]+, f32[2]{0 1}, i64[2]{5 7}, f32[2]~, "
          "f32[2]~, f32[2,4]{0 0 0 0 0 0 0 0} | loss_type=\"logistic_loss\"; l1=0.5; l2=1; num_loss_partitions=1; "
          "num_inner_iterations=1; num_sparse_features=1; num_sparse_features_with_values=1; num_dense_features=1"));
}

}  // namespace

void RegisterSdcaOps(OpRegistry& r) {
  DeclareOptimizer(r, "SdcaOptimizer", "adaptative");
  DeclareOptimizer(r, "SdcaOptimizerV2", "adaptive");
  r.Add("SdcaShrinkL1(weights:num_features*&f32) -> () | num_features:int>=0; l1:float; l2:float")
      .Doc("w = sign(w) * max(|w| - l1 / l2, 0): the weights that a dual solution stands for.")
      .Shape(NoOutputs)
      .NotDifferentiable("it changes state; an update is not differentiated")
      .NoExample("state");
  r.Add("SdcaFprint(input:str) -> (output:i64)")
      .Doc(
          "A fingerprint of 128 bits for each text, as two numbers (FarmHash's Fingerprint128). The first is never 0 "
          "or 1, which tables keep for places without a key.")
      .Shape(FprintShape)
      .NotDifferentiable("strings")
      .Example("str[2]{\"abc\" \"\"}");
}

}  // namespace millrace
