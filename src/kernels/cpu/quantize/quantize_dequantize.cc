// SPDX-License-Identifier: Apache-2.0
// CPU kernels: QuantizeAndDequantize and V2 to V4: rounding to what integers of some bits could hold.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/cpu/quantize/quantize_kernels.h"
#include "kernels/cpu/quantize/quantize_tiles.h"

namespace millrace {
namespace {

struct Options {
  bool is_signed = true, range_given = false, half_up = false, narrow = false;
  int64_t bits = 8;
};

Status CheckBits(const Options& o) {
  if (o.bits > 0 && o.bits < (o.is_signed ? 62 : 63)) return absl::OkStatus();
  return InvalidArgument("num_bits is out of range: ", o.bits, " with signed_input ", o.is_signed ? "true" : "false");
}

// The least and the largest of n > 0 numbers.
template <typename T>
std::pair<T, T> EndsOf(const KernelContext& ctx, const T* x, int64_t n) {
  constexpr int64_t kBlock = 1 << 14;
  std::vector<std::pair<T, T>> ends(static_cast<size_t>((n + kBlock - 1) / kBlock), {x[0], x[0]});
  ctx.ParallelFor(static_cast<int64_t>(ends.size()), 0.2 * kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      auto& [low, high] = ends[static_cast<size_t>(b)];
      WidenEnds(x + b * kBlock, std::min(kBlock, n - b * kBlock), &low, &high);
    }
  });
  auto [low, high] = ends[0];
  for (const auto& [l, h] : ends) {
    low = std::min(low, l);
    high = std::max(high, h);
  }
  return {low, high};
}

// How to round what lies between two ends: the scale under which both fit, and zero stays what it is.
template <typename T>
StatusOr<RoundTripLine<T>> LineOf(const Options& o, T low, T high) {
  if (o.range_given && !(low <= high)) {
    return InvalidArgument("Invalid range: input_min ", low, " > input_max ", high);
  }
  const int64_t half = int64_t{1} << (o.bits - 1);
  const int64_t least = !o.is_signed ? 0 : o.narrow ? 1 - half : -half;
  const int64_t most = o.is_signed ? half - 1 : (half - 1) * 2 + 1;
  const T t_least = static_cast<T>(least), t_most = static_cast<T>(most);
  const T huge = std::numeric_limits<T>::max();
  const T by_low = t_least * low > 0 ? t_least / low : huge, by_high = t_most * high > 0 ? t_most / high : huge;
  T scale, inverse;
  if (by_low < by_high) {
    scale = by_low;
    inverse = low / t_least;
    high = t_most * inverse;
  } else {
    scale = by_high;
    inverse = high / t_most;
    low = t_least * inverse;
  }
  if (!o.range_given) {  // all lie inside
    low = -std::numeric_limits<T>::infinity();
    high = std::numeric_limits<T>::infinity();
  }
  return RoundTripLine<T>{low, high, scale, inverse, o.half_up};
}

template <typename T>
Status Run(KernelContext& ctx, const Options& o, T low, T high) {
  const Tensor& in = ctx.input(0);
  const Shape shape = in.shape();
  const int64_t n = shape.num_elements();
  if (!o.range_given && n > 0) std::tie(low, high) = EndsOf(ctx, in.data<T>(), n);
  MR_ASSIGN_OR_RETURN(const RoundTripLine<T> line, LineOf(o, low, high));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
  const T* x = in.data<T>();
  T* y = out->mutable_data<T>();
  ctx.ParallelFor(n, 0.3, [&](int64_t begin, int64_t end) { RoundTrip(line, x + begin, y + begin, end - begin); });
  return absl::OkStatus();
}

// A tensor as `outer` times `count` channels of `inner` elements that lie together.
struct Channels {
  int64_t outer = 1, count = 1, inner = 1;
};

