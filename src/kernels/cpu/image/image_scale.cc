// SPDX-License-Identifier: Apache-2.0
// CPU kernels: images scaled and moved under a kernel of one's choice (Turkowski, Filters for common resampling tasks,
// 1990), its derivative, and contrast between given bounds.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/image/image.h"

namespace millrace {
namespace {

// A function of the distance from the middle, and how far it reaches.
struct SampleKernel {
  const char* name;
  float radius;
  float (*weight)(float x);
};

template <int kLobes>
float Lanczos(float x) {
  constexpr float kPi = std::numbers::pi_v<float>, kRadius = kLobes;
  if (x > kRadius) return 0;
  if (x <= 1e-3f) return 1;
  return kRadius * std::sin(kPi * x) * std::sin(kPi * x / kRadius) / (kPi * kPi * x * x);
}
float Gaussian(float x) { return x >= 1.5f ? 0.0f : std::exp(-x * x / (2 * 0.5f * 0.5f)); }
float BoxKernel(float x) { return x < 0.5f ? 1.0f : x == 0.5f ? 0.5f : 0.0f; }
float Triangle(float x) { return x < 1 ? 1 - x : 0; }
float KeysCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : ((1.5f * x - 2.5f) * x) * x + 1;
}
float MitchellCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? (((-7.0f / 18) * x + 2) * x - 10.0f / 3) * x + 16.0f / 9 : (((7.0f / 6) * x - 2) * x) * x + 8.0f / 9;
}

constexpr SampleKernel kKernels[] = {
    {"lanczos1", 1, Lanczos<1>}, {"lanczos3", 3, Lanczos<3>},
    {"lanczos5", 5, Lanczos<5>}, {"gaussian", 1.5f, Gaussian},
    {"box", 1, BoxKernel},       {"triangle", 1, Triangle},
    {"keyscubic", 2, KeysCubic}, {"mitchellcubic", 2, MitchellCubic}};

// One axis: place i of the result is the sum of weights[first[i] ...] times sources begin[i] and those after it.
struct Spans {
  std::vector<int64_t> begin;
  std::vector<size_t> first{0};
  std::vector<float> weights;

  int64_t size() const { return static_cast<int64_t>(begin.size()); }
  absl::Span<const float> At(int64_t i) const {
    const auto k = static_cast<size_t>(i);
    return absl::MakeConstSpan(weights).subspan(first[k], first[k + 1] - first[k]);
  }
};

// Places are computed in float, as in TensorFlow.
Spans MakeSpans(const SampleKernel& kernel, bool antialias, int64_t in, int64_t out, float scale, float translation) {
  const float step = 1.0f / scale, offset = -step * translation;
  const float stretch = antialias ? std::max(step, 1.0f) : 1.0f, reach = kernel.radius * stretch;
  const auto inside = [in](float x) {  // NaN counts as 0
    return x > 0 ? x < static_cast<float>(in - 1) ? static_cast<int64_t>(x) : in - 1 : int64_t{0};
  };
  Spans s;
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * step + offset;
    s.begin.push_back(0);
    if (at >= 0 && at <= static_cast<float>(in)) {
      s.begin.back() = inside(std::ceil(at - reach - 0.5f));
      const int64_t end = inside(std::floor(at + reach - 0.5f)) + 1;
      float sum = 0;
      for (int64_t k = s.begin.back(); k < end; ++k) {
        s.weights.push_back(kernel.weight(std::abs((static_cast<float>(k) + 0.5f - at) * (1.0f / stretch))));
        sum += s.weights.back();
      }
      const bool counts = std::abs(sum) >= 1000 * std::numeric_limits<float>::min();
      const float factor = counts ? 1 / sum : 0;
      for (size_t k = s.first.back(); k < s.weights.size(); ++k) s.weights[k] *= factor;
    }
    s.first.push_back(s.weights.size());
  }
  return s;
}

