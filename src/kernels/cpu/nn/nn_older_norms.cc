// SPDX-License-Identifier: Apache-2.0
// Local response normalisation, the L2 loss, and batch normalisation as the first graphs had it.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/nn/nn_channels.h"
#include "kernels/cpu/nn/nn_lrn_simd.h"
#include "kernels/cpu/nn/nn_norm.h"
#include "kernels/cpu/nn/nn_simd.h"

namespace millrace {
namespace {

// ---- LRN ----

class LrnKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(radius_, init.Attr<int64_t>("depth_radius"));
    if (radius_ < 0) return InvalidArgument("depth_radius must not be negative, got ", radius_);
    MR_ASSIGN_OR_RETURN(p_.bias, init.Attr<float>("bias"));
    MR_ASSIGN_OR_RETURN(p_.alpha, init.Attr<float>("alpha"));
    MR_ASSIGN_OR_RETURN(p_.beta, init.Attr<float>("beta"));
    return absl::OkStatus();
  }
  // LRN(input), or LRNGrad(input_grads, input_image, output_image).
  Status Compute(KernelContext& ctx) override {
    const bool grad = ctx.num_inputs() == 3;
    const Shape& shape = ctx.input(0).shape();
    if (shape.rank() != 4) return InvalidArgument("input must have rank 4, got shape ", shape.ToString());
    Tensor in[3];
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      if (!(ctx.input(i).shape() == shape)) {
        return InvalidArgument(
            "inputs must have one shape, got ", shape.ToString(), " and ", ctx.input(i).shape().ToString());
      }
      MR_ASSIGN_OR_RETURN(in[i], Widened(ctx, ctx.input(i)));
    }
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const bool narrow = IsNarrowFloat(out->dtype());
    Tensor result = *out;
    if (narrow) {
      MR_ASSIGN_OR_RETURN(result, ctx.AllocateTemp(DType::kFloat, shape));
    }
    const int64_t channels = shape.dim(3);
    LrnParameters p = p_;
    p.radius = static_cast<size_t>(std::min(radius_, channels));  // a wider window sees no more
    p.channels = static_cast<size_t>(channels);
    constexpr int64_t kAtOnce = 1024;  // values of places that are looked at together
    const int64_t places = std::max<int64_t>(kAtOnce / channels, 1);
    ctx.ParallelFor(
        out->num_elements() / channels, 2.0 * static_cast<double>(channels), [&](int64_t begin, int64_t end) {
          std::vector<float> scratch(LrnScratch(p, static_cast<size_t>(std::min(places, end - begin))));
          for (int64_t place = begin; place < end; place += places) {
            const auto count = static_cast<size_t>(std::min(places, end - place));
            const int64_t at = place * channels;
            float* to = result.mutable_data<float>() + at;
            if (grad) {
              LrnBackward(p, in[0].data<float>() + at, in[1].data<float>() + at, in[2].data<float>() + at, count,
                          scratch.data(), to);
            } else {
              LrnForward(p, in[0].data<float>() + at, count, scratch.data(), to);
            }
          }
        });
    if (narrow) NarrowInto(ctx, result, out);
    return absl::OkStatus();
  }

 private:
  int64_t radius_ = 5;
  LrnParameters p_;
};

// ---- L2Loss ----

constexpr int64_t kLossBlock = 16384;

double SquaresOfBlock(const Tensor& t, int64_t offset, size_t n) {
  if (t.dtype() == DType::kDouble) return SumSquares(t.data<double>() + offset, n);
  return static_cast<double>(SumSquares(ReadBlock(t, offset, n, 0), n));
}

Status L2LossKernel(KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, Shape()));
  const int64_t n = t.num_elements();
  const int64_t blocks = (n + kLossBlock - 1) / kLossBlock;
  std::vector<double> partial(static_cast<size_t>(blocks));
  ctx.ParallelFor(blocks, 0.1 * kLossBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t at = b * kLossBlock;
      partial[static_cast<size_t>(b)] = SquaresOfBlock(t, at, static_cast<size_t>(std::min(kLossBlock, n - at)));
    }
  });
  double sum = 0;
  for (double v : partial) sum += v;
  if (t.dtype() == DType::kDouble) {
    *out->mutable_data<double>() = sum / 2;
  } else {
    const float loss = static_cast<float>(sum / 2);
    float* to = WriteBuffer(out, 0, 1, 1);
    *to = loss;
    FinishWrite(out, 0, 1, to);
  }
  return absl::OkStatus();
}

// ---- BatchNormWithGlobalNormalization ----

class GlobalNormKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(epsilon_, init.Attr<float>("variance_epsilon"));
    MR_ASSIGN_OR_RETURN(scale_, init.Attr<bool>("scale_after_normalization"));
    grad_ = init.num_outputs() == 5;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    if (shape.rank() != 4) return InvalidArgument("t must have rank 4, got shape ", shape.ToString());
    const int64_t channels = shape.dim(3);
    for (int i = 1; i < (grad_ ? 4 : 5); ++i) {
      const Tensor& v = ctx.input(i);
      if (v.rank() != 1 || v.num_elements() != channels) {
        return InvalidArgument("input ", i, " must have shape [", channels, "], got ", v.shape().ToString());
      }
    }
    if (grad_ && !(ctx.input(4).shape() == shape)) {
      return InvalidArgument("backprop must have shape ", shape.ToString(), ", got ", ctx.input(4).shape().ToString());
    }
    Tensor in[5];
    for (int i = 0; i < 5; ++i) {
      MR_ASSIGN_OR_RETURN(in[i], Widened(ctx, ctx.input(i)));
    }
    Tensor out[5];
    const bool narrow = IsNarrowFloat(ctx.output_dtype(0));
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      MR_ASSIGN_OR_RETURN(Tensor* const t, ctx.AllocateOutput(i, i == 0 ? shape : Shape::Vector(channels)));
      out[i] = *t;
      if (narrow) {
        MR_ASSIGN_OR_RETURN(out[i], ctx.AllocateTemp(DType::kFloat, t->shape()));
      }
    }
    if (in[0].dtype() == DType::kDouble) {
      grad_ ? Backward<double>(in, out) : Forward<double>(in, out);
    } else {
      grad_ ? Backward<float>(in, out) : Forward<float>(in, out);
    }
    for (int i = 0; narrow && i < ctx.num_outputs(); ++i) NarrowInto(ctx, out[i], ctx.mutable_output(i));
    return absl::OkStatus();
  }

 private:
  template <typename T>
  double InverseDeviation(const Tensor& variance, int64_t c) const {
    return 1 / std::sqrt(static_cast<double>(variance.data<T>()[c]) + static_cast<double>(epsilon_));
  }

  // t, m, v, beta, gamma -> result
  template <typename T>
  void Forward(const Tensor* in, Tensor* out) const {
    const int64_t channels = in[1].num_elements();
    std::vector<T> factor(static_cast<size_t>(channels));
    for (int64_t c = 0; c < channels; ++c) {
      const double gamma = scale_ ? static_cast<double>(in[4].data<T>()[c]) : 1.0;
      factor[static_cast<size_t>(c)] = static_cast<T>(InverseDeviation<T>(in[2], c) * gamma);
    }
    const T *m = in[1].data<T>(), *beta = in[3].data<T>();
    for (int64_t at = 0; at < in[0].num_elements(); at += channels) {
      const T* t = in[0].data<T>() + at;
      T* y = out[0].mutable_data<T>() + at;
      for (int64_t c = 0; c < channels; ++c) y[c] = (t[c] - m[c]) * factor[static_cast<size_t>(c)] + beta[c];
    }
  }

  // t, m, v, gamma, backprop -> dx, dm, dv, dbeta, dgamma
  template <typename T>
  void Backward(const Tensor* in, Tensor* out) const {
    const int64_t channels = in[1].num_elements();
    const int64_t n = in[0].num_elements();
    for (int64_t c = 0; c < channels; ++c) {
      const double m = static_cast<double>(in[1].data<T>()[c]);
      const double r = InverseDeviation<T>(in[2], c);
      const double gamma = scale_ ? static_cast<double>(in[3].data<T>()[c]) : 1.0;
      double sum = 0, dot = 0;
      for (int64_t at = c; at < n; at += channels) {
        const double g = static_cast<double>(in[4].data<T>()[at]);
        sum += g;
        dot += g * (static_cast<double>(in[0].data<T>()[at]) - m);
        out[0].mutable_data<T>()[at] = static_cast<T>(g * gamma * r);
      }
      out[1].mutable_data<T>()[c] = static_cast<T>(-sum * gamma * r);
      out[2].mutable_data<T>()[c] = static_cast<T>(-0.5 * dot * gamma * r * r * r);
      out[3].mutable_data<T>()[c] = static_cast<T>(sum);
      out[4].mutable_data<T>()[c] = static_cast<T>(scale_ ? dot * r : 0.0);
    }
  }

  float epsilon_ = 0;
  bool scale_ = true;
  bool grad_ = false;
};

}  // namespace

void RegisterOlderNormKernels(KernelRegistry& r) {
  r.Add<LrnKernel>({.op = "LRN", .types = {{"T", Types("f16|bf16|f32")}}, .cost = CostlyElementCost});
  r.Add<LrnKernel>({.op = "LRNGrad", .types = {{"T", Types("f16|bf16|f32")}}, .cost = CostlyElementCost});
  r.AddFn({.op = "L2Loss", .types = {{"T", Types("FLT")}}}, L2LossKernel);
  r.Add<GlobalNormKernel>({.op = "BatchNormWithGlobalNormalization", .types = {{"T", Types("FLT")}}});
  r.Add<GlobalNormKernel>({.op = "BatchNormWithGlobalNormalizationGrad", .types = {{"T", Types("FLT")}}});
}

}  // namespace millrace
