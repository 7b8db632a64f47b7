// SPDX-License-Identifier: Apache-2.0
// CPU kernels: QuantizedConcat, QuantizedReshape, QuantizedInstanceNorm.
#include <array>

#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/quantize/quantize_kernels.h"
#include "kernels/cpu/quantize/quantize_range.h"

namespace millrace {
namespace {

// The values in one range that holds those of all.
Status QuantizedConcat(KernelContext& ctx) {
  const int n = (ctx.num_inputs() - 1) / 3;
  MR_ASSIGN_OR_RETURN(const int64_t axis, IntScalarOf(ctx.input(0), "concat_dim"));
  const Shape& first = ctx.input(1).shape();
  int64_t at = 0;
  if (!NormalizeIndex(axis, first.rank(), &at)) {
    return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [", -first.rank(), ", ",
                           first.rank(), "), but got ", axis);
  }
  const int d = static_cast<int>(at);
  int64_t total = 0;
  std::vector<FloatRange> ranges(static_cast<size_t>(n));
  FloatRange whole;
  for (int i = 0; i < n; ++i) {
    FloatRange& r = ranges[static_cast<size_t>(i)];
    MR_ASSIGN_OR_RETURN(r.min, ScalarFloat(ctx, 1 + n + i, "input_mins"));
    MR_ASSIGN_OR_RETURN(r.max, ScalarFloat(ctx, 1 + 2 * n + i, "input_maxes"));
    whole.min = std::min(whole.min, r.min);
    whole.max = i == 0 ? r.max : std::max(whole.max, r.max);
    const Shape& s = ctx.input(1 + i).shape();
    bool fits = s.rank() == first.rank();
    for (int k = 0; fits && k < s.rank(); ++k) fits = k == d || s.dim(k) == first.dim(k);
    if (!fits) {
      return InvalidArgument("ConcatOp : Dimensions of inputs should match: shape[0] = ", first.ToString(),
                             " vs. shape[", i, "] = ", s.ToString());
    }
    if (!CheckedAdd(total, s.dim(d), &total)) return InvalidArgument("the concatenated dimension overflows");
  }
  MR_ASSIGN_OR_RETURN(const Shape shape, first.WithDim(d, total));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (out->dtype() != DType::kQUInt8) {
    const float end = std::max(std::fabs(whole.min), std::fabs(whole.max));
    whole = {-end, end};
  }
  const int64_t outer = DimProduct(shape, 0, d), inner = DimProduct(shape, d + 1, shape.rank());
  VisitQuantized(out->dtype(), [&]<typename T>() {
    int64_t offset = 0;
    for (int i = 0; i < n && shape.num_elements() > 0; ++i) {
      const Tensor& t = ctx.input(1 + i);
      const int64_t width = t.dim(d) * inner;
      const FloatRange r = ranges[static_cast<size_t>(i)];
      const StepsToFloat<T> value(r);
      const FloatToSteps<T> steps(whole);
      const bool same = r == whole;
      std::array<T, 256> moved{};  // of each byte
      if constexpr (sizeof(T) == 1) {
        for (size_t v = 0; v < moved.size(); ++v) moved[v] = steps(value(static_cast<T>(v)));
      }
      const T* x = t.data<T>();
      T* y = out->mutable_data<T>() + offset;
      ctx.ParallelFor(outer, 3 * static_cast<double>(width), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* from = x + row * width;
          T* to = y + row * total * inner;
          if (same) {
            std::copy(from, from + width, to);
          } else if constexpr (sizeof(T) == 1) {
            for (int64_t k = 0; k < width; ++k) to[k] = moved[static_cast<uint8_t>(from[k])];
          } else {
            for (int64_t k = 0; k < width; ++k) to[k] = steps(value(from[k]));
          }
        }
      });
      offset += width;
    }
  });
  return OutputRange(ctx, 1, whole);
}

