// SPDX-License-Identifier: Apache-2.0
// CPU kernels: QuantizeV2, Dequantize, and quantized numbers in other ranges.
#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/quantize/quantize_kernels.h"
#include "kernels/cpu/quantize/quantize_range.h"
#include "kernels/cpu/quantize/quantize_tiles.h"

namespace millrace {

StatusOr<float> ScalarFloat(const KernelContext& ctx, int i, absl::string_view name) {
  const Tensor& t = ctx.input(i);
  if (t.num_elements() == 1) return *t.data<float>();
  return InvalidArgument("`", name, "` must be a scalar, got shape ", t.shape().ToString());
}

StatusOr<FloatRange> ReadRange(const KernelContext& ctx, int i) {
  FloatRange r;
  MR_ASSIGN_OR_RETURN(r.min, ScalarFloat(ctx, i, "min"));
  MR_ASSIGN_OR_RETURN(r.max, ScalarFloat(ctx, i + 1, "max"));
  return r;
}

Status OutputRange(KernelContext& ctx, int o, FloatRange range) {
  MR_ASSIGN_OR_RETURN(Tensor * min, ctx.AllocateOutput(o, Shape()));
  *min->mutable_data<float>() = range.min;
  MR_ASSIGN_OR_RETURN(Tensor * max, ctx.AllocateOutput(o + 1, Shape()));
  *max->mutable_data<float>() = range.max;
  return absl::OkStatus();
}

namespace {

enum class Mode : uint8_t { kMinCombined, kMinFirst, kScaled };

StatusOr<Mode> ReadMode(const KernelInit& init) {
  MR_ASSIGN_OR_RETURN(const std::string mode, init.Attr<std::string>("mode"));
  return mode == "MIN_COMBINED" ? Mode::kMinCombined : mode == "MIN_FIRST" ? Mode::kMinFirst : Mode::kScaled;
}

// out[i] = fn(in[i]) over the threads.
template <typename In, typename Out, typename Fn>
void Map(const KernelContext& ctx, const Tensor& in, Tensor* out, const Fn& fn) {
  const In* x = in.data<In>();
  Out* y = out->mutable_data<Out>();
  ctx.ParallelFor(in.num_elements(), 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = fn(x[i]);
  });
}

class QuantizeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(mode_, ReadMode(init));
    MR_ASSIGN_OR_RETURN(const std::string round, init.Attr<std::string>("round_mode"));
    to_even_ = round == "HALF_TO_EVEN";
    if (to_even_ && mode_ != Mode::kScaled) {
      return InvalidArgument("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED'");
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(FloatRange r, ReadRange(ctx, 1));
    if (r.max < r.min) return InvalidArgument("input_max_range must be larger than input_min_range.");
    // Ends that are very close are moved apart; zero always lies between them.
    const float least = std::max(1.0F, std::max(std::fabs(r.min), std::fabs(r.max))) * 0.01F;
    r.min = std::min(0.0F, r.min);
    r.max = std::max(0.0F, std::max(r.max, r.min + least));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
    VisitQuantized(out->dtype(), [&]<typename T>() { Quantize<T>(ctx, &r, out); });
    return OutputRange(ctx, 1, r);
  }

 private:
  template <typename T>
  void Quantize(const KernelContext& ctx, FloatRange* range, Tensor* out) const {
    const float infinity = std::numeric_limits<float>::infinity();
    QuantizeLine line{
        .in_low = range->min,
        .in_high = range->max,
        .lowest = static_cast<double>(kLowestOf<T>),
        .highest = static_cast<double>(kHighestOf<T>)};
    Rounding rounding = Rounding::kHalfAway;
    if (mode_ == Mode::kMinFirst) {
      const FloatToSteps<T> steps(*range);
      line.in_low = -infinity;
      line.in_high = infinity;
      line.scale = steps.scale();
      line.offset = steps.offset();
      line.lowest = static_cast<double>(steps.low());
      line.highest = static_cast<double>(steps.high());
    } else if (mode_ == Mode::kMinCombined) {
      line.minus = range->min;
      line.scale = static_cast<float>(
          static_cast<double>(kHighestOf<T> - kLowestOf<T>) / static_cast<double>(range->max - range->min));
      line.plus = std::is_signed_v<T> ? -static_cast<float>(kStepsOf<T> / 2) : 0.5F;
      if (!std::is_signed_v<T>) rounding = Rounding::kDown;
    } else {
      const float low = static_cast<float>(kLowestOf<T>), high = static_cast<float>(kHighestOf<T>);
      const float huge = std::numeric_limits<float>::max();
      line.scale =
          std::min(low * range->min > 0 ? low / range->min : huge, high * range->max > 0 ? high / range->max : huge);
      *range = {low / line.scale, high / line.scale};
      line.in_low = range->min;
      line.in_high = range->max;
      if (to_even_) rounding = Rounding::kHalfEven;
    }
    // Where what lies beyond the range is beyond that of T too, as it is for unsigned T, one bound is enough.
    const auto floor_of = [&](float v) { return std::floor((v - line.minus) * line.scale + line.plus); };
    const bool bounded =
        std::isfinite(line.in_low) &&
        (rounding != Rounding::kDown || floor_of(line.in_low) > static_cast<float>(line.lowest) ||
         floor_of(line.in_high) < static_cast<float>(line.highest));
    const QuantizeTile quantize = FindQuantize(out->dtype(), rounding, bounded);
    const float* x = ctx.input(0).data<float>();
    T* y = out->mutable_data<T>();
    ctx.ParallelFor(out->num_elements(), 0.3, [&](int64_t begin, int64_t end) {
      quantize(line, x + begin, y + begin, end - begin);
    });
  }

