// SPDX-License-Identifier: Apache-2.0
// Ops: images from files and to files.
#include "op/shape_context.h"
#include "ops/image/image_ops.h"

namespace millrace {
namespace {

// [height, width, channels] of what nobody knows before the file is read.
Status DecodedShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_ASSIGN_OR_RETURN(const int64_t channels, c.Attr<int64_t>("channels"));
  if (channels < 0) return InvalidArgument("channels is ", channels, ", want a number that is not negative");
  c.set_output(0, PartialShape::Of({-1, -1, channels == 0 ? -1 : channels}));
  return absl::OkStatus();
}

Status DecodedWindowShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(DecodedShape(c));
  MR_ASSIGN_OR_RETURN(const PartialShape window, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(window.dim(0), 4, "crop_window must be [top, left, height, width]").status());
  MR_ASSIGN_OR_RETURN(const auto known, c.ConstantInts(1));
  if (!known || known->size() != 4 || (*known)[2] < 0 || (*known)[3] < 0) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const int64_t channels, c.Attr<int64_t>("channels"));
  c.set_output(0, PartialShape::Of({(*known)[2], (*known)[3], channels == 0 ? -1 : channels}));
  return absl::OkStatus();
}

// Animations have a dimension more.
Status DecodedAnyShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const bool expands, c.Attr<bool>("expand_animations"));
  MR_RETURN_IF_ERROR(DecodedShape(c));
  if (expands) c.set_output(0, PartialShape());
  return absl::OkStatus();
}

Status FramesShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  c.set_output(0, PartialShape::Of({-1, -1, -1, 3}));
  return absl::OkStatus();
}

Status EncodedShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 3).status());
  if (c.num_inputs() > 1) MR_RETURN_IF_ERROR(c.RequireScalar(1));
  c.set_output(0, PartialShape::Scalar());
  return absl::OkStatus();
}

Status EncodedBatchShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape image, c.WithRankAtLeast(0, 3));
  if (!image.has_rank()) return absl::OkStatus();
  std::vector<int64_t> batch;
  for (int i = 0; i + 3 < image.rank(); ++i) batch.push_back(image.dim(i));
  c.set_output(0, PartialShape::Of(batch));
  return absl::OkStatus();
}

Status JpegShapeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  c.set_output(0, PartialShape::Of({3}));
  return absl::OkStatus();
}

constexpr char kBytes[] = "bytes are not differentiable";
constexpr char kNoFile[] = "an example would be a file: see the tests of the kernels";
constexpr char kChannels[] =
    " channels: 1 grey, 3 RGB, 4 RGBA, 0 as many as the file has. Files of the other formats are taken too, but for "
    "BMP "
    "and GIFs of several frames.";
constexpr char kJpegAttrs[] =
    "channels:int=0; ratio:int=1; fancy_upscaling:bool=true; try_recover_truncated:bool=false; "
    "acceptable_fraction:float=1; dct_method:string=\"\"";
constexpr char kJpegDoc[] =
    " The image is made ratio (1, 2, 4, 8) times smaller on the way. fancy_upscaling interpolates colours that the "
    "file "
    "has at a lower resolution; try_recover_truncated takes files that break off, else acceptable_fraction of the rows "
    "must be there; dct_method is INTEGER_FAST or INTEGER_ACCURATE.";

