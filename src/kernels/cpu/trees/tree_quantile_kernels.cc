// SPDX-License-Identifier: Apache-2.0
// CPU kernels: quantiles of features that are numbers, and the buckets between them.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/trees/quantile_sketch.h"
#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {
namespace {

constexpr double kNanosecondsPerValue = 50;

StatusOr<Tensor> SummaryTensor(const QuantileSummary& summary) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({summary.size(), 4}));
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(DType::kFloat, shape));
  auto* to = t.mutable_data<float>();
  for (const QuantileEntry& e : summary.entries()) {
    *to++ = e.value;
    *to++ = e.weight;
    *to++ = e.min_rank;
    *to++ = e.max_rank;
  }
  return t;
}

QuantileSummary SummaryOf(const Tensor& t) {
  std::vector<QuantileEntry> entries;
  entries.reserve(static_cast<size_t>(t.dim(0)));
  const auto* v = t.data<float>();
  for (int64_t i = 0; i < t.dim(0); ++i, v += 4) entries.push_back({v[0], v[1], v[2], v[3]});
  return QuantileSummary(std::move(entries));
}

// A stream for each feature, and the boundaries between buckets that were taken from it last.
class QuantileStreams final : public Resource {
 public:
  static constexpr char kTypeName[] = "BoostedTreesQuantileStreamResource";
  static constexpr int64_t kMostBuckets = int64_t{1} << 24;

  QuantileStreams(float epsilon, int64_t max_elements, int64_t num_streams)
      : num_streams_(num_streams),
        streams_(static_cast<size_t>(num_streams), QuantileStream(epsilon, max_elements)),
        boundaries_(static_cast<size_t>(num_streams)) {}
  std::string DebugString() const override { return "QuantileStreamResource"; }

  Status CheckCount(int64_t features) const {
    if (features == num_streams_) return absl::OkStatus();
    return InvalidArgument("there are ", num_streams_, " quantile streams, but ", features, " features");
  }
  void Add(std::vector<QuantileSummary> summaries) {
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < summaries.size(); ++i) streams_[i].Push(std::move(summaries[i]));
  }
  std::vector<QuantileSummary> Take() {
    absl::MutexLock lock(&mu_);
    return TakeLocked();
  }
  void Flush(int64_t buckets, bool are_quantiles) {
    absl::MutexLock lock(&mu_);
    const std::vector<QuantileSummary> summaries = TakeLocked();
    for (size_t i = 0; i < summaries.size(); ++i) {
      std::vector<float>& to = boundaries_[i];
      to = are_quantiles ? summaries[i].Quantiles(buckets - 1) : summaries[i].Boundaries(buckets);
      if (!are_quantiles) to.erase(std::unique(to.begin(), to.end()), to.end());
    }
  }
  std::vector<std::vector<float>> boundaries() const {
    absl::MutexLock lock(&mu_);
    return boundaries_;
  }
  void set_boundaries(std::vector<std::vector<float>> boundaries) {
    absl::MutexLock lock(&mu_);
    boundaries_ = std::move(boundaries);
  }

 private:
  std::vector<QuantileSummary> TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<QuantileSummary> all;
    all.reserve(streams_.size());
    for (QuantileStream& s : streams_) all.push_back(s.Finish());
    return all;
  }

  const int64_t num_streams_;
  mutable absl::Mutex mu_;
  std::vector<QuantileStream> streams_ ABSL_GUARDED_BY(mu_);
  std::vector<std::vector<float>> boundaries_ ABSL_GUARDED_BY(mu_);
};

class CreateKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(max_elements_, init.Attr<int64_t>("max_elements"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const float epsilon, TreeInput(ctx, "epsilon").Float());
    MR_RETURN_IF_ERROR(QuantileStream::Check(epsilon, max_elements_));
    MR_ASSIGN_OR_RETURN(const int64_t n, TreeInput(ctx, "num_streams").Int());
    if (n < 0 || n > kMaxArgs) return InvalidArgument("num_streams must be in [0, ", kMaxArgs, "], got ", n);
    return MakeTreeResource(ctx, MakeRef<QuantileStreams>(epsilon, max_elements_, n));
  }

 private:
  int64_t max_elements_ = 0;
};

Status MakeSummaries(KernelContext& ctx) {
  const TreeInput values(ctx, "float_values"), weights(ctx, "example_weights");
  MR_ASSIGN_OR_RETURN(const float epsilon, TreeInput(ctx, "epsilon").Float());
  if (values.size() == 0) return absl::OkStatus();
  const int64_t n = values[0].num_elements();
  for (int i = 0; i < values.size(); ++i) {
    if (values[i].num_elements() == n) continue;
    return InvalidArgument("float_values must be of one batch, got ", n, " and ", values[i].num_elements(), " values");
  }
  if (weights[0].num_elements() != 1 && weights[0].num_elements() != n) {
    return InvalidArgument("Weights should be a single value or same size as features: got ", weights[0].num_elements(),
                           " weights of ", n, " values");
  }
  MR_RETURN_IF_ERROR(values.CheckNumbers());
  MR_RETURN_IF_ERROR(weights.CheckNumbers());
  MR_RETURN_IF_ERROR(QuantileStream::Check(epsilon, n + 1));
  const float* weight = weights[0].data<float>();
  const int64_t next = weights[0].num_elements() > 1 ? 1 : 0;
  std::vector<QuantileSummary> summaries(static_cast<size_t>(values.size()));
  ctx.ParallelFor(values.size(), kNanosecondsPerValue * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const float* value = values[static_cast<int>(f)].data<float>();
      QuantileStream stream(epsilon, n + 1);
      for (int64_t i = 0; i < n; ++i) stream.Push(value[i], weight[i * next]);
      summaries[static_cast<size_t>(f)] = stream.Finish();
    }
  });
  for (int f = 0; f < values.size(); ++f) {
    MR_ASSIGN_OR_RETURN(Tensor t, SummaryTensor(summaries[static_cast<size_t>(f)]));
    ctx.set_output(f, std::move(t));
  }
  return absl::OkStatus();
}

