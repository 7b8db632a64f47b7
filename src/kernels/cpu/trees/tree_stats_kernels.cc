// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sums of the gradients and hessians of examples by the node that they are in and the bucket that they
// have, from which splits are chosen. The bucket behind the last one is that of examples without the feature.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <vector>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {
namespace {

constexpr double kNanosecondsPerExample = 4;

// What an example has: its node, and its gradients and hessians.
struct Examples {
  static StatusOr<Examples> Make(const KernelContext& ctx, int64_t max_splits) {
    const TreeInput nodes(ctx, "node_ids"), gradients(ctx, "gradients"), hessians(ctx, "hessians");
    MR_RETURN_IF_ERROR(nodes.CheckRank(1));
    Examples e;
    e.size = nodes[0].dim(0);
    for (const TreeInput* in : {&gradients, &hessians}) {
      MR_RETURN_IF_ERROR(in->CheckRank(2));
      MR_RETURN_IF_ERROR(in->CheckDim(0, e.size));
      MR_RETURN_IF_ERROR(in->CheckNumbers());
    }
    e.nodes = nodes[0].data<int32_t>();
    e.gradients = gradients[0].data<float>();
    e.hessians = hessians[0].data<float>();
    e.num_gradients = gradients[0].dim(1);
    e.num_hessians = hessians[0].dim(1);
    for (int64_t i = 0; i < e.size; ++i) {
      if (InRange(e.nodes[i], max_splits)) continue;
      return InvalidArgument("node_ids must be in [0, ", max_splits, "), got ", e.nodes[i], " at ", i);
    }
    return e;
  }
  int64_t num_stats() const { return num_gradients + num_hessians; }
  template <typename T>
  void AddTo(int64_t example, T* stats) const {
    for (int64_t k = 0; k < num_gradients; ++k) stats[k] += gradients[example * num_gradients + k];
    stats += num_gradients;
    for (int64_t k = 0; k < num_hessians; ++k) stats[k] += hessians[example * num_hessians + k];
  }

  int64_t size = 0;
  const int32_t* nodes = nullptr;
  const float* gradients = nullptr;
  const float* hessians = nullptr;
  int64_t num_gradients = 0;
  int64_t num_hessians = 0;
};

Status BadBucket(int32_t bucket, int64_t example, int64_t lowest, int64_t end) {
  return InvalidArgument("buckets must be in [", lowest, ", ", end, "), got ", bucket, " for example ", example);
}

class StatsKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(max_splits_, init.Attr<int64_t>("max_splits"));
    MR_ASSIGN_OR_RETURN(num_buckets_, init.Attr<int64_t>("num_buckets"));
    for (const int64_t n : {max_splits_, num_buckets_}) {
      if (n >= std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("max_splits and num_buckets must be less than 2^31 - 1, got ", n);
      }
    }
    return absl::OkStatus();
  }

 protected:
  int64_t max_splits() const { return max_splits_; }
  int64_t num_buckets() const { return num_buckets_; }

 private:
  int64_t max_splits_ = 0;
  int64_t num_buckets_ = 0;
};

// Sums are taken in double.
class Sums {
 public:
  static StatusOr<Sums> Make(KernelContext& ctx, const Shape& shape) {
    Sums sums;
    MR_ASSIGN_OR_RETURN(sums.out_, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(sums.sums_, ctx.AllocateTemp(DType::kDouble, shape));
    std::fill_n(sums.data(), shape.num_elements(), 0.0);
    return sums;
  }
  double* data() { return sums_.mutable_data<double>(); }
  void Round() {
    const double* from = sums_.data<double>();
    auto* to = out_->mutable_data<float>();
    for (int64_t i = 0; i < out_->num_elements(); ++i) to[i] = static_cast<float>(from[i]);
  }

 private:
  Tensor* out_ = nullptr;
  Tensor sums_;
};

class MakeStatsKernel final : public StatsKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Examples examples, Examples::Make(ctx, max_splits()));
    if (examples.num_gradients != 1 || examples.num_hessians != 1) {
      return InvalidArgument(
          "gradients and hessians must have one column, got ", examples.num_gradients, " and ", examples.num_hessians);
    }
    const TreeInput features(ctx, "bucketized_features_list");
    MR_RETURN_IF_ERROR(features.CheckRank(1));
    MR_RETURN_IF_ERROR(features.CheckDim(0, examples.size));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({features.size(), max_splits(), num_buckets(), 2}));
    MR_ASSIGN_OR_RETURN(Sums sums, Sums::Make(ctx, shape));
    double* const all = sums.data();
    std::vector<Status> ends(static_cast<size_t>(features.size()));
    const double cost = kNanosecondsPerExample * static_cast<double>(examples.size);
    ctx.ParallelFor(features.size(), cost, [&](int64_t begin, int64_t end) {
      for (int64_t f = begin; f < end; ++f) {
        double* const stats = all + f * max_splits() * num_buckets() * 2;
        ends[static_cast<size_t>(f)] = Add(examples, features[static_cast<int>(f)].data<int32_t>(), stats);
      }
    });
    for (size_t f = 0; f < ends.size(); ++f) {
      MR_RETURN_IF_ERROR(Annotate(ends[f], absl::StrCat("bucketized_features_list[", f, "]: ")));
    }
    sums.Round();
    return absl::OkStatus();
  }

 private:
  Status Add(const Examples& examples, const int32_t* buckets, double* stats) const {
    for (int64_t i = 0; i < examples.size; ++i) {
      if (!InRange(buckets[i], num_buckets())) return BadBucket(buckets[i], i, 0, num_buckets());
      examples.AddTo(i, stats + (examples.nodes[i] * num_buckets() + buckets[i]) * 2);
    }
    return absl::OkStatus();
  }
};

