// SPDX-License-Identifier: Apache-2.0
// CPU kernels: QuantizeAndDequantize, V2 and V3: rounding to what integers of some bits could hold.
#include <algorithm>
#include <cmath>
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

template <typename T>
Status Run(KernelContext& ctx, const Options& o, T low, T high) {
  const Tensor& in = ctx.input(0);
  const Shape shape = in.shape();
  const int64_t n = shape.num_elements();
  if (o.range_given) {
    if (!(low <= high)) return InvalidArgument("Invalid range: input_min ", low, " > input_max ", high);
  } else if (n > 0) {
    std::tie(low, high) = EndsOf(ctx, in.data<T>(), n);
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
  if (n == 0) return absl::OkStatus();
  const int64_t half = int64_t{1} << (o.bits - 1);
  const int64_t least = !o.is_signed ? 0 : o.narrow ? 1 - half : -half;
  const int64_t most = o.is_signed ? half - 1 : (half - 1) * 2 + 1;
  // The scale under which both ends fit, and zero stays what it is.
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
  const RoundTripLine<T> line{low, high, scale, inverse, o.half_up};
  const T* x = in.data<T>();
  T* y = out->mutable_data<T>();
  ctx.ParallelFor(n, 0.3, [&](int64_t begin, int64_t end) { RoundTrip(line, x + begin, y + begin, end - begin); });
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
};

}  // namespace

void RegisterQuantizeAndDequantizeKernels(KernelRegistry& r) {
  r.Add<OldKernel>({.op = "QuantizeAndDequantize", .types = {{"T", Types("FD")}}});
  r.Add<RangedKernel>({.op = "QuantizeAndDequantizeV2", .types = {{"T", Types("FD")}}});
  r.Add<RangedKernel>({.op = "QuantizeAndDequantizeV3", .types = {{"T", Types("FD")}}});
}

}  // namespace millrace