  Mode mode_ = Mode::kMinCombined;
  bool to_even_ = false;
};

class DequantizeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(mode_, ReadMode(init));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const FloatRange r, ReadRange(ctx, 1));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
    VisitQuantized(ctx.input_dtype(0), [&]<typename T>() { Dequantize<T>(ctx, r, out); });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Dequantize(const KernelContext& ctx, FloatRange r, Tensor* out) const {
    const float low = static_cast<float>(kLowestOf<T>), high = static_cast<float>(kHighestOf<T>);
    DequantizeLine line;
    if (mode_ == Mode::kMinFirst) {
      const StepsToFloat<T> steps(r);
      line = {.scale = steps.scale(), .first = steps.first()};
    } else if (mode_ == Mode::kScaled) {
      line.scale = low == 0 ? r.max / high : std::max(r.min / low, r.max / high);
    } else {
      line = {.half = low == 0 ? 0 : (high - low + 1) / 2, .scale = (r.max - r.min) / (high - low), .first = r.min};
    }
    const DequantizeTile dequantize = FindDequantize(ctx.input_dtype(0));
    const T* x = ctx.input(0).data<T>();
    float* y = out->mutable_data<float>();
    ctx.ParallelFor(out->num_elements(), 0.3, [&](int64_t begin, int64_t end) {
      dequantize(line, x + begin, y + begin, end - begin);
    });
  }

  Mode mode_ = Mode::kMinCombined;
};

// int32 as 8 bits of another range.
void Requantize(const KernelContext& ctx, const Tensor& in, FloatRange from, FloatRange to, Tensor* out) {
  if (out->dtype() != DType::kQUInt8) {
    const ToFloat<int32_t> value(from);
    return Map<int32_t, int8_t>(ctx, in, out, [&](int32_t v) { return Quantized<int8_t>(value(v), to); });
  }
  // In fixed point, with 16 bits behind it.
  const double from_size = static_cast<double>(from.max - from.min), to_size = static_cast<double>(to.max - to.min);
  const double unit = 1 << 16;
  const float per_unit = to_size == 0 ? 0 : static_cast<float>(255.0 / to_size);
  const float middle = static_cast<float>(static_cast<double>(from.min + from.max) / 2.0);
  const auto fixed = [](double v) { return SaturatingCast<int64_t>(std::clamp(v, -0x1p60, 0x1p60)); };
  const int64_t scale = to_size == 0 ? 0 : fixed(255.0 * unit * from_size / to_size);
  const int64_t offset = fixed(static_cast<double>(middle * per_unit) * unit);
  const int64_t first = to_size == 0 ? 0 : fixed(unit * (static_cast<double>(to.min) * 255.0) / to_size);
  Map<int32_t, uint8_t>(ctx, in, out, [=](int32_t v) {
    const __int128 scaled = (static_cast<__int128>(v) * scale >> 32) + offset - first + (1 << 15);
    return static_cast<uint8_t>(std::clamp<__int128>(scaled >> 16, 0, 255));
  });
}

// The range that the values use, with zero in it.
FloatRange UsedRange(const Tensor& in, FloatRange range) {
  int32_t least = std::numeric_limits<int32_t>::max(), most = std::numeric_limits<int32_t>::lowest();
  for (const int32_t v : absl::MakeConstSpan(in.data<int32_t>(), static_cast<size_t>(in.num_elements()))) {
    least = std::min(least, v);
    most = std::max(most, v);
  }
  const ToFloat<int32_t> value(range);
  return {std::min(0.0F, value(least)), value(most)};
}

Status ShrinkRange(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const FloatRange from, ReadRange(ctx, 1));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
  const FloatRange to = UsedRange(ctx.input(0), from);
  Requantize(ctx, ctx.input(0), from, to, out);
  return OutputRange(ctx, 1, to);
}

Status RequantizationRange(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const FloatRange from, ReadRange(ctx, 1));
  return OutputRange(ctx, 0, UsedRange(ctx.input(0), from));
}

Status RequantizeTo(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const FloatRange from, ReadRange(ctx, 1));
  MR_ASSIGN_OR_RETURN(const FloatRange to, ReadRange(ctx, 3));
  if (!(to.min <= 0)) return InvalidArgument("requested_output_min must be <= 0, but got ", to.min);
  if (!(to.max >= to.min)) {
    return InvalidArgument("requested_output_max must be >= requested_output_min, but got ", to.max, " and ", to.min);
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
  Requantize(ctx, ctx.input(0), from, to, out);
  return OutputRange(ctx, 1, to);
}

