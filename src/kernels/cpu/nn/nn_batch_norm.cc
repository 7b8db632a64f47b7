// SPDX-License-Identifier: Apache-2.0
// Fused batch normalisation: one pass over x for the moments, one to apply; backward likewise one to reduce, one to
// apply.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/nn/nn_channels.h"
#include "kernels/cpu/nn/nn_norm.h"
#include "kernels/cpu/nn/nn_simd.h"

namespace millrace {
namespace {

using Vector = std::vector<float>;

struct BatchNormAttrs {
  ImageLayout layout;
  double epsilon = 1e-4;
  bool training = true;
  double average_factor = 1;  // newer graphs: the running average is updated here

  Status Read(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(const std::string format, init.Attr<std::string>("data_format"));
    MR_ASSIGN_OR_RETURN(layout, ParseImageLayout(format));
    MR_ASSIGN_OR_RETURN(const float e, init.Attr<float>("epsilon"));
    MR_ASSIGN_OR_RETURN(training, init.Attr<bool>("is_training"));
    if (init.HasAttr("exponential_avg_factor")) {
      MR_ASSIGN_OR_RETURN(const float f, init.Attr<float>("exponential_avg_factor"));
      average_factor = static_cast<double>(f);
    }
    epsilon = static_cast<double>(e);
    return absl::OkStatus();
  }
};

Status CheckChannelVector(const Tensor& t, int64_t channels, absl::string_view name) {
  if (t.rank() == 1 && t.num_elements() == channels) return absl::OkStatus();
  return InvalidArgument(name, " must have shape [", channels, "], got ", t.shape().ToString());
}

Status CheckImage(const Tensor& t, const ImageLayout& layout, absl::string_view name) {
  if (t.rank() == layout.rank) return absl::OkStatus();
  return InvalidArgument(name, " must have rank ", layout.rank, ", got shape ", t.shape().ToString());
}

size_t Sz(int64_t v) { return static_cast<size_t>(v); }

ChannelView ViewOf(const Tensor& image, const ImageLayout& layout) {
  const int64_t channels = image.dim(layout.channel);
  if (!layout.channels_first()) return ChannelView(DimProduct(image.shape(), 0, layout.channel), channels, 1);
  return ChannelView(image.dim(0), channels, DimProduct(image.shape(), layout.channel + 1, image.rank()));
}

class FusedBatchNormKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return attrs_.Read(init); }

  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    MR_RETURN_IF_ERROR(CheckImage(image, attrs_.layout, "x"));
    const int64_t channels = image.dim(attrs_.layout.channel);
    MR_RETURN_IF_ERROR(CheckChannelVector(ctx.input(1), channels, "scale"));
    MR_RETURN_IF_ERROR(CheckChannelVector(ctx.input(2), channels, "offset"));
    const bool uses_given = !attrs_.training || attrs_.average_factor != 1;
    for (int i = 3; i < 5; ++i) {
      const Tensor& t = ctx.input(i);
      if (!uses_given && t.num_elements() == 0) continue;
      MR_RETURN_IF_ERROR(CheckChannelVector(t, channels, i == 3 ? "mean" : "variance"));
    }
    const ChannelView view = ViewOf(image, attrs_.layout);
    Vector mean, variance;
    MR_RETURN_IF_ERROR(Moments(ctx, view, image, &mean, &variance));
    MR_RETURN_IF_ERROR(WriteStatistics(ctx, view.rows(), mean, variance));
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.ForwardOrAllocate({0}, 0, image.shape()));
    if (out->num_elements() > 0) Apply(ctx, view, image, mean, variance, out);
    return absl::OkStatus();
  }

 private:
  // The mean and the biased variance that x is normalised by.
  Status Moments(KernelContext& ctx, const ChannelView& view, const Tensor& x, Vector* mean, Vector* variance) const {
    const size_t channels = static_cast<size_t>(view.channels());
    if (view.rows() == 0) {
      mean->assign(channels, std::numeric_limits<float>::quiet_NaN());
      *variance = *mean;
      return absl::OkStatus();
    }
    if (!attrs_.training) {
      mean->assign(ctx.input(3).data<float>(), ctx.input(3).data<float>() + channels);
      variance->assign(ctx.input(4).data<float>(), ctx.input(4).data<float>() + channels);
      return absl::OkStatus();
    }
    std::vector<double> m, v;
    const auto read = [&x](int64_t offset, size_t n) { return ReadBlock(x, offset, n, 0); };
    MR_RETURN_IF_ERROR(view.Moments(ctx, 0.15, read, &m, &v));
    mean->assign(m.begin(), m.end());
    variance->assign(v.begin(), v.end());
    return absl::OkStatus();
  }

  // Outputs 1 and 2: the batch's mean and unbiased variance (or their running averages); 3 and 4: what the gradient
  // wants.
  Status WriteStatistics(KernelContext& ctx, int64_t rows, const Vector& mean, const Vector& variance) const {
    const Shape shape = Shape::Vector(static_cast<int64_t>(mean.size()));
    float* out[4];
    for (int i = 0; i < 4; ++i) {
      MR_ASSIGN_OR_RETURN(Tensor* const t, ctx.AllocateOutput(i + 1, shape));
      out[i] = t->mutable_data<float>();
    }
    const double correction =
        attrs_.training ? static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(rows - 1, 1)) : 1.0;
    const double f = attrs_.training ? attrs_.average_factor : 1.0;
    for (size_t c = 0; c < mean.size(); ++c) {
      out[0][c] = mean[c];
      out[1][c] = correction == 1.0 ? variance[c] : static_cast<float>(static_cast<double>(variance[c]) * correction);
      if (f != 1.0) {
        const auto blend = [&](int i, float now) {
          return static_cast<float>(
              (1 - f) * static_cast<double>(ctx.input(i).data<float>()[c]) + f * static_cast<double>(now));
        };
        out[0][c] = blend(3, out[0][c]);
        out[1][c] = blend(4, out[1][c]);
      }
      out[2][c] = mean[c];
      out[3][c] = variance[c];
    }
    if (ctx.num_outputs() > 5) {
      MR_ASSIGN_OR_RETURN(Tensor* const unused, ctx.AllocateOutput(5, Shape()));
      *unused->mutable_data<float>() = 0;
    }
    return absl::OkStatus();
  }

  void Apply(KernelContext& ctx, const ChannelView& view, const Tensor& x, const Vector& mean, const Vector& variance,
             Tensor* y) const {
    const float* scale = ctx.input(1).data<float>();
    Vector factor(mean.size());
    for (size_t c = 0; c < mean.size(); ++c) {
      factor[c] = static_cast<float>(
          static_cast<double>(scale[c]) / std::sqrt(static_cast<double>(variance[c]) + attrs_.epsilon));
    }
    const Vector m = view.Widen(mean.data()), a = view.Widen(factor.data());
    const Vector b = view.Widen(ctx.input(2).data<float>());
    view.ForBlocks(ctx, 0.3, [&](const ChannelBlock& block) {
      const float* from = ReadBlock(x, block.offset, block.size(), 0);
      float* to = WriteBuffer(y, block.offset, block.size(), 1);
      ScaleShift(from, block.rows, block.cols, &m[Sz(block.at)], &a[Sz(block.at)], &b[Sz(block.at)], to);
      FinishWrite(y, block.offset, block.size(), to);
    });
  }

  BatchNormAttrs attrs_;
};

class FusedBatchNormGradKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return attrs_.Read(init); }

  Status Compute(KernelContext& ctx) override {
    const Tensor& backprop = ctx.input(0);
    const Tensor& image = ctx.input(1);
    MR_RETURN_IF_ERROR(CheckImage(image, attrs_.layout, "x"));
    if (!(backprop.shape() == image.shape())) {
      return InvalidArgument(
          "y_backprop and x must have one shape, got ", backprop.shape().ToString(), " and ", image.shape().ToString());
    }
    const int64_t channels = image.dim(attrs_.layout.channel);
    for (int i = 2; i < 5; ++i) {
      MR_RETURN_IF_ERROR(CheckChannelVector(ctx.input(i), channels, i == 2 ? "scale" : "a reserve space"));
    }
    for (int i = 3; i < 5; ++i) MR_RETURN_IF_ERROR(ctx.AllocateOutput(i, Shape::Vector(0)).status());
    const ChannelView view = ViewOf(image, attrs_.layout);
    Coefficients k;
    MR_RETURN_IF_ERROR(Reduce(ctx, view, backprop, image, &k));
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.ForwardOrAllocate({0, 1}, 0, image.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    const Vector m = view.Widen(ctx.input(3).data<float>());
    const Vector ka = view.Widen(k.gradient.data()), kb = view.Widen(k.centred.data()),
                 kc = view.Widen(k.mean_g.data());
    view.ForBlocks(ctx, 0.4, [&](const ChannelBlock& block) {
      const size_t n = block.size(), at = Sz(block.at);
      const float* gp = ReadBlock(backprop, block.offset, n, 0);
      const float* xp = ReadBlock(image, block.offset, n, 1);
      float* to = WriteBuffer(out, block.offset, n, 2);
      Combine(gp, xp, block.rows, block.cols, &m[at], &ka[at], &kb[at], &kc[at], to);
      FinishWrite(out, block.offset, n, to);
    });
    return absl::OkStatus();
  }

 private:
  // dx = gradient * (g - mean_g) + centred * (x - mean)
  struct Coefficients {
    Vector gradient, centred, mean_g;
  };

  Status Reduce(KernelContext& ctx, const ChannelView& view, const Tensor& g, const Tensor& x, Coefficients* k) const {
    const size_t channels = static_cast<size_t>(view.channels());
    const float* scale = ctx.input(2).data<float>();
    const float* variance = ctx.input(4).data<float>();
    const Vector mean = view.Widen(ctx.input(3).data<float>());
    std::vector<double> sum, dot;
    MR_RETURN_IF_ERROR(view.Reduce(
        ctx, 0.2,
        [&](const ChannelBlock& block, float* s, float* d) {
          const float* gp = ReadBlock(g, block.offset, block.size(), 0);
          const float* xp = ReadBlock(x, block.offset, block.size(), 1);
          AddDots(gp, xp, block.rows, block.cols, &mean[Sz(block.at)], s, d);
        },
        &sum, &dot));
    MR_ASSIGN_OR_RETURN(Tensor* const dscale, ctx.AllocateOutput(1, Shape::Vector(view.channels())));
    MR_ASSIGN_OR_RETURN(Tensor* const doffset, ctx.AllocateOutput(2, Shape::Vector(view.channels())));
    k->gradient.assign(channels, 0);
    k->centred.assign(channels, 0);
    k->mean_g.assign(channels, 0);
    if (view.rows() == 0) {  // the statistics of nothing are no numbers, but sums over it are
      std::fill_n(dscale->mutable_data<float>(), channels, 0.0f);
      std::fill_n(doffset->mutable_data<float>(), channels, 0.0f);
      return absl::OkStatus();
    }
    const double n = static_cast<double>(view.rows());
    for (size_t c = 0; c < channels; ++c) {
      const double r = 1 / std::sqrt(static_cast<double>(variance[c]) + attrs_.epsilon);
      const double a = static_cast<double>(scale[c]) * r;
      dscale->mutable_data<float>()[c] = static_cast<float>(dot[c] * r);
      doffset->mutable_data<float>()[c] = static_cast<float>(sum[c]);
      k->gradient[c] = static_cast<float>(a);
      if (!attrs_.training) continue;
      k->centred[c] = static_cast<float>(-a * r * r * dot[c] / n);
      k->mean_g[c] = static_cast<float>(sum[c] / n);
    }
    return absl::OkStatus();
  }

  BatchNormAttrs attrs_;
};

}  // namespace

void RegisterBatchNormKernels(KernelRegistry& r) {
  const auto wide = Types("f16|bf16|f32");
  r.Add<FusedBatchNormKernel>({.op = "FusedBatchNorm", .types = {{"T", Types("f32")}}, .cost = CostlyElementCost});
  r.Add<FusedBatchNormKernel>({.op = "FusedBatchNormV2", .types = {{"T", wide}}, .cost = CostlyElementCost});
  r.Add<FusedBatchNormKernel>({.op = "FusedBatchNormV3", .types = {{"T", wide}}, .cost = CostlyElementCost});
  r.Add<FusedBatchNormGradKernel>(
      {.op = "FusedBatchNormGrad", .types = {{"T", Types("f32")}}, .cost = CostlyElementCost});
  r.Add<FusedBatchNormGradKernel>({.op = "FusedBatchNormGradV2", .types = {{"T", wide}}, .cost = CostlyElementCost});
  r.Add<FusedBatchNormGradKernel>({.op = "FusedBatchNormGradV3", .types = {{"T", wide}}, .cost = CostlyElementCost});
}

}  // namespace millrace
