// SPDX-License-Identifier: Apache-2.0
// CPU kernels: shuffle, multinomial, gamma and Poisson. Each sample owns a region of the stream, so the result does not
// depend on the number of threads.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/random/random_draws.h"
#include "kernels/cpu/random/random_tiles.h"

namespace millrace {
namespace {

// RandomShuffle and, with a key and a counter, StatelessShuffle.
template <Source kSource>
class ShuffleKernel : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override {
    return kSource == Source::kOwn ? RandomKernel::Init(init) : absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    if (value.rank() == 0 || value.num_elements() == 0 || value.dim(0) <= 1) {
      ctx.set_output(0, value);
      return absl::OkStatus();
    }
    const int64_t rows = value.dim(0);
    const int64_t row = value.num_elements() / rows;
    Philox words;
    if constexpr (kSource == Source::kOwn) {
      words = ReserveBlocks((static_cast<uint64_t>(rows) + 2) / 4);  // a word for each row but the last
    } else {
      MR_ASSIGN_OR_RETURN(words, StreamOf(ctx, kSource, rows));
    }
    const size_t bytes = IsPlain(value.dtype()) ? static_cast<size_t>(row) * DTypeSize(value.dtype()) : 0;
    switch (bytes) {
      case 1: return ShuffleInPlace<uint8_t>(ctx, words);
      case 2: return ShuffleInPlace<uint16_t>(ctx, words);
      case 4: return ShuffleInPlace<uint32_t>(ctx, words);
      case 8: return ShuffleInPlace<uint64_t>(ctx, words);
      default: break;
    }
    std::vector<int64_t> order(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), int64_t{0});
    Permute(words, order.data(), rows);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, value.shape()));
    const RunCopier copier(value.dtype(), row);
    ctx.ParallelFor(rows, copier.cost(), [&](int64_t begin, int64_t end) {
      const char* const from = static_cast<const char*>(value.raw());
      char* const to = static_cast<char*>(out->mutable_raw());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t source = order[static_cast<size_t>(i)];
        if (bytes > 0) {  // many rows of few bytes
          std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(source) * bytes, bytes);
        } else {
          copier.CopyOne(to, i * row, from, source * row);
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  // Fisher and Yates: number i changes places with one of those from it on, which a word of the stream chooses.
  template <typename T>
  static void Permute(Philox start, T* numbers, int64_t n) {
    constexpr int64_t kWords = 4 * kRandomBatch;
    uint32_t words[kWords];
    for (int64_t begin = 0; begin + 1 < n; begin += kWords) {
      StopIfAsked();
      const int64_t count = std::min(kWords, n - 1 - begin);
      RandomWords(start, 1, (count + 3) / 4, words);
      start.Skip(kRandomBatch);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t i = begin + k, left = n - i;  // division in 32 bits is several times as fast
        const uint32_t word = words[k];
        const int64_t by = left >> 32 == 0 ? word % static_cast<uint32_t>(left) : word;
        std::swap(numbers[i], numbers[i + by]);
      }
    }
  }
  template <typename T>
  static Status ShuffleInPlace(KernelContext& ctx, const Philox& words) {
    const Shape shape = ctx.input(0).shape();
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
    if (out->raw() != ctx.input(0).raw()) std::memcpy(out->mutable_raw(), ctx.input(0).raw(), out->TotalBytes());
    Permute(words, static_cast<T*>(out->mutable_raw()), shape.dim(0));
    return absl::OkStatus();
  }
};

// Inverse of the cumulative distribution; classes of infinite or NaN weight get none. Each sample takes two words of
// the stream, one row after the other, as TensorFlow's do where one thread makes them all.
template <typename T>
void SampleClasses(const double* cdf, int64_t classes, int64_t first, int64_t samples, Philox start, T* out) {
  const double total = cdf[classes - 1];
  const uint64_t pairs = static_cast<uint64_t>(first);  // of words, two in a block
  start.Skip(pairs / 2);
  PhiloxWords words(start);
  for (uint64_t k = 0; k < pairs % 2 * 2; ++k) words();
  StopNowAndThen pause;
  for (int64_t s = 0; s < samples; ++s) {
    pause();
    const uint32_t high = words(), low = words();
    const double* at = std::upper_bound(cdf, cdf + classes, UnitDouble(high, low) * total);
    out[s] = static_cast<T>(std::min(at - cdf, classes - 1));
  }
}

