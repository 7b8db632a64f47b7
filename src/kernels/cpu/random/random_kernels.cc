// SPDX-License-Identifier: Apache-2.0
// CPU kernels: random numbers from Philox streams. Samplers of other distributions are in random_samplers.cc.
#include "base/env.h"
#include "kernel/device_env.h"
#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/random/random_tiles.h"

namespace millrace {

Status RandomKernel::Init(const KernelInit& init) {
  MR_ASSIGN_OR_RETURN(const int64_t seed, init.Attr<int64_t>("seed"));
  MR_ASSIGN_OR_RETURN(const int64_t seed2, init.Attr<int64_t>("seed2"));
  Start(init, seed, seed2);
  return absl::OkStatus();
}

void RandomKernel::Start(const KernelInit& init, int64_t seed, int64_t seed2) {
  absl::MutexLock lock(&mu_);
  Env& env = EnvOf(init.device);
  generator_ = seed == 0 && seed2 == 0 ? Philox(env.Random64(), env.Random64())
                                       : Philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
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
  int64_t s[2] = {};
  VisitTypes<int32_t, int64_t, uint32_t, uint64_t>(
      seed.dtype(), [&]<typename T>() { std::copy_n(seed.data<T>(), 2, s); });
  auto word = [](int64_t v, int shift) { return static_cast<uint32_t>(static_cast<uint64_t>(v) >> shift); };
  const Philox::Block mix =
      Philox({word(s[0], 0), word(s[0], 32), word(s[1], 0), word(s[1], 32)}, {0x3ec8f720u, 0x02461e29u})();
  return Philox({0, 0, mix[2], mix[3]}, {mix[0], mix[1]});
}

StatusOr<Philox> KeyedStream(const KernelContext& ctx, int key_input) {
  const Tensor &key = ctx.input(key_input), &counter = ctx.input(key_input + 1), &alg = ctx.input(key_input + 2);
  if (key.rank() != 1 || key.dim(0) != 1) {
    return InvalidArgument("key must have shape [1], got ", key.shape().ToString());
  }
  if (counter.rank() != 1 || counter.dim(0) < 2) {
    return InvalidArgument("counter must be a vector of at least 2 elements, got ", counter.shape().ToString());
  }
  if (alg.rank() != 0) return InvalidArgument("alg must be a scalar, got ", alg.shape().ToString());
  MR_ASSIGN_OR_RETURN(const int64_t algorithm, alg.IntScalar());
  if (algorithm != kPhiloxAlgorithm && algorithm != kAnyAlgorithm) {
    return InvalidArgument(
        "Unsupported algorithm id: ", algorithm, ", want ", kPhiloxAlgorithm, " (Philox) or ", kAnyAlgorithm, " (any)");
  }
  const auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  const auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  const uint64_t k = key.data<uint64_t>()[0], *c = counter.data<uint64_t>();
  return Philox({low(c[0]), high(c[0]), low(c[1]), high(c[1])}, {low(k), high(k)});
}

StatusOr<Philox> StreamOf(const KernelContext& ctx, Source source, int64_t outputs) {
  switch (source) {
    case Source::kSeed: return StatelessStream(ctx, 1);
    case Source::kKey: return KeyedStream(ctx, 1);
    case Source::kState: return ReserveState(ctx, outputs);
    default: return Philox(EnvOf(ctx.device()).Random64(), EnvOf(ctx.device()).Random64());
  }
}

namespace {

// Calls make(start, first, count, numbers) for batches of groups of numbers: `count` of them from group `first` on.
template <typename T, typename Make>
void FillGroups(const KernelContext& ctx, const Philox& start, int64_t group, double cost, T* out, int64_t n,
                const Make& make) {
  ctx.ParallelFor((n + group - 1) / group, cost, [&](int64_t begin, int64_t end) {
    T last[4 * kRandomBatch];
    for (int64_t g = begin; g < end; g += kRandomBatch) {
      const int64_t count = std::min(kRandomBatch, end - g), room = n - g * group;
      if (room >= count * group) {
        make(start, g, count, out + g * group);
      } else {
        make(start, g, count, last);
        std::copy(last, last + room, out + g * group);
      }
    }
  });
}

// Groups of four floats, which the narrow types round.
template <typename T, typename Make>
void FillFloats(const KernelContext& ctx, const Philox& start, double cost, T* out, int64_t n, const Make& make) {
  if constexpr (std::is_same_v<T, float>) {
    FillGroups(ctx, start, 4, cost, out, n, make);
  } else {
    const ConvertRoute narrow = FindConvert(DType::kFloat, DTypeOf<T>::value);
    FillGroups(ctx, start, 4, cost, out, n, [&](const Philox& s, int64_t first, int64_t count, T* numbers) {
      float wide[4 * kRandomBatch];
      make(s, first, count, wide);
      narrow.Run(wide, numbers, 4 * count);
    });
  }
}

Philox After(Philox p, uint64_t blocks) {
  p.Skip(blocks);
  return p;
}

// Pairs of doubles: fn(words of a block, two numbers).
template <typename Fn>
void FillDoubles(const KernelContext& ctx, const Philox& start, double cost, double* out, int64_t n, const Fn& fn) {
  FillGroups(ctx, start, 2, cost, out, n, [&](const Philox& s, int64_t first, int64_t count, double* numbers) {
    uint32_t words[4 * kRandomBatch];
    RandomWords(After(s, static_cast<uint64_t>(first)), 1, count, words);
    for (int64_t i = 0; i < count; ++i) fn(words + 4 * i, numbers + 2 * i);
  });
}

template <typename T>
struct Uniform {
  static void Fill(const KernelContext& ctx, const Philox& start, T* out, int64_t n) {
    if constexpr (std::is_same_v<T, double>) {
      FillDoubles(ctx, start, 5, out, n, [](const uint32_t* x, double* pair) {
        pair[0] = UnitDouble(x[0], x[1]);
        pair[1] = UnitDouble(x[2], x[3]);
      });
    } else {
      constexpr int kBits = std::is_same_v<T, float> ? 23 : std::is_same_v<T, Half> ? 10 : 7;
      FillFloats(ctx, start, 5, out, n, [](const Philox& s, int64_t first, int64_t count, float* numbers) {
        RandomFractions(After(s, static_cast<uint64_t>(first)), count, kBits, numbers);
      });
    }
  }
};

template <typename T>
struct Normal {
  static void Fill(const KernelContext& ctx, const Philox& start, T* out, int64_t n) {
    if constexpr (std::is_same_v<T, double>) {
      FillDoubles(ctx, start, 60, out, n, [](const uint32_t* x, double* pair) {
        BoxMuller(x[0], x[1], x[2], x[3], &pair[0], &pair[1]);
      });
    } else {
      FillFloats(ctx, start, 8, out, n, [](const Philox& s, int64_t first, int64_t count, float* numbers) {
        RandomNormals(After(s, static_cast<uint64_t>(first)), 1, count, numbers);
      });
    }
  }
};

// Normal numbers below 2 in size. They take as many words as they need, so that each group has a region of the stream
// of its own.
template <typename T>
struct Truncated {
  static constexpr uint64_t kSamplesPerOutput = 256;
  template <typename N>
  static void Keep(const N* from, int n, N* group, int size, int* filled) {
    for (int i = 0; i < n && *filled < size; ++i) {
      if (std::abs(from[i]) < N(2)) group[(*filled)++] = from[i];
    }
  }
  static void FillWide(const Philox& start, double* group) {
    PhiloxWords words(start);
    for (int filled = 0; filled < 2;) {
      double pair[2];
      const uint32_t x0 = words(), x1 = words(), x2 = words(), x3 = words();
      BoxMuller(x0, x1, x2, x3, &pair[0], &pair[1]);
      Keep(pair, 2, group, 2, &filled);
    }
  }
  // Two blocks of each group at once; few want more.
  static void FillNarrow(const Philox& start, int64_t first, int64_t count, float* numbers) {
    constexpr uint64_t kApart = kSamplesPerOutput;  // four numbers a group, four words a block
    const Philox here = After(start, static_cast<uint64_t>(first) * kApart);
    float normals[2][4 * kRandomBatch];
    for (uint64_t b = 0; b < 2; ++b) RandomNormals(After(here, b), kApart, count, normals[b]);
    for (int64_t g = 0; g < count; ++g) {
      float* group = numbers + 4 * g;
      int filled = 0;
      for (const auto& block : normals) Keep(block + 4 * g, 4, group, 4, &filled);
      for (uint64_t b = 2; filled < 4; ++b) {
        float more[4];
        RandomNormals(After(here, static_cast<uint64_t>(g) * kApart + b), 1, 1, more);
        Keep(more, 4, group, 4, &filled);
      }
    }
  }
  static void Fill(const KernelContext& ctx, const Philox& start, T* out, int64_t n) {
    if constexpr (std::is_same_v<T, double>) {
      FillGroups(ctx, start, 2, 120, out, n, [](const Philox& s, int64_t first, int64_t count, double* numbers) {
        for (int64_t g = 0; g < count; ++g) {
          FillWide(After(s, static_cast<uint64_t>(first + g) * (kSamplesPerOutput / 2)), numbers + 2 * g);
        }
      });
    } else {
      FillFloats(ctx, start, 30, out, n, &FillNarrow);
    }
  }
};

template <template <typename> class D>
Status FillOutput(KernelContext& ctx, const Philox& start, Tensor* out) {
  const int64_t n = out->num_elements();
  const bool known = VisitTypes<float, double, Half, BFloat16>(
      out->dtype(), [&]<typename T>() { D<T>::Fill(ctx, start, out->mutable_data<T>(), n); });
  return known ? absl::OkStatus() : Unimplemented("no random numbers of type ", DTypeName(out->dtype()));
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

template <Source kSource>
StatusOr<Shape> OutputShape(const KernelContext& ctx) {
  return ShapeInput(ctx, kSource == Source::kState ? ctx.input_arg("shape").begin : 0);
}

template <template <typename> class D, Source kSource>
Status FillFrom(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape<kSource>(ctx));
  MR_ASSIGN_OR_RETURN(const Philox stream, StreamOf(ctx, kSource, shape.num_elements()));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  return FillOutput<D>(ctx, stream, out);
}

// number(words) of the next one or two words of the stream, for each element.
template <typename T, typename Number>
void FillIntegers(const KernelContext& ctx, const Philox& start, Tensor& t, const Number& number) {
  constexpr int64_t kWords = sizeof(T) / 4;
  const auto make = [&number](const Philox& s, int64_t first, int64_t count, T* numbers) {
    uint32_t words[4 * kRandomBatch];
    RandomWords(After(s, static_cast<uint64_t>(first)), 1, count, words);
    for (int64_t i = 0; i < 4 * count / kWords; ++i) numbers[i] = number(words + i * kWords);
  };
  FillGroups(ctx, start, 4 / kWords, 12, t.mutable_data<T>(), t.num_elements(), make);
}

// RandomUniformInt, and its forms with streams of other sources.
template <Source kSource>
class UniformIntKernel : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override {
    return kSource == Source::kOwn ? RandomKernel::Init(init) : absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape<kSource>(ctx));
    constexpr int kLow = InputsOf(kSource);
    for (int i : {kLow, kLow + 1}) {
      if (!ctx.input(i).shape().IsScalar()) {
        return InvalidArgument(
            i == kLow ? "minval" : "maxval", " must be a scalar, got ", ctx.input(i).shape().ToString());
      }
    }
    Philox start;
    if constexpr (kSource != Source::kOwn) {
      MR_ASSIGN_OR_RETURN(start, StreamOf(ctx, kSource, shape.num_elements()));
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    Status status;
    VisitTypes<int32_t, int64_t, uint32_t, uint64_t>(out->dtype(), [&]<typename T>() {
      const T low = *ctx.input(kLow).data<T>(), high = *ctx.input(kLow + 1).data<T>();
      if (low >= high) {
        status = InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
        return;
      }
      const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
      if (kSource == Source::kOwn) start = Reserve(shape.num_elements());
      FillIntegers<T>(ctx, start, *out, [low, range](const uint32_t* x) {
        const uint64_t rest = sizeof(T) == 8 ? (uint64_t{x[0]} | uint64_t{x[1]} << 32) % range : Rest(x[0], range);
        return static_cast<T>(static_cast<uint64_t>(low) + rest);
      });
    });
    return status;
  }

