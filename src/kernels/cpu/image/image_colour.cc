// SPDX-License-Identifier: Apache-2.0
// CPU kernels: colours of images. Hue, saturation and value follow Smith (SIGGRAPH 1978).
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/image/image.h"
#include "kernels/cpu/image/image_simd.h"

namespace millrace {
namespace {

template <typename F>
struct Colour {
  F a, b, c;
};

template <typename F>
Colour<F> ToHsv(const Colour<F>& rgb) {
  const F value = std::max({rgb.a, rgb.b, rgb.c}), range = value - std::min({rgb.a, rgb.b, rgb.c});
  const F saturation = value > 0 ? range / value : F(0);
  if (!(range > 0)) return {F(0), saturation, value};
  const F unit = F(1) / (F(6) * range);
  F hue = rgb.a == value   ? unit * (rgb.b - rgb.c)
          : rgb.b == value ? unit * (rgb.c - rgb.a) + F(2) / F(6)
                           : unit * (rgb.a - rgb.b) + F(4) / F(6);
  if (hue < 0) hue += F(1);
  return {hue, saturation, value};
}

template <typename F>
Colour<F> ToRgb(const Colour<F>& hsv) {
  const F turn = hsv.a * F(6);
  const auto channel = [&](F d) { return (F(1) - hsv.b + hsv.b * std::clamp(d, F(0), F(1))) * hsv.c; };
  return {channel(std::abs(turn - F(3)) - F(1)), channel(F(2) - std::abs(turn - F(2))),
          channel(F(2) - std::abs(turn - F(4)))};
}

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Every colour of input 0 into output 0: runs of float32 colours by `runs`, those of other types one by one by `fn`.
template <typename Runs, typename Fn>
Status MapColours(KernelContext& ctx, int min_rank, Runs runs, Fn fn) {
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
  if (images.dtype() == DType::kFloat) {
    const float* from = ctx.input(0).data<float>();
    float* to = out->mutable_data<float>();
    ctx.ParallelFor(out->num_elements() / 3, 3, [&](int64_t begin, int64_t end) {
      runs(from + 3 * begin, static_cast<size_t>(end - begin), to + 3 * begin);
    });
    return absl::OkStatus();
  }
  VisitTypes<double, Half, BFloat16>(images.dtype(), [&]<typename T>() {
    using F = Wide<T>;
    const T* from = ctx.input(0).data<T>();
    T* to = out->mutable_data<T>();
    ctx.ParallelFor(out->num_elements() / 3, 20, [&](int64_t begin, int64_t end) {
      for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
        const Colour<F> c =
            fn(Colour<F>{static_cast<F>(from[i]), static_cast<F>(from[i + 1]), static_cast<F>(from[i + 2])});
        to[i] = static_cast<T>(c.a);
        to[i + 1] = static_cast<T>(c.b);
        to[i + 2] = static_cast<T>(c.c);
      }
    });
  });
  return absl::OkStatus();
}

StatusOr<float> Amount(const KernelContext& ctx, absl::string_view name) {
  if (ctx.input(1).rank() != 0)
    return InvalidArgument(name, " must be a scalar, got shape ", ctx.input(1).shape().ToString());
  return *ctx.input(1).data<float>();
}

Status AdjustHue(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const float delta, Amount(ctx, "delta"));
  const auto runs = [delta](const float* from, size_t n, float* to) { ShiftHue(from, n, delta, to); };
  return MapColours(ctx, 3, runs, [delta]<typename F>(Colour<F> c) {
    c = ToHsv(c);
    c.a += static_cast<F>(delta);
    c.a -= std::floor(c.a);
    return ToRgb(c);
  });
}

Status AdjustSaturation(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const float scale, Amount(ctx, "scale"));
  const auto runs = [scale](const float* from, size_t n, float* to) { ScaleSaturation(from, n, scale, to); };
  return MapColours(ctx, 3, runs, [scale]<typename F>(Colour<F> c) {
    c = ToHsv(c);
    c.b = std::clamp(c.b * static_cast<F>(scale), F(0), F(1));
    return ToRgb(c);
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
  MR_ASSIGN_OR_RETURN(const float factor, Amount(ctx, "contrast_factor"));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, images.shape()));
  VisitTypes<float, Half>(images.dtype(), [&]<typename T>() { Contrast<T>(ctx, ctx.input(0), factor, out); });
  return absl::OkStatus();
}

}  // namespace

void RegisterImageColourKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "RGBToHSV"}, [](KernelContext& c) -> Status {
    return MapColours(c, 1, RgbToHsv, []<typename F>(const Colour<F>& v) { return ToHsv(v); });
  });
  registry.AddFn({.op = "HSVToRGB"}, [](KernelContext& c) -> Status {
    return MapColours(c, 1, HsvToRgb, []<typename F>(const Colour<F>& v) { return ToRgb(v); });
  });
  registry.AddFn({.op = "AdjustHue"}, AdjustHue);
  registry.AddFn({.op = "AdjustSaturation"}, AdjustSaturation);
  registry.AddFn({.op = "AdjustContrastv2"}, AdjustContrast);
}

}  // namespace millrace
