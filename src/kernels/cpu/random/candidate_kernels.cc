// SPDX-License-Identifier: Apache-2.0
// CPU kernels: candidate samplers. A sampler knows a distribution over [0, range): it draws from it, and tells the
// probability of a class. Fixed seeds draw what TensorFlow draws.
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/checked.h"
#include "base/env.h"
#include "base/stop_scope.h"
#include "kernel/cancellation.h"
#include "kernel/device_env.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/key_map.h"
#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/random/random.h"

namespace millrace {
namespace {

class UniformSampler {
 public:
  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(range_, init.Attr<int64_t>("range_max"));
    return absl::OkStatus();
  }
  int64_t possible() const { return range_; }
  int64_t Draw(PhiloxWords& words) const { return static_cast<int64_t>(Below64(words, static_cast<uint64_t>(range_))); }
  double Probability(int64_t) const { return 1.0 / static_cast<double>(range_); }
  Status Learn(absl::Span<const int64_t>) { return absl::OkStatus(); }

 private:
  int64_t range_ = 1;
};

class LogUniformSampler {
 public:
  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(range_, init.Attr<int64_t>("range_max"));
    log_range_ = std::log1p(static_cast<double>(range_));
    return absl::OkStatus();
  }
  int64_t possible() const { return range_; }
  int64_t Draw(PhiloxWords& words) const {
    const uint32_t high = words(), low = words();
    // Rounding can give the class behind the last one.
    return (SaturatingCast<int64_t>(std::exp(UnitDouble(high, low) * log_range_)) - 1) % range_;
  }
  double Probability(int64_t k) const {
    const double x = static_cast<double>(k);
    return std::log((x + 2.0) / (x + 1.0)) / log_range_;
  }
  Status Learn(absl::Span<const int64_t>) { return absl::OkStatus(); }

 private:
  int64_t range_ = 1;
  double log_range_ = 1;
};

// Weights that start at one, in a tree of partial sums (Fenwick 1994) of which only what was added to is stored.
template <bool kLearns>
class UnigramSampler {
 public:
  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(range_, init.Attr<int64_t>("range_max"));
    if (range_ >= std::numeric_limits<int32_t>::max())
      return InvalidArgument("range_max is ", range_, ", want less than 2^31 - 1");
    total_ = range_;
    return absl::OkStatus();
  }
  int64_t possible() const { return range_; }
  int64_t Draw(PhiloxWords& words) const {
    int64_t left = static_cast<int64_t>(
        total_ <= std::numeric_limits<uint32_t>::max()
            ? Below32(words, static_cast<uint32_t>(total_))
            : Below64(words, static_cast<uint64_t>(total_)));
    int64_t position = 0;
    for (int64_t step = int64_t{1} << 27; step > 0; step >>= 1) {
      if (position + step > range_) continue;
      const int64_t weight = step + Added(sums_, position + step);
      if (left < weight) continue;
      left -= weight;
      position += step;
    }
    return position;
  }
  double Probability(int64_t k) const {
    if (!InRange(k, range_)) return 0;
    return static_cast<double>(1 + Added(counts_, k)) / static_cast<double>(total_);
  }
  Status Learn(absl::Span<const int64_t> classes) {
    if constexpr (!kLearns) return absl::OkStatus();
    for (const int64_t k : classes) {
      if (!InRange(k, range_)) return InvalidArgument("true class ", k, " is outside of [0, ", range_, ")");
    }
    for (const int64_t k : classes) {
      ++counts_[k];
      ++total_;
      for (int64_t i = k + 1; i <= range_; i += i & -i) ++sums_[i];
    }
    return absl::OkStatus();
  }

 private:
  using Sums = KeyMap<int64_t>;
  static int64_t Added(const Sums& sums, int64_t i) {
    const int64_t* sum = sums.Find(i);
    return sum == nullptr ? 0 : *sum;
  }
  int64_t range_ = 1;
  int64_t total_ = 1;
  Sums sums_;    // of the nodes of the tree
  Sums counts_;  // of the classes
};