 private:
  // x % range for a range of at most 2^32: division in 32 bits is several times as fast.
  static uint64_t Rest(uint32_t x, uint64_t range) {
    return range > 0xffffffffu ? x : x % static_cast<uint32_t>(range);
  }
};

// All bits of the numbers are random.
template <Source kSource>
Status FullIntegers(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape<kSource>(ctx));
  MR_ASSIGN_OR_RETURN(const Philox start, StreamOf(ctx, kSource, shape.num_elements()));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  VisitTypes<int32_t, int64_t, uint32_t, uint64_t>(out->dtype(), [&]<typename T>() {
    FillIntegers<T>(ctx, start, *out, [](const uint32_t* x) {
      return static_cast<T>(sizeof(T) == 8 ? uint64_t{x[0]} | uint64_t{x[1]} << 32 : x[0]);
    });
  });
  return absl::OkStatus();
}

// What a seed stands for.
Status KeyCounter(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Philox stream, StatelessStream(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * key, ctx.AllocateOutput(0, Shape::Vector(1)));
  MR_ASSIGN_OR_RETURN(Tensor * counter, ctx.AllocateOutput(1, Shape::Vector(2)));
  const auto join = [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; };
  *key->mutable_data<uint64_t>() = join(stream.key()[0], stream.key()[1]);
  const Philox::Block& c = stream.counter();
  counter->mutable_data<uint64_t>()[0] = join(c[0], c[1]);
  counter->mutable_data<uint64_t>()[1] = join(c[2], c[3]);
  return absl::OkStatus();
}

