// SPDX-License-Identifier: Apache-2.0
// CPU kernels: QuantizedConv2D, QuantizedAvgPool, QuantizedMaxPool, QuantizedResizeBilinear. Images are NHWC.
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/engine/linalg_gemm.h"
#include "kernels/cpu/quantize/quantize_kernels.h"
#include "kernels/cpu/quantize/quantize_range.h"
#include "tensor/window.h"

namespace millrace {
namespace {

// Where a window slides over the rows and columns of images.
struct Slide {
  int64_t batch = 0, rows = 0, cols = 0, depth = 0;
  int64_t window_rows = 0, window_cols = 0, stride_rows = 0, stride_cols = 0;
  WindowExtent down, across;
};

class SlidingKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(strides_, init.Attr<std::vector<int64_t>>("strides"));
    if (strides_.size() != 4) return InvalidArgument("Sliding window strides field must specify 4 dimensions");
    if (strides_[0] != 1 || strides_[3] != 1) {
      return InvalidArgument("Current implementation does not yet support strides in the batch and depth dimensions.");
    }
    if (strides_[1] < 1 || strides_[2] < 1) return InvalidArgument("strides must be positive");
    MR_ASSIGN_OR_RETURN(const std::string padding, init.Attr<std::string>("padding"));
    MR_ASSIGN_OR_RETURN(padding_, ParsePadding(padding));
    return absl::OkStatus();
  }

 protected:
  StatusOr<Slide> ReadSlide(const Tensor& in, int64_t window_rows, int64_t window_cols) const {
    if (in.rank() != 4) return InvalidArgument("input must be 4-dimensional, got ", in.shape().ToString());
    Slide s{.batch = in.dim(0), .rows = in.dim(1), .cols = in.dim(2), .depth = in.dim(3)};
    s.window_rows = window_rows;
    s.window_cols = window_cols;
    s.stride_rows = strides_[1];
    s.stride_cols = strides_[2];
    MR_ASSIGN_OR_RETURN(s.down, ComputeWindow(s.rows, window_rows, s.stride_rows, 1, padding_));
    MR_ASSIGN_OR_RETURN(s.across, ComputeWindow(s.cols, window_cols, s.stride_cols, 1, padding_));
    return s;
  }
  const std::vector<int64_t>& strides() const { return strides_; }

 private:
  std::vector<int64_t> strides_;
  Padding padding_ = Padding::kValid;
};

// The rows of an image's windows, as distances from zero; what lies outside is zero.
void GatherWindows(const Slide& s, const uint8_t* image, int32_t zero, int64_t row, int32_t* to) {
  const int64_t run = s.window_cols * s.depth;
  for (int64_t out_col = 0; out_col < s.across.output; ++out_col) {
    for (int64_t r = 0; r < s.window_rows; ++r, to += run) {
      const int64_t y = row * s.stride_rows - s.down.pad_before + r;
      for (int64_t c = 0; c < s.window_cols; ++c) {
        const int64_t x = out_col * s.stride_cols - s.across.pad_before + c;
        int32_t* cell = to + c * s.depth;
        if (!InRange(y, s.rows) || !InRange(x, s.cols)) {
          std::fill_n(cell, s.depth, 0);
          continue;
        }
        const uint8_t* from = image + (y * s.cols + x) * s.depth;
        for (int64_t d = 0; d < s.depth; ++d) {
          cell[d] = static_cast<int32_t>(static_cast<uint32_t>(from[d]) - static_cast<uint32_t>(zero));
        }
      }
    }
  }
}

int32_t Clamped(int64_t v) { return static_cast<int32_t>(std::clamp(v, kLowestOf<int32_t>, kHighestOf<int32_t>)); }

