// SPDX-License-Identifier: Apache-2.0
// Ops: images, [batch, height, width, channels] or, where only colours change, of any rank with channels last.
#include "ops/image/image_ops.h"
#include "graph/gradient.h"
#include "op/shape_context.h"

namespace millrace {
namespace {

Status SetResized(ShapeContext& c, int size_input, int64_t batch, int64_t channels) {
  MR_ASSIGN_OR_RETURN(const PartialShape size, c.WithRank(size_input, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(size.dim(0), 2, "size must be [height, width]").status());
  MR_ASSIGN_OR_RETURN(const auto known, c.ConstantInts(size_input));
  if (known && known->size() == 2 && ((*known)[0] < 0 || (*known)[1] < 0)) {
    return InvalidArgument("size is [", (*known)[0], ", ", (*known)[1], "], want positive numbers");
  }
  const bool usable = known && known->size() == 2;
  c.set_output(0, PartialShape::Of({batch, usable ? (*known)[0] : -1, usable ? (*known)[1] : -1, channels}));
  return absl::OkStatus();
}

Status ResizeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRank(0, 4));
  return SetResized(c, 1, images.dim(0), images.dim(3));
}

Status ResizeGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape grads, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape original, c.WithRank(1, 4));
  c.set_output(0, original);
  return c.MergeDim(grads.dim(3), original.dim(3), "as many channels as the original").status();
}

Status ColourShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRankAtLeast(0, 1));
  if (images.has_rank()) {
    MR_RETURN_IF_ERROR(c.MergeDim(images.dim(images.rank() - 1), 3, "the last dimension must be of size 3").status());
  }
  c.set_output(0, images);
  return absl::OkStatus();
}

Status AdjustShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRankAtLeast(0, 3));
  for (int i = 1; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  c.set_output(0, images);
  return absl::OkStatus();
}

Status SuppressionShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape scores, c.WithRank(1, 1));
  for (int i = 2; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(0), scores.dim(0), "as many scores as boxes").status());
  MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(1), 4, "a box is four numbers").status());
  c.set_output(0, PartialShape::Of({-1}));
  return absl::OkStatus();
}

// The gradient op of a resizing op takes the gradient and, for all but the nearest neighbour, the original images.
Status ResizeGrad(GradContext& g, const char* op) {
  const GraphBuilder& b = g.b();
  MR_ASSIGN_OR_RETURN(const bool align, g.Attr<bool>("align_corners"));
  MR_ASSIGN_OR_RETURN(const bool half, g.Attr<bool>("half_pixel_centers"));
  g.set_dx(0, b.Op(op, {g.dy(), g.x(0)}, {{"align_corners", align}, {"half_pixel_centers", half}}));
  return g.status();
}
Status BilinearGrad(GradContext& g) {
  if (!IsFloating(g.x(0).dtype())) return absl::OkStatus();
  return ResizeGrad(g, "ResizeBilinearGrad");
}
Status BicubicGrad(GradContext& g) {
  if (g.x(0).dtype() != DType::kFloat && g.x(0).dtype() != DType::kDouble) return absl::OkStatus();
  return ResizeGrad(g, "ResizeBicubicGrad");
}
Status NearestGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  MR_ASSIGN_OR_RETURN(const bool align, g.Attr<bool>("align_corners"));
  MR_ASSIGN_OR_RETURN(const bool half, g.Attr<bool>("half_pixel_centers"));
  const PartialShape& images = g.x(0).shape();
  Output size;
  if (images.has_rank() && images.has_dim(1) && images.has_dim(2)) {
    size = b.Vector<int32_t>({static_cast<int32_t>(images.dim(1)), static_cast<int32_t>(images.dim(2))});
  } else {
    size =
        b.Op("StridedSlice", {b.Shape(g.x(0)), b.Vector<int32_t>({1}), b.Vector<int32_t>({3}), b.Vector<int32_t>({1})});
  }
  g.set_dx(
      0, b.Op("ResizeNearestNeighborGrad", {g.dy(), size}, {{"align_corners", align}, {"half_pixel_centers", half}}));
  return g.status();
}

constexpr char kWhere[] =
    " With align_corners the corner pixels keep their places; with half_pixel_centers pixels are squares, else points "
    "at their upper left corners.";
constexpr char kSecond[] = "the second derivative of resizing is not provided";
constexpr char kColour[] = "the derivative of this change of colours is not provided";

}  // namespace

