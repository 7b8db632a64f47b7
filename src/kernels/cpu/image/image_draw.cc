// SPDX-License-Identifier: Apache-2.0
// CPU kernels: boxes drawn into images, and glimpses of images.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/env.h"
#include "base/stop_scope.h"
#include "kernel/device_env.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/image/image.h"
#include "kernels/shared/philox.h"

namespace millrace {
namespace {

// Red, green, blue and alpha; the boxes of an image take them in turn.
constexpr float kColours[][4] = {{1, 1, 0, 1},     {0, 0, 1, 1},   {1, 0, 0, 1},   {0, 1, 0, 1}, {0.5, 0, 0.5, 1},
                                 {0.5, 0.5, 0, 1}, {0.5, 0, 0, 1}, {0, 0, 0.5, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

struct Palette {
  const float* colours;
  int64_t count, stride;
  bool white = false;  // the first channel of every colour is 1

  float At(int64_t i, int64_t channel) const {
    return white && channel == 0 ? 1.0f : colours[i % count * stride + channel];
  }
};

struct Canvas {
  int64_t height, width, depth;
  int64_t size() const { return height * width * depth; }
};

// A place as a number of pixels. What is none, or beyond 64 bits, is the least number, as TensorFlow has it on x86.
int64_t Pixel(float v) {
  constexpr float kLimit = 9223372036854775808.0f;
  return v >= -kLimit && v < kLimit ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
}

// First and last row or column of a box, ends included.
struct Extent {
  int64_t first, last;
  // Coordinates are fractions of size - 1.
  Extent(float begin, float end, int64_t size)
      : first(Pixel(begin * static_cast<float>(size - 1))), last(Pixel(end * static_cast<float>(size - 1))) {}
  bool Shows(int64_t size) const { return first <= last && first < size && last >= 0; }
};

template <typename T>
void DrawBox(T* image, const Canvas& c, const float* box, const Palette& palette, int64_t number) {
  const Extent rows(box[0], box[2], c.height), columns(box[1], box[3], c.width);
  if (!rows.Shows(c.height) || !columns.Shows(c.width)) return;
  T colour[4];
  for (int64_t d = 0; d < c.depth; ++d) colour[d] = static_cast<T>(palette.At(number, d));
  const auto paint = [&](int64_t row, int64_t column) {
    std::copy_n(colour, c.depth, image + (row * c.width + column) * c.depth);
  };
  for (const int64_t row : {rows.first, rows.last}) {
    if (!InRange(row, c.height)) continue;
    for (int64_t x = std::max<int64_t>(columns.first, 0); x <= std::min(columns.last, c.width - 1); ++x) paint(row, x);
  }
  for (const int64_t column : {columns.first, columns.last}) {
    if (!InRange(column, c.width)) continue;
    for (int64_t y = std::max<int64_t>(rows.first, 0); y <= std::min(rows.last, c.height - 1); ++y) paint(y, column);
  }
}

StatusOr<Palette> PaletteOf(const KernelContext& ctx, int64_t depth) {
  const Palette usual{&kColours[0][0], static_cast<int64_t>(std::size(kColours)), 4, depth == 1};
  if (ctx.num_inputs() < 3) return usual;
  const Tensor& colours = ctx.input(2);
  if (colours.rank() != 2 || colours.dim(1) < depth) {
    return InvalidArgument("colors must be [n, ", depth, " or more], got shape ", colours.shape().ToString());
  }
  if (colours.num_elements() == 0) return usual;
  return Palette{colours.data<float>(), colours.dim(0), colours.dim(1)};
}

Status DrawBoundingBoxes(KernelContext& ctx) {
  const Shape images = ctx.input(0).shape();
  const Tensor& boxes = ctx.input(1);
  if (images.rank() != 4 || (images.dim(3) != 1 && images.dim(3) != 3 && images.dim(3) != 4)) {
    return InvalidArgument("images must be [n, height, width, 1, 3 or 4 channels], got shape ", images.ToString());
  }
  if (boxes.rank() != 3 || boxes.dim(0) != images.dim(0) || boxes.dim(2) != 4) {
    return InvalidArgument("boxes must be [", images.dim(0), ", n, 4], got shape ", boxes.shape().ToString());
  }
  const Canvas canvas{images.dim(1), images.dim(2), images.dim(3)};
  MR_ASSIGN_OR_RETURN(const Palette palette, PaletteOf(ctx, canvas.depth));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, images));
  if (images.num_elements() == 0) return absl::OkStatus();
  const void* from = ctx.input(0).raw();
  if (out->raw() != from)
    std::copy_n(static_cast<const char*>(from), out->TotalBytes(), static_cast<char*>(out->mutable_raw()));
  VisitTypes<float, Half>(out->dtype(), [&]<typename T>() {
    StopNowAndThen pause;
    for (int64_t b = 0; b < images.dim(0); ++b) {
      for (int64_t k = 0; k < boxes.dim(1); ++k) {
        pause(canvas.height + canvas.width);
        DrawBox(out->mutable_data<T>() + b * canvas.size(), canvas, boxes.data<float>() + 4 * (b * boxes.dim(1) + k),
                palette, k);
      }
    }
  });
  return absl::OkStatus();
}

// A window of an image around (or from) a place; what lies outside is noise.
class GlimpseKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    names_middle_ = init.op.name == "ExtractGlimpse";
    MR_ASSIGN_OR_RETURN(centered_, init.Attr<bool>("centered"));
    MR_ASSIGN_OR_RETURN(normalized_, init.Attr<bool>("normalized"));
    MR_ASSIGN_OR_RETURN(const bool uniform, init.Attr<bool>("uniform_noise"));
    MR_ASSIGN_OR_RETURN(const std::string noise, init.Attr<std::string>("noise"));
    if (uniform && !noise.empty() && noise != "uniform") {
      return InvalidArgument("uniform_noise and noise=\"", noise, "\" contradict each other");
    }
    if (noise != "uniform" && noise != "gaussian" && noise != "zero" && !noise.empty()) {
      return InvalidArgument("noise must be uniform, gaussian or zero, got ", noise);
    }
    noise_ = uniform || noise == "uniform" ? Noise::kUniform : noise == "zero" ? Noise::kZero : Noise::kGaussian;
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &images = ctx.input(0), &size = ctx.input(1), &offsets = ctx.input(2);
    if (images.rank() != 4) {
      return InvalidArgument("input must be [n, height, width, channels], got shape ", images.shape().ToString());
    }
    if (size.rank() != 1 || size.dim(0) != 2) {
      return InvalidArgument("size must be [height, width], got shape ", size.shape().ToString());
    }
    if (offsets.rank() != 2 || offsets.dim(0) != images.dim(0) || offsets.dim(1) != 2) {
      return InvalidArgument("offsets must be [", images.dim(0), ", 2], got shape ", offsets.shape().ToString());
    }
    const int64_t height = size.data<int32_t>()[0], width = size.data<int32_t>()[1];
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({images.dim(0), height, width, images.dim(3)}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const Canvas whole{images.dim(1), images.dim(2), images.dim(3)}, glimpse{height, width, images.dim(3)};
    PhiloxWords words(Philox(noise_ == Noise::kZero ? 0 : EnvOf(ctx.device()).Random64(), 0));
    StopNowAndThen pause;
    for (int64_t b = 0; b < images.dim(0); ++b) {
      pause(1 + (whole.size() + glimpse.size()) / 16);
      const float* at = offsets.data<float>() + 2 * b;
      Look(images.data<float>() + b * whole.size(), whole, Start(at[0], whole.height, height),
           Start(at[1], whole.width, width), glimpse, words, out->mutable_data<float>() + b * glimpse.size());
    }
    return absl::OkStatus();
  }

