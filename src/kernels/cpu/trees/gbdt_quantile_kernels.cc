// SPDX-License-Identifier: Apache-2.0
// CPU kernels: quantiles of features for tf.contrib.boosted_trees, a stream of each, and the buckets between them.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/gbdt_kernels.h"
#include "kernels/cpu/trees/quantile_sketch.h"
#include "wire/gbdt.h"

namespace millrace {
namespace {

constexpr double kNanosecondsPerValue = 50;
constexpr int64_t kMostQuantiles = int64_t{1} << 24;

std::string SummaryMessage(const QuantileSummary& summary) {
  wire::GbdtQuantileSummary message;
  for (const QuantileEntry& e : summary.entries()) {
    wire::GbdtQuantileEntry& entry = message.entries.emplace_back();
    entry.value = e.value, entry.weight = e.weight, entry.min_rank = e.min_rank, entry.max_rank = e.max_rank;
  }
  return wire::Encode(message);
}

StatusOr<QuantileSummary> SummaryOf(const wire::GbdtQuantileSummary& message) {
  std::vector<QuantileEntry> entries;
  StopNowAndThen pause;
  for (const wire::GbdtQuantileEntry& e : message.entries) {
    pause();
    for (const float v : {e.value, e.weight, e.min_rank, e.max_rank}) {
      if (std::isnan(v)) return InvalidArgument("a summary of quantiles must hold numbers, got NaN");
    }
    entries.push_back({e.value, e.weight, e.min_rank, e.max_rank});
  }
  return QuantileSummary(std::move(entries));
}

StatusOr<QuantileSummary> ParseSummary(absl::string_view bytes) {
  wire::GbdtQuantileSummary message;
  MR_RETURN_IF_ERROR(wire::Decode(bytes, &message));
  return SummaryOf(message);
}

std::vector<float> BucketsOf(const QuantileSummary& summary, int64_t count, bool are_quantiles) {
  std::vector<float> buckets = are_quantiles ? summary.Quantiles(count) : summary.Boundaries(count);
  if (!are_quantiles) buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  return buckets;
}

struct Settings {
  float epsilon = 0;
  int64_t max_elements = 0;
  int64_t num_quantiles = 0;
  bool are_quantiles = false;

  Status Check() const {
    MR_RETURN_IF_ERROR(QuantileStream::Check(epsilon, max_elements));
    if (num_quantiles >= 2 && num_quantiles <= kMostQuantiles) return absl::OkStatus();
    return InvalidArgument("num_quantiles must be in [2, ", kMostQuantiles, "], got ", num_quantiles);
  }
};

struct QuantileState {
  int64_t stamp = 0;
  QuantileStream stream;
  bool are_ready = false;
  std::vector<float> buckets;
};

class QuantileAccumulator final : public Resource {
 public:
  static constexpr char kTypeName[] = "QuantileStreamResource";
  QuantileAccumulator(const Settings& settings, int64_t stamp)
      : settings_(settings), state_{stamp, NewStream(), false, {}} {}
  std::string DebugString() const override { return "QuantileAccumulator"; }
  const Settings& settings() const { return settings_; }
  QuantileStream NewStream() const { return {settings_.epsilon, settings_.max_elements}; }

  template <typename Fn>
  auto With(Fn fn) {
    absl::MutexLock lock(&mu_);
    return fn(state_);
  }

 private:
  const Settings settings_;
  absl::Mutex mu_;
  QuantileState state_ ABSL_GUARDED_BY(mu_);
};

class CreateKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(settings_.epsilon, init.Attr<float>("epsilon"));
    MR_ASSIGN_OR_RETURN(settings_.max_elements, init.Attr<int64_t>("max_elements"));
    MR_ASSIGN_OR_RETURN(settings_.num_quantiles, init.Attr<int64_t>("num_quantiles"));
    MR_ASSIGN_OR_RETURN(settings_.are_quantiles, init.Attr<bool>("generate_quantiles"));
    return settings_.Check();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
    return MakeTreeResource(ctx, MakeRef<QuantileAccumulator>(settings_, stamp));
  }

