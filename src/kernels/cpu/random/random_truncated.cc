// SPDX-License-Identifier: Apache-2.0
// CPU kernel: normal numbers between bounds, by rejection (Robert, 1995, "Simulation of truncated normal variables").
//
// Bounds are in deviations from the mean; where the lower one is infinite or both are below the mean, all is mirrored.
// What is proposed depends on them: normal numbers where the mean lies well inside; uniform ones where the bounds are
// near each other; else exponential ones from the lower bound on. All rows read one stream, one after the other, so
// that the numbers are those of TensorFlow on one thread.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/stop_scope.h"
#include "kernels/cpu/random/random.h"

namespace millrace {
namespace {

constexpr int64_t kMostProposals = 1000;  // for one number
constexpr int64_t kRowOfScalars = 100;    // numbers that take their share of the stream together

// The stream in groups, as the generator's blocks give them. Half numbers are computed in float.
template <typename T>
class Proposals {
 public:
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr size_t kGroup = std::is_same_v<T, double> ? 2 : 4;
  using Group = std::array<Wide, kGroup>;

  explicit Proposals(Philox start) : generator_(start) {}
  Group Uniforms() {
    const Philox::Block x = generator_();
    Group out;
    if constexpr (std::is_same_v<T, double>) {
      out = {UnitDouble(x[0], x[1]), UnitDouble(x[2], x[3])};
    } else {
      for (size_t i = 0; i < kGroup; ++i) {
        out[i] = std::is_same_v<T, float> ? UnitFloat(x[i]) : static_cast<float>(UnitHalf(x[i]));
      }
    }
    return out;
  }
  Group Normals() {
    const Philox::Block x = generator_();
    Group out;
    if constexpr (std::is_same_v<T, double>) {
      BoxMuller(x[0], x[1], x[2], x[3], &out[0], &out[1]);
    } else {
      BoxMuller(x[0], x[1], &out[0], &out[1]);
      BoxMuller(x[2], x[3], &out[2], &out[3]);
    }
    return out;
  }

 private:
  Philox generator_;
};

template <typename W>
struct Bounds {
  W mean, deviation, low, high;  // low and high in deviations from the mean
};

// Draws n numbers; false when one was proposed in vain for too long.
template <typename T>
class Sampler {
 public:
  using W = typename Proposals<T>::Wide;
  Sampler(Proposals<T>& stream, const Bounds<W>& b, T* out, int64_t n) : stream_(stream), b_(b), out_(out), left_(n) {}

  bool Run() {
    constexpr W kWellInside = W(1.3);
    const W root = std::sqrt(b_.low * b_.low + W(4));
    const W near = W(2) * std::exp(W(0.5) + b_.low * (b_.low - root) / W(4)) / (b_.low + root);
    const bool inside = (b_.low < -kWellInside && b_.high >= W(0)) || (b_.high > kWellInside && b_.low <= W(0));
    StopNowAndThen pause;
    while (left_ > 0 && vain_ < kMostProposals) {
      pause();
      if (inside) {
        ByNormals();
      } else if (b_.high - b_.low < near) {
        ByUniforms();
      } else {
        ByExponentials((b_.low + root) / W(2));
      }
    }
    return left_ == 0;
  }

 private:
  void Offer(W z, bool accepted) {
    if (left_ == 0 || vain_ >= kMostProposals) return;
    if (!accepted) {
      ++vain_;
      return;
    }
    *out_++ = static_cast<T>(z * b_.deviation + b_.mean);
    --left_;
    vain_ = 0;
  }
  void ByNormals() {
    for (const W z : stream_.Normals()) Offer(z, z >= b_.low && z <= b_.high);
  }
  void ByUniforms() {
    const W top = b_.low < W(0) ? W(0) : b_.low * b_.low;
    const auto places = stream_.Uniforms(), chances = stream_.Uniforms();
    for (size_t i = 0; i < places.size(); ++i) {
      const W z = places[i] * (b_.high - b_.low) + b_.low;
      Offer(z, chances[i] <= std::exp((top - z * z) / W(2)));
    }
  }
  void ByExponentials(W rate) {
    const auto pairs = stream_.Uniforms();
    for (size_t i = 0; i < pairs.size(); i += 2) {
      const W z = -std::log(pairs[i]) / rate + b_.low;
      const W x = b_.low < rate ? rate - z : b_.low - rate;
      Offer(z, pairs[i + 1] <= std::exp(-x * x / W(2)) && z < b_.high);
    }
  }

