// SPDX-License-Identifier: Apache-2.0
// Ops: windows of images and boxes in them. A box is [top, left, bottom, right], as fractions of the image.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/image/image_ops.h"

namespace millrace {
namespace {

Status CropShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(1, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape numbers, c.WithRank(2, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape size, c.WithRank(3, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(size.dim(0), 2, "crop_size must be [height, width]").status());
  MR_ASSIGN_OR_RETURN(const int64_t count, c.MergeDim(boxes.dim(0), numbers.dim(0), "as many boxes as box_ind"));
  MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(1), 4, "a box is four numbers").status());
  MR_ASSIGN_OR_RETURN(const auto known, c.ConstantInts(3));
  const bool usable = known && known->size() == 2;
  if (usable && ((*known)[0] <= 0 || (*known)[1] <= 0)) {
    return InvalidArgument("crop_size is [", (*known)[0], ", ", (*known)[1], "], want positive numbers");
  }
  c.set_output(0, PartialShape::Of({count, usable ? (*known)[0] : -1, usable ? (*known)[1] : -1, images.dim(3)}));
  return absl::OkStatus();
}

Status CropImageGradShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 4).status());
  MR_ASSIGN_OR_RETURN(const PartialShape size, c.InputAsShape(3));
  MR_ASSIGN_OR_RETURN(
      const PartialShape out, c.Merge(size, PartialShape::UnknownOfRank(4), "image_size must have four elements"));
  c.set_output(0, out);
  return absl::OkStatus();
}

Status CropBoxGradShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 4).status());
  MR_RETURN_IF_ERROR(c.WithRank(1, 4).status());
  MR_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(2, 2));
  c.set_output(0, PartialShape::Of({boxes.dim(0), 4}));
  return absl::OkStatus();
}

Status DrawShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(1, 3));
  MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(2), 4, "a box is four numbers").status());
  if (c.num_inputs() > 2) MR_RETURN_IF_ERROR(c.WithRank(2, 2).status());
  c.set_output(0, images);
  return absl::OkStatus();
}

Status SampleShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape size, c.WithRank(0, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(size.dim(0), 3, "image_size must be [height, width, channels]").status());
  MR_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(1, 3));
  MR_RETURN_IF_ERROR(c.MergeDim(boxes.dim(2), 4, "a box is four numbers").status());
  if (c.num_inputs() > 2) MR_RETURN_IF_ERROR(c.RequireScalar(2));
  c.set_output(0, PartialShape::Of({3}));
  c.set_output(1, PartialShape::Of({3}));
  c.set_output(2, PartialShape::Of({1, 1, 4}));
  return absl::OkStatus();
}

Status WindowSize(ShapeContext& c, int input, int64_t* height, int64_t* width) {
  MR_ASSIGN_OR_RETURN(const PartialShape size, c.WithRank(input, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(size.dim(0), 2, "size must be [height, width]").status());
  MR_ASSIGN_OR_RETURN(const auto known, c.ConstantInts(input));
  if (!known || known->size() != 2) return absl::OkStatus();
  if ((*known)[0] < 0 || (*known)[1] < 0) {
    return InvalidArgument("size is [", (*known)[0], ", ", (*known)[1], "], want numbers that are not negative");
  }
  *height = (*known)[0];
  *width = (*known)[1];
  return absl::OkStatus();
}

Status GlimpseShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape offsets, c.WithRank(2, 2));
  MR_ASSIGN_OR_RETURN(const int64_t batch, c.MergeDim(images.dim(0), offsets.dim(0), "an offset for each image"));
  MR_RETURN_IF_ERROR(c.MergeDim(offsets.dim(1), 2, "an offset is two numbers").status());
  int64_t height = -1, width = -1;
  MR_RETURN_IF_ERROR(WindowSize(c, 1, &height, &width));
  c.set_output(0, PartialShape::Of({batch, height, width, images.dim(3)}));
  return absl::OkStatus();
}