 private:
  Settings settings_;
};

// Each accumulator takes its summary as a whole.
Status AddSummaries(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  const TreeInput handles(ctx, "quantile_accumulator_handles"), summaries(ctx, "summaries");
  MR_RETURN_IF_ERROR(summaries.CheckRank(0));
  std::vector<RefPtr<QuantileAccumulator>> accumulators;
  std::vector<QuantileSummary> parsed;
  for (int i = 0; i < handles.size(); ++i) {
    const StopAllowed as_it_reads;
    MR_ASSIGN_OR_RETURN(RefPtr<QuantileAccumulator> found, FindResource<QuantileAccumulator>(ctx, i));
    MR_ASSIGN_OR_RETURN(QuantileSummary summary, ParseSummary(summaries[i].data<TString>()->view()));
    accumulators.push_back(std::move(found));
    parsed.push_back(std::move(summary));
  }
  for (size_t i = 0; i < parsed.size(); ++i) {
    {
      const StopAllowed between_two;
      StopIfAsked();
    }
    accumulators[i]->With([&](QuantileState& state) {
      if (state.stamp == stamp) state.stream.Push(std::move(parsed[i]));
    });
  }
  return absl::OkStatus();
}

Status GetBuckets(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  const int n = TreeInput(ctx, "quantile_accumulator_handles").size();
  for (int i = 0; i < n; ++i) {
    MR_ASSIGN_OR_RETURN(const RefPtr<QuantileAccumulator> accumulator, FindResource<QuantileAccumulator>(ctx, i));
    bool are_ready = false;
    std::vector<float> buckets;
    accumulator->With([&](QuantileState& state) {
      are_ready = state.stamp == stamp && state.are_ready;
      if (are_ready) buckets = state.buckets;
    });
    MR_ASSIGN_OR_RETURN(Tensor * ready, ctx.AllocateOutput(i, Shape()));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(n + i, Shape::Vector(std::ssize(buckets))));
    *ready->mutable_data<bool>() = are_ready;
    std::copy(buckets.begin(), buckets.end(), out->mutable_data<float>());
  }
  return absl::OkStatus();
}

// What came since the last time.
StatusOr<QuantileSummary> Take(KernelContext& ctx, QuantileAccumulator& accumulator, bool fill_buckets) {
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  MR_ASSIGN_OR_RETURN(const int64_t next, TreeInput(ctx, "next_stamp_token").Int());
  return accumulator.With([&](QuantileState& state) -> StatusOr<QuantileSummary> {
    MR_RETURN_IF_ERROR(CheckStamp(state.stamp, stamp));
    QuantileSummary all = state.stream.Finish();
    const Settings& settings = accumulator.settings();
    if (fill_buckets) state.buckets = BucketsOf(all, settings.num_quantiles, settings.are_quantiles);
    state.are_ready = fill_buckets || state.are_ready;
    state.stream = accumulator.NewStream();
    state.stamp = next;
    return all;
  });
}

Status Flush(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<QuantileAccumulator> accumulator, FindResource<QuantileAccumulator>(ctx, 0));
  return Take(ctx, *accumulator, true).status();
}

Status FlushSummary(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<QuantileAccumulator> accumulator, FindResource<QuantileAccumulator>(ctx, 0));
  MR_ASSIGN_OR_RETURN(const QuantileSummary summary, Take(ctx, *accumulator, false));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() = TString(SummaryMessage(summary));
  return absl::OkStatus();
}