// Input ranges with one entry for each of the last dimension.
Status CheckChannels(const KernelContext& ctx, int64_t* depth) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("input must have at least one dimension, got a scalar");
  *depth = in.dim(in.rank() - 1);
  for (int i = 1; i < 3; ++i) {
    if (ctx.input(i).rank() <= 1 && ctx.input(i).num_elements() == *depth) continue;
    return InvalidArgument(
        "input_min and input_max must have ", *depth, " elements, got shape ", ctx.input(i).shape().ToString());
  }
  return absl::OkStatus();
}
float LargestEnd(const KernelContext& ctx, int64_t channel) {
  return std::max(std::fabs(ctx.input(1).data<float>()[channel]), std::fabs(ctx.input(2).data<float>()[channel]));
}

class ChannelRangeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(clip_, init.Attr<float>("clip_value_max"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    int64_t depth = 0;
    MR_RETURN_IF_ERROR(CheckChannels(ctx, &depth));
    std::vector<int64_t> largest(static_cast<size_t>(depth));
    bool negative = false;
    const int32_t* x = ctx.input(0).data<int32_t>();
    const int64_t n = ctx.input(0).num_elements();
    for (int64_t i = 0; i < n; ++i) {
      int64_t& most = largest[static_cast<size_t>(i % depth)];
      most = std::max(most, std::abs(int64_t{x[i]}));
      negative = negative || x[i] < 0;
    }
    float end = std::numeric_limits<float>::min();
    for (int64_t c = 0; c < depth; ++c) {
      end = std::max(end, LargestEnd(ctx, c) * static_cast<float>(largest[static_cast<size_t>(c)]) / 0x1p31F);
    }
    end = std::min(end, clip_);
    return OutputRange(ctx, 0, {negative ? -end : 0, end});
  }

 private:
  float clip_ = 0;
};

template <typename T>
void RequantizeChannels(const KernelContext& ctx, int64_t depth, FloatRange to, Tensor* out) {
  const float end = std::max(std::fabs(to.min), std::fabs(to.max));
  const float steps = std::is_signed_v<T> ? 127.0F : 255.0F;
  std::vector<float> scale(static_cast<size_t>(depth));
  for (int64_t c = 0; c < depth; ++c) {
    scale[static_cast<size_t>(c)] = steps * (LargestEnd(ctx, c) / end / 0x1p31F);
  }
  const int32_t* x = ctx.input(0).data<int32_t>();
  T* y = out->mutable_data<T>();
  ctx.ParallelFor(depth == 0 ? 0 : out->num_elements() / depth, 2.0 * static_cast<double>(depth),
                  [&](int64_t begin, int64_t end_row) {
                    for (int64_t i = begin * depth; i < end_row * depth; ++i) {
                      const float v = static_cast<float>(x[i]) * scale[static_cast<size_t>(i % depth)];
                      const auto q = SaturatingCast<int64_t>(std::nearbyint(v));
                      y[i] = static_cast<T>(std::clamp<int64_t>(q, kLowestOf<T>, kHighestOf<T>));
                    }
                  });
}

Status RequantizePerChannel(KernelContext& ctx) {
  int64_t depth = 0;
  MR_RETURN_IF_ERROR(CheckChannels(ctx, &depth));
  MR_ASSIGN_OR_RETURN(const FloatRange to, ReadRange(ctx, 3));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
  if (out->dtype() == DType::kQUInt8) {
    RequantizeChannels<uint8_t>(ctx, depth, to, out);
  } else {
    RequantizeChannels<int8_t>(ctx, depth, to, out);
  }
  return OutputRange(ctx, 1, to);
}

}  // namespace

void RegisterQuantizedRangeKernels(KernelRegistry& r) {
  const std::vector<DType> wide = Types("qi32"), narrow = Types("qi8|qu8");
  r.Add<QuantizeKernel>({.op = "QuantizeV2"});
  r.Add<DequantizeKernel>({.op = "Dequantize"});
  r.AddFn({.op = "QuantizeDownAndShrinkRange", .types = {{"Tinput", wide}, {"out_type", Types("qu8")}}}, ShrinkRange);
  r.AddFn({.op = "RequantizationRange", .types = {{"Tinput", wide}}}, RequantizationRange);
  r.AddFn({.op = "Requantize", .types = {{"Tinput", wide}, {"out_type", narrow}}}, RequantizeTo);
  r.Add<ChannelRangeKernel>({.op = "RequantizationRangePerChannel", .types = {{"T", wide}}});
  r.AddFn({.op = "RequantizePerChannel", .types = {{"T", wide}, {"out_type", narrow}}}, RequantizePerChannel);
}

void RegisterQuantizeKernels(KernelRegistry& r) {
  RegisterFakeQuantKernels(r);
  RegisterQuantizeAndDequantizeKernels(r);
  RegisterQuantizedRangeKernels(r);
  RegisterQuantizedArithmeticKernels(r);
  RegisterQuantizedArrayKernels(r);
  RegisterQuantizedNnKernels(r);
}

}  // namespace millrace