Status RandomCropShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape image, c.WithRank(0, 3));
  int64_t height = -1, width = -1;
  MR_RETURN_IF_ERROR(WindowSize(c, 1, &height, &width));
  c.set_output(0, PartialShape::Of({height, width, image.dim(2)}));
  return absl::OkStatus();
}

Status CropGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Output image = g.x(0), boxes = g.x(1), numbers = g.x(2);
  MR_ASSIGN_OR_RETURN(const std::string method, g.Attr<std::string>("method"));
  const DType dtype = image.dtype();
  if (dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kHalf) {
    g.set_dx(0, b.Op("CropAndResizeGradImage", {g.dy(), boxes, numbers, b.Shape(image)},
                     {{"T", dtype}, {"method", method}}));
  }
  g.set_dx(1, b.Op("CropAndResizeGradBoxes", {g.dy(), image, boxes, numbers}));
  return g.status();
}

constexpr char kSecond[] = "the second derivative of cropping is not provided";
constexpr char kDrawn[] = "the derivative of drawing is not provided";
constexpr char kSampled[] = "it draws a random window";
constexpr char kCropTypes[] = "T in HFD|IDX|i8|i16|u8|u16; ";
constexpr char kSampleAttrs[] =
    "aspect_ratio_range:list(float)=[0.75,1.33]; area_range:list(float)=[0.05,1]; max_attempts:int=100; "
    "use_image_if_no_bounding_boxes:bool=false | S";
constexpr char kSampleDoc[] =
    "A random window of an image of size [height, width, channels], as begin and size for Slice and as a box [1, 1, "
    "4]. Its "
    "width by its height and its share of the image are in the ranges, and it covers at least min_object_covered of "
    "one "
    "of the boxes [batch, n, 4]; the whole image after max_attempts.";

void RegisterCrops(OpRegistry& r) {
  r.Add(absl::StrCat("CropAndResize(image:T, boxes:f32, box_ind:i32, crop_size:i32) -> (crops:f32) | ", kCropTypes,
                     "method in {bilinear,nearest}=\"bilinear\"; extrapolation_value:float=0"))
      .Doc(
          "For each box [n, 4] the part of image box_ind that is in it, resized to crop_size [height, width]. What "
          "lies "
          "outside of the image is extrapolation_value; a box whose end is before its begin gives a mirrored crop.")
      .Shape(CropShape)
      .Gradient(CropGrad)
      .Example("f32[1,4,5,2]~, f32[2,4]{0.1 0.2 0.83 0.94 0.62 0.7 0.17 0.05}, i32[2]{0 0}, i32[2]{3 2}")
      .Example("f32[2,3,3,1]~, !f32[1,4]{0.1 0.2 0.8 0.9}, i32[1]{1}, i32[2]{2 2} | method=\"nearest\"");
  r.Add(
       "CropAndResizeGradImage(grads:f32, boxes:f32, box_ind:i32, image_size:i32) -> (output:T) | T in HFD; "
       "method in {bilinear,nearest}=\"bilinear\"")
      .Doc("The derivative of CropAndResize by images of image_size.")
      .Shape(CropImageGradShape)
      .NoGradient(kSecond)
      .Example("f32[1,3,2,2]~, f32[1,4]{0.1 0.2 0.8 0.9}, i32[1]{0}, i32[4]{1 4 5 2} | T=f32");
  r.Add(absl::StrCat("CropAndResizeGradBoxes(grads:f32, image:T, boxes:f32, box_ind:i32) -> (output:f32) | ",
                     kCropTypes, "method in {bilinear}=\"bilinear\""))
      .Doc("The derivative of CropAndResize by the boxes.")
      .Shape(CropBoxGradShape)
      .NoGradient(kSecond)
      .Example("f32[1,3,2,2]~, f32[1,4,5,2]~, f32[1,4]{0.1 0.2 0.8 0.9}, i32[1]{0}");
  r.Add(
       "ExtractGlimpse(input:f32, size:i32, offsets:f32) -> (glimpse:f32) | centered:bool=true; normalized:bool=true; "
       "uniform_noise:bool=true; noise:string=\"uniform\"")
      .Doc(
          "For each image a window of size [height, width]. Offsets are fractions of the image when normalized, and "
          "counted "
          "from its centre when centered; they name the middle of the window. What lies outside is noise: uniform or "
          "gaussian in the range of the image, or zero.")
      .Shape(GlimpseShape)
      .NoGradient("the derivative of a glimpse is not provided")
      .Example("f32[1,4,5,2]~, i32[2]{2 2}, f32[1,2]{0 0.1} | noise=\"zero\"; uniform_noise=false");
  r.Add(
       "ExtractGlimpseV2(input:f32, size:i32, offsets:f32) -> (glimpse:f32) | centered:bool=true; "
       "normalized:bool=true; uniform_noise:bool=true; noise:string=\"uniform\"")
      .Doc(
          "ExtractGlimpse whose offsets, unless both normalized and centered, name the upper left corner of the "
          "window; in pixels they are counted from the centre whole, not halved.")
      .Shape(GlimpseShape)
      .NoGradient("the derivative of a glimpse is not provided")
      .Example("f32[1,4,5,2]~, i32[2]{2 2}, f32[1,2]{0 0.1} | noise=\"zero\"; uniform_noise=false; centered=false");
  r.Add("RandomCrop(image:T, size:i64) -> (output:T) | T in FD|IDX|i8|i16|u8; seed:int=0; seed2:int=0 | S D8")
      .Doc("A window of size [height, width] at a random place of an image.")
      .Shape(RandomCropShape)
      .NoGradient("the derivative of a random crop is not provided; Slice has one")
      .Example("f32[3,4,2]~, i64[2]{2 2}");
}

