// SPDX-License-Identifier: Apache-2.0
// CPU kernels: resizing of images, and its derivatives.
//
// All ways of resizing are separable: a pixel of the result is a weighted sum of input rows, and that row's pixels a
// weighted sum again. A Sampling holds the weights of one axis; its transpose is the derivative's, so one walk serves
// all.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/strided_block.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/image/image.h"
#include "kernels/cpu/image/image_simd.h"

namespace millrace {
namespace {

// The taps of result place i are taps[first[i], first[i + 1]).
struct Sampling {
  std::vector<size_t> first{0};
  std::vector<Tap> taps;

  int64_t size() const { return static_cast<int64_t>(first.size()) - 1; }
  absl::Span<const Tap> At(int64_t i) const {
    const size_t k = static_cast<size_t>(i);
    return absl::MakeConstSpan(taps).subspan(first[k], first[k + 1] - first[k]);
  }
  void Close() { first.push_back(taps.size()); }
};

Sampling Transposed(const Sampling& s, int64_t size) {
  std::vector<std::vector<Tap>> by_source(static_cast<size_t>(size));
  for (int64_t i = 0; i < s.size(); ++i) {
    for (const Tap& t : s.At(i)) by_source[static_cast<size_t>(t.at)].push_back({i, t.weight});
  }
  Sampling out;
  for (const std::vector<Tap>& list : by_source) {
    out.taps.insert(out.taps.end(), list.begin(), list.end());
    out.Close();
  }
  return out;
}

enum class Method : uint8_t { kBilinear, kBicubic, kArea, kNearest };

struct Placing {
  bool align_corners = false, half_pixel_centers = false;
  float Scale(int64_t in, int64_t out) const {
    return align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                    : static_cast<float>(in) / static_cast<float>(out);
  }
  float Source(int64_t i, float scale) const {
    return half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale - 0.5f : static_cast<float>(i) * scale;
  }
};

int64_t Inside(int64_t i, int64_t size) { return std::clamp<int64_t>(i, 0, size - 1); }

void AddBilinear(float at, int64_t in, Sampling* s) {
  const float below = std::floor(at), part = at - below;
  s->taps.push_back({Inside(static_cast<int64_t>(below), in), 1 - part});
  s->taps.push_back({Inside(static_cast<int64_t>(std::ceil(at)), in), part});
}

// Places are rounded to 1/1024 of a pixel, and weights computed in double and rounded to float, as in TensorFlow.
void AddBicubic(float at, int64_t in, bool half_pixel_centers, Sampling* s) {
  const float below = std::floor(at), part = std::nearbyint((at - below) * 1024) / 1024;
  const double a = half_pixel_centers ? -0.5 : -0.75;
  const auto near = [a](double x) { return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1); };
  const auto far = [a](double x) { return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a); };
  float weights[4] = {far(part + 1), near(part), near(1 - part), far(2 - part)};
  const int64_t base = static_cast<int64_t>(below) - 1;
  if (half_pixel_centers) {  // what lies outside has no weight
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      if (!InRange(base + k, in)) weights[k] = 0;
      sum += weights[k];
    }
    const float scale = std::abs(sum) >= 1e-35f ? 1 / sum : 1;
    for (float& w : weights) w *= scale;
  }
  for (int k = 0; k < 4; ++k) s->taps.push_back({Inside(base + k, in), weights[k]});
}

void AddArea(int64_t i, int64_t in, float scale, Sampling* s) {
  if (scale == 0) return s->taps.push_back({0, 1});  // of one pixel, with align_corners
  const float begin = static_cast<float>(i) * scale, end = static_cast<float>(i + 1) * scale;
  for (int64_t v = static_cast<int64_t>(std::floor(begin)); v < static_cast<int64_t>(std::ceil(end)); ++v) {
    const float left = std::max(begin, static_cast<float>(v)), right = std::min(end, static_cast<float>(v + 1));
    s->taps.push_back({Inside(v, in), (right - left) / scale});
  }
}

int64_t NearestAt(int64_t i, int64_t in, const Placing& p, float scale) {
  const float at = p.half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale : static_cast<float>(i) * scale;
  return Inside(static_cast<int64_t>(p.align_corners ? std::round(at) : std::floor(at)), in);
}

