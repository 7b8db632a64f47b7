// SPDX-License-Identifier: Apache-2.0
// CPU kernels: images from files and to files.
#include <limits>
#include <type_traits>

#include "io/bmp.h"
#include "io/gif.h"
#include "io/jpeg.h"
#include "io/png.h"
#include "kernels/cpu/image/image.h"

namespace millrace {
namespace {

auto StopOf(const KernelContext& ctx) {
  return [&step = ctx.step()] { return step.cancellation != nullptr && step.cancellation->IsCancelled(); };
}

// An attribute is an int64; the libraries have ints.
StatusOr<int> IntAttr(const KernelInit& init, absl::string_view name, int64_t low, int64_t high) {
  MR_ASSIGN_OR_RETURN(const int64_t value, init.Attr<int64_t>(name));
  if (value < low || value > high) return InvalidArgument(name, " is ", value, ", want ", low, " to ", high);
  return static_cast<int>(value);
}

StatusOr<bool> AttrIs(const KernelInit& init, absl::string_view name, absl::string_view value) {
  const StatusOr<std::string> set = init.Attr<std::string>(name);
  return set.ok() ? StatusOr<bool>(*set == value) : set.status();
}

StatusOr<absl::string_view> Contents(const KernelContext& ctx) {
  if (ctx.input(0).rank() != 0) {
    return InvalidArgument("contents must be a scalar, got shape ", ctx.input(0).shape().ToString());
  }
  return ctx.input(0).data<TString>()->view();
}

// Each op takes files of several formats. They are told apart by what they accept and by the shape that they give.
class DecodeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    op_ = init.op.name;
    if (op_ == "DecodeGif") channels_ = 3;
    takes_all_ = op_ == "DecodeImage";
    if (takes_all_) {
      MR_ASSIGN_OR_RETURN(expands_, init.Attr<bool>("expand_animations"));
    }
    if (init.HasAttr("channels")) {
      MR_ASSIGN_OR_RETURN(channels_, init.Attr<int64_t>("channels"));
    }
    if (channels_ != 0 && channels_ != 1 && channels_ != 3 && channels_ != 4) {
      return InvalidArgument("channels must be 0, 1, 3 or 4, got ", channels_);
    }
    return init.HasAttr("ratio") ? ReadJpegAttrs(init) : absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const absl::string_view bytes, Contents(ctx));
    ImageFormat format = FormatOfImage(bytes);
    if (format == ImageFormat::kUnknown && op_ == "DecodeBmp") format = ImageFormat::kBmp;  // whatever its first bytes
    MR_RETURN_IF_ERROR(CheckFormat(format));
    const bool is_png = format == ImageFormat::kPng;
    if (ctx.output_dtype(0) == DType::kUInt8) {
      return Decode(
          ctx, bytes, format, [&](int64_t n, const ImageSize& s) { return Output<uint8_t>(ctx, format, n, s); });
    }
    if (ctx.output_dtype(0) == DType::kFloat) {
      return is_png ? DecodeFractions<uint16_t>(ctx, bytes, format) : DecodeFractions<uint8_t>(ctx, bytes, format);
    }
    if (is_png) {
      return DecodePng(
          bytes, channels_, [&](int64_t n, const ImageSize& s) { return Output<uint16_t>(ctx, format, n, s); },
          StopOf(ctx));
    }
    return DecodeAndWiden(ctx, bytes, format);
  }

 private:
  Status ReadJpegAttrs(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(jpeg_.ratio, init.Attr<int64_t>("ratio"));
    MR_ASSIGN_OR_RETURN(jpeg_.smooth_colours, init.Attr<bool>("fancy_upscaling"));
    MR_ASSIGN_OR_RETURN(jpeg_.recover_truncated, init.Attr<bool>("try_recover_truncated"));
    MR_ASSIGN_OR_RETURN(jpeg_.acceptable_fraction, init.Attr<float>("acceptable_fraction"));
    MR_ASSIGN_OR_RETURN(const std::string transform, init.Attr<std::string>("dct_method"));
    if (jpeg_.ratio != 1 && jpeg_.ratio != 2 && jpeg_.ratio != 4 && jpeg_.ratio != 8) {
      return InvalidArgument("ratio must be 1, 2, 4 or 8, got ", jpeg_.ratio);
    }
    if (transform != "" && transform != "INTEGER_FAST" && transform != "INTEGER_ACCURATE") {
      return InvalidArgument("dct_method must be INTEGER_FAST or INTEGER_ACCURATE, got ", transform);
    }
    jpeg_.fast_transform = transform != "INTEGER_ACCURATE";
    return absl::OkStatus();
  }

  Status CheckFormat(ImageFormat format) const {
    if (format == ImageFormat::kUnknown) return InvalidArgument("contents are no JPEG, PNG, GIF or BMP file");
    const bool takes_bmp = op_ == "DecodeBmp", is_bmp = format == ImageFormat::kBmp;
    if (takes_bmp != is_bmp && !takes_all_) {
      return InvalidArgument(op_, is_bmp ? " of a BMP file: use DecodeBmp" : " of a file that is no BMP");
    }
    if (op_ == "DecodeAndCropJpeg" && format != ImageFormat::kJpeg) {
      return InvalidArgument("DecodeAndCropJpeg of a file that is no JPEG");
    }
    const bool all = channels_ == 0;
    if (format == ImageFormat::kJpeg && channels_ == 4) return InvalidArgument("a JPEG has no 4 channels");
    if (format == ImageFormat::kGif && !all && channels_ != 3)
      return InvalidArgument("a GIF has no ", channels_, " channels");
    if (is_bmp && channels_ == 1) return InvalidArgument("channels must be 0, 3 or 4 for a BMP, got 1");
    return absl::OkStatus();
  }

  bool GivesFrames(ImageFormat format) const { return op_ == "DecodeGif" || (expands_ && format == ImageFormat::kGif); }

  template <typename T>
  StatusOr<T*> Output(KernelContext& ctx, ImageFormat format, int64_t frames, const ImageSize& size) const {
    const bool gives_frames = GivesFrames(format);
    if (!gives_frames && frames != 1) {
      return InvalidArgument("Got ", frames, " frames, but ", op_, " gives one: use DecodeGif for animated GIF files");
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, gives_frames ? Shape::Make({frames, size.height, size.width, size.channels})
                                                        : Shape::Make({size.height, size.width, size.channels}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    return out->mutable_data<T>();
  }

  Status Decode(KernelContext& ctx, absl::string_view bytes, ImageFormat format, PixelMemory<uint8_t> memory) const {
    switch (format) {
      case ImageFormat::kPng: return DecodePng(bytes, channels_, memory, StopOf(ctx));
      case ImageFormat::kGif:
        return DecodeGif(bytes, GivesFrames(format) ? -1 : takes_all_ ? 1 : 2, memory, StopOf(ctx));
      case ImageFormat::kBmp: return DecodeBmp(bytes, channels_, memory, StopOf(ctx));
      default: return DecodeJpegFile(ctx, bytes, memory);
    }
  }

  Status DecodeJpegFile(KernelContext& ctx, absl::string_view bytes, PixelMemory<uint8_t> memory) const {
    JpegReading how = jpeg_;
    how.channels = channels_;
    if (ctx.num_inputs() > 1) {
      const Tensor& window = ctx.input(1);
      if (window.rank() != 1 || window.dim(0) != 4) {
        return InvalidArgument("crop_window must have shape [4], got ", window.shape().ToString());
      }
      const int32_t* w = window.data<int32_t>();
      how.window = ImageWindow{w[0], w[1], w[2], w[3]};
    }
    return DecodeJpeg(bytes, how, memory, StopOf(ctx));
  }

  // A file of eight bits a channel where sixteen are wanted.
  Status DecodeAndWiden(KernelContext& ctx, absl::string_view bytes, ImageFormat format) const {
    Tensor narrow;
    uint16_t* wide = nullptr;
    MR_RETURN_IF_ERROR(Decode(ctx, bytes, format, [&](int64_t n, const ImageSize& s) -> StatusOr<uint8_t*> {
      MR_ASSIGN_OR_RETURN(wide, Output<uint16_t>(ctx, format, n, s));
      MR_ASSIGN_OR_RETURN(narrow, ctx.AllocateTemp(DType::kUInt8, Shape::Vector(n * s.elements())));
      return narrow.mutable_data<uint8_t>();
    }));
    const uint8_t* from = narrow.data<uint8_t>();
    for (int64_t i = 0; i < narrow.num_elements(); ++i) wide[i] = static_cast<uint16_t>(from[i] << 8);
    return absl::OkStatus();
  }

  // Fractions of the largest value that pixels of N can have.
  template <typename N>
  Status DecodeFractions(KernelContext& ctx, absl::string_view bytes, ImageFormat format) const {
    Tensor narrow;
    float* wide = nullptr;
    const auto memory = [&](int64_t n, const ImageSize& s) -> StatusOr<N*> {
      MR_ASSIGN_OR_RETURN(wide, Output<float>(ctx, format, n, s));
      MR_ASSIGN_OR_RETURN(narrow, ctx.AllocateTemp(DTypeOf<N>::value, Shape::Vector(n * s.elements())));
      return narrow.mutable_data<N>();
    };
    if constexpr (std::is_same_v<N, uint16_t>) {
      MR_RETURN_IF_ERROR(DecodePng(bytes, channels_, memory, StopOf(ctx)));
    } else {
      MR_RETURN_IF_ERROR(Decode(ctx, bytes, format, memory));
    }
    constexpr float kScale = 1.0f / std::numeric_limits<N>::max();
    const N* const from = narrow.data<N>();
    for (int64_t i = 0; i < narrow.num_elements(); ++i) wide[i] = static_cast<float>(from[i]) * kScale;
    return absl::OkStatus();
  }

  std::string op_;
  bool takes_all_ = false, expands_ = false;
  int64_t channels_ = 0;
  JpegReading jpeg_;
};

Status ExtractJpegShape(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const absl::string_view bytes, Contents(ctx));
  MR_ASSIGN_OR_RETURN(const ImageSize size, SizeOfJpeg(bytes));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(3)));
  const int64_t sizes[] = {size.height, size.width, size.channels};
  for (int i = 0; i < 3; ++i) {
    if (out->dtype() == DType::kInt64) {
      out->mutable_data<int64_t>()[i] = sizes[i];
    } else {
      out->mutable_data<int32_t>()[i] = static_cast<int32_t>(sizes[i]);
    }
  }
  return absl::OkStatus();
}