Status QuantizedReshape(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(Ints dims, IntVectorOf(ctx.input(1), "shape"));
  const int64_t n = ctx.input(0).num_elements();
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1 && open < 0) {
      open = static_cast<int>(i);
    } else if (dims[i] < 0 || !CheckedMul(known, dims[i], &known)) {
      return InvalidArgument("Size ", i, " must be non-negative, and the product of all must fit, not ", dims[i]);
    }
  }
  if (open >= 0) {
    if (known == 0 || n % known != 0) {
      return InvalidArgument(
          "Input to reshape is a tensor with ", n, " values, but the requested shape requires a multiple of ", known);
    }
    dims[static_cast<size_t>(open)] = n / known;
  }
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(absl::MakeConstSpan(dims)));
  if (shape.num_elements() != n) {
    return InvalidArgument(
        "Input to reshape is a tensor with ", n, " values, but the requested shape has ", shape.num_elements());
  }
  MR_ASSIGN_OR_RETURN(const FloatRange range, ReadRange(ctx, 2));
  MR_RETURN_IF_ERROR(ctx.ForwardReshaped(0, 0, shape));
  return OutputRange(ctx, 1, range);
}

// Each image and channel by its own mean and variance.
class InstanceNormKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(range_given_, init.Attr<bool>("output_range_given"));
    MR_ASSIGN_OR_RETURN(given_.min, init.Attr<float>("given_y_min"));
    MR_ASSIGN_OR_RETURN(given_.max, init.Attr<float>("given_y_max"));
    MR_ASSIGN_OR_RETURN(epsilon_, init.Attr<float>("variance_epsilon"));
    MR_ASSIGN_OR_RETURN(separation_, init.Attr<float>("min_separation"));
    if (range_given_ && !(given_.min < given_.max)) {
      return InvalidArgument("given_y_min must be less than given_y_max: ", given_.min, " >= ", given_.max);
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(const FloatRange range, ReadRange(ctx, 1));
    if (in.rank() != 4) return InvalidArgument("input must be 4-dimensional, got ", in.shape().ToString());
    if (!(range.min < range.max)) {
      return InvalidArgument("input_min must be less than input_max: ", range.min, " >= ", range.max);
    }
    const int64_t depth = in.dim(3), images = in.dim(0), size = in.dim(1) * in.dim(2);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    if (in.num_elements() == 0) return OutputRange(ctx, 1, range_given_ ? given_ : FloatRange());
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, in.shape()));
    const StepsToFloat<uint8_t> value(range);
    const uint8_t* x = in.data<uint8_t>();
    float* w = wide.mutable_data<float>();
    ctx.ParallelFor(images, 8 * static_cast<double>(size * depth), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) Normalise(value, x + b * size * depth, size, depth, w + b * size * depth);
    });
    FloatRange to = given_;
    if (!range_given_) {
      const auto [least, most] = std::minmax_element(w, w + in.num_elements());
      to = {*least, *most};
      to.max = std::max(to.max, to.min + separation_);
    }
    const FloatToSteps<uint8_t> steps(to);
    uint8_t* y = out->mutable_data<uint8_t>();
    ctx.ParallelFor(in.num_elements(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = steps(w[i]);
    });
    return OutputRange(ctx, 1, to);
  }

 private:
  void Normalise(const StepsToFloat<uint8_t>& value, const uint8_t* x, int64_t size, int64_t depth, float* w) const {
    for (int64_t c = 0; c < depth; ++c) {
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(value(x[i * depth + c]));
      const double mean = sum / static_cast<double>(size);
      for (int64_t i = 0; i < size; ++i) {
        const double v = static_cast<double>(value(x[i * depth + c])) - mean;
        squares += v * v;
      }
      const double scale = 1 / std::sqrt(squares / static_cast<double>(size) + static_cast<double>(epsilon_));
      for (int64_t i = 0; i < size; ++i) {
        w[i * depth + c] = static_cast<float>((static_cast<double>(value(x[i * depth + c])) - mean) * scale);
      }
    }
  }

  bool range_given_ = false;
  FloatRange given_;
  float epsilon_ = 0, separation_ = 0;
};

}  // namespace

void RegisterQuantizedArrayKernels(KernelRegistry& r) {
  r.AddFn({.op = "QuantizedConcat", .types = {{"T", Types("qu8|qi32")}}}, QuantizedConcat);
  r.AddFn({.op = "QuantizedReshape", .types = {{"T", Types("qu8|qi32")}}}, QuantizedReshape);
  r.Add<InstanceNormKernel>({.op = "QuantizedInstanceNorm", .types = {{"T", Types("qu8")}}});
}

}  // namespace millrace
