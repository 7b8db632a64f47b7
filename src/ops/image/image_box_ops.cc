// SPDX-License-Identifier: Apache-2.0
// Ops: the choice of boxes in images.
#include "op/shape_context.h"
#include "ops/image/image_ops.h"

namespace millrace {
namespace {

// boxes [n, 4] or overlaps [n, n], scores [n], then scalars; how many are chosen is known only where they are padded.
Status SuppressionShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape scores, c.WithRank(1, 1));
  for (int i = 2; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(0), scores.dim(0), "as many scores as boxes").status());
  if (c.op().inputs[0].name == "overlaps") {
    MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(0), boxes.dim(1), "overlaps of all with all").status());
  } else {
    MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(1), 4, "a box is four numbers").status());
  }
  int64_t count = -1;
  if (c.op().FindAttr("pad_to_max_output_size")) {
    MR_ASSIGN_OR_RETURN(const bool padded, c.Attr<bool>("pad_to_max_output_size"));
    MR_ASSIGN_OR_RETURN(const std::optional<int64_t> limit, c.ConstantInt(2));
    if (padded && limit && *limit >= 0) count = *limit;
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, i > 0 && i + 1 == c.num_outputs() ? PartialShape::Scalar() : PartialShape::Of({count}));
  }
  return absl::OkStatus();
}

Status CombinedShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape scores, c.WithRank(1, 3));
  for (int i = 2; i < 6; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  MR_ASSIGN_OR_RETURN(const int64_t batch, c.MergeDim(boxes.dim(0), scores.dim(0), "as many images"));
  MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(1), scores.dim(1), "as many scores as boxes").status());
  MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(3), 4, "a box is four numbers").status());
  const int64_t classes = scores.dim(2);
  if (boxes.dim(2) >= 0 && boxes.dim(2) != 1) {
    MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(2), classes, "one box, or one for each class").status());
  }
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> per_class, c.ConstantInt(2));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> total, c.ConstantInt(3));
  MR_ASSIGN_OR_RETURN(const bool padded_per_class, c.Attr<bool>("pad_per_class"));
  for (int i = 2; i < 4; ++i) {
    const std::optional<int64_t>& limit = i == 2 ? per_class : total;
    if (limit && *limit <= 0)
      return InvalidArgument(c.op().inputs[static_cast<size_t>(i)].name, " should be > 0, got ", *limit);
  }
  int64_t size = -1;
  if (total && !padded_per_class) size = *total;
  if (total && padded_per_class && per_class && classes >= 0) size = std::min(*total, *per_class * classes);
  c.set_output(0, PartialShape::Of({batch, size, 4}));
  c.set_output(1, PartialShape::Of({batch, size}));
  c.set_output(2, PartialShape::Of({batch, size}));
  c.set_output(3, PartialShape::Of({batch}));
  return absl::OkStatus();
}

constexpr char kChosen[] =
    "Numbers of the boxes [n, 4] (two opposite corners, y before x) that stay, best score first, when boxes whose "
    "intersection with a better one is more than iou_threshold of their union are left out; at most max_output_size.";
constexpr char kLeast[] = " Boxes of a score not above score_threshold are left out.";
constexpr char kPadded[] = " With pad_to_max_output_size zeros follow; valid_outputs says how many were chosen.";
constexpr char kChooses[] = "it chooses boxes";

}  // namespace

