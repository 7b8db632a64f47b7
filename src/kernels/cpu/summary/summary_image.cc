// SPDX-License-Identifier: Apache-2.0
// CPU kernel of ImageSummary.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "io/png.h"
#include "kernels/cpu/summary/summary.h"
#include "wire/event.h"

namespace millrace {
namespace {

// Arithmetic in the type of the pixels: halves are rounded after each operation.
template <typename T>
struct Pixel {
  using Number = T;
  static Number Get(T v) { return v; }
  static Number Round(Number v) { return v; }
};
template <>
struct Pixel<Half> {
  using Number = float;
  static float Get(Half v) { return static_cast<float>(v); }
  static float Round(float v) { return static_cast<float>(Half(v)); }
};

template <typename T>
bool IsFinite(const T* pixel, int64_t channels) {
  return std::all_of(pixel, pixel + channels, [](T v) { return std::isfinite(Pixel<T>::Get(v)); });
}

template <typename T>
void ScaleImage(const T* in, const ImageSize& size, const uint8_t* bad_color, uint8_t* out) {
  using P = Pixel<T>;
  using Number = typename P::Number;
  Number low = std::numeric_limits<Number>::infinity(), high = -low;
  for (int64_t p = 0; p < size.height * size.width; ++p) {
    const T* pixel = in + p * size.channels;
    if (!IsFinite(pixel, size.channels)) continue;
    for (int64_t c = 0; c < size.channels; ++c) {
      low = std::min(low, P::Get(pixel[c]));
      high = std::max(high, P::Get(pixel[c]));
    }
  }
  const Number threshold = P::Round(static_cast<Number>(1e-6));
  const bool has_negative = low < 0;
  const Number largest = has_negative ? std::max(std::abs(low), std::abs(high)) : high;
  const Number range = has_negative ? Number{127} : Number{255};
  const Number scale = largest < threshold ? Number{0} : P::Round(range / largest);
  const Number offset = has_negative ? Number{128} : Number{0};
  for (int64_t p = 0; p < size.height * size.width; ++p) {
    const T* pixel = in + p * size.channels;
    const bool finite = IsFinite(pixel, size.channels);
    for (int64_t c = 0; c < size.channels; ++c) {
      const Number v = finite ? P::Round(P::Round(P::Get(pixel[c]) * scale) + offset) : Number{0};
      // A scale that overflowed makes no number: it stays within the byte.
      out[p * size.channels + c] =
          finite ? static_cast<uint8_t>(v >= 0 && v <= 255 ? v
                                        : v > 255          ? 255
                                                           : 0)
                 : bad_color[c];
    }
  }
}

StatusOr<std::string> EncodeImage(const KernelContext& ctx, const Tensor& images, int64_t i, const ImageSize& size,
                                  const Tensor& bad_color) {
  constexpr int kUsualCompression = -1;
  const CancellationManager* cancellation = ctx.step().cancellation;
  const auto stop = [cancellation] { return cancellation != nullptr && cancellation->IsCancelled(); };
  const int64_t at = i * size.elements();
  if (images.dtype() == DType::kUInt8) return EncodePng(images.data<uint8_t>() + at, size, kUsualCompression, stop);
  std::vector<uint8_t> pixels(static_cast<size_t>(size.elements()));
  const uint8_t* bad = bad_color.data<uint8_t>();
  switch (images.dtype()) {
    case DType::kFloat: ScaleImage(images.data<float>() + at, size, bad, pixels.data()); break;
    case DType::kDouble: ScaleImage(images.data<double>() + at, size, bad, pixels.data()); break;
    case DType::kHalf: ScaleImage(images.data<Half>() + at, size, bad, pixels.data()); break;
    default: return InvalidArgument("images of ", DTypeName(images.dtype()));
  }
  return EncodePng(pixels.data(), size, kUsualCompression, stop);
}

class ImageSummaryKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(options_.max_images, init.Attr<int64_t>("max_images"));
    MR_ASSIGN_OR_RETURN(options_.bad_color, init.Attr<Tensor>("bad_color"));
    return CheckBadColor(options_.bad_color);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& tag = ctx.input(0);
    if (!tag.shape().IsScalar()) return InvalidArgument("tag must be a scalar, got shape ", tag.shape().ToString());
    MR_ASSIGN_OR_RETURN(
        const wire::Summary summary, ImageSummaryOf(ctx, tag.data<TString>()->view(), ctx.input(1), options_));
    return EmitSummary(ctx, summary);
  }

 private:
  ImageSummaryOptions options_;
};

}  // namespace

Status CheckBadColor(const Tensor& color) {
  if (color.dtype() == DType::kUInt8 && color.rank() == 1) return absl::OkStatus();
  return InvalidArgument("bad_color must be a vector of uint8, got ", color.DebugString());
}

StatusOr<wire::Summary> ImageSummaryOf(const KernelContext& ctx, absl::string_view tag, const Tensor& images,
                                       const ImageSummaryOptions& options) {
  if (images.rank() != 4 || (images.dim(3) != 1 && images.dim(3) != 3 && images.dim(3) != 4)) {
    return InvalidArgument("images must be [n, height, width, 1, 3 or 4 channels], got ", images.shape().ToString());
  }
  const ImageSize size{images.dim(1), images.dim(2), images.dim(3)};
  if (images.dtype() != DType::kUInt8 && options.bad_color.num_elements() < size.channels) {
    return InvalidArgument(
        "bad_color has ", options.bad_color.num_elements(), " channels, the images have ", size.channels);
  }
  if (images.num_elements() == 0 && images.dim(0) > 0) {
    return InvalidArgument("images without pixels: ", images.shape().ToString());
  }
  wire::Summary summary;
  for (int64_t i = 0; i < std::min(options.max_images, images.dim(0)); ++i) {
    MR_ASSIGN_OR_RETURN(const std::string png, EncodeImage(ctx, images, i, size, options.bad_color));
    wire::SummaryValue& v = summary.value.emplace_back();
    v.tag = absl::StrCat(tag, "/image");
    if (options.max_images > 1) absl::StrAppend(&v.tag, "/", i);
    v.kind = wire::SummaryValue::Kind::kImage;
    wire::SummaryImage& image = v.image.Ensure();
    image.height = static_cast<int32_t>(size.height);
    image.width = static_cast<int32_t>(size.width);
    image.colorspace = static_cast<int32_t>(size.channels);
    image.encoded_image_string = png;
  }
  return summary;
}

void RegisterImageSummaryKernels(KernelRegistry& registry) {
  registry.Add<ImageSummaryKernel>({.op = "ImageSummary", .types = {{"T", Types("HFD|u8")}}});
}

}  // namespace millrace