Sampling MakeSampling(Method method, int64_t in, int64_t out, const Placing& p) {
  const float scale = p.Scale(in, out);
  Sampling s;
  for (int64_t i = 0; i < out; ++i) {
    switch (method) {
      case Method::kBilinear: AddBilinear(p.Source(i, scale), in, &s); break;
      case Method::kBicubic: AddBicubic(p.Source(i, scale), in, p.half_pixel_centers, &s); break;
      case Method::kArea: AddArea(i, in, scale, &s); break;
      case Method::kNearest: s.taps.push_back({NearestAt(i, in, p, scale), 1}); break;
    }
    s.Close();
  }
  return s;
}

struct Extent {
  int64_t batch, height, width, channels;
};

double CostOfRow(const Extent& e, const Sampling& rows, const Sampling& columns) {
  const double taps = static_cast<double>(rows.taps.size()) / static_cast<double>(std::max<int64_t>(1, rows.size()));
  return taps * static_cast<double>(e.width * e.channels) +
         static_cast<double>(columns.taps.size()) * static_cast<double>(e.channels);
}

// What is to be written is fetched while something else is computed.
void PrefetchRow(const void* row, size_t bytes) {
  constexpr size_t kMost = 16 << 10, kLine = 64;
  for (size_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(static_cast<const char*>(row) + i, 1);
}

// Sums in float: whole rows are mixed by vectors, then pixels. Types other than float are converted row by row.
void ResampleFloat(KernelContext& ctx, const Tensor& images, const Extent& e, const Sampling& rows,
                   const Sampling& columns, Tensor* out) {
  const int64_t line = e.width * e.channels, out_line = columns.size() * e.channels;
  const ConvertRoute widen = FindConvert(images.dtype(), DType::kFloat);
  const ConvertRoute narrow = FindConvert(DType::kFloat, out->dtype());
  const bool streams = narrow.steps == 0 && e.batch * rows.size() * out_line * 4 >= strided::kStreamBytes;
  size_t most = 0;
  for (int64_t r = 0; r < rows.size(); ++r) most = std::max(most, rows.At(r).size());
  ctx.ParallelFor(e.batch * rows.size(), 0.3 * CostOfRow(e, rows, columns), [&](int64_t begin, int64_t end) {
    std::vector<float> wide(widen.steps > 0 ? most * static_cast<size_t>(line) : 0);
    std::vector<float> sums(static_cast<size_t>(line) + kPixelSlack);
    std::vector<float> result(narrow.steps > 0 ? static_cast<size_t>(out_line) : 0);
    std::vector<const float*> lines(most);
    for (int64_t r = begin; r < end; ++r) {
      const absl::Span<const Tap> taps = rows.At(r % rows.size());
      for (size_t t = 0; t < taps.size(); ++t) {
        const int64_t at = (r / rows.size() * e.height + taps[t].at) * line;
        const void* source = ElementAt(images.raw(), images.dtype(), at);
        if (widen.steps > 0) {
          float* to = wide.data() + t * static_cast<size_t>(line);
          widen.Run(source, to, line);
          source = to;
        }
        lines[t] = static_cast<const float*>(source);
      }
      void* to = ElementAt(out->mutable_raw(), out->dtype(), r * out_line);
      if (!streams) PrefetchRow(to, static_cast<size_t>(out_line) * DTypeSize(out->dtype()));
      MixLines(lines.data(), taps.data(), taps.size(), static_cast<size_t>(line), sums.data());
      float* pixels = narrow.steps > 0 ? result.data() : static_cast<float*>(to);
      MixPixels(sums.data(), columns.taps.data(), columns.first.data(), static_cast<size_t>(columns.size()),
                static_cast<size_t>(e.channels), streams, pixels);
      if (narrow.steps > 0) narrow.Run(pixels, to, out_line);
    }
    if (streams) strided::FinishStreams();
  });
}

// to [batch, rows, columns, channels] from `from`; sums are of type Sum.
template <typename Sum, typename In, typename Out>
void Resample(KernelContext& ctx, const In* from, const Extent& e, const Sampling& rows, const Sampling& columns,
              Out* to) {
  const int64_t line = e.width * e.channels, out_line = columns.size() * e.channels;
  ctx.ParallelFor(e.batch * rows.size(), CostOfRow(e, rows, columns), [&](int64_t begin, int64_t end) {
    std::vector<Sum> sums(static_cast<size_t>(line)), pixel(static_cast<size_t>(e.channels));
    for (int64_t r = begin; r < end; ++r) {
      std::fill(sums.begin(), sums.end(), Sum(0));
      for (const Tap& t : rows.At(r % rows.size())) {
        const In* source = from + (r / rows.size() * e.height + t.at) * line;
        const Sum weight = static_cast<Sum>(t.weight);
        for (int64_t k = 0; k < line; ++k) sums[static_cast<size_t>(k)] += weight * static_cast<Sum>(source[k]);
      }
      for (int64_t x = 0; x < columns.size(); ++x) {
        std::fill(pixel.begin(), pixel.end(), Sum(0));
        for (const Tap& t : columns.At(x)) {
          const Sum* source = sums.data() + t.at * e.channels;
          const Sum weight = static_cast<Sum>(t.weight);
          for (int64_t k = 0; k < e.channels; ++k) pixel[static_cast<size_t>(k)] += weight * source[k];
        }
        Out* out = to + r * out_line + x * e.channels;
        for (int64_t k = 0; k < e.channels; ++k) out[k] = static_cast<Out>(pixel[static_cast<size_t>(k)]);
      }
    }
  });
}

// Calls fn(copy), which copies pixels of so many bytes.
template <typename Fn>
void WithCopyOfPixels(int64_t bytes, const Fn& fn) {
  const auto fixed = [&]<size_t kBytes>(std::integral_constant<size_t, kBytes>) {
    fn([](char* to, const char* from) { std::memcpy(to, from, kBytes); });
  };
  switch (bytes) {
    case 1: return fixed(std::integral_constant<size_t, 1>());
    case 2: return fixed(std::integral_constant<size_t, 2>());
    case 3: return fixed(std::integral_constant<size_t, 3>());
    case 4: return fixed(std::integral_constant<size_t, 4>());
    case 6: return fixed(std::integral_constant<size_t, 6>());
    case 8: return fixed(std::integral_constant<size_t, 8>());
    case 12: return fixed(std::integral_constant<size_t, 12>());
    case 16: return fixed(std::integral_constant<size_t, 16>());
    default: return strided::WithCopyOfRuns(bytes, fn);
  }
}

class ResizeBase : public Kernel {
 public:
  explicit ResizeBase(Method method) : method_(method) {}
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(placing_.align_corners, init.Attr<bool>("align_corners"));
    if (init.HasAttr("half_pixel_centers")) {
      MR_ASSIGN_OR_RETURN(placing_.half_pixel_centers, init.Attr<bool>("half_pixel_centers"));
    }
    if (placing_.align_corners && placing_.half_pixel_centers) {
      return InvalidArgument("align_corners and half_pixel_centers exclude each other");
    }
    return absl::OkStatus();
  }

 protected:
  static StatusOr<Extent> ExtentOf(const Tensor& t, absl::string_view name) {
    if (t.rank() != 4)
      return InvalidArgument(name, " must be [batch, height, width, channels], got shape ", t.shape().ToString());
    if (t.dim(1) < 1 || t.dim(2) < 1 || t.dim(3) < 1)
      return InvalidArgument(name, " has no pixels: ", t.shape().ToString());
    return Extent{t.dim(0), t.dim(1), t.dim(2), t.dim(3)};
  }
  static StatusOr<Shape> SizedLike(const Extent& e, const Tensor& size) {
    if (size.rank() != 1 || size.dim(0) != 2)
      return InvalidArgument("size must be [height, width], got shape ", size.shape().ToString());
    const int32_t* v = size.data<int32_t>();
    if (v[0] < 1 || v[1] < 1) return InvalidArgument("size is [", v[0], ", ", v[1], "], want positive numbers");
    return Shape::Make({e.batch, v[0], v[1], e.channels});
  }
  const Method method_;
  Placing placing_;
};