// Of an input and the ends of its ranges, which are inputs `first` and the next one; these are scalars or have an
// element for each place of the axis.
StatusOr<Channels> ChannelsOf(const KernelContext& ctx, const Shape& in, int64_t axis, int first) {
  if (axis < 0 || axis >= in.rank()) {
    return InvalidArgument("Axis requested is ", axis, ", and the input has shape ", in.ToString());
  }
  Channels c;
  c.count = in.dim(static_cast<int>(axis));
  if (in.num_elements() == 0) c.outer = 0;  // products of the others may be beyond 64 bits
  for (int d = 0; c.outer > 0 && d < in.rank(); ++d) {
    if (d < axis) c.outer *= in.dim(d);
    if (d > axis) c.inner *= in.dim(d);
  }
  for (int i = first; i < first + 2; ++i) {
    const Shape& ends = ctx.input(i).shape();
    if (ends.rank() == 0 || (ends.rank() == 1 && ends.dim(0) == c.count)) continue;
    return InvalidArgument(
        "the ends of the range must be scalars or have ", c.count, " elements, got shape ", ends.ToString());
  }
  return c;
}

template <typename T>
Status RunByChannel(KernelContext& ctx, const Options& o, int64_t axis) {
  const Tensor& in = ctx.input(0);
  const Shape shape = in.shape();
  MR_ASSIGN_OR_RETURN(const Channels c, ChannelsOf(ctx, shape, axis, 1));
  std::vector<RoundTripLine<T>> lines;
  for (int64_t k = 0; k < c.count && shape.num_elements() > 0; ++k) {
    T low = 0, high = 0;
    if (o.range_given) {
      low = ctx.input(1).data<T>()[ctx.input(1).rank() == 0 ? 0 : k];
      high = ctx.input(2).data<T>()[ctx.input(2).rank() == 0 ? 0 : k];
    } else {
      low = high = in.data<T>()[k * c.inner];
      for (int64_t i = 0; i < c.outer; ++i) {
        WidenEnds(in.data<T>() + (i * c.count + k) * c.inner, c.inner, &low, &high);
      }
    }
    MR_ASSIGN_OR_RETURN(RoundTripLine<T> line, LineOf(o, low, high));
    lines.push_back(line);
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const T* x = in.data<T>();
  T* y = out->mutable_data<T>();
  ctx.ParallelFor(c.outer * c.count, 0.3 * static_cast<double>(c.inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      RoundTrip(lines[static_cast<size_t>(i % c.count)], x + i * c.inner, y + i * c.inner, c.inner);
    }
  });
  return absl::OkStatus();
}

// The gradient where the input is in its range.
template <typename T>
Status WithinRange(KernelContext& ctx, const Channels& c) {
  const Tensor &gradients = ctx.input(0), &in = ctx.input(1), &low = ctx.input(2), &high = ctx.input(3);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  const T *g = gradients.data<T>(), *x = in.data<T>(), *least = low.data<T>(), *most = high.data<T>();
  T* y = out->mutable_data<T>();
  ctx.ParallelFor(c.outer * c.count, 0.3 * static_cast<double>(c.inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T from = least[low.num_elements() == 1 ? 0 : i % c.count],
              to = most[high.num_elements() == 1 ? 0 : i % c.count];
      for (int64_t k = i * c.inner; k < (i + 1) * c.inner; ++k) y[k] = x[k] >= from && x[k] <= to ? g[k] : T(0);
    }
  });
  return absl::OkStatus();
}

class OldKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(options_.is_signed, init.Attr<bool>("signed_input"));
    MR_ASSIGN_OR_RETURN(options_.bits, init.Attr<int64_t>("num_bits"));
    MR_ASSIGN_OR_RETURN(options_.range_given, init.Attr<bool>("range_given"));
    MR_ASSIGN_OR_RETURN(low_, init.Attr<float>("input_min"));
    MR_ASSIGN_OR_RETURN(high_, init.Attr<float>("input_max"));
    return CheckBits(options_);
  }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input_dtype(0) == DType::kFloat) return Run<float>(ctx, options_, low_, high_);
    return Run<double>(ctx, options_, static_cast<double>(low_), static_cast<double>(high_));
  }

 private:
  Options options_;
  float low_ = 0, high_ = 0;
};

class RangedKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(options_.is_signed, init.Attr<bool>("signed_input"));
    MR_ASSIGN_OR_RETURN(options_.range_given, init.Attr<bool>("range_given"));
    MR_ASSIGN_OR_RETURN(options_.narrow, init.Attr<bool>("narrow_range"));
    if (init.HasAttr("axis")) {  // newer graphs have it in V2 and V3 too
      MR_ASSIGN_OR_RETURN(axis_, init.Attr<int64_t>("axis"));
    }
    if (init.num_inputs() > 3) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(options_.bits, init.Attr<int64_t>("num_bits"));
    MR_ASSIGN_OR_RETURN(const std::string mode, init.Attr<std::string>("round_mode"));
    options_.half_up = mode == "HALF_UP";
    return CheckBits(options_);
  }
  Status Compute(KernelContext& ctx) override {
    Options options = options_;
    if (ctx.num_inputs() > 3) {
      if (ctx.input(3).rank() != 0) {
        return InvalidArgument("num_bits must be a scalar, got shape ", ctx.input(3).shape().ToString());
      }
      options.bits = *ctx.input(3).data<int32_t>();
      MR_RETURN_IF_ERROR(CheckBits(options));
    }
    if (axis_ != -1) {
      return ctx.input_dtype(0) == DType::kFloat
                 ? RunByChannel<float>(ctx, options, axis_)
                 : RunByChannel<double>(ctx, options, axis_);
    }
    if (options.range_given) {
      for (int i = 1; i < 3; ++i) {
        if (ctx.input(i).num_elements() == 1) continue;
        return InvalidArgument("input_min and input_max must be scalars, got shape ", ctx.input(i).shape().ToString());
      }
    }
    return ctx.input_dtype(0) == DType::kFloat ? WithEnds<float>(ctx, options) : WithEnds<double>(ctx, options);
  }

 private:
  template <typename T>
  static Status WithEnds(KernelContext& ctx, const Options& o) {
    return o.range_given ? Run<T>(ctx, o, *ctx.input(1).data<T>(), *ctx.input(2).data<T>()) : Run<T>(ctx, o, 0, 0);
  }
  Options options_;
  int64_t axis_ = -1;  // all elements have one range
};

class WithinRangeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(axis_, init.Attr<int64_t>("axis"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(1).shape();
    if (!(ctx.input(0).shape() == shape)) {
      return InvalidArgument("gradient and input must be the same size, got shapes ", ctx.input(0).shape().ToString(),
                             " and ", shape.ToString());
    }
    Channels c{.inner = shape.num_elements()};
    if (axis_ != -1) {
      MR_ASSIGN_OR_RETURN(c, ChannelsOf(ctx, shape, axis_, 2));
    } else if (ctx.input(2).num_elements() != 1 || ctx.input(3).num_elements() != 1) {
      return InvalidArgument("input_min and input_max must be scalars, got shapes ", ctx.input(2).shape().ToString(),
                             " and ", ctx.input(3).shape().ToString());
    }
    for (int i = 1; i < 3; ++i) {
      MR_ASSIGN_OR_RETURN(Tensor * ends, ctx.AllocateOutput(i, ctx.input(i + 1).shape()));
      std::memset(ends->mutable_raw(), 0, ends->TotalBytes());
    }
    return ctx.input_dtype(0) == DType::kFloat ? WithinRange<float>(ctx, c) : WithinRange<double>(ctx, c);
  }

 private:
  int64_t axis_ = -1;
};

}  // namespace

void RegisterQuantizeAndDequantizeKernels(KernelRegistry& r) {
  r.Add<OldKernel>({.op = "QuantizeAndDequantize", .types = {{"T", Types("FD")}}});
  r.Add<RangedKernel>({.op = "QuantizeAndDequantizeV2", .types = {{"T", Types("FD")}}});
  r.Add<RangedKernel>({.op = "QuantizeAndDequantizeV3", .types = {{"T", Types("FD")}}});
  r.Add<RangedKernel>({.op = "QuantizeAndDequantizeV4", .types = {{"T", Types("FD")}}});
  r.Add<WithinRangeKernel>({.op = "QuantizeAndDequantizeV4Grad", .types = {{"T", Types("FD")}}});
}

}  // namespace millrace