// Given weights, drawn from by the alias method (Walker 1977).
class FixedUnigramSampler {
 public:
  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(const int64_t range, init.Attr<int64_t>("range_max"));
    MR_ASSIGN_OR_RETURN(const int64_t reserved, init.Attr<int64_t>("num_reserved_ids"));
    MR_ASSIGN_OR_RETURN(shards_, init.Attr<int64_t>("num_shards"));
    MR_ASSIGN_OR_RETURN(shard_, init.Attr<int64_t>("shard"));
    MR_ASSIGN_OR_RETURN(const float distortion, init.Attr<float>("distortion"));
    MR_ASSIGN_OR_RETURN(const std::string file, init.Attr<std::string>("vocab_file"));
    MR_ASSIGN_OR_RETURN(std::vector<float> counts, init.Attr<std::vector<float>>("unigrams"));
    if (file.empty() == counts.empty()) return InvalidArgument("want either vocab_file or unigrams");
    if (shard_ >= shards_) return InvalidArgument("shard is ", shard_, ", want less than num_shards, ", shards_);
    if (reserved < 0 || reserved > range)
      return InvalidArgument("num_reserved_ids is ", reserved, ", want 0 to range_max, ", range);
    if (!file.empty()) MR_RETURN_IF_ERROR(ReadCounts(EnvOf(init.device), file, &counts));
    constexpr int64_t kMaxClasses = int64_t{1} << 27;
    if (reserved > kMaxClasses)
      return ResourceExhausted("num_reserved_ids is ", reserved, ", want at most ", kMaxClasses);
    for (int64_t i = 0; i < reserved; ++i) AddClass(0);
    for (const float c : counts) AddClass(std::pow(c, distortion));
    if (static_cast<int64_t>(weights_.size()) != range) {
      return InvalidArgument("range_max is ", range, ", but there are ", weights_.size(), " classes");
    }
    if (!(total_ > 0)) return InvalidArgument("all weights are 0");
    MakeAliases();
    return absl::OkStatus();
  }
  int64_t possible() const { return possible_; }
  int64_t Draw(PhiloxWords& words) const {
    const float u = UnitFloat(words());
    const size_t i = Below32(words, static_cast<uint32_t>(weights_.size()));
    return u < keep_[i] ? static_cast<int64_t>(i) : alias_[i];
  }
  double Probability(int64_t k) const {
    if (!InRange(k, static_cast<int64_t>(weights_.size()))) return 0;
    return static_cast<double>(weights_[static_cast<size_t>(k)]) / total_;
  }
  Status Learn(absl::Span<const int64_t>) { return absl::OkStatus(); }

 private:
  static Status ReadCounts(Env& env, const std::string& path, std::vector<float>* counts) {
    MR_ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (line.empty()) continue;
      const size_t comma = line.rfind(',');
      float count = 0;
      if (!absl::SimpleAtof(comma == absl::string_view::npos ? line : line.substr(comma + 1), &count)) {
        return InvalidArgument("no count at the end of line \"", line.substr(0, 80), "\" of ", path);
      }
      counts->push_back(count);
    }
    return absl::OkStatus();
  }
  void AddClass(float weight) {
    if (next_++ % shards_ != shard_) return;
    if (!(weight > 0) || !std::isfinite(weight)) weight = 0;
    weights_.push_back(weight);
    total_ += static_cast<double>(weight);
    if (weight > 0) ++possible_;
  }
  void MakeAliases() {
    const size_t n = weights_.size();
    std::vector<double> rest(n);
    std::vector<size_t> high, low;
    for (size_t i = 0; i < n; ++i) {
      rest[i] = static_cast<double>(weights_[i]) * static_cast<double>(n) / total_;
      (rest[i] < 1 ? low : high).push_back(i);
    }
    alias_.resize(n);
    std::iota(alias_.begin(), alias_.end(), int64_t{0});
    while (!high.empty() && !low.empty()) {
      const size_t l = low.back(), h = high.back();
      low.pop_back();
      high.pop_back();
      alias_[l] = static_cast<int64_t>(h);
      rest[h] -= 1 - rest[l];
      (rest[h] < 1 ? low : high).push_back(h);
    }
    keep_.assign(rest.begin(), rest.end());
    for (const std::vector<size_t>* left : {&high, &low}) {  // rounding left these a little off one
      for (const size_t i : *left) keep_[i] = weights_[i] > 0 ? 1 : 0;
    }
  }

  int64_t shards_ = 1, shard_ = 0, next_ = 0, possible_ = 0;
  double total_ = 0;
  std::vector<float> weights_, keep_;
  std::vector<int64_t> alias_;
};