void RegisterDecoders(OpRegistry& r) {
  r.Add(absl::StrCat("DecodeJpeg(contents:str) -> (image:u8) | ", kJpegAttrs))
      .Doc(absl::StrCat("The image [height, width, channels] in a JPEG file.", kChannels, kJpegDoc))
      .Shape(DecodedShape)
      .NotDifferentiable(kBytes)
      .NoExample(kNoFile);
  r.Add(absl::StrCat("DecodeAndCropJpeg(contents:str, crop_window:i32) -> (image:u8) | ", kJpegAttrs))
      .Doc(absl::StrCat(
          "The window [top, left, height, width] of the image in a JPEG file. Rows and columns outside are not "
          "decoded.",
          kJpegDoc))
      .Shape(DecodedWindowShape)
      .NotDifferentiable(kBytes)
      .NoExample(kNoFile);
  r.Add("DecodePng(contents:str) -> (image:dtype) | channels:int=0; dtype in u8|u16=u8")
      .Doc(absl::StrCat("The image [height, width, channels] in a PNG file, with 8 or 16 bits a channel.", kChannels))
      .Shape(DecodedShape)
      .NotDifferentiable(kBytes)
      .NoExample(kNoFile);
  r.Add("DecodeGif(contents:str) -> (image:u8)")
      .Doc(
          "The frames [n, height, width, 3] of a GIF file, each drawn over the one before. The image in a JPEG or PNG "
          "file "
          "is one frame.")
      .Shape(FramesShape)
      .NotDifferentiable(kBytes)
      .NoExample(kNoFile);
  r.Add("DecodeBmp(contents:str) -> (image:u8) | channels:int=0")
      .Doc(
          "The image [height, width, channels] in an uncompressed BMP file. channels: 3 RGB, 4 RGBA, 0 as many as the "
          "file has.")
      .Shape(DecodedShape)
      .NotDifferentiable(kBytes)
      .NoExample(kNoFile);
  r.Add(
       "DecodeImage(contents:str) -> (image:dtype) | channels:int=0; dtype in u8|u16|f32=u8; "
       "expand_animations:bool=true")
      .Doc(
          "The image [height, width, channels] in a JPEG, PNG, GIF or BMP file; with expand_animations the frames [n, "
          "height, width, 3] of a GIF, else its first one. channels: 1 grey, 3 RGB, 4 RGBA, 0 as many as the file has. "
          "Sixteen bits of eight are their multiples of 256; float32 has fractions in [0, 1].")
      .Shape(DecodedAnyShape)
      .NotDifferentiable(kBytes)
      .NoExample(kNoFile);
  r.Add("ExtractJpegShape(contents:str) -> (image_shape:output_type) | output_type in IDX=i32")
      .Doc("[height, width, channels] of the image in a JPEG file, without decoding it.")
      .Shape(JpegShapeShape)
      .NotDifferentiable(kBytes)
      .NoExample(kNoFile);
}

void RegisterEncoders(OpRegistry& r) {
  r.Add(
       "EncodeJpeg(image:u8) -> (contents:str) | format in {,grayscale,rgb}=\"\"; quality:int=95; "
       "progressive:bool=false; optimize_size:bool=false; chroma_downsampling:bool=true; density_unit in "
       "{in,cm}=\"in\"; "
       "x_density:int=300; y_density:int=300; xmp_metadata:string=\"\"")
      .Doc(
          "A JPEG file of the image [height, width, 1 or 3 channels]. quality is 0 to 100; format, when it is not "
          "empty, "
          "says how many channels there must be; chroma_downsampling halves the resolution of colours.")
      .Shape(EncodedShape)
      .NotDifferentiable(kBytes)
      .Example("u8[2,2,3]# | quality=80");
  r.Add("EncodeJpegVariableQuality(images:u8, quality:i32) -> (contents:str)")
      .Doc("EncodeJpeg with a quality that is an input.")
      .Shape(EncodedShape)
      .NotDifferentiable(kBytes)
      .Example("u8[2,2,3]#, i32[]{80}");
  r.Add("EncodePng(image:T) -> (contents:str) | compression:int=-1; T in u8|u16=u8")
      .Doc(
          "A PNG file of each image [..., height, width, 1 to 4 channels]: grey, grey and alpha, RGB, RGBA. "
          "compression is "
          "0 (none) to 9 (most), -1 the usual.")
      .Shape(EncodedBatchShape)
      .NotDifferentiable(kBytes)
      .Example("u8[2,2,3]# | compression=1")
      .Example("u16[2,2,1]#");
}

}  // namespace

void RegisterImageFileOps(OpRegistry& r) {
  RegisterDecoders(r);
  RegisterEncoders(r);
}

}  // namespace millrace