class ConvKernel final : public SlidingKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(SlidingKernel::Init(init));
    if (strides()[1] != strides()[2]) {
      return InvalidArgument(
          "Current implementation only supports equal length strides in the row and column dimensions.");
    }
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, init.Attr<std::vector<int64_t>>("dilations"));
    if (dilations != std::vector<int64_t>{1, 1, 1, 1}) {
      return InvalidArgument("Current implementation does not yet support dilations in any dimension.");
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &filter = ctx.input(1);
    if (filter.rank() != 4) return InvalidArgument("filter must be 4-dimensional: ", filter.shape().ToString());
    if (in.rank() != 4) return InvalidArgument("input must be 4-dimensional: ", in.shape().ToString());
    if (in.dim(3) != filter.dim(2)) {
      return InvalidArgument("input and filter must have the same depth: ", in.dim(3), " vs ", filter.dim(2));
    }
    MR_ASSIGN_OR_RETURN(const FloatRange input_range, ReadRange(ctx, 2));
    MR_ASSIGN_OR_RETURN(const FloatRange filter_range, ReadRange(ctx, 4));
    MR_ASSIGN_OR_RETURN(const Slide s, ReadSlide(in, filter.dim(0), filter.dim(1)));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({s.batch, s.down.output, s.across.output, filter.dim(3)}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const bool is_signed = filter.dtype() == DType::kQInt8;
    const FloatRange range = is_signed ? ProductRange<uint8_t, int8_t>(input_range, filter_range)
                                       : ProductRange<uint8_t, uint8_t>(input_range, filter_range);
    MR_RETURN_IF_ERROR(OutputRange(ctx, 1, range));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int32_t zero = Clamped(UnclampedQuantized<uint8_t>(0, input_range));
    const int32_t filter_zero =
        Clamped(is_signed ? UnclampedQuantized<int8_t>(0, filter_range) : UnclampedQuantized<uint8_t>(0, filter_range));
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kInt32, filter.shape()));
    for (int64_t i = 0; i < filter.num_elements(); ++i) {
      const int32_t v = is_signed ? filter.data<int8_t>()[i] : filter.data<uint8_t>()[i];
      wide.mutable_data<int32_t>()[i] =
          static_cast<int32_t>(static_cast<uint32_t>(v) - static_cast<uint32_t>(filter_zero));
    }
    GemmArgs g;
    g.m = s.across.output;
    g.n = filter.dim(3);
    g.k = s.window_rows * s.window_cols * s.depth;
    if (g.k == 0) {
      std::fill_n(out->mutable_data<int32_t>(), shape.num_elements(), 0);
      return absl::OkStatus();
    }
    g.lda = g.k;
    g.b = wide.raw();
    g.ldb = g.ldc = g.n;
    // Memory of each task: the windows of one row of the result.
    MR_ASSIGN_OR_RETURN(const Shape row_shape, Shape::Make({g.m, g.k}));
    Status failed;
    absl::Mutex mu;
    ctx.ParallelFor(s.batch * s.down.output, static_cast<double>(g.m) * static_cast<double>(g.n * g.k) * 0.2,
                    [&](int64_t begin, int64_t end) {
                      auto windows = Tensor::Make(DType::kInt32, row_shape);
                      if (!windows.ok()) {
                        absl::MutexLock lock(&mu);
                        failed = windows.status();
                        return;
                      }
                      for (int64_t i = begin; i < end; ++i) {
                        const uint8_t* image = in.data<uint8_t>() + i / s.down.output * s.rows * s.cols * s.depth;
                        GatherWindows(s, image, zero, i % s.down.output, windows->mutable_data<int32_t>());
                        GemmArgs args = g;
                        args.a = windows->raw();
                        args.c = out->mutable_data<int32_t>() + i * g.m * g.n;
                        SerialGemm(DType::kInt32, args);
                      }
                    });
    return failed;
  }
};