// Multinomial and, by a seed that is an input, StatelessMultinomial.
template <bool kStateless>
class MultinomialKernel : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override { return kStateless ? absl::OkStatus() : RandomKernel::Init(init); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() != 2) return InvalidArgument("logits must be a matrix, got ", logits.shape().ToString());
    if (!ctx.input(1).shape().IsScalar()) {
      return InvalidArgument("num_samples must be a scalar, got ", ctx.input(1).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const int64_t samples, ctx.input(1).IntScalar());
    if (samples < 0) return InvalidArgument("num_samples is ", samples, ", want 0 or more");
    const int64_t batch = logits.dim(0), classes = logits.dim(1);
    if (classes == 0) return InvalidArgument("num_classes should be positive, got 0");
    Philox start;
    if constexpr (kStateless) {
      MR_ASSIGN_OR_RETURN(start, StatelessStream(ctx, 2));
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({batch, samples}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    if (!kStateless) start = Reserve(batch * ((samples + 3) / 4 * 4) * 2);
    const ConvertRoute widen = FindConvert(logits.dtype(), DType::kDouble);
    const char* raw = static_cast<const char*>(logits.raw());
    const auto bytes = static_cast<int64_t>(DTypeSize(logits.dtype()));
    ctx.ParallelFor(batch, static_cast<double>(classes * 2 + samples * 60), [&](int64_t begin, int64_t end) {
      std::vector<double> cdf(static_cast<size_t>(classes));
      double* const row = cdf.data();
      for (int64_t b = begin; b < end; ++b) {
        if (widen.steps > 0) {
          widen.Run(raw + b * classes * bytes, row, classes);
        } else {
          std::memcpy(row, raw + b * classes * bytes, static_cast<size_t>(classes * bytes));
        }
        CumulateExps(row, classes);
        VisitTypes<int32_t, int64_t>(out->dtype(), [&]<typename T>() {
          SampleClasses(row, classes, b * samples, samples, start, out->mutable_data<T>() + b * samples);
        });
      }
    });
    return absl::OkStatus();
  }
};

// Marsaglia and Tsang (2000); below 1 the shape is raised by one and the result scaled back.
double SampleGamma(double alpha, Draws& draws) {
  if (!(alpha > 0)) return alpha == 0 ? 0 : NAN;
  if (alpha == 1) return -std::log(1 - draws.Uniform());
  const bool small = alpha < 1;
  const double d = alpha + (small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = draws.Normal();
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = draws.Uniform();
    const bool surely = u < 1 - 0.0331 * (x * x) * (x * x);
    if (!surely && !(std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v)))) continue;
    const double sample = d * v;
    return small ? sample * std::pow(draws.Uniform(), 1 / alpha) : sample;
  }
}

double SamplePoisson(double rate, Draws& draws) {
  if (!(rate >= 0) || std::isinf(rate)) return NAN;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double product = 1;
    for (int64_t k = 0;; ++k) {
      product *= draws.Uniform();
      if (product <= limit) return static_cast<double>(k);
    }
  }
  // Transformed rejection, Hoermann (1993), algorithm PTRS.
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inv_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    const double u = draws.Uniform() - 0.5, v = draws.Uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inv_alpha / (a / (us * us) + b)) <= -rate + k * log_rate - std::lgamma(k + 1)) return k;
  }
}

// Samples for each element of the parameter. The shape is that of these, before the parameter's; where the stream is
// not the kernel's own, that of all.
template <double (*kSample)(double, Draws&), Source kSource = Source::kOwn>
class PerParameterKernel : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override {
    return kSource == Source::kOwn ? RandomKernel::Init(init) : absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Shape shape, ShapeInput(ctx, 0));
    const Tensor& parameter = ctx.input(InputsOf(kSource));
    if constexpr (kSource == Source::kOwn) {
      MR_ASSIGN_OR_RETURN(shape, shape.Concatenate(parameter.shape()));
    } else {
      MR_RETURN_IF_ERROR(CheckEnd(shape, parameter.shape()));
    }
    const int64_t n = shape.num_elements(), width = parameter.num_elements();
    Philox start;
    if constexpr (kSource == Source::kOwn) {
      if (n > 0) start = Reserve(n);
    } else {
      MR_ASSIGN_OR_RETURN(start, StreamOf(ctx, kSource, n));
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (n == 0) return absl::OkStatus();
    ctx.ParallelFor(n, 200.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {  // regions go parameter by parameter
        Draws draws(start, i % width * (n / width) + i / width);
        StoreAt(*out, i, kSample(ValueAt(parameter, i % width), draws));
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterRandomSamplers(KernelRegistry& r) {
  r.Add<ShuffleKernel<Source::kOwn>>({.op = "RandomShuffle"});
  r.Add<ShuffleKernel<Source::kKey>>({.op = "StatelessShuffle"});
  r.Add<MultinomialKernel<false>>({.op = "Multinomial", .types = {{"T", Types("REAL")}}});
  r.Add<MultinomialKernel<true>>({.op = "StatelessMultinomial", .types = {{"T", Types("REAL")}}});
  r.Add<PerParameterKernel<SamplePoisson>>({.op = "RandomPoisson", .types = {{"dtype", Types("HFD")}}});
  r.Add<PerParameterKernel<SampleGamma>>({.op = "RandomGamma", .types = {{"T", Types("HFD")}}});
  r.Add<PerParameterKernel<SamplePoisson>>(
      {.op = "RandomPoissonV2", .types = {{"R", Types("HFD|IDX")}, {"dtype", Types("HFD|IDX")}}});
  r.Add<PerParameterKernel<SampleGamma, Source::kSeed>>(
      {.op = "StatelessRandomGammaV2", .types = {{"dtype", Types("HFD")}}});
  r.Add<PerParameterKernel<SampleGamma, Source::kKey>>(
      {.op = "StatelessRandomGammaV3", .types = {{"dtype", Types("HFD")}}});
  r.Add<PerParameterKernel<SamplePoisson, Source::kSeed>>({.op = "StatelessRandomPoisson"});
}

}  // namespace millrace
