// SPDX-License-Identifier: Apache-2.0
// CPU kernels: the split of each node that gains most, from sums of gradients and hessians by bucket. Buckets up to a
// threshold go left (or, of an equality split, one bucket does), those behind it right.
#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/split_gain.h"
#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {
namespace {

constexpr float kNoGain = std::numeric_limits<float>::lowest();

struct SplitOptions {
  int32_t first_node = 0;
  int32_t end_node = 0;
  LeafPenalty penalty;
  float tree_complexity = 0;
  float min_node_weight = 0;

  static StatusOr<SplitOptions> Make(const KernelContext& ctx) {
    SplitOptions o;
    const TreeInput range(ctx, "node_id_range");
    MR_RETURN_IF_ERROR(range.CheckRank(1));
    MR_RETURN_IF_ERROR(range.CheckDim(0, 2));
    o.first_node = range[0].data<int32_t>()[0];
    o.end_node = range[0].data<int32_t>()[1];
    MR_ASSIGN_OR_RETURN(o.penalty.l1, TreeInput(ctx, "l1").Float());
    MR_ASSIGN_OR_RETURN(o.penalty.l2, TreeInput(ctx, "l2").Float());
    MR_ASSIGN_OR_RETURN(o.tree_complexity, TreeInput(ctx, "tree_complexity").Float());
    MR_ASSIGN_OR_RETURN(o.min_node_weight, TreeInput(ctx, "min_node_weight").Float());
    return o;
  }
  Status CheckNodes(int64_t nodes) const {
    if (first_node >= 0 && end_node <= nodes) return absl::OkStatus();
    if (first_node >= end_node) return absl::OkStatus();  // none
    return InvalidArgument("node_id_range must be within [0, ", nodes, "), got [", first_node, ", ", end_node, ")");
  }
};

// The best split of one node.
struct BestSplit {
  int32_t node = 0;
  float gain = kNoGain;  // of both children
  int32_t dimension = 0;
  int32_t threshold = 0;
  const char* type = kInequalityDefaultLeft;
  std::vector<float> left, right;
};

Status SetOutput(KernelContext& ctx, int o, const std::vector<BestSplit>& splits, auto value) {
  using T = decltype(value(splits[0]));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape::Vector(std::ssize(splits))));
  for (size_t i = 0; i < splits.size(); ++i) out->mutable_data<T>()[i] = value(splits[i]);
  return absl::OkStatus();
}

Status SetWeights(KernelContext& ctx, int o, const std::vector<BestSplit>& splits, int64_t width,
                  std::vector<float> BestSplit::* side) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({std::ssize(splits), width}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, shape));
  auto* to = out->mutable_data<float>();
  for (const BestSplit& s : splits) to = std::copy((s.*side).begin(), (s.*side).end(), to);
  return absl::OkStatus();
}

const auto kNodeOf = [](const BestSplit& s) { return s.node; };
const auto kGainOf = [](const BestSplit& s) { return s.gain; };
const auto kDimensionOf = [](const BestSplit& s) { return s.dimension; };
const auto kThresholdOf = [](const BestSplit& s) { return s.threshold; };
const auto kTypeOf = [](const BestSplit& s) { return TString(s.type); };

// The outputs of the ops that choose among the dimensions of one feature.
Status SetOutputs(KernelContext& ctx, const std::vector<BestSplit>& splits, int64_t width) {
  MR_RETURN_IF_ERROR(SetOutput(ctx, 0, splits, kNodeOf));
  MR_RETURN_IF_ERROR(SetOutput(ctx, 1, splits, kGainOf));
  MR_RETURN_IF_ERROR(SetOutput(ctx, 2, splits, kDimensionOf));
  MR_RETURN_IF_ERROR(SetOutput(ctx, 3, splits, kThresholdOf));
  MR_RETURN_IF_ERROR(SetWeights(ctx, 4, splits, width, &BestSplit::left));
  MR_RETURN_IF_ERROR(SetWeights(ctx, 5, splits, width, &BestSplit::right));
  return SetOutput(ctx, 6, splits, kTypeOf);
}

// Sums for one logit.
struct Pair {
  float gradient = 0;
  float hessian = 0;
  Pair operator+(Pair o) const { return {gradient + o.gradient, hessian + o.hessian}; }
  Pair operator-(Pair o) const { return {gradient - o.gradient, hessian - o.hessian}; }
};

