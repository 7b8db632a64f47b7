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
  MR_ASSIGN_OR_RETURN(PartialShape images, c.WithRankAtLeast(0, 1));
  if (images.has_rank()) {
    std::vector<int64_t> dims = images.dims();
    MR_ASSIGN_OR_RETURN(dims.back(), c.MergeDim(dims.back(), 3, "the last dimension must be of size 3"));
    images = PartialShape::Of(std::move(dims));
  }
  c.set_output(0, std::move(images));
  return absl::OkStatus();
}

Status AdjustShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRankAtLeast(0, 3));
  for (int i = 1; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  c.set_output(0, images);
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

Status ScaleShape(ShapeContext& c) {
  for (int i = 2; i < 4; ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape two, c.WithRank(i, 1));
    MR_RETURN_IF_ERROR(c.MergeDim(two.dim(0), 2, "two numbers").status());
  }
  return c.op().inputs[1].name == "size" ? ResizeShape(c) : ResizeGradShape(c);
}

Status ScaleGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  if (g.x(0).dtype() != DType::kFloat) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const std::string kernel, g.Attr<std::string>("kernel_type"));
  MR_ASSIGN_OR_RETURN(const bool antialias, g.Attr<bool>("antialias"));
  g.set_dx(0, b.Op("ScaleAndTranslateGrad", {g.dy(), g.x(0), g.x(2), g.x(3)},
                   {{"kernel_type", kernel}, {"antialias", antialias}}));
  return g.status();
}

// The three channels of x.
std::vector<Output> Channels(const GraphBuilder& b, Output x) {
  Node* parts = b.OpNode("Split", {b.Scalar<int32_t>(-1), x}, {{"num_split", 3}});
  return parts ? std::vector<Output>{parts->output(0), parts->output(1), parts->output(2)} : std::vector<Output>(3);
}

// With v the largest channel, least the smallest and range = v - least: saturation is 1 - least / v, and hue
// (next - after) / (6 range) and an offset, next and after being the channels that follow the largest one in a circle.
// Where channels are equal the first one counts.
Status HsvGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const DType type = BaseType(g.x(0).dtype());
  const std::vector<Output> x = Channels(b, g.x(0)), y = Channels(b, g.y()), dy = Channels(b, g.dy());
  auto as_number = [&](Output flag) { return b.Op("Cast", {flag}, {{"DstT", type}}); };
  auto both = [&](Output p, Output q) { return as_number(b.Op("LogicalAnd", {p, q})); };
  auto divided = [&](Output p, Output q) {  // 0 where q is
    Output zero = b.ZerosLike(q), is_zero = b.Op("Equal", {q, zero});
    return b.Op("Select", {is_zero, zero, b.Div(p, b.Op("Select", {is_zero, b.OnesLike(q), q}))});
  };
  auto before = [&](const char* op, const char* or_equal, int i, int j) {
    return b.Op(i < j ? or_equal : op, {x[i], x[j]});
  };
  Output largest[3], smallest[3], circle[3], diff[3];
  for (int i = 0; i < 3; ++i) {
    const int next = (i + 1) % 3, after = (i + 2) % 3;
    largest[i] = both(before("Greater", "GreaterEqual", i, next), before("Greater", "GreaterEqual", i, after));
    smallest[i] = both(before("Less", "LessEqual", i, next), before("Less", "LessEqual", i, after));
    diff[i] = b.Sub(x[next], x[after]);
  }
  Output v = y[2], least = b.Op("Minimum", {b.Op("Minimum", {x[0], x[1]}), x[2]}), range = b.Sub(v, least);
  Output difference = b.Add(b.Add(b.Mul(largest[0], diff[0]), b.Mul(largest[1], diff[1])), b.Mul(largest[2], diff[2]));
  Output by_next = divided(dy[0], b.Mul(range, b.ScalarOf(type, 6)));
  Output by_range = b.Mul(by_next, divided(difference, range));
  Output by_largest = b.Sub(b.Add(dy[2], divided(b.Mul(dy[1], least), b.Mul(v, v))), by_range);
  Output by_smallest = b.Sub(by_range, divided(dy[1], v));
  for (int i = 0; i < 3; ++i) {
    const int next = (i + 1) % 3, after = (i + 2) % 3;
    circle[i] = b.Mul(by_next, b.Sub(largest[after], largest[next]));
    circle[i] = b.Add(circle[i], b.Add(b.Mul(by_largest, largest[i]), b.Mul(by_smallest, smallest[i])));
  }
  g.set_dx(0, b.Op("ConcatV2", {circle[0], circle[1], circle[2], b.Scalar<int32_t>(-1)}));
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
      .Gradient(HsvGrad)
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
  r.Add(
       "AdjustHsvInYiq(images:T, delta_h:f32, scale_s:f32, scale_v:f32) -> (output:T) | T in "
       "f16|f32|f64|IDX|i8|i16|u8")
      .Doc(
          "Colours of which the chrominance of YIQ is turned by delta_h radians and multiplied by scale_s, and all of "
          "it by scale_v. Nothing is cut.")
      .Shape(AdjustShape)
      .NoGradient(kColour)
      .Example("f32[2,2,3]+, f32[]{0.5}, f32[]{2}, f32[]{0.75}");
  r.Add(
       "AdjustContrast(images:T, contrast_factor:f32, min_value:f32, max_value:f32) -> (output:f32) | T in "
       "FD|IDX|i8|i16|u8 | D2")
      .Doc("Each channel of each image drawn away from its mean by the factor, and cut to [min_value, max_value].")
      .Shape(AdjustShape)
      .NoGradient(kColour)
      .NoExample("in graphs as old as the op, the shape of a scalar placeholder means an unknown one");
  constexpr char kScale[] = "kernel_type:string=\"lanczos3\"; antialias:bool=true";
  r.Add(absl::StrCat("ScaleAndTranslate(images:T, size:i32, scale:f32, translation:f32) -> (resized_images:f32) | T in "
                     "FLT|IDX|i8|i16|u8|u16; ",
                     kScale))
      .Doc(
          "Images of `size` in which the pixel at y lies at y * scale + translation: sums under the kernel (lanczos1, "
          "3, 5, "
          "gaussian, box, triangle, keyscubic, mitchellcubic), which is stretched where images shrink and antialias is "
          "set. "
          "What comes from outside of the images is 0.")
      .Shape(ScaleShape)
      .Gradient(ScaleGrad)
      .Example("f32[1,4,5,2]~, i32[2]{3 6}, !f32[2]{0.8 1.2}, !f32[2]{0.1 -0.5} | kernel_type=\"triangle\"");
  r.Add(absl::StrCat(
            "ScaleAndTranslateGrad(grads:T, original_image:T, scale:f32, translation:f32) -> (output:T) | T in "
            "f32; ",
            kScale))
      .Doc("The derivative of ScaleAndTranslate by the images.")
      .Shape(ScaleShape)
      .NoGradient(kSecond)
      .Example("f32[1,3,6,2]~, f32[1,4,5,2]~, f32[2]{0.8 1.2}, f32[2]{0.1 -0.5}");
  RegisterImageBoxOps(r);
  RegisterImageFileOps(r);
  RegisterImageWindowOps(r);
  RegisterImageTransformOps(r);
  RegisterImageMatchOps(r);
}

}  // namespace millrace