Status Serialize(KernelContext& ctx) {
  const StopAllowed as_it_works_on_a_copy;
  MR_ASSIGN_OR_RETURN(const RefPtr<QuantileAccumulator> accumulator, FindResource<QuantileAccumulator>(ctx, 0));
  QuantileState state = accumulator->With([](QuantileState& s) { return s; });
  const QuantileSummary summary = state.stream.Finish();
  wire::GbdtQuantileStream message;
  MR_RETURN_IF_ERROR(wire::Decode(SummaryMessage(summary), &message.summaries.emplace_back()));
  MR_ASSIGN_OR_RETURN(Tensor * stamp, ctx.AllocateOutput(0, Shape()));
  MR_ASSIGN_OR_RETURN(Tensor * stream, ctx.AllocateOutput(1, Shape()));
  MR_ASSIGN_OR_RETURN(Tensor * ready, ctx.AllocateOutput(2, Shape()));
  MR_ASSIGN_OR_RETURN(Tensor * buckets, ctx.AllocateOutput(3, Shape::Vector(std::ssize(state.buckets))));
  *stamp->mutable_data<int64_t>() = state.stamp;
  *stream->mutable_data<TString>() = TString(wire::Encode(message));
  *ready->mutable_data<bool>() = state.are_ready;
  std::copy(state.buckets.begin(), state.buckets.end(), buckets->mutable_data<float>());
  return absl::OkStatus();
}

Status Deserialize(KernelContext& ctx) {
  const StopAllowed until_it_is_read;
  MR_ASSIGN_OR_RETURN(const RefPtr<QuantileAccumulator> accumulator, FindResource<QuantileAccumulator>(ctx, 0));
  const TreeInput stream(ctx, "stream_state"), ready(ctx, "are_buckets_ready"), buckets(ctx, "buckets");
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  MR_RETURN_IF_ERROR(stream.CheckRank(0));
  MR_RETURN_IF_ERROR(ready.CheckRank(0));
  MR_RETURN_IF_ERROR(buckets.CheckRank(1));
  MR_RETURN_IF_ERROR(buckets.CheckNumbers());
  wire::GbdtQuantileStream message;
  MR_RETURN_IF_ERROR(wire::Decode(stream[0].data<TString>()->view(), &message));
  const auto values = buckets[0].flat<float>();
  QuantileState read{stamp, accumulator->NewStream(), *ready[0].data<bool>(), {values.begin(), values.end()}};
  for (const wire::GbdtQuantileSummary& m : message.summaries) {
    MR_ASSIGN_OR_RETURN(QuantileSummary summary, SummaryOf(m));
    read.stream.Push(std::move(summary));
  }
  accumulator->With([&](QuantileState& state) { std::swap(state, read); });
  return absl::OkStatus();
}

// ---- Summaries and buckets of batches ----

// Dense features, then sparse ones, and a weight of each example.
class Features {
 public:
  static StatusOr<Features> Make(const KernelContext& ctx) {
    Features f(ctx);
    MR_RETURN_IF_ERROR(f.weights_.CheckNumbers());
    MR_RETURN_IF_ERROR(f.dense_.CheckNumbers());
    MR_RETURN_IF_ERROR(f.values_.CheckNumbers());
    for (int i = 0; i < f.dense_.size(); ++i) {
      if (f.dense_[i].num_elements() == f.examples()) continue;
      return InvalidArgument("dense_float_features[", i, "] must have ", f.examples(), " values, got shape ",
                             f.dense_[i].shape().ToString());
    }
    for (int i = 0; i < f.values_.size(); ++i) MR_RETURN_IF_ERROR(f.CheckSparse(i));
    return f;
  }
  int num_dense() const { return dense_.size(); }
  int size() const { return dense_.size() + values_.size(); }
  int64_t examples() const { return weights_[0].num_elements(); }

  QuantileSummary Summary(int feature, float epsilon) const {
    const float* weight = weights_[0].data<float>();
    if (feature < num_dense()) {
      QuantileStream stream(epsilon, examples() + 1);
      const float* value = dense_[feature].data<float>();
      StopNowAndThen pause;
      for (int64_t i = 0; i < examples(); ++i) pause(), stream.Push(value[i], weight[i]);
      return stream.Finish();
    }
    const int s = feature - num_dense();
    QuantileStream stream(epsilon, values_[s].num_elements() + 1);
    const float* value = values_[s].data<float>();
    const auto* index = indices_[s].data<int64_t>();
    StopNowAndThen pause;
    for (int64_t i = 0; i < values_[s].num_elements(); ++i) pause(), stream.Push(value[i], weight[index[2 * i]]);
    return stream.Finish();
  }