template <int kOutput>
Status Algorithm(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(Tensor * alg, ctx.AllocateOutput(kOutput, Shape()));
  *alg->mutable_data<int32_t>() = kPhiloxAlgorithm;
  return absl::OkStatus();
}

Status KeyCounterAlgorithm(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(KeyCounter(ctx));
  return Algorithm<2>(ctx);
}

}  // namespace

void RegisterRandomKernels(KernelRegistry& r) {
  const std::vector<DType> floats = Types("FLT");
  r.Add<FillKernel<Uniform>>({.op = "RandomUniform", .types = {{"dtype", floats}}, .cost = CostlyElementCost});
  r.Add<FillKernel<Normal>>({.op = "RandomStandardNormal", .types = {{"dtype", floats}}, .cost = CostlyElementCost});
  r.Add<FillKernel<Truncated>>({.op = "TruncatedNormal", .types = {{"dtype", floats}}, .cost = CostlyElementCost});
  const auto filled = [&](const char* op, Status (*fill)(KernelContext&)) {
    r.AddFn({.op = op, .types = {{"dtype", floats}}, .cost = CostlyElementCost}, fill);
  };
  filled("StatelessRandomUniform", FillFrom<Uniform, Source::kSeed>);
  filled("StatelessRandomUniformV2", FillFrom<Uniform, Source::kKey>);
  filled("StatelessRandomNormal", FillFrom<Normal, Source::kSeed>);
  filled("StatelessRandomNormalV2", FillFrom<Normal, Source::kKey>);
  filled("StatelessTruncatedNormal", FillFrom<Truncated, Source::kSeed>);
  filled("StatelessTruncatedNormalV2", FillFrom<Truncated, Source::kKey>);
  for (const char* op : {"StatefulStandardNormal", "StatefulStandardNormalV2"}) {
    filled(op, FillFrom<Normal, Source::kState>);
  }
  filled("StatefulUniform", FillFrom<Uniform, Source::kState>);
  filled("StatefulTruncatedNormal", FillFrom<Truncated, Source::kState>);
  r.Add<UniformIntKernel<Source::kOwn>>({.op = "RandomUniformInt", .types = {{"Tout", Types("IDX")}}});
  r.Add<UniformIntKernel<Source::kSeed>>({.op = "StatelessRandomUniformInt", .types = {{"dtype", Types("IDX")}}});
  r.Add<UniformIntKernel<Source::kKey>>({.op = "StatelessRandomUniformIntV2"});
  const std::vector<DType> integers = Types("IDX|u32|u64");
  r.Add<UniformIntKernel<Source::kState>>({.op = "StatefulUniformInt", .types = {{"dtype", integers}}});
  r.AddFn({.op = "StatefulUniformFullInt", .types = {{"dtype", integers}}}, FullIntegers<Source::kState>);
  r.AddFn({.op = "NonDeterministicInts", .types = {{"dtype", integers}}}, FullIntegers<Source::kUnknown>);
  r.AddFn({.op = "StatelessRandomUniformFullInt"}, FullIntegers<Source::kSeed>);
  r.AddFn({.op = "StatelessRandomUniformFullIntV2"}, FullIntegers<Source::kKey>);
  r.AddFn({.op = "StatelessRandomGetKeyCounter"}, KeyCounter);
  r.AddFn({.op = "StatelessRandomGetAlg"}, Algorithm<0>);
  r.AddFn({.op = "StatelessRandomGetKeyCounterAlg"}, KeyCounterAlgorithm);
  RegisterRandomState(r);
  RegisterRandomSamplers(r);
  RegisterRandomBinomial(r);
  RegisterTruncatedNormal(r);
}

}  // namespace millrace
