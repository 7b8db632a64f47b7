// SPDX-License-Identifier: Apache-2.0
// CPU kernels: random numbers from Philox streams. Samplers of other distributions are in random_samplers.cc.
#include "kernels/cpu/random/random.h"

#include "base/env.h"

namespace millrace {

Status RandomKernel::Init(const KernelInit& init) {
  MR_ASSIGN_OR_RETURN(const int64_t seed, init.Attr<int64_t>("seed"));
  MR_ASSIGN_OR_RETURN(const int64_t seed2, init.Attr<int64_t>("seed2"));
  absl::MutexLock lock(&mu_);
  generator_ = seed == 0 && seed2 == 0 ? Philox(Env::Default().Random64(), Env::Default().Random64())
                                       : Philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
  return absl::OkStatus();
}

RandomStream::Position RandomKernel::position() const {
  absl::MutexLock lock(&mu_);
  const Philox::Block& c = generator_.counter();
  return {c[0], c[1], c[2], c[3], generator_.key()[0], generator_.key()[1]};
}

void RandomKernel::set_position(const Position& p) {
  absl::MutexLock lock(&mu_);
  generator_ = Philox({p[0], p[1], p[2], p[3]}, {p[4], p[5]});
}

Philox RandomKernel::Reserve(int64_t outputs) {
  return ReserveBlocks(static_cast<uint64_t>(outputs) * kBlocksPerOutput);
}

Philox RandomKernel::ReserveBlocks(uint64_t blocks) {
  absl::MutexLock lock(&mu_);
  const Philox start = generator_;
  generator_.Skip(blocks);
  return start;
}

StatusOr<Shape> ShapeInput(const KernelContext& ctx, int i) {
  const Tensor& t = ctx.input(i);
  if (t.rank() != 1) return InvalidArgument("shape must be a vector of integers, got ", t.shape().ToString());
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, t.IntValues());
  return Shape::Make(dims);
}

StatusOr<Philox> StatelessStream(const KernelContext& ctx, int input) {
  const Tensor& seed = ctx.input(input);
  if (seed.rank() != 1 || seed.dim(0) != 2) {
    return InvalidArgument("seed must have shape [2], got ", seed.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> s, seed.IntValues());
  auto word = [](int64_t v, int shift) { return static_cast<uint32_t>(static_cast<uint64_t>(v) >> shift); };
  const Philox::Block mix =
      Philox({word(s[0], 0), word(s[0], 32), word(s[1], 0), word(s[1], 32)}, {0x3ec8f720u, 0x02461e29u})();
  return Philox({0, 0, mix[2], mix[3]}, {mix[0], mix[1]});
}

namespace {

// How a distribution turns 128 bits into a group of numbers. `kVariable` ones read as many words as they need; each
// group then has a region of the stream of its own.
template <typename T>
struct Uniform {
  static constexpr bool kVariable = false;
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static void Make(const Philox::Block& x, T* out) {
    if constexpr (std::is_same_v<T, double>) {
      out[0] = UnitDouble(x[0], x[1]);
      out[1] = UnitDouble(x[2], x[3]);
    } else {
      for (size_t i = 0; i < 4; ++i) {
        if constexpr (std::is_same_v<T, float>) out[i] = UnitFloat(x[i]);
        if constexpr (std::is_same_v<T, Half>) out[i] = UnitHalf(x[i]);
        if constexpr (std::is_same_v<T, BFloat16>) out[i] = UnitBFloat16(x[i]);
      }
    }
  }
};

template <typename T>
struct Normal {
  static constexpr bool kVariable = false;
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static void Make(const Philox::Block& x, T* out) {
    if constexpr (std::is_same_v<T, double>) {
      BoxMuller(x[0], x[1], x[2], x[3], &out[0], &out[1]);
    } else {
      for (size_t i = 0; i < 4; i += 2) {
        float a, b;
        BoxMuller(x[i], x[i + 1], &a, &b);
        out[i] = T(a);
        out[i + 1] = T(b);
      }
    }
  }
};

template <typename T>
struct Truncated {
  static constexpr bool kVariable = true;
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static void Make(PhiloxWords& words, T* out) {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int filled = 0; filled < kGroup;) {
      Wide pair[2];
      const uint32_t x0 = words(), x1 = words();
      if constexpr (std::is_same_v<T, double>) {
        const uint32_t x2 = words(), x3 = words();
        BoxMuller(x0, x1, x2, x3, &pair[0], &pair[1]);
      } else {
        BoxMuller(x0, x1, &pair[0], &pair[1]);
      }
      for (Wide v : pair) {
        if (std::abs(v) < Wide(2) && filled < kGroup) out[filled++] = T(v);
      }
    }
  }
};

template <typename T>
struct UniformInt {
  static constexpr bool kVariable = false;
  static constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
};

constexpr uint64_t kSamplesPerOutput = 256;

template <typename D, typename T>
void Fill(const KernelContext& ctx, const Philox& start, T* out, int64_t n) {
  constexpr int64_t kGroup = D::kGroup;
  ctx.ParallelFor((n + kGroup - 1) / kGroup, D::kVariable ? 200.0 : 30.0, [&](int64_t begin, int64_t end) {
    Philox generator = start;
    generator.Skip(static_cast<uint64_t>(begin));
    for (int64_t g = begin; g < end; ++g) {
      T group[kGroup];
      if constexpr (D::kVariable) {
        Philox own = start;
        own.Skip(static_cast<uint64_t>(g) * kGroup * kSamplesPerOutput / 4);
        PhiloxWords words(own);
        D::Make(words, group);
      } else {
        D::Make(generator(), group);
      }
      const int64_t m = std::min(kGroup, n - g * kGroup);
      for (int64_t i = 0; i < m; ++i) out[g * kGroup + i] = group[i];
    }
  });
}

template <template <typename> class D>
Status FillOutput(KernelContext& ctx, const Philox& start, Tensor* out) {
  const int64_t n = out->num_elements();
  switch (out->dtype()) {
    case DType::kFloat: Fill<D<float>>(ctx, start, out->mutable_data<float>(), n); return absl::OkStatus();
    case DType::kDouble: Fill<D<double>>(ctx, start, out->mutable_data<double>(), n); return absl::OkStatus();
    case DType::kHalf: Fill<D<Half>>(ctx, start, out->mutable_data<Half>(), n); return absl::OkStatus();
    case DType::kBFloat16: Fill<D<BFloat16>>(ctx, start, out->mutable_data<BFloat16>(), n); return absl::OkStatus();
    default: return Unimplemented("no random numbers of type ", DTypeName(out->dtype()));
  }
}

template <template <typename> class D>
class FillKernel : public RandomKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx, 0));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    return FillOutput<D>(ctx, Reserve(shape.num_elements()), out);
  }
};