 private:
  explicit Features(const KernelContext& ctx)
      : dense_(ctx, "dense_float_features"),
        indices_(ctx, "sparse_float_feature_indices"),
        values_(ctx, "sparse_float_feature_values"),
        weights_(ctx, "example_weights") {}
  Status CheckSparse(int i) const {
    const Tensor& indices = indices_[i];
    if (values_[i].rank() != 1 || indices.rank() != 2 || indices.dim(1) != 2 || indices.dim(0) != values_[i].dim(0)) {
      return InvalidArgument(
          "sparse_float_feature_indices[", i, "] must have two columns and a row for each value, got ",
          indices.shape().ToString(), " for values ", values_[i].shape().ToString());
    }
    const auto* index = indices.data<int64_t>();
    for (int64_t k = 0; k < indices.dim(0); ++k) {
      if (!InRange(index[2 * k], examples())) {
        return InvalidArgument("sparse_float_feature_indices[", i, "] has example ", index[2 * k], " of ", examples());
      }
    }
    return absl::OkStatus();
  }
  TreeInput dense_, indices_, values_, weights_;
};

class SummariesKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(epsilon_, init.Attr<float>("epsilon"));
    return QuantileStream::Check(epsilon_, 1);
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Features features, Features::Make(ctx));
    std::vector<std::string> texts(static_cast<size_t>(features.size()));
    const double cost = kNanosecondsPerValue * static_cast<double>(features.examples());
    ctx.ParallelFor(features.size(), cost, [&](int64_t begin, int64_t end) {
      for (int64_t f = begin; f < end; ++f) {
        texts[static_cast<size_t>(f)] = SummaryMessage(features.Summary(static_cast<int>(f), epsilon_));
      }
    });
    for (int f = 0; f < features.size(); ++f) {
      MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(f, Shape()));
      *out->mutable_data<TString>() = TString(texts[static_cast<size_t>(f)]);
    }
    return absl::OkStatus();
  }

 private:
  float epsilon_ = 0;
};

class BucketsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    for (const char* name : {"dense_config", "sparse_config"}) {
      MR_ASSIGN_OR_RETURN(const auto texts, init.Attr<std::vector<std::string>>(name));
      for (const std::string& text : texts) {
        wire::GbdtQuantileConfig config;
        MR_RETURN_IF_ERROR(Annotate(wire::Decode(text, &config), absl::StrCat("attribute ", name, ": ")));
        settings_.push_back({static_cast<float>(config.eps), 1, config.num_quantiles, false});
        MR_RETURN_IF_ERROR(settings_.back().Check());
      }
      if (num_dense_ < 0) num_dense_ = static_cast<int>(texts.size());
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Features features, Features::Make(ctx));
    if (features.num_dense() != num_dense_ || features.size() != static_cast<int>(settings_.size())) {
      return InvalidArgument(
          "there must be one config for each of ", features.num_dense(), " dense and ",
          features.size() - features.num_dense(), " sparse features, got ", num_dense_, " of ", settings_.size());
    }
    for (int f = 0; f < features.size(); ++f) {
      const Settings& s = settings_[static_cast<size_t>(f)];
      const std::vector<float> buckets = BucketsOf(features.Summary(f, s.epsilon), s.num_quantiles, false);
      MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(f, Shape::Vector(std::ssize(buckets))));
      std::copy(buckets.begin(), buckets.end(), out->mutable_data<float>());
    }
    return absl::OkStatus();
  }

 private:
  int num_dense_ = -1;
  std::vector<Settings> settings_;
};