 private:
  enum class Noise : uint8_t { kUniform, kGaussian, kZero };

  int64_t Start(float at, int64_t image, int64_t glimpse) const {
    if (normalized_) at *= static_cast<float>(image);
    if (centered_) at = (names_middle_ || normalized_ ? at / 2 : at) + static_cast<float>(image) / 2;
    if (names_middle_ || (normalized_ && centered_)) at -= static_cast<float>(glimpse) / 2;
    // Far outside is outside: sums with sizes stay within 64 bits.
    return std::clamp<int64_t>(Pixel(at), -(int64_t{1} << 40), int64_t{1} << 40);
  }

  void Look(const float* image, const Canvas& whole, int64_t top, int64_t left, const Canvas& glimpse,
            PhiloxWords& words, float* out) const {
    const int64_t y0 = std::max<int64_t>(0, -top), y1 = std::min(glimpse.height, whole.height - top);
    const int64_t x0 = std::max<int64_t>(0, -left), x1 = std::min(glimpse.width, whole.width - left);
    const bool partial = y0 > 0 || x0 > 0 || y1 < glimpse.height || x1 < glimpse.width;
    if (partial) FillWithNoise(image, whole, glimpse, words, out);
    for (int64_t y = y0; y < y1 && x0 < x1; ++y) {
      std::copy_n(image + ((y + top) * whole.width + x0 + left) * whole.depth, (x1 - x0) * whole.depth,
                  out + (y * glimpse.width + x0) * glimpse.depth);
    }
  }