template <template <typename> class D>
Status FillStateless(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx, 0));
  MR_ASSIGN_OR_RETURN(const Philox stream, StatelessStream(ctx, 1));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  return FillOutput<D>(ctx, stream, out);
}

// RandomUniformInt and, with a seed for input 1, StatelessRandomUniformInt.
template <bool kStateless>
class UniformIntKernel : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override { return kStateless ? absl::OkStatus() : RandomKernel::Init(init); }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx, 0));
    constexpr int kLow = kStateless ? 2 : 1;
    for (int i : {kLow, kLow + 1}) {
      if (!ctx.input(i).shape().IsScalar()) {
        return InvalidArgument(
            i == kLow ? "minval" : "maxval", " must be a scalar, got ", ctx.input(i).shape().ToString());
      }
    }
    MR_ASSIGN_OR_RETURN(const int64_t low, ctx.input(kLow).IntScalar());
    MR_ASSIGN_OR_RETURN(const int64_t high, ctx.input(kLow + 1).IntScalar());
    Philox start;
    if constexpr (kStateless) {
      MR_ASSIGN_OR_RETURN(start, StatelessStream(ctx, 1));
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    if (low >= high) return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    if (!kStateless) start = Reserve(shape.num_elements());
    if (out->dtype() == DType::kInt64) {
      Numbers<int64_t>(ctx, start, low, range, *out);
    } else {
      Numbers<int32_t>(ctx, start, low, range, *out);
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void Numbers(const KernelContext& ctx, const Philox& start, int64_t low, uint64_t range, Tensor& t) {
    constexpr int64_t kGroup = UniformInt<T>::kGroup;
    T* out = t.mutable_data<T>();
    const int64_t n = t.num_elements();
    ctx.ParallelFor((n + kGroup - 1) / kGroup, 30.0, [&](int64_t begin, int64_t end) {
      Philox generator = start;
      generator.Skip(static_cast<uint64_t>(begin));
      for (int64_t g = begin; g < end; ++g) {
        const Philox::Block x = generator();
        for (int64_t i = 0; i < std::min(kGroup, n - g * kGroup); ++i) {
          const size_t k = static_cast<size_t>(i);
          const uint64_t bits = sizeof(T) == 8 ? uint64_t{x[2 * k]} | uint64_t{x[2 * k + 1]} << 32 : x[k];
          out[g * kGroup + i] = static_cast<T>(static_cast<uint64_t>(low) + bits % range);
        }
      }
    });
  }
};

}  // namespace

void RegisterRandomKernels(KernelRegistry& r) {
  const std::vector<DType> floats = Types("FLT");
  r.Add<FillKernel<Uniform>>({.op = "RandomUniform", .types = {{"dtype", floats}}});
  r.Add<FillKernel<Normal>>({.op = "RandomStandardNormal", .types = {{"dtype", floats}}});
  r.Add<FillKernel<Truncated>>({.op = "TruncatedNormal", .types = {{"dtype", floats}}});
  r.AddFn({.op = "StatelessRandomUniform", .types = {{"dtype", floats}}}, FillStateless<Uniform>);
  r.AddFn({.op = "StatelessRandomNormal", .types = {{"dtype", floats}}}, FillStateless<Normal>);
  r.AddFn({.op = "StatelessTruncatedNormal", .types = {{"dtype", floats}}}, FillStateless<Truncated>);
  r.Add<UniformIntKernel<false>>({.op = "RandomUniformInt", .types = {{"Tout", Types("IDX")}}});
  r.Add<UniformIntKernel<true>>({.op = "StatelessRandomUniformInt", .types = {{"dtype", Types("IDX")}}});
  RegisterRandomSamplers(r);
  RegisterTruncatedNormal(r);
}

}  // namespace millrace