// Which bucket each value is in, and of which dimension it is. What is above all boundaries is in the last bucket.
Status OutputBuckets(KernelContext& ctx, int output, const Tensor& values, const Tensor& buckets,
                     const int64_t* index) {
  const int64_t n = values.num_elements();
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, 2}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, shape));
  const auto limits = buckets.flat<float>();
  if (limits.empty() && n > 0) return InvalidArgument("there must be a boundary for each feature with values");
  const float* value = values.data<float>();
  auto* to = out->mutable_data<int32_t>();
  ctx.ParallelFor(n, kNanosecondsPerValue, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = std::lower_bound(limits.begin(), limits.end() - 1, value[i]);
      to[2 * i] = static_cast<int32_t>(at - limits.begin());
      to[2 * i + 1] = index == nullptr ? 0 : static_cast<int32_t>(index[2 * i + 1]);
    }
  });
  return absl::OkStatus();
}

Status Quantiles(KernelContext& ctx) {
  const TreeInput dense(ctx, "dense_values"), sparse(ctx, "sparse_values"), indices(ctx, "sparse_indices");
  const TreeInput dense_buckets(ctx, "dense_buckets"), sparse_buckets(ctx, "sparse_buckets");
  for (int i = 0; i < dense.size(); ++i) {
    MR_RETURN_IF_ERROR(OutputBuckets(ctx, i, dense[i], dense_buckets[i], nullptr));
  }
  MR_RETURN_IF_ERROR(indices.CheckRank(2));
  MR_RETURN_IF_ERROR(indices.CheckDim(1, 2));
  for (int i = 0; i < sparse.size(); ++i) {
    if (indices[i].dim(0) != sparse[i].num_elements()) {
      return InvalidArgument("sparse_indices[", i, "] must have a row for each of ", sparse[i].num_elements(),
                             " values, got shape ", indices[i].shape().ToString());
    }
    MR_RETURN_IF_ERROR(OutputBuckets(ctx, dense.size() + i, sparse[i], sparse_buckets[i], indices[i].data<int64_t>()));
  }
  return absl::OkStatus();
}

template <typename T>
Status Bucketize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
  const auto limits = ctx.input(1).flat<float>();
  const T* value = ctx.input(0).data<T>();
  auto* to = out->mutable_data<int32_t>();
  ctx.ParallelFor(out->num_elements(), kNanosecondsPerValue, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = std::upper_bound(limits.begin(), limits.end(), static_cast<float>(value[i]));
      to[i] = static_cast<int32_t>(at - limits.begin());
    }
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterGbdtQuantileKernels(KernelRegistry& r) {
  r.Add<TreeHandleKernel<QuantileAccumulator>>({.op = "QuantileStreamResourceHandleOp"});
  r.AddFn({.op = "QuantileAccumulatorIsInitialized"}, TreeResourceExists<QuantileAccumulator>);
  r.Add<CreateKernel>({.op = "CreateQuantileAccumulator"});
  r.AddFn({.op = "QuantileAccumulatorAddSummaries"}, AddSummaries);
  r.AddFn({.op = "QuantileAccumulatorGetBuckets"}, GetBuckets);
  r.AddFn({.op = "QuantileAccumulatorFlush"}, Flush);
  r.AddFn({.op = "QuantileAccumulatorFlushSummary"}, FlushSummary);
  r.AddFn({.op = "QuantileAccumulatorSerialize"}, Serialize);
  r.AddFn({.op = "QuantileAccumulatorDeserialize"}, Deserialize);
  r.Add<SummariesKernel>({.op = "MakeQuantileSummaries"});
  r.Add<BucketsKernel>({.op = "QuantileBuckets"});
  r.AddFn({.op = "Quantiles"}, Quantiles);
  r.AddFn({.op = "BucketizeWithInputBoundaries", .types = {{"T", {DType::kInt32}}}}, Bucketize<int32_t>);
  r.AddFn({.op = "BucketizeWithInputBoundaries", .types = {{"T", {DType::kInt64}}}}, Bucketize<int64_t>);
  r.AddFn({.op = "BucketizeWithInputBoundaries", .types = {{"T", {DType::kFloat}}}}, Bucketize<float>);
  r.AddFn({.op = "BucketizeWithInputBoundaries", .types = {{"T", {DType::kDouble}}}}, Bucketize<double>);
}

}  // namespace millrace
