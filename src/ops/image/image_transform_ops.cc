// SPDX-License-Identifier: Apache-2.0
// Ops: projective transforms of images.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/image/image_ops.h"

namespace millrace {
namespace {

Status TransformShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape transforms, c.WithRank(1, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(transforms.dim(1), 8, "a transform is eight numbers").status());
  if (c.num_inputs() == 2) {
    c.set_output(0, images);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const PartialShape size, c.WithRank(2, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(size.dim(0), 2, "output_shape must be [height, width]").status());
  if (c.num_inputs() > 3) MR_RETURN_IF_ERROR(c.RequireScalar(3));
  MR_ASSIGN_OR_RETURN(const auto known, c.ConstantInts(2));
  const bool usable = known && known->size() == 2;
  if (usable && ((*known)[0] <= 0 || (*known)[1] <= 0)) {
    return InvalidArgument("output_shape is [", (*known)[0], ", ", (*known)[1], "], want positive numbers");
  }
  c.set_output(
      0, PartialShape::Of({images.dim(0), usable ? (*known)[0] : -1, usable ? (*known)[1] : -1, images.dim(3)}));
  return absl::OkStatus();
}

// As in TensorFlow: the gradient by the inverse transform, which is the derivative where a transform only moves pixels.
Status TransformGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  MR_ASSIGN_OR_RETURN(const std::string interpolation, g.Attr<std::string>("interpolation"));
  std::string fill = "CONSTANT";
  if (g.num_inputs() > 2) {
    MR_ASSIGN_OR_RETURN(fill, g.Attr<std::string>("fill_mode"));
  }
  const Output rows = g.x(1),
               ones = b.Op("OnesLike", {b.Op("Slice", {rows, b.Vector<int32_t>({0, 0}), b.Vector<int32_t>({-1, 1})})});
  const Output nine = b.Op("ConcatV2", {std::vector<Output>{rows, ones}, b.Scalar<int32_t>(1)});
  const Output inverse = b.Op("MatrixInverse", {b.Reshape(nine, b.Vector<int32_t>({-1, 3, 3}))});
  const Output flat = b.Reshape(inverse, b.Vector<int32_t>({-1, 9}));
  const auto columns = [&](int32_t begin, int32_t size) {
    return b.Op("Slice", {flat, b.Vector<int32_t>({0, begin}), b.Vector<int32_t>({-1, size})});
  };
  const Output back = b.Op("RealDiv", {columns(0, 8), columns(8, 1)});
  const Output size = b.Op("Slice", {b.Shape(g.x(0)), b.Vector<int32_t>({1}), b.Vector<int32_t>({2})});
  if (g.num_inputs() > 3) {
    g.set_dx(0, b.Op("ImageProjectiveTransformV3", {g.dy(), back, size, b.Scalar<float>(0)},
                     {{"interpolation", interpolation}, {"fill_mode", fill}}));
  } else {
    g.set_dx(0, b.Op("ImageProjectiveTransformV2", {g.dy(), back, size},
                     {{"interpolation", interpolation}, {"fill_mode", fill}}));
  }
  return g.status();
}

constexpr char kDoc[] =
    "Images [batch, height, width, channels] under projective transforms, one [1, 8] or one for each image: pixel (x, "
    "y) of the result is taken from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) of the image, k = c0 x + c1 y + "
    "1, for [a0, a1, a2, b0, b1, b2, c0, c1]. interpolation is NEAREST or BILINEAR. Beyond the image fill_mode "
    "CONSTANT "
    "has ";
constexpr char kModes[] =
    "; REFLECT goes on as dcba|abcd|dcba, WRAP as abcd|abcd|abcd, NEAREST as aaaa|abcd|dddd. output_shape is the "
    "height "
    "and width of results.";

}  // namespace

void RegisterImageTransformOps(OpRegistry& r) {
  r.Add(
       "ImageProjectiveTransform(images:dtype, transforms:f32) -> (transformed_images:dtype) | dtype in FLT|u8|IDX; "
       "interpolation:string")
      .Doc("ImageProjectiveTransformV2 of up to TensorFlow 1.10: results are as large as the images.")
      .Shape(TransformShape)
      .Gradient(TransformGrad)
      .Example("f32[1,3,4,2]~, !f32[1,8]{1 0 1 0 1 0 0 0} | interpolation=\"NEAREST\"");
  r.Add(
       "ImageProjectiveTransformV2(images:dtype, transforms:f32, output_shape:i32) -> (transformed_images:dtype) | "
       "dtype in FLT|u8|IDX; interpolation:string; fill_mode:string=\"CONSTANT\"")
      .Doc(absl::StrCat(kDoc, "zeros", kModes))
      .Shape(TransformShape)
      .Gradient(TransformGrad)
      .Example("f32[1,3,4,2]~, !f32[1,8]{1 0 1 0 1 0 0 0}, i32[2]{3 4} | interpolation=\"NEAREST\"");
  r.Add(
       "ImageProjectiveTransformV3(images:dtype, transforms:f32, output_shape:i32, fill_value:f32) -> "
       "(transformed_images:dtype) | dtype in FLT|u8|IDX; interpolation:string; fill_mode:string=\"CONSTANT\"")
      .Doc(absl::StrCat(kDoc, "fill_value", kModes))
      .Shape(TransformShape)
      .Gradient(TransformGrad)
      .Example("f32[1,3,4,2]~, !f32[1,8]{1 0 1 0 1 0 0 0}, i32[2]{3 4}, !f32[]{0.5} | interpolation=\"BILINEAR\"");
}

}  // namespace millrace
