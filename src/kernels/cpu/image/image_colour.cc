// SPDX-License-Identifier: Apache-2.0
// CPU kernels: colours of images. Hue, saturation and value follow Smith (SIGGRAPH 1978).
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/image/image.h"
#include "kernels/cpu/image/image_simd.h"

namespace millrace {
namespace {

// Every colour of input 0 into output 0: runs of float32 colours by `runs`, which may take doubles too; halves as
// floats.
template <typename Runs>
Status MapColours(KernelContext& ctx, int min_rank, Runs runs) {
  const Tensor& images = ctx.input(0);
  if (images.rank() < min_rank) {
    return InvalidArgument(
        "images must have at least ", min_rank, " dimensions, got shape ", images.shape().ToString());
  }
  if (images.dim(images.rank() - 1) != 3) {
    const std::string why =
        absl::StrCat("the last dimension of images must be of size 3, got shape ", images.shape().ToString());
    return min_rank == 1 ? absl::FailedPreconditionError(why) : absl::InvalidArgumentError(why);
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, images.shape()));
  const int64_t colours = out->num_elements() / 3;
  const auto of_type = [&]<typename T>(T) {
    const T* from = ctx.input(0).data<T>();
    T* to = out->mutable_data<T>();
    ctx.ParallelFor(colours, 3, [&](int64_t begin, int64_t end) {
      runs(from + 3 * begin, static_cast<size_t>(end - begin), to + 3 * begin);
    });
    return absl::OkStatus();
  };
  if (images.dtype() == DType::kFloat) return of_type(float());
  if constexpr (std::is_invocable_v<Runs, const double*, size_t, double*>) {
    if (images.dtype() == DType::kDouble) return of_type(double());
  }
  constexpr int64_t kSome = 256;
  const ConvertRoute widen = FindConvert(images.dtype(), DType::kFloat);
  const ConvertRoute narrow = FindConvert(DType::kFloat, images.dtype());
  const char* const from = static_cast<const char*>(ctx.input(0).raw());
  char* const to = static_cast<char*>(out->mutable_raw());
  const auto size = static_cast<int64_t>(DTypeSize(images.dtype()));
  ctx.ParallelFor(colours, 4, [&](int64_t begin, int64_t end) {
    float in[3 * kSome], result[3 * kSome];
    for (int64_t i = begin; i < end; i += kSome) {
      const int64_t n = std::min(kSome, end - i);
      widen.Run(from + 3 * i * size, in, 3 * n);
      runs(in, static_cast<size_t>(n), result);
      narrow.Run(result, to + 3 * i * size, 3 * n);
    }
  });
  return absl::OkStatus();
}

StatusOr<float> Amount(const KernelContext& ctx, int i, absl::string_view name) {
  if (ctx.input(i).rank() != 0)
    return InvalidArgument(name, " must be a scalar, got shape ", ctx.input(i).shape().ToString());
  return *ctx.input(i).data<float>();
}

Status AdjustHue(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const float delta, Amount(ctx, 1, "delta"));
  const auto runs = [delta](const float* from, size_t n, float* to) { ShiftHue(from, n, delta, to); };
  return MapColours(ctx, 3, runs);
}

Status AdjustSaturation(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const float scale, Amount(ctx, 1, "scale"));
  const auto runs = [scale](const float* from, size_t n, float* to) { ScaleSaturation(from, n, scale, to); };
  return MapColours(ctx, 3, runs);
}

// The map of colours that turns the plane of chrominance of YIQ by an angle and stretches it by `saturation`, and all
// by `value`: RGB to YIQ, that, and back, in one matrix.
std::array<float, 9> YiqMap(float angle, float saturation, float value) {
  constexpr float kYiq[3][3] = {{0.299f, 0.587f, 0.114f}, {0.596f, -0.274f, -0.322f}, {0.211f, -0.523f, 0.312f}};
  constexpr float kRgb[3][3] = {
      {1, 0.95617069f, 0.62143257f}, {1, -0.2726886f, -0.64681324f}, {1, -1.103744f, 1.70062309f}};
  const float along = value * saturation * std::cos(angle), across = value * saturation * std::sin(angle);
  std::array<float, 9> map{};
  for (size_t to = 0; to < 3; ++to) {
    for (size_t from = 0; from < 3; ++from) {
      const float y = kYiq[0][from], i = kYiq[1][from], q = kYiq[2][from];
      map[3 * to + from] =
          kRgb[to][0] * value * y + kRgb[to][1] * (along * i - across * q) + kRgb[to][2] * (across * i + along * q);
    }
  }
  return map;
}