Status SetFile(KernelContext& ctx, StatusOr<std::string> file) {
  MR_RETURN_IF_ERROR(file.status());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() = *file;
  return absl::OkStatus();
}

StatusOr<ImageSize> SizeOfImage(const Tensor& image, absl::string_view name) {
  if (image.rank() != 3) {
    return InvalidArgument(name, " must be [height, width, channels], got shape ", image.shape().ToString());
  }
  return ImageSize{image.dim(0), image.dim(1), image.dim(2)};
}

class EncodeJpegKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    if (!init.HasAttr("quality")) return absl::OkStatus();
    constexpr int64_t kLimit = std::numeric_limits<int>::max();
    MR_ASSIGN_OR_RETURN(const bool grey, AttrIs(init, "format", "grayscale"));
    MR_ASSIGN_OR_RETURN(const bool rgb, AttrIs(init, "format", "rgb"));
    channels_ = grey ? 1 : rgb ? 3 : 0;
    MR_ASSIGN_OR_RETURN(how_.quality, IntAttr(init, "quality", 0, 100));
    MR_ASSIGN_OR_RETURN(how_.progressive, init.Attr<bool>("progressive"));
    MR_ASSIGN_OR_RETURN(how_.optimize_size, init.Attr<bool>("optimize_size"));
    MR_ASSIGN_OR_RETURN(how_.chroma_downsampling, init.Attr<bool>("chroma_downsampling"));
    MR_ASSIGN_OR_RETURN(how_.density_per_cm, AttrIs(init, "density_unit", "cm"));
    MR_ASSIGN_OR_RETURN(how_.x_density, IntAttr(init, "x_density", -kLimit, kLimit));
    MR_ASSIGN_OR_RETURN(how_.y_density, IntAttr(init, "y_density", -kLimit, kLimit));
    MR_ASSIGN_OR_RETURN(how_.xmp_metadata, init.Attr<std::string>("xmp_metadata"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const ImageSize size, SizeOfImage(ctx.input(0), "image"));
    if ((size.channels != 1 && size.channels != 3) || (channels_ != 0 && size.channels != channels_)) {
      return InvalidArgument("image must have ", channels_ == 0 ? "1 or 3" : absl::StrCat(channels_),
                             " channels, got shape ", ctx.input(0).shape().ToString());
    }
    if (ctx.num_inputs() == 1) return Encode(ctx, size, how_);
    JpegWriting how;
    if (ctx.input(1).rank() != 0) {
      return InvalidArgument("quality must be a scalar, got shape ", ctx.input(1).shape().ToString());
    }
    how.quality = *ctx.input(1).data<int32_t>();
    if (how.quality < 0 || how.quality > 100) return InvalidArgument("quality is ", how.quality, ", want 0 to 100");
    return Encode(ctx, size, how);
  }

 private:
  static Status Encode(KernelContext& ctx, const ImageSize& size, const JpegWriting& how) {
    return SetFile(ctx, EncodeJpeg(ctx.input(0).data<uint8_t>(), size, how, StopOf(ctx)));
  }
  int64_t channels_ = 0;
  JpegWriting how_;
};

class EncodePngKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(compression_, IntAttr(init, "compression", -1, 9));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    const int rank = image.rank();
    if (rank < 3)
      return InvalidArgument("image must be [..., height, width, channels], got shape ", image.shape().ToString());
    const ImageSize size{image.dim(rank - 3), image.dim(rank - 2), image.dim(rank - 1)};
    MR_ASSIGN_OR_RETURN(const Shape batch, Shape::Make(image.shape().dims().first(static_cast<size_t>(rank - 3))));
    if (size.channels < 1 || size.channels > 4) {
      return InvalidArgument("image must have 1 to 4 channels, got shape ", image.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, batch));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      MR_ASSIGN_OR_RETURN(out->mutable_data<TString>()[i], Encode(ctx, i * size.elements(), size));
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<std::string> Encode(const KernelContext& ctx, int64_t at, const ImageSize& size) const {
    const Tensor& image = ctx.input(0);
    return image.dtype() == DType::kUInt8
               ? EncodePng(image.data<uint8_t>() + at, size, compression_, StopOf(ctx))
               : EncodePng(image.data<uint16_t>() + at, size, compression_, StopOf(ctx));
  }
  int compression_ = -1;
};

}  // namespace

void RegisterImageFileKernels(KernelRegistry& registry) {
  for (const char* op : {"DecodeJpeg", "DecodeAndCropJpeg", "DecodePng", "DecodeGif", "DecodeBmp", "DecodeImage"}) {
    registry.Add<DecodeKernel>({.op = op});
  }
  registry.AddFn({.op = "ExtractJpegShape"}, ExtractJpegShape);
  for (const char* op : {"EncodeJpeg", "EncodeJpegVariableQuality"}) registry.Add<EncodeJpegKernel>({.op = op});
  registry.Add<EncodePngKernel>({.op = "EncodePng"});
}

}  // namespace millrace
