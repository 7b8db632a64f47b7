// SPDX-License-Identifier: Apache-2.0
// Ops of tf.contrib: images read between their pixels, parts of images, rows matched with columns, and stereograms.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/image/image_ops.h"

namespace millrace {
namespace {

// What the step refuses passes here: TensorFlow's clients look for its error there.
Status ResamplerShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape data, c.WithRankAtLeast(0, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape warp, c.WithRankAtLeast(1, 1));
  if (!warp.has_rank()) return absl::OkStatus();
  std::vector<int64_t> dims = warp.dims();
  dims.back() = data.dim(data.rank() - 1);
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status ResamplerGradShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(1));
  return absl::OkStatus();
}

Status ResamplerGradient(GradContext& g) {
  if (Node* const n = g.b().OpNode("ResamplerGrad", {g.x(0), g.x(1), g.dy()})) {
    g.set_dx(0, n->output(0));
    g.set_dx(1, n->output(1));
  }
  return g.status();
}

Status MatchShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape distances, c.WithRank(0, 2));
  c.set_output(0, PartialShape::Of({distances.dim(0)}));
  c.set_output(1, PartialShape::Of({distances.dim(1)}));
  return absl::OkStatus();
}

Status ComponentsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape image, c.WithRank(0, 3));
  c.set_output(0, image);
  return absl::OkStatus();
}

Status StereogramShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  MR_ASSIGN_OR_RETURN(const PartialShape size, c.Attr<PartialShape>("output_image_shape"));
  MR_ASSIGN_OR_RETURN(const int64_t colours, c.Attr<int64_t>("number_colors"));
  c.set_output(0, PartialShape::Of({size.dim(1), size.dim(0), colours > 256 ? 3 : size.dim(2)}));
  return absl::OkStatus();
}

}  // namespace

void RegisterImageMatchOps(OpRegistry& r) {
  r.Add("Resampler(data:T, warp:T) -> (output:T) | T in FLT")
      .Doc(
          "Images [batch, height, width, channels] at places (x, y) between their pixels, warp [batch, ..., 2]: the "
          "bilinear interpolation, with zeros around the image.")
      .Shape(ResamplerShape)
      .Gradient(ResamplerGradient)
      .Example("f32[2,3,4,2]~, !f32[2,3,2]{0.3 1.2 2.6 0.7 -0.4 1.5 3.3 2.4 1.1 0.2 7.5 0.5}");
  r.Add("ResamplerGrad(data:T, warp:T, grad_output:T) -> (grad_data:T, grad_warp:T) | T in FLT")
      .Doc("The gradients of Resampler's two inputs.")
      .Shape(ResamplerGradShape)
      .NoGradient("a second derivative of an interpolation")
      .Example("f32[1,3,4,2]~, f32[1,2,2]{0.3 1.2 2.6 0.7}, f32[1,2,2]~");
  r.Add(
       "BipartiteMatch(distance_mat:f32, num_valid_rows:f32) -> (row_to_col_match_indices:i32, "
       "col_to_row_match_indices:i32) | top_k:int=-1 | S")
      .Doc(
          "Pairs of a row and a column, the nearest of those still alone first, of equally near ones the first; top_k "
          "of them, or as many as there are where it is not positive. Only the first num_valid_rows rows take part, or "
          "all where it is negative. Each row's column, each column's row; -1: none.")
      .Shape(MatchShape)
      .NotDifferentiable("its outputs are places")
      .Example("f32[2,3]{0.5 0.1 0.8 0.3 0.2 0.4}, f32[]{-1}");
  r.Add("ImageConnectedComponents(image:dtype) -> (components:i64) | dtype in f16|f32|f64|IDX|i8|i16|u8|u16|bool|str")
      .Doc(
          "For each pixel of images [batch, height, width] the number of its component, that of neighbours (in rows "
          "and columns) with its value: one more than the place of the component's first pixel among all pixels. 0 "
          "where a pixel is zero, false or empty.")
      .Shape(ComponentsShape)
      .NotDifferentiable("its output are numbers of parts")
      .Example("i32[1,2,3]{1 0 2 1 1 2}");
  r.Add(
       "SingleImageRandomDotStereograms(depth_values:T) -> (image:u8) | T in f64|f32|IDX; "
       "hidden_surface_removal:bool=true; convergence_dots_size:int=8; dots_per_inch:int=72; "
       "eye_separation:float=2.5; mu:float=0.3333; normalize:bool=true; normalize_max:float=-100; "
       "normalize_min:float=100; border_level:float=0; number_colors:int=256; "
       "output_image_shape:shape=[1024,768,1]; output_data_window:shape=[1022,757]")
      .Doc(
          "An image of random dots in which two eyes see depths (Thimbleby, Inglis and Witten 1994): depth_values "
          "[rows, columns], from 0 (far) to 1 (near), or brought there from normalize_min and normalize_max, or from "
          "the least and the largest where those are no range. output_image_shape is [width, height, channels], "
          "output_data_window the part that the depths take; around it all is as deep as border_level. Dots that help "
          "the eyes stand at the bottom. number_colors: 2, 256, or more: three channels of 256 levels.")
      .Shape(StereogramShape)
      .NotDifferentiable("its dots are drawn by chance")
      .Example(
          "f32[2,3]+ | output_image_shape=[24,9,1]; output_data_window=[20,6]; convergence_dots_size=1; "
          "dots_per_inch=4");
}

}  // namespace millrace