void RegisterImageOps(OpRegistry& r) {
  constexpr char kAttrs[] = "align_corners:bool=false; half_pixel_centers:bool=false";
  r.Add(absl::StrCat(
            "ResizeBilinear(images:T, size:i32) -> (resized_images:f32) | T in FLT|IDX|i8|i16|u8|u16; ", kAttrs))
      .Doc(absl::StrCat("Images of another size, each pixel made from the four around its place.", kWhere))
      .Shape(ResizeShape)
      .Gradient(BilinearGrad)
      .Example("f32[1,3,2,2]~, i32[2]{5 4}")
      .Example("f32[1,4,4,1]~, i32[2]{2 3} | half_pixel_centers=true");
  r.Add(
       absl::StrCat("ResizeBicubic(images:T, size:i32) -> (resized_images:f32) | T in FLT|IDX|i8|i16|u8|u16; ", kAttrs))
      .Doc(absl::StrCat(
          "Images of another size, each pixel made from sixteen by cubic convolution (Keys 1981).", kWhere))
      .Shape(ResizeShape)
      .Gradient(BicubicGrad)
      .Example("f32[1,3,2,2]~, i32[2]{5 4}");
  r.Add("ResizeArea(images:T, size:i32) -> (resized_images:f32) | T in FLT|IDX|i8|i16|u8|u16; align_corners:bool=false")
      .Doc("Images of another size, each pixel the mean of those that it covers.")
      .Shape(ResizeShape)
      .NoGradient("the derivative of area resizing is not provided")
      .Example("f32[1,4,4,2]~, i32[2]{3 2}");
  r.Add(absl::StrCat(
            "ResizeNearestNeighbor(images:T, size:i32) -> (resized_images:T) | T in FLT|IDX|i8|i16|u8|u16; ", kAttrs))
      .Doc(absl::StrCat("Images of another size, each pixel a copy of the nearest one.", kWhere))
      .Shape(ResizeShape)
      .Gradient(NearestGrad)
      .Example("f32[1,3,2,2]~, i32[2]{5 4}");
  r.Add(absl::StrCat("ResizeBilinearGrad(grads:f32, original_image:T) -> (output:T) | T in FLT; ", kAttrs))
      .Doc("The derivative of ResizeBilinear by the images.")
      .Shape(ResizeGradShape)
      .NoGradient(kSecond)
      .Example("f32[1,5,4,2]~, f32[1,3,2,2]~");
  r.Add(absl::StrCat("ResizeBicubicGrad(grads:f32, original_image:T) -> (output:T) | T in FD; ", kAttrs))
      .Doc("The derivative of ResizeBicubic by the images.")
      .Shape(ResizeGradShape)
      .NoGradient(kSecond)
      .Example("f32[1,5,4,2]~, f32[1,3,2,2]~");
  r.Add(absl::StrCat("ResizeNearestNeighborGrad(grads:T, size:i32) -> (output:T) | T in FLT|i8|i32|u8; ", kAttrs))
      .Doc("The derivative of ResizeNearestNeighbor by images of `size`.")
      .Shape(ResizeShape)
      .NoGradient(kSecond)
      .Example("f32[1,5,4,2]~, i32[2]{3 2}");
  r.Add("RGBToHSV(images:T) -> (output:T) | T in FLT=f32")
      .Doc("Hue, saturation and value, each in [0, 1], of red, green and blue in [0, 1].")
      .Shape(ColourShape)
      .NoGradient(kColour)
      .Example("f32[2,2,3]+");
  r.Add("HSVToRGB(images:T) -> (output:T) | T in FLT=f32")
      .Doc("Red, green and blue of hue, saturation and value.")
      .Shape(ColourShape)
      .NoGradient(kColour)
      .Example("f32[2,2,3]/");
  r.Add("AdjustContrastv2(images:T, contrast_factor:f32) -> (output:T) | T in f16|f32=f32")
      .Doc("Each channel of each image drawn away from its mean by the factor.")
      .Shape(AdjustShape)
      .NoGradient(kColour)
      .Example("f32[2,2,2,3]+, f32[]{2}");
  r.Add("AdjustHue(images:T, delta:f32) -> (output:T) | T in f16|f32=f32")
      .Doc("Colours turned around the circle of hues by delta, a fraction of it.")
      .Shape(AdjustShape)
      .NoGradient(kColour)
      .Example("f32[2,2,3]+, f32[]{0.25}");
  r.Add("AdjustSaturation(images:T, scale:f32) -> (output:T) | T in f16|f32=f32")
      .Doc("Saturations multiplied by scale, and cut to [0, 1].")
      .Shape(AdjustShape)
      .NoGradient(kColour)
      .Example("f32[2,2,3]+, f32[]{0.5}");
  constexpr char kSuppression[] =
      "Numbers of the boxes [n, 4] (two opposite corners, y before x) that stay, best score first, when boxes whose "
      "intersection with a better one is more than iou_threshold of their union are left out; at most max_output_size.";
  r.Add(
       "NonMaxSuppression(boxes:f32, scores:f32, max_output_size:i32) -> (selected_indices:i32) | "
       "iou_threshold:float=0.5")
      .Doc(kSuppression)
      .Shape(SuppressionShape)
      .NotDifferentiable("it chooses boxes")
      .Example("f32[2,4]{0 0 1 1 0 0 1 0.9}, f32[2]{0.5 0.7}, i32[]{2}");
  r.Add(
       "NonMaxSuppressionV2(boxes:T, scores:T, max_output_size:i32, iou_threshold:T_threshold) -> "
       "(selected_indices:i32) | T in "
       "f16|f32=f32; T_threshold in f16|f32=f32")
      .Doc(kSuppression)
      .Shape(SuppressionShape)
      .NotDifferentiable("it chooses boxes")
      .Example("f32[2,4]{0 0 1 1 0 0 1 0.9}, f32[2]{0.5 0.7}, i32[]{2}, f32[]{0.5}");
  r.Add(
       "NonMaxSuppressionV3(boxes:T, scores:T, max_output_size:i32, iou_threshold:T_threshold, "
       "score_threshold:T_threshold) -> "
       "(selected_indices:i32) | T in f16|f32=f32; T_threshold in f16|f32=f32")
      .Doc(absl::StrCat(kSuppression, " Boxes of a score not above score_threshold are left out."))
      .Shape(SuppressionShape)
      .NotDifferentiable("it chooses boxes")
      .Example("f32[2,4]{0 0 1 1 0 0 1 0.9}, f32[2]{0.5 0.7}, i32[]{2}, f32[]{0.5}, f32[]{0.1}");
  RegisterImageFileOps(r);
  RegisterImageWindowOps(r);
}

}  // namespace millrace