void TrySplit(Pair left, Pair right, LeafPenalty penalty, int32_t dimension, int32_t bucket, const char* type,
              BestSplit* best) {
  const LeafChoice l = BestLeaf(left.gradient, left.hessian, penalty);
  const LeafChoice r = BestLeaf(right.gradient, right.hessian, penalty);
  if (!GainIsLarger(l.gain + r.gain, best->gain)) return;
  *best = {best->node, l.gain + r.gain, dimension, bucket, type, {l.weight}, {r.weight}};
}

// What is gained over leaving the node as it is.
void Finish(float parent_gain, const SplitOptions& o, BestSplit* best) {
  best->gain = best->gain - parent_gain;
  best->gain = best->gain - o.tree_complexity;
}

// ---- One logit, each feature by itself ----

std::vector<BestSplit> SplitsOfFeature(const float* stats, int64_t buckets, const SplitOptions& o) {
  std::vector<BestSplit> splits;
  std::vector<Pair> up_to(static_cast<size_t>(buckets));
  for (int32_t node = o.first_node; node < o.end_node; ++node) {
    const float* of_node = stats + node * buckets * 2;
    Pair total;
    for (int64_t b = 0; b < buckets; ++b) {
      up_to[static_cast<size_t>(b)] = total = total + Pair{of_node[2 * b], of_node[2 * b + 1]};
    }
    if (total.hessian < o.min_node_weight) continue;
    BestSplit best{.node = node, .left = {0}, .right = {0}};
    for (int64_t b = 0; b < buckets; ++b) {
      const Pair left = up_to[static_cast<size_t>(b)];
      TrySplit(left, total - left, o.penalty, 0, static_cast<int32_t>(b), best.type, &best);
    }
    Finish(BestLeaf(total.gradient, total.hessian, o.penalty).gain, o, &best);
    splits.push_back(std::move(best));
  }
  return splits;
}

class BestGainsKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const SplitOptions options, SplitOptions::Make(ctx));
    const TreeInput stats(ctx, "stats_summary_list");
    MR_RETURN_IF_ERROR(stats.CheckRank(3));
    const int64_t nodes = stats[0].dim(0), buckets = stats[0].dim(1);
    MR_RETURN_IF_ERROR(stats.CheckDim(0, nodes));
    MR_RETURN_IF_ERROR(stats.CheckDim(1, buckets));
    MR_RETURN_IF_ERROR(stats.CheckDim(2, 2));
    MR_RETURN_IF_ERROR(options.CheckNodes(nodes));
    std::vector<std::vector<BestSplit>> splits(static_cast<size_t>(stats.size()));
    const double cost = 10.0 * static_cast<double>(buckets) * (options.end_node - double{1.0} * options.first_node);
    ctx.ParallelFor(stats.size(), std::max(cost, 1.0), [&](int64_t begin, int64_t end) {
      for (int64_t f = begin; f < end; ++f) {
        splits[static_cast<size_t>(f)] = SplitsOfFeature(stats[static_cast<int>(f)].data<float>(), buckets, options);
      }
    });
    for (int f = 0; f < stats.size(); ++f) MR_RETURN_IF_ERROR(Output(ctx, f, splits[static_cast<size_t>(f)]));
    return absl::OkStatus();
  }

 private:
  static Status Output(KernelContext& ctx, int feature, const std::vector<BestSplit>& splits) {
    const int n = ctx.num_outputs() / 5;
    MR_RETURN_IF_ERROR(SetOutput(ctx, feature, splits, kNodeOf));
    MR_RETURN_IF_ERROR(SetOutput(ctx, n + feature, splits, kGainOf));
    MR_RETURN_IF_ERROR(SetOutput(ctx, 2 * n + feature, splits, kThresholdOf));
    MR_RETURN_IF_ERROR(SetWeights(ctx, 3 * n + feature, splits, 1, &BestSplit::left));
    return SetWeights(ctx, 4 * n + feature, splits, 1, &BestSplit::right);
  }
};

// ---- Several logits, the dimensions of one feature ----

// Sums of gradients and, behind them, of hessians.
class Sum {
 public:
  explicit Sum(size_t n) : values_(n) {}
  Sum(const float* values, size_t n) : values_(values, values + n) {}
  Sum& operator+=(const float* o) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] += o[i];
    return *this;
  }
  Sum operator+(const Sum& o) const { return Sum(*this) += o.values_.data(); }
  Sum operator-(const Sum& o) const {
    Sum result = *this;
    for (size_t i = 0; i < values_.size(); ++i) result.values_[i] -= o.values_[i];
    return result;
  }
  float Best(size_t logits, LeafPenalty penalty, absl::Span<float> weights) const {
    const absl::Span<const float> all = values_;
    return BestLeaf(all.first(logits), all.subspan(logits), penalty, weights);
  }
  // The length of the hessians.
  float Weight(size_t logits) const {
    float sum = 0;
    for (size_t i = logits; i < values_.size(); ++i) sum += values_[i] * values_[i];
    return std::sqrt(sum);
  }

 private:
  std::vector<float> values_;
};

class BestSplitKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const int64_t logits, init.Attr<int64_t>("logits_dimension"));
    logits_ = static_cast<size_t>(logits);
    const StatusOr<std::string> type = init.Attr<std::string>("split_type");
    MR_RETURN_IF_ERROR(type.status());
    is_equality_ = *type == "equality";
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const SplitOptions options, SplitOptions::Make(ctx));
    const TreeInput stats(ctx, "stats_summary");
    MR_RETURN_IF_ERROR(stats.CheckRank(4));
    MR_RETURN_IF_ERROR(options.CheckNodes(stats[0].dim(0)));
    MR_RETURN_IF_ERROR(CheckStats(stats[0].shape()));
    const Node shape{stats[0].dim(1), stats[0].dim(2) - 1, static_cast<size_t>(stats[0].dim(3))};
    std::vector<BestSplit> splits;
    StopNowAndThen pause;
    for (int32_t node = options.first_node; node < options.end_node; ++node) {
      pause();
      Node n = shape;
      n.stats = stats[0].data<float>() + node * n.dimensions * (n.buckets + 1) * static_cast<int64_t>(n.width);
      Sum total(n.width);
      for (int64_t b = 0; b <= n.buckets; ++b) total += n.at(0, b);
      if (total.Weight(logits_) < options.min_node_weight) continue;
      BestSplit best{.node = node, .left = std::vector<float>(logits_), .right = std::vector<float>(logits_)};
      const float parent_gain = total.Best(logits_, options.penalty, absl::MakeSpan(best.left));
      for (int64_t d = 0; d < n.dimensions; ++d) {
        if (is_equality_) {
          TryEqual(n, d, total, options.penalty, &best);
        } else {
          TryUpTo(n, d, options.penalty, &best);
        }
      }
      if (best.gain == kNoGain) continue;
      Finish(parent_gain, options, &best);
      splits.push_back(std::move(best));
    }
    return SetOutputs(ctx, splits, static_cast<int64_t>(logits_));
  }

 private:
  struct Node {
    int64_t dimensions = 0;
    int64_t buckets = 0;  // but for the one of missing values
    size_t width = 0;     // gradients and hessians
    const float* stats = nullptr;
    const float* at(int64_t dimension, int64_t bucket) const {
      return stats + (dimension * (buckets + 1) + bucket) * static_cast<int64_t>(width);
    }
  };

  Status CheckStats(const Shape& shape) const {
    const auto logits = static_cast<int64_t>(logits_);
    const int64_t hessians = shape.dim(3) - logits;
    if (shape.dim(1) < 1 || shape.dim(2) < 1) {
      return InvalidArgument(
          "stats_summary must have a dimension and a bucket for missing values, got shape ", shape.ToString());
    }
    if (hessians == logits || (hessians > 0 && hessians % logits == 0 && hessians / logits == logits)) {
      return absl::OkStatus();
    }
    return InvalidArgument("stats_summary must have ", logits,
                           " gradients and as many hessians, or the square, got shape ", shape.ToString());
  }

  void Try(const Sum& left, const Sum& right, LeafPenalty penalty, int64_t dimension, int64_t bucket, const char* type,
           BestSplit* best) const {
    std::vector<float> l(logits_), r(logits_);
    const float gain = left.Best(logits_, penalty, absl::MakeSpan(l)) + right.Best(logits_, penalty, absl::MakeSpan(r));
    if (!GainIsLarger(gain, best->gain)) return;
    *best = {best->node,   gain,        static_cast<int32_t>(dimension), static_cast<int32_t>(bucket), type,
             std::move(l), std::move(r)};
  }

  // Missing values go to either side.
  void TryUpTo(const Node& n, int64_t d, LeafPenalty penalty, BestSplit* best) const {
    Sum total(n.width);
    std::vector<Sum> up_to;
    for (int64_t b = 0; b <= n.buckets; ++b) up_to.push_back(total += n.at(d, b));
    const Sum missing(n.at(d, n.buckets), n.width);
    for (int64_t b = 0; b < n.buckets; ++b) {
      const Sum& left = up_to[static_cast<size_t>(b)];
      const Sum with_missing = left + missing;
      Try(with_missing, total - with_missing, penalty, d, b, kInequalityDefaultLeft, best);
      Try(left, total - left, penalty, d, b, kInequalityDefaultRight, best);
    }
  }

  void TryEqual(const Node& n, int64_t d, const Sum& total, LeafPenalty penalty, BestSplit* best) const {
    for (int64_t b = 0; b < n.buckets; ++b) {
      const Sum here(n.at(d, b), n.width);
      Try(here, total - here, penalty, d, b, kEqualityDefaultRight, best);
    }
  }

  size_t logits_ = 1;
  bool is_equality_ = false;
};