class AggregateStatsKernel final : public StatsKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Examples examples, Examples::Make(ctx, max_splits()));
    const TreeInput feature(ctx, "feature");
    MR_RETURN_IF_ERROR(feature.CheckRank(2));
    MR_RETURN_IF_ERROR(feature.CheckDim(0, examples.size));
    const int64_t dims = feature[0].dim(1), buckets = num_buckets() + 1, width = examples.num_stats();
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({max_splits(), dims, buckets, width}));
    MR_ASSIGN_OR_RETURN(Sums sums, Sums::Make(ctx, shape));
    const auto* values = feature[0].data<int32_t>();
    StopNowAndThen pause;
    for (int64_t i = 0; i < examples.size; ++i) {
      pause();
      for (int64_t d = 0; d < dims; ++d) {
        const int32_t value = values[i * dims + d];
        const int64_t bucket = value == -1 ? num_buckets() : value;
        if (!InRange(bucket, buckets)) return BadBucket(value, i, -1, buckets);
        examples.AddTo(i, sums.data() + ((examples.nodes[i] * dims + d) * buckets + bucket) * width);
      }
    }
    sums.Round();
    return absl::OkStatus();
  }
};

// Sums of what is there, in the order of node, dimension and bucket.
class SparseSums {
 public:
  explicit SparseSums(const Examples& examples) : examples_(examples) {}

  Status Add(int64_t example, int32_t dimension, int32_t bucket) {
    std::vector<float>& stats = sums_[{examples_.nodes[example], dimension, bucket}];
    if (stats.empty()) {
      if (std::ssize(sums_) > kMost) {
        return ResourceExhausted("there are sums for more than ", kMost, " nodes, dimensions and buckets");
      }
      stats.resize(static_cast<size_t>(examples_.num_stats()));
    }
    examples_.AddTo(example, stats.data());
    return absl::OkStatus();
  }
  Status Output(KernelContext& ctx) const {
    const int64_t width = examples_.num_stats(), n = std::ssize(sums_) * width;
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, 4}));
    MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(n)));
    auto* at = indices->mutable_data<int32_t>();
    auto* value = values->mutable_data<float>();
    for (const auto& [key, stats] : sums_) {
      for (size_t k = 0; k < stats.size(); ++k) {
        at = std::copy(key.begin(), key.end(), at);
        *at++ = static_cast<int32_t>(k);
        *value++ = stats[k];
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 24;
  const Examples& examples_;
  std::map<std::array<int32_t, 3>, std::vector<float>> sums_;
};

class SparseAggregateStatsKernel final : public StatsKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Examples examples, Examples::Make(ctx, max_splits()));
    const TreeInput indices(ctx, "feature_indices"), values(ctx, "feature_values"), shape(ctx, "feature_shape");
    MR_RETURN_IF_ERROR(indices.CheckRank(2));
    MR_RETURN_IF_ERROR(indices.CheckDim(1, 2));
    MR_RETURN_IF_ERROR(values.CheckRank(1));
    MR_RETURN_IF_ERROR(values.CheckDim(0, indices[0].dim(0)));
    MR_RETURN_IF_ERROR(shape.CheckRank(1));
    MR_RETURN_IF_ERROR(shape.CheckDim(0, 2));
    const int32_t dims = shape[0].data<int32_t>()[1];
    if (dims < 0) return InvalidArgument("feature_shape must not be negative, got ", dims);
    SparseSums sums(examples);
    MR_RETURN_IF_ERROR(Add(examples, indices[0].data<int32_t>(), values[0], dims, &sums));
    MR_RETURN_IF_ERROR(sums.Output(ctx));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(2, Shape::Vector(4)));
    auto* to = out->mutable_data<int32_t>();
    to[0] = static_cast<int32_t>(max_splits());
    to[1] = dims;
    to[2] = static_cast<int32_t>(num_buckets() + 1);
    to[3] = static_cast<int32_t>(examples.num_stats());
    return absl::OkStatus();
  }

 private:
  // Walks over all places of examples and dimensions; those between entries are missing ones.
  Status Add(const Examples& examples, const int32_t* index, const Tensor& values, int32_t dims,
             SparseSums* sums) const {
    StopNowAndThen pause;
    const auto missing = static_cast<int32_t>(num_buckets());
    int64_t entry = 0;
    const int64_t entries = values.num_elements();
    const auto* value = values.data<int32_t>();
    for (int64_t i = 0; i < examples.size; ++i) {
      for (int32_t d = 0; d < dims; ++d) {
        pause();
        const bool is_there = entry < entries && index[2 * entry] == i && index[2 * entry + 1] == d;
        const int32_t bucket = is_there ? value[entry] : missing;
        if (!InRange(bucket, num_buckets() + 1)) return BadBucket(bucket, i, 0, num_buckets() + 1);
        entry += is_there ? 1 : 0;
        MR_RETURN_IF_ERROR(sums->Add(i, d, bucket));
      }
    }
    if (entry == entries) return absl::OkStatus();
    return InvalidArgument("feature_indices must be ascending pairs of one of ", examples.size, " examples and one of ",
                           dims, " dimensions, got (", index[2 * entry], ", ", index[2 * entry + 1], ") at ", entry);
  }
};

}  // namespace

void RegisterTreeStatsKernels(KernelRegistry& r) {
  r.Add<MakeStatsKernel>({.op = "BoostedTreesMakeStatsSummary"});
  r.Add<AggregateStatsKernel>({.op = "BoostedTreesAggregateStats"});
  r.Add<SparseAggregateStatsKernel>({.op = "BoostedTreesSparseAggregateStats"});
}

}  // namespace millrace