void RegisterBoxes(OpRegistry& r) {
  constexpr char kDrawDoc[] =
      "Images [n, height, width, 1, 3 or 4 channels] in [0, 1] with the outlines of their boxes [n, k, 4] drawn in, "
      "one "
      "pixel wide.";
  r.Add("DrawBoundingBoxes(images:T, boxes:f32) -> (output:T) | T in f16|f32=f32")
      .Doc(absl::StrCat(kDrawDoc, " Ten colours are taken in turn."))
      .Shape(DrawShape)
      .NoGradient(kDrawn)
      .Example("f32[1,4,5,3]~, f32[1,1,4]{0.1 0.1 0.9 0.9}");
  r.Add("DrawBoundingBoxesV2(images:T, boxes:f32, colors:f32) -> (output:T) | T in f16|f32=f32")
      .Doc(absl::StrCat(kDrawDoc, " The colors [m, channels] are taken in turn; ten usual ones when there is none."))
      .Shape(DrawShape)
      .NoGradient(kDrawn)
      .Example("f32[1,4,5,3]~, f32[1,1,4]{0.1 0.1 0.9 0.9}, f32[1,3]{1 0 0}");
  r.Add(absl::StrCat("SampleDistortedBoundingBox(image_size:T, bounding_boxes:f32) -> (begin:T, size:T, bboxes:f32) | "
                     "T in IDX|i8|i16|u8; seed:int=0; seed2:int=0; min_object_covered:float=0.1; ",
                     kSampleAttrs))
      .Doc(kSampleDoc)
      .Shape(SampleShape)
      .NotDifferentiable(kSampled)
      .Example("i32[3]{20 30 3}, f32[1,1,4]{0.1 0.1 0.9 0.9} | seed=1");
  r.Add(absl::StrCat("SampleDistortedBoundingBoxV2(image_size:T, bounding_boxes:f32, min_object_covered:f32) -> "
                     "(begin:T, size:T, bboxes:f32) | T in IDX|i8|i16|u8; seed:int=0; seed2:int=0; ",
                     kSampleAttrs))
      .Doc(kSampleDoc)
      .Shape(SampleShape)
      .NotDifferentiable(kSampled)
      .Example("i32[3]{20 30 3}, f32[1,1,4]{0.1 0.1 0.9 0.9}, f32[]{0.5} | seed=1");
}

}  // namespace

void RegisterImageWindowOps(OpRegistry& r) {
  RegisterCrops(r);
  RegisterBoxes(r);
}

}  // namespace millrace