// What each source gives to results, as spans of results: those that take of it lie side by side.
Spans Transposed(const Spans& s, int64_t in) {
  std::vector<int64_t> least(static_cast<size_t>(in), s.size()), most(static_cast<size_t>(in), -1);
  for (int64_t i = 0; i < s.size(); ++i) {
    for (size_t k = 0; k < s.At(i).size(); ++k) {
      const auto source = static_cast<size_t>(s.begin[static_cast<size_t>(i)]) + k;
      least[source] = std::min(least[source], i);
      most[source] = std::max(most[source], i);
    }
  }
  Spans out;
  for (size_t source = 0; source < least.size(); ++source) {
    const bool used = most[source] >= 0;
    out.begin.push_back(used ? least[source] : 0);
    for (int64_t i = least[source]; i <= most[source]; ++i) {
      const auto span = s.At(i);
      const int64_t k = static_cast<int64_t>(source) - s.begin[static_cast<size_t>(i)];
      out.weights.push_back(k >= 0 && k < static_cast<int64_t>(span.size()) ? span[static_cast<size_t>(k)] : 0.0f);
    }
    out.first.push_back(out.weights.size());
  }
  return out;
}

template <typename In>
void Resample(KernelContext& ctx, const Tensor& from, const Spans& rows, const Spans& columns, Tensor& to) {
  const int64_t height = from.dim(1), channels = from.dim(3), line = from.dim(2) * channels;
  const int64_t out_line = columns.size() * channels;
  const auto taps = static_cast<double>(rows.weights.size()) / static_cast<double>(std::max<int64_t>(1, rows.size()));
  const double cost =
      taps * static_cast<double>(line) + static_cast<double>(columns.weights.size()) * static_cast<double>(channels);
  ctx.ParallelFor(from.dim(0) * rows.size(), cost, [&](int64_t begin, int64_t end) {
    std::vector<float> sums(static_cast<size_t>(line));
    for (int64_t r = begin; r < end; ++r) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      const int64_t image = r / rows.size(), row = r % rows.size();
      const In* source = from.data<In>() + (image * height + rows.begin[static_cast<size_t>(row)]) * line;
      for (const float w : rows.At(row)) {
        for (int64_t k = 0; k < line; ++k) sums[static_cast<size_t>(k)] += w * static_cast<float>(source[k]);
        source += line;
      }
      float* out = to.mutable_data<float>() + r * out_line;
      std::fill(out, out + out_line, 0.0f);
      for (int64_t x = 0; x < columns.size(); ++x, out += channels) {
        const float* pixel = sums.data() + columns.begin[static_cast<size_t>(x)] * channels;
        for (const float w : columns.At(x)) {
          for (int64_t k = 0; k < channels; ++k) out[k] += w * pixel[k];
          pixel += channels;
        }
      }
    }
  });
}

class ScaleKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string name, init.Attr<std::string>("kernel_type"));
    MR_ASSIGN_OR_RETURN(antialias_, init.Attr<bool>("antialias"));
    for (const SampleKernel& k : kKernels) {
      if (name == k.name) kernel_ = &k;
    }
    return kernel_ ? absl::OkStatus() : InvalidArgument("Unrecognized kernel type: ", name);
  }

 protected:
  struct Way {
    Spans rows, columns;
  };
  // From an image of in_shape to one of `height` and `width`, by inputs `first` and the one after it.
  StatusOr<Way> WayOf(const KernelContext& ctx, const Shape& in_shape, int64_t height, int64_t width) const {
    for (const int i : {2, 3}) {
      if (ctx.input(i).rank() != 1 || ctx.input(i).dim(0) != 2) {
        return InvalidArgument(
            i == 2 ? "scale" : "translation", " must be two numbers, got shape ", ctx.input(i).shape().ToString());
      }
    }
    const float *scale = ctx.input(2).data<float>(), *translation = ctx.input(3).data<float>();
    if (!(scale[0] > 0) || !(scale[1] > 0))
      return InvalidArgument("scale is ", scale[0], ", ", scale[1], ", want more than 0");
    // Weights are kept for every source that a place reaches.
    for (const int k : {0, 1}) {
      const double reach = 2.0 * static_cast<double>(kernel_->radius) *
                           (antialias_ ? std::max(1.0, 1.0 / static_cast<double>(scale[k])) : 1.0);
      const double taps =
          std::min(reach + 2, static_cast<double>(in_shape.dim(1 + k))) * static_cast<double>(k == 0 ? height : width);
      if (taps > 1e9)
        return InvalidArgument("scale ", scale[k], " of ", in_shape.dim(1 + k), " pixels takes too many weights");
    }
    return Way{MakeSpans(*kernel_, antialias_, in_shape.dim(1), height, scale[0], translation[0]),
               MakeSpans(*kernel_, antialias_, in_shape.dim(2), width, scale[1], translation[1])};
  }

  const SampleKernel* kernel_ = nullptr;
  bool antialias_ = true;
};

