// SPDX-License-Identifier: Apache-2.0
// CPU kernels: FakeQuantWithMinMax{Args,Vars,VarsPerChannel} and their gradients. The range is nudged so that zero is
// one of the steps, as Jacob et al. (Quantization and Training of Neural Networks, section 3) describe.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/cpu/quantize/quantize_kernels.h"
#include "kernels/cpu/quantize/quantize_tiles.h"

namespace millrace {
namespace {

struct Steps {
  float lowest = 0, highest = 255;  // of the integers that the values stand for
};

FakeQuantRange RangeOf(float min, float max, const Steps& steps) {
  FakeQuantRange r;
  if (min == 0 && max == 0) return r;  // everything is zero
  r.live = 1;
  r.scale = (max - min) / (steps.highest - steps.lowest);
  const float zero = steps.lowest - min / r.scale;
  const float nudged = zero < steps.lowest ? steps.lowest : zero > steps.highest ? steps.highest : std::round(zero);
  r.low = (steps.lowest - nudged) * r.scale;
  r.high = (steps.highest - nudged) * r.scale;
  r.inverse = 1.0F / r.scale;
  r.zero = std::floor(-r.low * r.inverse + 0.5F);
  return r;
}

// Ranges of channels, as the loops want them.
class Ranges {
 public:
  Ranges(const float* min, const float* max, int64_t n, const Steps& steps) {
    for (int64_t i = 0; i < n; ++i) {
      const FakeQuantRange r = RangeOf(min[i], max[i], steps);
      low_.push_back(r.low);
      high_.push_back(r.high);
      scale_.push_back(r.scale);
      inverse_.push_back(r.inverse);
      zero_.push_back(r.zero);
      live_.push_back(r.live);
    }
  }
  int64_t size() const { return static_cast<int64_t>(live_.size()); }
  FakeQuantRanges arrays() const {
    return {low_.data(), high_.data(), scale_.data(), inverse_.data(), zero_.data(), live_.data()};
  }

 private:
  std::vector<float> low_, high_, scale_, inverse_, zero_;
  std::vector<int32_t> live_;
};

class FakeQuantKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const int64_t bits, init.Attr<int64_t>("num_bits"));
    if (bits < 2 || bits > 16) return InvalidArgument("num_bits must be between 2 and 16, inclusive, got ", bits);
    MR_ASSIGN_OR_RETURN(const bool narrow, init.Attr<bool>("narrow_range"));
    steps_.lowest = narrow ? 1 : 0;
    steps_.highest = static_cast<float>((1 << bits) - 1);
    if (!init.HasAttr("min")) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const float min, init.Attr<float>("min"));
    MR_ASSIGN_OR_RETURN(const float max, init.Attr<float>("max"));
    if (!(min < max)) return InvalidArgument("min has to be smaller than max, was: ", min, " >= ", max);
    fixed_ = RangeOf(min, max, steps_);
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 protected:
  // How many elements inputs `first` and the next, the ends of ranges, must have: one, or one per channel.
  static Status CheckEnds(const KernelContext& ctx, const Shape& inputs, int first, bool per_channel, int64_t* depth) {
    if (per_channel && inputs.rank() < 1) return InvalidArgument("inputs must have at least one dimension");
    *depth = per_channel ? inputs.dim(inputs.rank() - 1) : 1;
    const Tensor &min = ctx.input(first), &max = ctx.input(first + 1);
    for (const auto& [name, t] : {std::pair("min", &min), std::pair("max", &max)}) {
      if (t->rank() != (per_channel ? 1 : 0)) {
        return InvalidArgument("`", name, "` must be rank ", per_channel ? 1 : 0, " but is rank ", t->rank());
      }
      if (t->num_elements() != *depth) {
        return InvalidArgument(name, " has incorrect size, expected ", *depth, " was ", t->num_elements());
      }
    }
    return absl::OkStatus();
  }
  // The one range: of the attributes, or of inputs `first` and the next.
  StatusOr<FakeQuantRange> ReadRange(const KernelContext& ctx, const Shape& inputs, int first) const {
    if (fixed_) return *fixed_;
    int64_t depth = 0;
    MR_RETURN_IF_ERROR(CheckEnds(ctx, inputs, first, false, &depth));
    return RangeOf(*ctx.input(first).data<float>(), *ctx.input(first + 1).data<float>(), steps_);
  }
  StatusOr<Ranges> ReadRanges(const KernelContext& ctx, const Shape& inputs, int first) const {
    int64_t depth = 0;
    MR_RETURN_IF_ERROR(CheckEnds(ctx, inputs, first, true, &depth));
    return Ranges(ctx.input(first).data<float>(), ctx.input(first + 1).data<float>(), depth, steps_);
  }

 private:
  Steps steps_;
  std::optional<FakeQuantRange> fixed_;
};

class ForwardKernel final : public FakeQuantKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    MR_ASSIGN_OR_RETURN(const FakeQuantRange range, ReadRange(ctx, shape, 1));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
    const float* x = ctx.input(0).data<float>();
    float* y = out->mutable_data<float>();
    ctx.ParallelFor(shape.num_elements(), 0.3, [&](int64_t begin, int64_t end) {
      FakeQuant(range, x + begin, y + begin, end - begin);
    });
    return absl::OkStatus();
  }
};