  Proposals<T>& stream_;
  const Bounds<W> b_;
  T* out_;
  int64_t left_;
  int64_t vain_ = 0;
};

class ParameterizedTruncatedNormalKernel final : public RandomKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx, 0));
    if (shape.rank() < 1) return InvalidArgument("shape must have at least one dimension");
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    bool all_scalars = true;
    for (int i = 1; i < 5; ++i) {
      const Shape& s = ctx.input(i).shape();
      if (s.rank() > 1 || (s.rank() == 1 && s.dim(0) != 1 && s.dim(0) != shape.dim(0))) {
        return InvalidArgument(
            kNames[i - 1], " must be a scalar or have 1 or ", shape.dim(0), " elements, got shape ", s.ToString());
      }
      all_scalars &= s.num_elements() == 1 && (i < 3 || s.rank() == 0);
    }
    const int64_t n = shape.num_elements();
    if (n == 0) return absl::OkStatus();
    const int64_t row = all_scalars ? kRowOfScalars : n / shape.dim(0), rows = (n + row - 1) / row;
    const Philox start =
        ReserveBlocks(static_cast<uint64_t>(rows) * 2 * kMostProposals * (static_cast<uint64_t>(row) + 3) / 4);
    switch (out->dtype()) {
      case DType::kHalf: return Fill<Half>(ctx, start, row, out);
      case DType::kFloat: return Fill<float>(ctx, start, row, out);
      case DType::kDouble: return Fill<double>(ctx, start, row, out);
      default: return Unimplemented("no truncated normal numbers of ", DTypeName(out->dtype()));
    }
  }

 private:
  static constexpr const char* kNames[] = {"means", "stdevs", "minvals", "maxvals"};

  template <typename T>
  static Status Fill(const KernelContext& ctx, const Philox& start, int64_t row, Tensor* out) {
    using W = typename Proposals<T>::Wide;
    Proposals<T> stream(start);
    const int64_t n = out->num_elements();
    for (int64_t at = 0, r = 0; at < n; at += row, ++r) {
      const auto parameter = [&](int i) {
        const Tensor& t = ctx.input(i);
        return static_cast<W>(t.data<T>()[t.num_elements() == 1 ? 0 : r]);
      };
      const W mean = parameter(1);
      W deviation = parameter(2), low = parameter(3), high = parameter(4);
      if (!(deviation > 0) || !(low < high) || (std::isinf(low) && std::isinf(high))) {
        return InvalidArgument("row ", r, " has stdev ", deviation, " and bounds ", low, " and ", high,
                               "; want a positive one, and bounds in order of which one at least is finite");
      }
      if (low == -std::numeric_limits<W>::infinity() || high < mean) {
        std::swap(low, high);
        deviation = -deviation;
      }
      const Bounds<W> bounds{mean, deviation, (low - mean) / deviation, (high - mean) / deviation};
      if (!Sampler<T>(stream, bounds, out->mutable_data<T>() + at, std::min(row, n - at)).Run()) {
        return Internal("no number was accepted between ", bounds.low, " and ", bounds.high,
                        " deviations from the mean after ", kMostProposals, " proposals");
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterTruncatedNormal(KernelRegistry& r) {
  r.Add<ParameterizedTruncatedNormalKernel>(
      {.op = "ParameterizedTruncatedNormal", .types = {{"dtype", Types("f16|f32|f64")}}});
}

}  // namespace millrace