template <Method kMethod>
class ResizeKernel final : public ResizeBase {
 public:
  ResizeKernel() : ResizeBase(kMethod) {}
  Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    MR_ASSIGN_OR_RETURN(const Extent e, ExtentOf(images, "images"));
    MR_ASSIGN_OR_RETURN(const Shape shape, SizedLike(e, ctx.input(1)));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const Sampling rows = MakeSampling(method_, e.height, shape.dim(1), placing_);
    const Sampling columns = MakeSampling(method_, e.width, shape.dim(2), placing_);
    if (kMethod == Method::kNearest) {
      CopyPixels(ctx, images, e, rows, columns, out);
      return absl::OkStatus();
    }
    if (!FindConvert(images.dtype(), DType::kFloat).found) {
      return Unimplemented("no images of ", DTypeName(images.dtype()));
    }
    ResampleFloat(ctx, images, e, rows, columns, out);
    return absl::OkStatus();
  }

 private:
  static void CopyPixels(KernelContext& ctx, const Tensor& images, const Extent& e, const Sampling& rows,
                         const Sampling& columns, Tensor* out) {
    const int64_t pixel = e.channels * static_cast<int64_t>(DTypeSize(images.dtype()));
    const int64_t line = e.width * pixel, out_line = columns.size() * pixel;
    std::vector<int64_t> from;  // of each pixel of a line
    for (const Tap& t : columns.taps) from.push_back(t.at * pixel);
    const double cost = static_cast<double>(out_line) * 0.1 + static_cast<double>(from.size());
    ctx.ParallelFor(e.batch * rows.size(), cost, [&](int64_t begin, int64_t end) {
      WithCopyOfPixels(pixel, [&](auto copy) {
        const char* above = nullptr;  // what the line above in the result was made of
        for (int64_t r = begin; r < end; ++r) {
          const char* const source =
              images.data<char>() + (r / rows.size() * e.height + rows.At(r % rows.size())[0].at) * line;
          char* to = out->mutable_data<char>() + r * out_line;
          if (std::exchange(above, source) == source) {
            std::memcpy(to, to - out_line, static_cast<size_t>(out_line));
            continue;
          }
          for (const int64_t at : from) {
            copy(to, source + at);
            to += pixel;
          }
        }
      });
    });
  }
};