Status AddSummaries(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<QuantileStreams> streams, FindResource<QuantileStreams>(ctx, 0));
  const TreeInput in(ctx, "summaries");
  MR_RETURN_IF_ERROR(streams->CheckCount(in.size()));
  MR_RETURN_IF_ERROR(in.CheckRank(2));
  MR_RETURN_IF_ERROR(in.CheckDim(1, 4));
  MR_RETURN_IF_ERROR(in.CheckNumbers());
  std::vector<QuantileSummary> summaries;
  for (int i = 0; i < in.size(); ++i) summaries.push_back(SummaryOf(in[i]));
  streams->Add(std::move(summaries));
  return absl::OkStatus();
}

Status FlushSummaries(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<QuantileStreams> streams, FindResource<QuantileStreams>(ctx, 0));
  MR_RETURN_IF_ERROR(streams->CheckCount(ctx.num_outputs()));
  const std::vector<QuantileSummary> summaries = streams->Take();
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    MR_ASSIGN_OR_RETURN(Tensor t, SummaryTensor(summaries[static_cast<size_t>(i)]));
    ctx.set_output(i, std::move(t));
  }
  return absl::OkStatus();
}

class FlushKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(are_quantiles_, init.Attr<bool>("generate_quantiles"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<QuantileStreams> streams, FindResource<QuantileStreams>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const int64_t buckets, TreeInput(ctx, "num_buckets").Int());
    const int64_t least = are_quantiles_ ? 3 : 1;
    if (buckets < least || buckets > QuantileStreams::kMostBuckets) {
      return InvalidArgument(
          "num_buckets must be in [", least, ", ", QuantileStreams::kMostBuckets, "], got ", buckets);
    }
    streams->Flush(buckets, are_quantiles_);
    return absl::OkStatus();
  }

 private:
  bool are_quantiles_ = false;
};

Status GetBoundaries(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<QuantileStreams> streams, FindResource<QuantileStreams>(ctx, 0));
  MR_RETURN_IF_ERROR(streams->CheckCount(ctx.num_outputs()));
  const std::vector<std::vector<float>> boundaries = streams->boundaries();
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const std::vector<float>& from = boundaries[static_cast<size_t>(i)];
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, Shape::Vector(std::ssize(from))));
    std::copy(from.begin(), from.end(), out->mutable_data<float>());
  }
  return absl::OkStatus();
}

Status SetBoundaries(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<QuantileStreams> streams, FindResource<QuantileStreams>(ctx, 0));
  const TreeInput in(ctx, "bucket_boundaries");
  MR_RETURN_IF_ERROR(streams->CheckCount(in.size()));
  MR_RETURN_IF_ERROR(in.CheckRank(1));
  std::vector<std::vector<float>> boundaries;
  for (int i = 0; i < in.size(); ++i) {
    const absl::Span<const float> from = in[i].flat<float>();
    boundaries.emplace_back(from.begin(), from.end());
  }
  streams->set_boundaries(std::move(boundaries));
  return absl::OkStatus();
}

// What is above all boundaries is in the last bucket with what is next to the last boundary.
int32_t BucketOf(float value, absl::Span<const float> boundaries) {
  if (boundaries.empty()) return 0;
  const auto at = std::lower_bound(boundaries.begin(), boundaries.end() - 1, value);
  return static_cast<int32_t>(at - boundaries.begin());
}

Status Bucketize(KernelContext& ctx) {
  const TreeInput values(ctx, "float_values"), boundaries(ctx, "bucket_boundaries");
  MR_RETURN_IF_ERROR(boundaries.CheckRank(1));
  for (int f = 0; f < values.size(); ++f) {
    const int64_t n = values[f].num_elements();
    if (values[f].rank() == 0 || values[f].dim(0) != n) {  // columns are fine
      return InvalidArgument(
          "float_values must have one value of each example, got shape ", values[f].shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(f, Shape::Vector(n)));
    const float* value = values[f].data<float>();
    auto* bucket = out->mutable_data<int32_t>();
    ctx.ParallelFor(n, kNanosecondsPerValue, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) bucket[i] = BucketOf(value[i], boundaries[f].flat<float>());
    });
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterTreeQuantileKernels(KernelRegistry& r) {
  r.Add<TreeHandleKernel<QuantileStreams>>({.op = "BoostedTreesQuantileStreamResourceHandleOp"});
  r.AddFn({.op = "IsBoostedTreesQuantileStreamResourceInitialized"}, TreeResourceExists<QuantileStreams>);
  r.Add<CreateKernel>({.op = "BoostedTreesCreateQuantileStreamResource"});
  r.AddFn({.op = "BoostedTreesMakeQuantileSummaries"}, MakeSummaries);
  r.AddFn({.op = "BoostedTreesFlushQuantileSummaries"}, FlushSummaries);
  r.AddFn({.op = "BoostedTreesQuantileStreamResourceAddSummaries"}, AddSummaries);
  r.AddFn({.op = "BoostedTreesQuantileStreamResourceDeserialize"}, SetBoundaries);
  r.Add<FlushKernel>({.op = "BoostedTreesQuantileStreamResourceFlush"});
  r.AddFn({.op = "BoostedTreesQuantileStreamResourceGetBucketBoundaries"}, GetBoundaries);
  r.AddFn({.op = "BoostedTreesBucketize"}, Bucketize);
}

}  // namespace millrace