// ---- One logit, the dimensions of one feature, from the sums that are not zero ----

class SparseBestSplitKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const SplitOptions options, SplitOptions::Make(ctx));
    const TreeInput indices(ctx, "stats_summary_indices"), values(ctx, "stats_summary_values");
    const TreeInput shape(ctx, "stats_summary_shape");
    MR_RETURN_IF_ERROR(indices.CheckRank(2));
    MR_RETURN_IF_ERROR(indices.CheckDim(1, 4));
    MR_RETURN_IF_ERROR(values.CheckRank(1));
    MR_RETURN_IF_ERROR(values.CheckDim(0, indices[0].dim(0)));
    MR_RETURN_IF_ERROR(shape.CheckRank(1));
    MR_RETURN_IF_ERROR(shape.CheckDim(0, 4));
    const auto *index = indices[0].data<int32_t>(), *dims = shape[0].data<int32_t>();
    if (dims[3] < 2) return InvalidArgument("stats_summary_shape must have two stats or more, got ", dims[3]);
    std::vector<BestSplit> splits;
    Dimensions node;
    int32_t last = -1;
    StopNowAndThen pause;
    for (int64_t i = 0; i < values[0].dim(0); ++i, index += 4) {
      pause();
      MR_RETURN_IF_ERROR(CheckIndex(index, dims, i));
      if (index[0] != last) {
        AddBest(node, last, dims[2] - 1, options, &splits);
        node.clear();
        last = index[0];
      }
      Pair& sums = node[index[1]][index[2]];
      const float value = values[0].data<float>()[i];
      if (index[3] == 0) sums.gradient = value;
      if (index[3] == 1) sums.hessian = value;
    }
    AddBest(node, last, dims[2] - 1, options, &splits);
    return SetOutputs(ctx, splits, 1);
  }

 private:
  using Buckets = std::map<int32_t, Pair>;
  using Dimensions = std::map<int32_t, Buckets>;

  static Status CheckIndex(const int32_t* index, const int32_t* shape, int64_t at) {
    for (int k = 0; k < 4; ++k) {
      if (InRange(index[k], shape[k])) continue;
      return InvalidArgument("stats_summary_indices must be within the shape, which has size ", shape[k],
                             " in dimension ", k, ": got ", index[k], " at ", at);
    }
    return absl::OkStatus();
  }

  // The last bucket is that of missing values.
  static void AddBest(const Dimensions& dimensions, int32_t node, int32_t last, const SplitOptions& o,
                      std::vector<BestSplit>* splits) {
    if (dimensions.empty()) return;
    Pair total;
    for (const auto& [bucket, sums] : dimensions.begin()->second) total = total + sums;
    if (total.hessian < o.min_node_weight) return;
    BestSplit best{.node = node};
    for (const auto& [d, buckets] : dimensions) {
      const auto found = buckets.find(last);
      const Pair missing = found == buckets.end() ? Pair() : found->second;
      Pair left;
      for (const auto& [b, sums] : buckets) {
        if (b == last) break;
        left = left + sums;
        TrySplit(left, total - left, o.penalty, d, b, kInequalityDefaultRight, &best);
        TrySplit(left + missing, total - missing - left, o.penalty, d, b, kInequalityDefaultLeft, &best);
      }
    }
    if (best.gain == kNoGain) return;
    Finish(BestLeaf(total.gradient, total.hessian, o.penalty).gain, o, &best);
    splits->push_back(std::move(best));
  }
};

}  // namespace

void RegisterTreeSplitKernels(KernelRegistry& r) {
  r.Add<BestGainsKernel>({.op = "BoostedTreesCalculateBestGainsPerFeature"});
  r.Add<BestSplitKernel>({.op = "BoostedTreesCalculateBestFeatureSplit"});
  r.Add<SparseBestSplitKernel>({.op = "BoostedTreesSparseCalculateBestFeatureSplit"});
}

}  // namespace millrace