  void FillWithNoise(const float* image, const Canvas& whole, const Canvas& glimpse, PhiloxWords& words,
                     float* out) const {
    if (noise_ == Noise::kZero || whole.size() == 0) {
      std::fill_n(out, glimpse.size(), 0.0f);
    } else if (noise_ == Noise::kUniform) {
      const auto [low, high] = std::minmax_element(image, image + whole.size());
      StopNowAndThen pause;
      for (int64_t i = 0; i < glimpse.size(); ++i) {
        pause();
        out[i] = *low + UnitFloat(words()) * (*high - *low);
      }
    } else {
      for (int64_t d = 0; d < glimpse.depth; ++d) FillWithNormal(image + d, whole, glimpse, words, out + d);
    }
  }

  // With mean and deviation of the channel, cut to its range.
  static void FillWithNormal(const float* channel, const Canvas& whole, const Canvas& glimpse, PhiloxWords& words,
                             float* out) {
    double sum = 0, squares = 0;
    float low = channel[0], high = channel[0];
    for (int64_t i = 0; i < whole.size(); i += whole.depth) {
      const double v = double{channel[i]};
      sum += v;
      squares += v * v;
      low = std::min(low, channel[i]);
      high = std::max(high, channel[i]);
    }
    const double count = static_cast<double>(whole.height * whole.width), mean = sum / count;
    const auto deviation = static_cast<float>(std::sqrt(std::max(0.0, squares / count - mean * mean)));
    StopNowAndThen pause;
    for (int64_t i = 0; i < glimpse.size(); i += glimpse.depth) {
      pause();
      float a = 0, b = 0;
      const uint32_t first = words(), second = words();
      BoxMuller(first, second, &a, &b);
      out[i] = std::max(low, std::min(high, static_cast<float>(mean) + a * deviation));
    }
  }

  bool names_middle_ = true;  // whatever the other two say: the first version of the op
  bool centered_ = true, normalized_ = true;
  Noise noise_ = Noise::kUniform;
};

}  // namespace

void RegisterImageDrawKernels(KernelRegistry& registry) {
  for (const char* op : {"DrawBoundingBoxes", "DrawBoundingBoxesV2"}) registry.AddFn({.op = op}, DrawBoundingBoxes);
  for (const char* op : {"ExtractGlimpse", "ExtractGlimpseV2"}) registry.Add<GlimpseKernel>({.op = op});
}

}  // namespace millrace