// Of bilinear and bicubic: gradients are float, the result has the type of the original images.
template <Method kMethod>
class ResizeGradKernel final : public ResizeBase {
 public:
  ResizeGradKernel() : ResizeBase(kMethod) {}
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Extent e, ExtentOf(ctx.input(0), "grads"));
    MR_ASSIGN_OR_RETURN(const Extent original, ExtentOf(ctx.input(1), "original_image"));
    if (e.batch != original.batch || e.channels != original.channels) {
      return InvalidArgument("grads have shape ", ctx.input(0).shape().ToString(), ", the original images ",
                             ctx.input(1).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(1).shape()));
    const Sampling rows = Transposed(MakeSampling(method_, original.height, e.height, placing_), original.height);
    const Sampling columns = Transposed(MakeSampling(method_, original.width, e.width, placing_), original.width);
    if (out->dtype() == DType::kDouble) {
      Resample<double>(ctx, ctx.input(0).data<float>(), e, rows, columns, out->mutable_data<double>());
    } else {
      ResampleFloat(ctx, ctx.input(0), e, rows, columns, out);
    }
    return absl::OkStatus();
  }
};

class NearestGradKernel final : public ResizeBase {
 public:
  NearestGradKernel() : ResizeBase(Method::kNearest) {}
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Extent e, ExtentOf(ctx.input(0), "grads"));
    MR_ASSIGN_OR_RETURN(const Shape shape, SizedLike(e, ctx.input(1)));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const Sampling rows = Transposed(MakeSampling(method_, shape.dim(1), e.height, placing_), shape.dim(1));
    const Sampling columns = Transposed(MakeSampling(method_, shape.dim(2), e.width, placing_), shape.dim(2));
    if (out->dtype() == DType::kFloat || out->dtype() == DType::kHalf || out->dtype() == DType::kBFloat16) {
      ResampleFloat(ctx, ctx.input(0), e, rows, columns, out);
      return absl::OkStatus();
    }
    const bool known = VisitTypes<double, int8_t, int32_t, uint8_t>(out->dtype(), [&]<typename T>() {
      using Sum = std::conditional_t<std::is_same_v<T, double>, double, int64_t>;
      Resample<Sum>(ctx, ctx.input(0).data<T>(), e, rows, columns, out->mutable_data<T>());
    });
    return known ? absl::OkStatus() : Unimplemented("no gradients of ", DTypeName(out->dtype()));
  }
};

}  // namespace

void RegisterImageResizeKernels(KernelRegistry& registry) {
  registry.Add<ResizeKernel<Method::kBilinear>>({.op = "ResizeBilinear"});
  registry.Add<ResizeKernel<Method::kBicubic>>({.op = "ResizeBicubic"});
  registry.Add<ResizeKernel<Method::kArea>>({.op = "ResizeArea"});
  registry.Add<ResizeKernel<Method::kNearest>>({.op = "ResizeNearestNeighbor"});
  registry.Add<ResizeGradKernel<Method::kBilinear>>({.op = "ResizeBilinearGrad"});
  registry.Add<ResizeGradKernel<Method::kBicubic>>({.op = "ResizeBicubicGrad"});
  registry.Add<NearestGradKernel>({.op = "ResizeNearestNeighborGrad"});
}

}  // namespace millrace
