// SPDX-License-Identifier: Apache-2.0
// Ops: connectionist temporal classification (Graves et al., ICML 2006). The last class is the blank.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

// inputs [time, batch, classes] and, as input `lengths`, the number of steps of each sequence. Returns the batch size.
StatusOr<int64_t> BatchOf(ShapeContext& c, int lengths) {
  MR_ASSIGN_OR_RETURN(const PartialShape inputs, c.WithRank(0, 3));
  MR_ASSIGN_OR_RETURN(const PartialShape length, c.WithRank(lengths, 1));
  return c.MergeDim(inputs.dim(1), length.dim(0), "one length for each sequence of the batch");
}

Status LossShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t batch, BatchOf(c, 3));
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape values, c.WithRank(2, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(0), values.dim(0), "as many label indices as values").status());
  c.set_output(0, PartialShape::Of({batch}));
  c.set_output(1, PartialShape::Of({c.input(0).dim(0), batch, c.input(0).dim(2)}));
  return absl::OkStatus();
}

Status LossGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Output stored =
      b.Op("PreventGradient", {g.y(1)}, {{"message", std::string("the second derivative of CTCLoss is not known")}});
  const Output dy = b.Reshape(g.dy(0), b.Vector<int32_t>({1, -1, 1}));
  g.set_dx(0, b.Mul(dy, stored));
  return g.status();
}

Status GreedyShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t batch, BatchOf(c, 1));
  c.set_output(0, PartialShape::Of({-1, 2}));
  c.set_output(1, PartialShape::Of({-1}));
  c.set_output(2, PartialShape::Of({2}));
  c.set_output(3, PartialShape::Of({batch, 1}));
  return absl::OkStatus();
}

Status BeamShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t batch, BatchOf(c, 1));
  MR_ASSIGN_OR_RETURN(const int64_t paths, c.Attr<int64_t>("top_paths"));
  for (int i = 0; i < static_cast<int>(paths); ++i) {
    c.set_output(i, PartialShape::Of({-1, 2}));
    c.set_output(static_cast<int>(paths) + i, PartialShape::Of({-1}));
    c.set_output(static_cast<int>(2 * paths) + i, PartialShape::Of({2}));
  }
  c.set_output(static_cast<int>(3 * paths), PartialShape::Of({batch, paths}));
  return absl::OkStatus();
}

constexpr char kChoice[] = "it chooses the best labels";

}  // namespace

void RegisterCtcOps(OpRegistry& r) {
  r.Add(
       "CTCLoss(inputs:T, labels_indices:i64, labels_values:i32, sequence_length:i32) -> (loss:T, gradient:T) | "
       "preprocess_collapse_repeated:bool=false; ctc_merge_repeated:bool=true; "
       "ignore_longer_outputs_than_inputs:bool=false; "
       "T in FD=f32")
      .Doc(
          "The negative log-probability of label sequences (a sparse matrix [batch, label]) under the logits [time, "
          "batch, classes], and its derivative by the logits. preprocess_collapse_repeated makes one label of repeated "
          "ones first; without ctc_merge_repeated a label that is seen repeatedly counts repeatedly; sequences too "
          "short for their labels are InvalidArgument, or have loss and derivative 0 with "
          "ignore_longer_outputs_than_inputs.")
      .Shape(LossShape)
      .Gradient(LossGrad)
      .Example("!f32[4,2,3]~, i64[3,2]{0 0 0 1 1 0}, i32[3]{0 1 1}, i32[2]{4 3}");  // output 1 has no derivative
  r.Add(
       "CTCGreedyDecoder(inputs:T, sequence_length:i32) -> (decoded_indices:i64, decoded_values:i64, "
       "decoded_shape:i64, log_probability:T) | merge_repeated:bool=false; T in FD=f32")
      .Doc(
          "The labels of the most likely class of every step, without blanks and, with merge_repeated, repetitions, as "
          "a sparse matrix [batch, label]; and the negated sum of the logits of these classes.")
      .Shape(GreedyShape)
      .NotDifferentiable(kChoice)
      .Example("f32[4,2,3]~, i32[2]{4 3}");
  r.Add(
       "CTCBeamSearchDecoder(inputs:T, sequence_length:i32) -> (decoded_indices:top_paths*i64, "
       "decoded_values:top_paths*i64, "
       "decoded_shape:top_paths*i64, log_probability:T) | beam_width:int>=1; top_paths:int>=1; "
       "merge_repeated:bool=true; T in FD=f32")
      .Doc(
          "The top_paths most likely label sequences that a beam of beam_width prefixes finds, each as a sparse matrix "
          "[batch, label], and their log-probabilities [batch, top_paths]. With merge_repeated, repeated labels of a "
          "result are made one.")
      .Shape(BeamShape)
      .NotDifferentiable(kChoice)
      .Example("f32[4,2,3]~, i32[2]{4 3} | beam_width=4; top_paths=1");
}

}  // namespace millrace