template <bool kAverage>
class PoolKernel final : public SlidingKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(SlidingKernel::Init(init));
    MR_ASSIGN_OR_RETURN(ksize_, init.Attr<std::vector<int64_t>>("ksize"));
    if (ksize_.size() != 4) return InvalidArgument("Sliding window ksize field must specify 4 dimensions");
    if (ksize_[0] != 1 || ksize_[3] != 1) {
      return Unimplemented("Pooling is not yet supported on the batch and depth dimensions.");
    }
    if (ksize_[1] < 1 || ksize_[2] < 1) return InvalidArgument("ksize must be positive");
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(const FloatRange range, ReadRange(ctx, 1));
    MR_ASSIGN_OR_RETURN(const Slide s, ReadSlide(in, ksize_[1], ksize_[2]));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({s.batch, s.down.output, s.across.output, s.depth}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() > 0) {
      VisitQuantized(in.dtype(), [&]<typename T>() { Pool<T>(ctx, s, in.data<T>(), out->mutable_data<T>()); });
    }
    return OutputRange(ctx, 1, range);
  }

 private:
  template <typename T>
  static void Pool(const KernelContext& ctx, const Slide& s, const T* in, T* out) {
    const double cells = static_cast<double>(std::min(s.window_rows, s.rows) * std::min(s.window_cols, s.cols));
    ctx.ParallelFor(s.batch * s.down.output, cells * static_cast<double>(s.across.output * s.depth),
                    [&](int64_t begin, int64_t end) {
                      std::vector<int64_t> acc(static_cast<size_t>(s.depth));
                      for (int64_t i = begin; i < end; ++i) {
                        const T* image = in + i / s.down.output * s.rows * s.cols * s.depth;
                        const int64_t top = i % s.down.output * s.stride_rows - s.down.pad_before;
                        const int64_t y0 = std::max<int64_t>(top, 0), y1 = std::min(top + s.window_rows, s.rows);
                        for (int64_t col = 0; col < s.across.output; ++col) {
                          const int64_t left = col * s.stride_cols - s.across.pad_before;
                          const int64_t x0 = std::max<int64_t>(left, 0), x1 = std::min(left + s.window_cols, s.cols);
                          std::fill(acc.begin(), acc.end(), kAverage ? 0 : kLowestOf<T>);
                          for (int64_t y = y0; y < y1; ++y) {
                            for (int64_t x = x0; x < x1; ++x) {
                              const T* cell = image + (y * s.cols + x) * s.depth;
                              for (size_t d = 0; d < acc.size(); ++d) {
                                acc[d] = kAverage ? acc[d] + cell[d] : std::max<int64_t>(acc[d], cell[d]);
                              }
                            }
                          }
                          const int64_t count = std::max<int64_t>((y1 - y0) * (x1 - x0), 1);
                          T* to = out + (i * s.across.output + col) * s.depth;
                          for (size_t d = 0; d < acc.size(); ++d)
                            to[d] = static_cast<T>(kAverage ? acc[d] / count : acc[d]);
                        }
                      }
                    });
  }
  std::vector<int64_t> ksize_;
};

// Between which two cells a place lies, and how far along.
struct Place {
  int64_t low, high;
  float part;
};

class ResizeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(align_corners_, init.Attr<bool>("align_corners"));
    MR_ASSIGN_OR_RETURN(half_pixel_, init.Attr<bool>("half_pixel_centers"));
    if (align_corners_ && half_pixel_) {
      return InvalidArgument("If half_pixel_centers is True, align_corners must be False.");
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &size = ctx.input(1);
    if (in.rank() != 4) return InvalidArgument("input must be 4-dimensional", in.shape().ToString());
    if (size.rank() != 1) return InvalidArgument("shape_t must be 1-dimensional", size.shape().ToString());
    if (size.dim(0) != 2) return InvalidArgument("shape_t must have two elements", size.shape().ToString());
    const int64_t rows = size.data<int32_t>()[0], cols = size.data<int32_t>()[1];
    if (rows <= 0 || cols <= 0) return InvalidArgument("output dimensions must be positive");
    if (in.dim(1) <= 0 || in.dim(2) <= 0) return InvalidArgument("input image must be of non-zero size");
    if (in.dim(3) <= 0) return InvalidArgument("image must have at least one channel");
    MR_ASSIGN_OR_RETURN(const FloatRange range, ReadRange(ctx, 2));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({in.dim(0), rows, cols, in.dim(3)}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() > 0) {
      const std::vector<Place> down = Places(in.dim(1), rows), across = Places(in.dim(2), cols);
      if (in.dtype() == DType::kFloat) {
        Resize<float>(ctx, down, across, out, [](float a, float b, float c, float d, float x, float y) {
          const float top = a + (b - a) * x, bottom = c + (d - c) * x;
          return top + (bottom - top) * y;
        });
      } else if (in.dtype() == DType::kQUInt8) {
        Resize<uint8_t>(ctx, down, across, out, Fixed<uint8_t, 7>);
      } else {
        Resize<int32_t>(ctx, down, across, out, Fixed<int32_t, 30>);
      }
    }
    return OutputRange(ctx, 1, range);
  }

 private:
  std::vector<Place> Places(int64_t in, int64_t out) const {
    const float scale = align_corners_ && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                                  : static_cast<float>(in) / static_cast<float>(out);
    std::vector<Place> places;
    places.reserve(static_cast<size_t>(out));
    for (int64_t i = 0; i < out; ++i) {
      const float at = half_pixel_ ? (static_cast<float>(i) + 0.5F) * scale - 0.5F : static_cast<float>(i) * scale;
      const float floor = std::floor(at);
      places.push_back({std::clamp<int64_t>(static_cast<int64_t>(floor), 0, in - 1),
                        std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, in - 1), at - floor});
    }
    return places;
  }

  // With `bits` behind the point, as TensorFlow rounds.
  template <typename T, int bits>
  static T Fixed(T a, T b, T c, T d, float x, float y) {
    constexpr int64_t kOne = int64_t{1} << bits;
    const int64_t px = static_cast<int64_t>(x * static_cast<float>(kOne));
    const int64_t py = static_cast<int64_t>(y * static_cast<float>(kOne));
    const int64_t top = int64_t{a} * kOne + (int64_t{b} - a) * px, bottom = int64_t{c} * kOne + (int64_t{d} - c) * px;
    const int64_t v = top + (bottom - top) / kOne * py;
    return static_cast<T>((v + kOne / 2) / kOne);
  }

  template <typename T, typename Fn>
  static void Resize(const KernelContext& ctx, const std::vector<Place>& down, const std::vector<Place>& across,
                     Tensor* out, const Fn& mix) {
    const Tensor& in = ctx.input(0);
    const int64_t rows = in.dim(1), cols = in.dim(2), depth = in.dim(3);
    const int64_t out_rows = static_cast<int64_t>(down.size()), out_cols = static_cast<int64_t>(across.size());
    ctx.ParallelFor(in.dim(0) * out_rows, 4.0 * static_cast<double>(out_cols * depth), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Place& r = down[static_cast<size_t>(i % out_rows)];
        const T* image = in.data<T>() + i / out_rows * rows * cols * depth;
        const T *upper = image + r.low * cols * depth, *lower = image + r.high * cols * depth;
        T* to = out->mutable_data<T>() + i * out_cols * depth;
        for (const Place& c : across) {
          for (int64_t d = 0; d < depth; ++d) {
            *to++ = mix(upper[c.low * depth + d], upper[c.high * depth + d], lower[c.low * depth + d],
                        lower[c.high * depth + d], c.part, r.part);
          }
        }
      }
    });
  }

  bool align_corners_ = false, half_pixel_ = false;
};

}  // namespace

void RegisterQuantizedNnKernels(KernelRegistry& r) {
  const std::vector<DType> u8 = Types("qu8"), narrow = Types("qi8|qu8"), i32 = Types("qi32");
  r.Add<ConvKernel>({.op = "QuantizedConv2D",
                     .types = {{"Tinput", u8}, {"Tfilter", narrow}, {"out_type", i32}},
                     .cost = FusedConvolutionCost});
  r.Add<PoolKernel<true>>({.op = "QuantizedAvgPool", .types = {{"T", narrow}}});
  r.Add<PoolKernel<false>>({.op = "QuantizedMaxPool", .types = {{"T", narrow}}});
  r.Add<ResizeKernel>({.op = "QuantizedResizeBilinear", .types = {{"T", Types("f32|qu8|qi32")}}});
}

}  // namespace millrace
