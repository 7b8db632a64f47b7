// SPDX-License-Identifier: Apache-2.0
// CPU kernels: FakeQuantWithMinMax{Args,Vars,VarsPerChannel} and their gradients. The range is nudged so that zero is
// one of the steps, as Jacob et al. (Quantization and Training of Neural Networks, section 3) describe.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/quantize/quantize_kernels.h"

namespace millrace {
namespace {

struct Steps {
  float lowest = 0, highest = 255;  // of the integers that the values stand for
};

struct Range {
  float low = 0, high = 0, scale = 1;
  bool empty = false;  // both ends are zero: everything is

  Range() = default;
  Range(float min, float max, const Steps& steps) {
    empty = min == 0 && max == 0;
    if (empty) return;
    scale = (max - min) / (steps.highest - steps.lowest);
    const float zero = steps.lowest - min / scale;
    const float nudged = zero < steps.lowest ? steps.lowest : zero > steps.highest ? steps.highest : std::round(zero);
    low = (steps.lowest - nudged) * scale;
    high = (steps.highest - nudged) * scale;
  }
  bool Inside(float x) const { return x >= low && x <= high; }
  float Quantize(float x, float inverse, float zero) const {
    const float clamped = std::max(std::min(x, high), low) - low;
    return std::floor(clamped * inverse - zero + 0.5F) * scale;
  }
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
    fixed_ = {Range(min, max, steps_)};
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 protected:
  // One range, or one for each of the last dimension: of the attributes, or of inputs `first` and the next.
  Status ReadRanges(const KernelContext& ctx, const Shape& inputs, int first, bool per_channel,
                    std::vector<Range>* ranges) const {
    if (!fixed_.empty()) {
      *ranges = fixed_;
      return absl::OkStatus();
    }
    const Tensor &min = ctx.input(first), &max = ctx.input(first + 1);
    if (per_channel && inputs.rank() < 1) return InvalidArgument("inputs must have at least one dimension");
    const int64_t depth = per_channel ? inputs.dim(inputs.rank() - 1) : 1;
    for (const auto& [name, t] : {std::pair("min", &min), std::pair("max", &max)}) {
      if (t->rank() != (per_channel ? 1 : 0)) {
        return InvalidArgument("`", name, "` must be rank ", per_channel ? 1 : 0, " but is rank ", t->rank());
      }
      if (t->num_elements() != depth) {
        return InvalidArgument(name, " has incorrect size, expected ", depth, " was ", t->num_elements());
      }
    }
    for (int64_t i = 0; i < depth; ++i) ranges->emplace_back(min.data<float>()[i], max.data<float>()[i], steps_);
    return absl::OkStatus();
  }

 private:
  Steps steps_;
  std::vector<Range> fixed_;
};

void QuantizeRun(const Range& r, const float* x, float* y, int64_t n) {
  if (r.empty) return std::fill(y, y + n, 0.0F);
  const float inverse = 1.0F / r.scale, zero = std::floor(-r.low * inverse + 0.5F);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = r.Quantize(x[i], inverse, zero);
}

template <bool kPerChannel>
class ForwardKernel final : public FakeQuantKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    std::vector<Range> ranges;
    MR_RETURN_IF_ERROR(ReadRanges(ctx, shape, 1, kPerChannel, &ranges));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
    const float* x = ctx.input(0).data<float>();
    float* y = out->mutable_data<float>();
    const int64_t n = shape.num_elements();
    if (n == 0) return absl::OkStatus();
    if constexpr (!kPerChannel) {
      ctx.ParallelFor(
          n, 1, [&](int64_t begin, int64_t end) { QuantizeRun(ranges[0], x + begin, y + begin, end - begin); });
    } else {
      const int64_t depth = static_cast<int64_t>(ranges.size());
      std::vector<float> inverse(ranges.size()), zero(ranges.size());
      for (size_t c = 0; c < ranges.size(); ++c) {
        inverse[c] = 1.0F / ranges[c].scale;
        zero[c] = std::floor(-ranges[c].low * inverse[c] + 0.5F);
      }
      ctx.ParallelFor(n / depth, 1.5 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          for (size_t c = 0; c < ranges.size(); ++c) {
            const int64_t at = r * depth + static_cast<int64_t>(c);
            y[at] = ranges[c].empty ? 0 : ranges[c].Quantize(x[at], inverse[c], zero[c]);
          }
        }
      });
    }
    return absl::OkStatus();
  }
};

// The gradient passes where the input was inside; outside it goes to the end that the input was beyond.
template <bool kPerChannel>
class BackwardKernel final : public FakeQuantKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &g = ctx.input(0), &x = ctx.input(1);
    const Shape shape = x.shape();
    if (!(g.shape() == shape)) {
      return InvalidArgument(
          "gradient and input must be the same size, got ", g.shape().ToString(), " and ", shape.ToString());
    }
    std::vector<Range> ranges;
    MR_RETURN_IF_ERROR(ReadRanges(ctx, shape, 2, kPerChannel, &ranges));
    const Shape ends = kPerChannel ? Shape::Vector(static_cast<int64_t>(ranges.size())) : Shape();
    float *low = nullptr, *high = nullptr;
    if (ctx.num_outputs() > 1) {
      MR_ASSIGN_OR_RETURN(Tensor * out_low, ctx.AllocateOutput(1, ends));
      MR_ASSIGN_OR_RETURN(Tensor * out_high, ctx.AllocateOutput(2, ends));
      low = out_low->mutable_data<float>();
      high = out_high->mutable_data<float>();
    }
    // Not in place: the ends are summed from the same memory.
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const int64_t depth = static_cast<int64_t>(ranges.size()), rows = depth == 0 ? 0 : shape.num_elements() / depth;
    const float *pg = g.data<float>(), *px = x.data<float>();
    float* y = out->mutable_data<float>();
    const auto pass = [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const Range& r = ranges[static_cast<size_t>(depth == 1 ? 0 : at % depth)];
        y[at] = r.empty || r.Inside(px[at]) ? pg[at] : 0;
      }
    };
    ctx.ParallelFor(shape.num_elements(), 1, pass);
    if (low == nullptr) return absl::OkStatus();
    std::vector<double> below(ranges.size()), above(ranges.size());
    for (int64_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < ranges.size(); ++c) {
        const int64_t at = r * depth + static_cast<int64_t>(c);
        if (ranges[c].empty) continue;
        if (px[at] < ranges[c].low) below[c] += static_cast<double>(pg[at]);
        if (px[at] > ranges[c].high) above[c] += static_cast<double>(pg[at]);
      }
    }
    for (size_t c = 0; c < ranges.size(); ++c) {
      low[c] = static_cast<float>(below[c]);
      high[c] = static_cast<float>(above[c]);
    }
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterFakeQuantKernels(KernelRegistry& r) {
  r.Add<ForwardKernel<false>>({.op = "FakeQuantWithMinMaxArgs"});
  r.Add<ForwardKernel<false>>({.op = "FakeQuantWithMinMaxVars"});
  r.Add<ForwardKernel<true>>({.op = "FakeQuantWithMinMaxVarsPerChannel"});
  r.Add<BackwardKernel<false>>({.op = "FakeQuantWithMinMaxArgsGradient"});
  r.Add<BackwardKernel<false>>({.op = "FakeQuantWithMinMaxVarsGradient"});
  r.Add<BackwardKernel<true>>({.op = "FakeQuantWithMinMaxVarsPerChannelGradient"});
}

}  // namespace millrace