Status AdjustHsvInYiq(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const float angle, Amount(ctx, 1, "delta_h"));
  MR_ASSIGN_OR_RETURN(const float saturation, Amount(ctx, 2, "scale_s"));
  MR_ASSIGN_OR_RETURN(const float value, Amount(ctx, 3, "scale_v"));
  const std::array<float, 9> map = YiqMap(angle, saturation, value);
  return MapColours(ctx, 3, [&map](const float* from, size_t n, float* to) {
    for (size_t i = 0; i < n; ++i, from += 3, to += 3) {
      const float r = from[0], g = from[1], b = from[2];
      for (size_t c = 0; c < 3; ++c) to[c] = map[3 * c] * r + map[3 * c + 1] * g + map[3 * c + 2] * b;
    }
  });
}

template <typename T>
void Contrast(KernelContext& ctx, const Tensor& images, float factor, Tensor* out) {
  const int rank = images.rank();
  const int64_t channels = images.dim(rank - 1), pixels = images.dim(rank - 2) * images.dim(rank - 3),
                size = pixels * channels;
  if (size == 0) return;
  ctx.ParallelFor(images.num_elements() / size, static_cast<double>(size), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* from = images.data<T>() + n * size;
      T* to = out->mutable_data<T>() + n * size;
      if constexpr (std::is_same_v<T, float>) {
        if (channels <= kMostChannels) {
          double sums[kMostChannels];
          float mean[kMostChannels];
          SumChannels(from, static_cast<size_t>(pixels), static_cast<size_t>(channels), sums);
          for (int64_t c = 0; c < channels; ++c) mean[c] = static_cast<float>(sums[c] / static_cast<double>(pixels));
          ScaleAround(from, static_cast<size_t>(pixels), static_cast<size_t>(channels), mean, factor, to);
          continue;
        }
      }
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t i = c; i < size; i += channels) sum += static_cast<double>(static_cast<float>(from[i]));
        const float mean = static_cast<float>(sum / static_cast<double>(pixels));
        for (int64_t i = c; i < size; i += channels)
          to[i] = static_cast<T>((static_cast<float>(from[i]) - mean) * factor + mean);
      }
    }
  });
}

Status AdjustContrast(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  if (images.rank() < 3)
    return InvalidArgument("images must have at least 3 dimensions, got shape ", images.shape().ToString());
  MR_ASSIGN_OR_RETURN(const float factor, Amount(ctx, 1, "contrast_factor"));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, images.shape()));
  VisitTypes<float, Half>(images.dtype(), [&]<typename T>() { Contrast<T>(ctx, ctx.input(0), factor, out); });
  return absl::OkStatus();
}

}  // namespace

void RegisterImageColourKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "RGBToHSV"}, [](KernelContext& c) -> Status {
    return MapColours(c, 1, [](const auto* from, size_t n, auto* to) -> decltype(RgbToHsv(from, n, to)) {
      return RgbToHsv(from, n, to);
    });
  });
  registry.AddFn({.op = "HSVToRGB"}, [](KernelContext& c) -> Status {
    return MapColours(c, 1, [](const auto* from, size_t n, auto* to) -> decltype(HsvToRgb(from, n, to)) {
      return HsvToRgb(from, n, to);
    });
  });
  registry.AddFn({.op = "AdjustHue"}, AdjustHue);
  registry.AddFn({.op = "AdjustSaturation"}, AdjustSaturation);
  registry.AddFn({.op = "AdjustContrastv2"}, AdjustContrast);
  registry.AddFn({.op = "AdjustHsvInYiq", .types = {{"T", Types("f32")}}}, AdjustHsvInYiq);
}

}  // namespace millrace