void RegisterImageBoxOps(OpRegistry& r) {
  const std::string boxes = "f32[2,4]{0 0 1 1 0 0 1 0.9}, f32[2]{0.5 0.7}, i32[]{2}";
  const std::string thresholds = boxes + ", f32[]{0.5}, f32[]{0.1}";
  r.Add(
       "NonMaxSuppression(boxes:f32, scores:f32, max_output_size:i32) -> (selected_indices:i32) | "
       "iou_threshold:float=0.5")
      .Doc(kChosen)
      .Shape(SuppressionShape)
      .NotDifferentiable(kChooses)
      .Example(boxes);
  r.Add(
       "NonMaxSuppressionV2(boxes:T, scores:T, max_output_size:i32, iou_threshold:T_threshold) -> "
       "(selected_indices:i32) | T in f16|f32=f32; T_threshold in f16|f32=f32")
      .Doc(kChosen)
      .Shape(SuppressionShape)
      .NotDifferentiable(kChooses)
      .Example(boxes + ", f32[]{0.5}");
  r.Add(
       "NonMaxSuppressionV3(boxes:T, scores:T, max_output_size:i32, iou_threshold:T_threshold, "
       "score_threshold:T_threshold) -> (selected_indices:i32) | T in f16|f32=f32; T_threshold in f16|f32=f32")
      .Doc(absl::StrCat(kChosen, kLeast))
      .Shape(SuppressionShape)
      .NotDifferentiable(kChooses)
      .Example(thresholds);
  r.Add(
       "NonMaxSuppressionV4(boxes:T, scores:T, max_output_size:i32, iou_threshold:T_threshold, "
       "score_threshold:T_threshold) -> (selected_indices:i32, valid_outputs:i32) | T in f16|f32=f32; T_threshold in "
       "f16|f32=f32; pad_to_max_output_size:bool=false")
      .Doc(absl::StrCat(kChosen, kLeast, kPadded))
      .Shape(SuppressionShape)
      .NotDifferentiable(kChooses)
      .Example(thresholds + " | pad_to_max_output_size=true");
  r.Add(
       "NonMaxSuppressionV5(boxes:T, scores:T, max_output_size:i32, iou_threshold:T, score_threshold:T, "
       "soft_nms_sigma:T) -> (selected_indices:i32, selected_scores:T, valid_outputs:i32) | T in f16|f32=f32; "
       "pad_to_max_output_size:bool=false")
      .Doc(absl::StrCat(kChosen, kLeast,
                        " With soft_nms_sigma above 0, scores fall by exp(-iou^2 / (2 soft_nms_sigma)) for each better "
                        "box instead (Bodla et al. 2017).",
                        kPadded))
      .Shape(SuppressionShape)
      .NotDifferentiable(kChooses)
      .Example(thresholds + ", f32[]{0.5}");
  r.Add(
       "NonMaxSuppressionWithOverlaps(overlaps:f32, scores:f32, max_output_size:i32, overlap_threshold:f32, "
       "score_threshold:f32) -> (selected_indices:i32)")
      .Doc(
          "Numbers of the things that stay, best score first, when those whose overlap [n, n] with a better one is "
          "more "
          "than overlap_threshold, or whose score is not above score_threshold, are left out.")
      .Shape(SuppressionShape)
      .NotDifferentiable(kChooses)
      .Example("f32[2,2]{1 0.6 0.6 1}, f32[2]{0.5 0.7}, i32[]{2}, f32[]{0.5}, f32[]{0.1}");
  r.Add(
       "CombinedNonMaxSuppression(boxes:f32, scores:f32, max_output_size_per_class:i32, max_total_size:i32, "
       "iou_threshold:f32, score_threshold:f32) -> (nmsed_boxes:f32, nmsed_scores:f32, nmsed_classes:f32, "
       "valid_detections:i32) | pad_per_class:bool=false; clip_boxes:bool=true")
      .Doc(
          "For each image and class the boxes that NonMaxSuppressionV3 chooses of boxes [batch, n, 1 or classes, 4] by "
          "scores [batch, n, classes]; of all classes the max_total_size best, with zeros behind them. With "
          "pad_per_class "
          "there are at most as many as the classes may give; with clip_boxes places are cut to [0, 1].")
      .Shape(CombinedShape)
      .NotDifferentiable(kChooses)
      .Example(
          "f32[1,2,1,4]{0 0 1 1 0 0 1 0.9}, f32[1,2,2]{0.5 0.7 0.6 0.2}, i32[]{2}, i32[]{3}, f32[]{0.5}, f32[]{0.1}");
}

}  // namespace millrace