// Everything, in order.
class AllSampler {
 public:
  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(range_, init.Attr<int64_t>("num_sampled"));
    return absl::OkStatus();
  }
  int64_t possible() const { return range_; }

 private:
  int64_t range_ = 1;
};

template <typename Sampler>
class SamplerKernel final : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(RandomKernel::Init(init));
    MR_ASSIGN_OR_RETURN(num_true_, init.Attr<int64_t>("num_true"));
    MR_ASSIGN_OR_RETURN(num_sampled_, init.Attr<int64_t>("num_sampled"));
    MR_ASSIGN_OR_RETURN(unique_, init.Attr<bool>("unique"));
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(sampler_.Init(init));
    if (unique_ && num_sampled_ > sampler_.possible()) {
      return InvalidArgument(
          "num_sampled is ", num_sampled_, ", but only ", sampler_.possible(), " classes can be drawn");
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& classes = ctx.input(0);
    if (classes.rank() != 2 || classes.dim(1) != num_true_) {
      return InvalidArgument(
          "true_classes must be a matrix with ", num_true_, " columns, got shape ", classes.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * drawn, ctx.AllocateOutput(0, Shape::Vector(num_sampled_)));
    MR_ASSIGN_OR_RETURN(Tensor * true_counts, ctx.AllocateOutput(1, classes.shape()));
    MR_ASSIGN_OR_RETURN(Tensor * drawn_counts, ctx.AllocateOutput(2, Shape::Vector(num_sampled_)));
    if constexpr (std::is_same_v<Sampler, AllSampler>) {
      std::iota(drawn->mutable_data<int64_t>(), drawn->mutable_data<int64_t>() + num_sampled_, int64_t{0});
      for (float& v : true_counts->mutable_flat<float>()) v = 1;
      for (float& v : drawn_counts->mutable_flat<float>()) v = 1;
      return absl::OkStatus();
    } else {
      PhiloxWords words(Reserve(2 * num_sampled_));
      absl::MutexLock lock(&mu_);
      MR_ASSIGN_OR_RETURN(const int64_t tries, Draw(ctx, words, drawn->mutable_flat<int64_t>()));
      Count(classes.flat<int64_t>(), tries, true_counts->mutable_flat<float>());
      Count(drawn->flat<int64_t>(), tries, drawn_counts->mutable_flat<float>());
      return sampler_.Learn(classes.flat<int64_t>());
    }
  }

 private:
  // The number of draws that it took.
  StatusOr<int64_t> Draw(KernelContext& ctx, PhiloxWords& words, absl::Span<int64_t> out) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!unique_) {
      for (int64_t& k : out) k = sampler_.Draw(words);
      return num_sampled_;
    }
    KeyMap<int64_t> seen;
    int64_t tries = 0;
    for (size_t i = 0; i < out.size();) {
      if ((++tries & 0xfffff) == 0 && ctx.step().cancellation != nullptr) {
        MR_RETURN_IF_ERROR(ctx.step().cancellation->reason());
      }
      const int64_t k = sampler_.Draw(words);
      if (seen.Insert(k, 0).second) out[i++] = k;
    }
    return tries;
  }
  void Count(absl::Span<const int64_t> classes, int64_t tries, absl::Span<float> out) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (size_t i = 0; i < classes.size(); ++i) {
      const double p = sampler_.Probability(classes[i]);
      out[i] = static_cast<float>(tries == num_sampled_ ? p * static_cast<double>(num_sampled_)
                                                        : -std::expm1(static_cast<double>(tries) * std::log1p(-p)));
    }
  }

  int64_t num_true_ = 1, num_sampled_ = 1;
  bool unique_ = false;
  absl::Mutex mu_;
  Sampler sampler_ ABSL_GUARDED_BY(mu_);
};

class AccidentalHitsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(num_true_, init.Attr<int64_t>("num_true"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &classes = ctx.input(0), &sampled = ctx.input(1);
    if (classes.rank() != 2 || classes.dim(1) != num_true_) {
      return InvalidArgument(
          "true_classes must be a matrix with ", num_true_, " columns, got shape ", classes.shape().ToString());
    }
    if (sampled.rank() != 1)
      return InvalidArgument("sampled_candidates must be a vector, got shape ", sampled.shape().ToString());
    if (classes.dim(0) > std::numeric_limits<int32_t>::max()) return InvalidArgument("too many rows: ", classes.dim(0));
    KeyMap<int64_t> place;
    for (int64_t i = 0; i < sampled.num_elements(); ++i) place[sampled.data<int64_t>()[i]] = i;
    std::vector<int32_t> rows;
    std::vector<int64_t> places;
    for (int64_t i = 0; i < classes.num_elements(); ++i) {
      const int64_t* found = place.Find(classes.data<int64_t>()[i]);
      if (found == nullptr) continue;
      rows.push_back(static_cast<int32_t>(i / num_true_));
      places.push_back(*found);
    }
    const Shape shape = Shape::Vector(static_cast<int64_t>(rows.size()));
    MR_ASSIGN_OR_RETURN(Tensor * out_rows, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(Tensor * out_places, ctx.AllocateOutput(1, shape));
    MR_ASSIGN_OR_RETURN(Tensor * weights, ctx.AllocateOutput(2, shape));
    std::copy(rows.begin(), rows.end(), out_rows->mutable_data<int32_t>());
    std::copy(places.begin(), places.end(), out_places->mutable_data<int64_t>());
    for (float& w : weights->mutable_flat<float>()) w = std::numeric_limits<float>::lowest();
    return absl::OkStatus();
  }

 private:
  int64_t num_true_ = 1;
};

class SkipGramKernel final : public RandomKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    MR_RETURN_IF_ERROR(RequireVector("input_tensor", input));
    for (int i = 1; i < ctx.num_inputs(); ++i)
      MR_RETURN_IF_ERROR(RequireScalar(ctx.node().op->inputs[i].name, ctx.input(i)));
    const int64_t least = *ctx.input(1).data<int32_t>(), most = *ctx.input(2).data<int32_t>();
    if (least < 0 || most < 0) return InvalidArgument("Both min_skips and max_skips must be >= 0.");
    if (least > most) return InvalidArgument("min_skips must be <= max_skips.");
    const int64_t start = *ctx.input(3).data<int32_t>(), limit = *ctx.input(4).data<int32_t>();
    const int64_t size = input.num_elements(), end = limit < 0 ? size : std::min(start + limit, size);
    if (start < 0) return InvalidArgument("start must be >= 0, got ", start);
    const int64_t self = *ctx.input(5).data<bool>() ? -1 : 0;  // the distance that is left out; none is -1
    const int64_t count = std::max<int64_t>(end - start, 0);
    PhiloxWords words(ReserveBlocks(static_cast<uint64_t>(count + 1 + 3) / 4));
    std::vector<int64_t> tokens, labels;  // places
    StopNowAndThen pause;
    for (int64_t i = start; i < end; ++i) {
      const int64_t skips = least + static_cast<int64_t>(Below32(words, static_cast<uint32_t>(most - least + 1)));
      for (int64_t j = std::max(i - skips, start); j <= std::min(i + skips, end - 1); ++j) {
        pause();
        if (std::abs(i - j) == self) continue;
        tokens.push_back(i);
        labels.push_back(j);
      }
    }
    const RunCopier copier(input.dtype(), 1);
    const auto pairs = static_cast<int64_t>(tokens.size());
    for (int o = 0; o < 2; ++o) {
      MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape::Vector(pairs)));
      copier.Gather(out->mutable_raw(), input.raw(), (o == 0 ? tokens : labels).data(), pairs);
    }
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterCandidateKernels(KernelRegistry& registry) {
  registry.Add<SamplerKernel<UniformSampler>>({.op = "UniformCandidateSampler"});
  registry.Add<SamplerKernel<LogUniformSampler>>({.op = "LogUniformCandidateSampler"});
  registry.Add<SamplerKernel<UnigramSampler<true>>>({.op = "LearnedUnigramCandidateSampler"});
  registry.Add<SamplerKernel<UnigramSampler<false>>>({.op = "ThreadUnsafeUnigramCandidateSampler"});
  registry.Add<SamplerKernel<FixedUnigramSampler>>({.op = "FixedUnigramCandidateSampler"});
  registry.Add<SamplerKernel<AllSampler>>({.op = "AllCandidateSampler"});
  registry.Add<AccidentalHitsKernel>({.op = "ComputeAccidentalHits"});
  registry.Add<SkipGramKernel>({.op = "SkipGramGenerateCandidates"});
}

}  // namespace millrace