class ScaleAndTranslateKernel final : public ScaleKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &images = ctx.input(0), &size = ctx.input(1);
    if (images.rank() != 4)
      return InvalidArgument("input must be 4-dimensional, got shape ", images.shape().ToString());
    if (size.rank() != 1 || size.dim(0) != 2) {
      return InvalidArgument("output_size must be two numbers, got shape ", size.shape().ToString());
    }
    const int64_t height = size.data<int32_t>()[0], width = size.data<int32_t>()[1];
    if (height <= 0 || width <= 0) {
      return InvalidArgument("output_size = [", height, ", ", width, "] must be positive");
    }
    if (images.dim(1) < 1 || images.dim(2) < 1 || images.dim(3) < 1) {
      return InvalidArgument("input image must be of non-zero size, got shape ", images.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({images.dim(0), height, width, images.dim(3)}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const Way way, WayOf(ctx, images.shape(), height, width));
    const bool known =
        VisitRealTypes(images.dtype(), [&]<typename T>() { Resample<T>(ctx, images, way.rows, way.columns, *out); });
    return known ? absl::OkStatus() : Unimplemented("no images of ", DTypeName(images.dtype()));
  }
};

class ScaleAndTranslateGradKernel final : public ScaleKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &grads = ctx.input(0), &original = ctx.input(1);
    if (grads.rank() != 4 || original.rank() != 4 || grads.dim(0) != original.dim(0) ||
        grads.dim(3) != original.dim(3)) {
      return InvalidArgument("grads and original_image must be 4-dimensional, with as many images and channels, got ",
                             grads.shape().ToString(), " and ", original.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, original.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const Way way, WayOf(ctx, original.shape(), grads.dim(1), grads.dim(2)));
    Resample<float>(ctx, grads, Transposed(way.rows, original.dim(1)), Transposed(way.columns, original.dim(2)), *out);
    return absl::OkStatus();
  }
};

// The first form of AdjustContrast: to float, cut at bounds.
Status AdjustContrastWithin(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  const int rank = images.rank();
  if (rank < 3) return InvalidArgument("input must be at least 3-D, got shape ", images.shape().ToString());
  for (int i = 1; i < 4; ++i)
    MR_RETURN_IF_ERROR(RequireScalar(ctx.node().op->inputs[static_cast<size_t>(i)].name, ctx.input(i)));
  const float factor = *ctx.input(1).data<float>(), low = *ctx.input(2).data<float>(),
              high = *ctx.input(3).data<float>();
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, images.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  const int64_t channels = images.dim(rank - 1), pixels = images.dim(rank - 2) * images.dim(rank - 3);
  const int64_t size = pixels * channels;
  const bool known = VisitRealTypes(images.dtype(), [&]<typename T>() {
    ctx.ParallelFor(images.num_elements() / size, 3 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
      std::vector<double> sums(static_cast<size_t>(channels));
      std::vector<float> means(static_cast<size_t>(channels));
      for (int64_t n = begin; n < end; ++n) {
        const T* from = images.data<T>() + n * size;
        float* to = out->mutable_data<float>() + n * size;
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t p = 0; p < pixels; ++p) {
          for (int64_t c = 0; c < channels; ++c) {
            sums[static_cast<size_t>(c)] += static_cast<double>(static_cast<float>(from[p * channels + c]));
          }
        }
        for (size_t c = 0; c < sums.size(); ++c) means[c] = static_cast<float>(sums[c] / static_cast<double>(pixels));
        for (int64_t p = 0; p < pixels; ++p) {
          for (int64_t c = 0; c < channels; ++c) {
            const float mean = means[static_cast<size_t>(c)];
            const float moved = (static_cast<float>(from[p * channels + c]) - mean) * factor + mean;
            to[p * channels + c] = std::min(std::max(moved, low), high);
          }
        }
      }
    });
  });
  return known ? absl::OkStatus() : Unimplemented("no images of ", DTypeName(images.dtype()));
}

}  // namespace

void RegisterImageScaleKernels(KernelRegistry& registry) {
  registry.Add<ScaleAndTranslateKernel>({.op = "ScaleAndTranslate"});
  registry.Add<ScaleAndTranslateGradKernel>({.op = "ScaleAndTranslateGrad"});
  registry.AddFn({.op = "AdjustContrast", .types = {{"T", Types("FD|i8|i16|i32|u8|i64")}}}, AdjustContrastWithin);
}

}  // namespace millrace