class ChannelForwardKernel final : public FakeQuantKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    MR_ASSIGN_OR_RETURN(const Ranges ranges, ReadRanges(ctx, shape, 1));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
    const float* x = ctx.input(0).data<float>();
    float* y = out->mutable_data<float>();
    const int64_t depth = ranges.size();
    if (depth == 0) return absl::OkStatus();
    const FakeQuantRanges arrays = ranges.arrays();
    ctx.ParallelFor(shape.num_elements() / depth, 0.5 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
      FakeQuant(arrays, depth, x + begin * depth, y + begin * depth, end - begin);
    });
    return absl::OkStatus();
  }
};

// The gradient passes where the input was inside; outside it goes to the end that the input was beyond. Sums of ends
// are those of pieces, which the shape alone determines, added in order.
class BackwardKernel : public FakeQuantKernel {
 protected:
  static constexpr int64_t kPiece = 64 << 10;  // elements, about

  // run(first row, rows, sums below, sums above) for pieces of `rows` rows of `width` elements, `ends` sums each.
  template <typename Run>
  static Status InPieces(KernelContext& ctx, int64_t rows, int64_t width, int64_t ends, const Shape& ends_shape,
                         const Run& run) {
    const int64_t piece = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, width));
    const int64_t pieces = (rows + piece - 1) / piece;
    Tensor partial;
    double* sums = nullptr;
    if (ctx.num_outputs() > 1) {
      MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({pieces, 2, ends}));
      MR_ASSIGN_OR_RETURN(partial, ctx.AllocateTemp(DType::kDouble, shape));
      sums = partial.mutable_data<double>();
      std::fill(sums, sums + partial.num_elements(), 0.0);
    }
    ctx.ParallelFor(pieces, 0.5 * static_cast<double>(piece * width), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        double* below = sums == nullptr ? nullptr : sums + 2 * p * ends;
        run(p * piece, std::min(piece, rows - p * piece), below, sums == nullptr ? nullptr : below + ends);
      }
    });
    if (sums == nullptr) return absl::OkStatus();
    for (int o = 0; o < 2; ++o) {
      MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1 + o, ends_shape));
      float* to = out->mutable_data<float>();
      for (int64_t e = 0; e < ends; ++e) {
        double sum = 0;
        for (int64_t p = 0; p < pieces; ++p) sum += sums[(2 * p + o) * ends + e];
        to[e] = static_cast<float>(sum);
      }
    }
    return absl::OkStatus();
  }
  static Status CheckGradient(const KernelContext& ctx) {
    const Tensor &g = ctx.input(0), &x = ctx.input(1);
    if (g.shape() == x.shape()) return absl::OkStatus();
    return InvalidArgument(
        "gradient and input must be the same size, got ", g.shape().ToString(), " and ", x.shape().ToString());
  }
};

class OneBackwardKernel final : public BackwardKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(CheckGradient(ctx));
    const Shape shape = ctx.input(1).shape();
    MR_ASSIGN_OR_RETURN(const FakeQuantRange range, ReadRange(ctx, shape, 2));
    // Not in place: the ends are summed from the same memory.
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const float *g = ctx.input(0).data<float>(), *x = ctx.input(1).data<float>();
    float* y = out->mutable_data<float>();
    return InPieces(ctx, shape.num_elements(), 1, 1, Shape(), [&](int64_t i, int64_t n, double* below, double* above) {
      FakeQuantGrad(range, g + i, x + i, y + i, n, below, above);
    });
  }
};

class ChannelBackwardKernel final : public BackwardKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(CheckGradient(ctx));
    const Shape shape = ctx.input(1).shape();
    MR_ASSIGN_OR_RETURN(const Ranges ranges, ReadRanges(ctx, shape, 2));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const float *g = ctx.input(0).data<float>(), *x = ctx.input(1).data<float>();
    float* y = out->mutable_data<float>();
    const int64_t depth = ranges.size(), rows = depth == 0 ? 0 : shape.num_elements() / depth;
    const FakeQuantRanges arrays = ranges.arrays();
    return InPieces(
        ctx, rows, depth, depth, Shape::Vector(depth), [&](int64_t row, int64_t n, double* below, double* above) {
          const int64_t at = row * depth;
          FakeQuantGrad(arrays, depth, g + at, x + at, y + at, n, below, above);
        });
  }
};

}  // namespace

void RegisterFakeQuantKernels(KernelRegistry& r) {
  r.Add<ForwardKernel>({.op = "FakeQuantWithMinMaxArgs"});
  r.Add<ForwardKernel>({.op = "FakeQuantWithMinMaxVars"});
  r.Add<ChannelForwardKernel>({.op = "FakeQuantWithMinMaxVarsPerChannel"});
  r.Add<OneBackwardKernel>({.op = "FakeQuantWithMinMaxArgsGradient"});
  r.Add<OneBackwardKernel>({.op = "FakeQuantWithMinMaxVarsGradient"});
  r.Add<ChannelBackwardKernel>({.op = "FakeQuantWithMinMaxVarsPerChannelGradient"});
}

}  // namespace millrace
