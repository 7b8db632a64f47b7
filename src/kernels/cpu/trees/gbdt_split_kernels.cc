// SPDX-License-Identifier: Apache-2.0
// CPU kernels: the best split of each node by one feature, for tf.contrib.boosted_trees.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/gbdt_kernels.h"
#include "kernels/cpu/trees/split_gain.h"
#include "wire/gbdt.h"

namespace millrace {
namespace {

constexpr int64_t kTreePerClass = 1, kFullHessian = 2, kDiagonalHessian = 3;
constexpr float kNothing = 1e-6f;  // sums that are less are of no examples

// Gradients, then hessians, of some examples; their mean over batches.
using GradientSums = std::vector<float>;

void AddTo(GradientSums* to, const GradientSums& from, float sign = 1) {
  for (size_t i = 0; i < to->size(); ++i) (*to)[i] += sign * from[i];
}
GradientSums Difference(GradientSums a, const GradientSums& b) {
  AddTo(&a, b, -1);
  return a;
}

struct Side {
  std::vector<float> weights;
  float gain = 0;
};

// What the ops have in common: sums of nodes and buckets, and how leaves are judged.
class Candidates {
 public:
  struct Row {
    int32_t partition;
    int64_t dimension;
    int64_t bucket;
    GradientSums sums;
  };

  static StatusOr<Candidates> Make(const KernelContext& ctx, const char* buckets) {
    Candidates c;
    MR_RETURN_IF_ERROR(c.TakeSettings(ctx));
    MR_RETURN_IF_ERROR(c.TakeRows(ctx, buckets));
    return c;
  }
  // In the order of nodes, dimensions and buckets.
  const std::vector<Row>& rows() const { return rows_; }
  int32_t column() const { return column_; }
  size_t width() const { return static_cast<size_t>(gradients_ + hessians_); }

  Side Judge(const GradientSums& sums) const {
    pause_(static_cast<int64_t>(width()));
    Side side;
    side.weights.resize(static_cast<size_t>(gradients_));
    if (std::all_of(sums.begin(), sums.end(), [](float v) { return std::abs(v) < kNothing; })) return side;
    const absl::Span<const float> all(sums);
    const auto hessians = all.subspan(static_cast<size_t>(gradients_));
    if (Weight(hessians) < min_node_weight_) return side;
    side.gain =
        BestLeaf(all.subspan(0, static_cast<size_t>(gradients_)), hessians, penalty_, absl::MakeSpan(side.weights));
    return side;
  }
  // Of a split; null where it is not better than `gain`, which it replaces.
  bool IsBetter(const GradientSums& left, const GradientSums& right, float root_gain, bool is_first, float* gain,
                wire::GbdtSplitInfo* info) const {
    const Side l = Judge(left), r = Judge(right);
    const float now = l.gain + r.gain - root_gain - complexity_;
    if (!is_first && !(now > *gain)) return false;
    *gain = now;
    *info = wire::GbdtSplitInfo();
    SetLeaf(l.weights, &info->left_child.Ensure());
    SetLeaf(r.weights, &info->right_child.Ensure());
    return true;
  }

 private:
  Status TakeSettings(const KernelContext& ctx);
  Status TakeRows(const KernelContext& ctx, const char* buckets);
  float Weight(absl::Span<const float> hessians) const {
    if (hessians.size() == 1) return hessians[0];
    double squares = 0;
    for (const float h : hessians) squares += static_cast<double>(h) * static_cast<double>(h);
    return static_cast<float>(std::sqrt(squares));
  }
  void SetLeaf(const std::vector<float>& weights, wire::GbdtLeaf* leaf) const {
    if (class_id_ < 0) {
      leaf->kind = wire::GbdtLeaf::Kind::kVector;
      leaf->vector.Ensure().value = weights;
      return;
    }
    leaf->kind = wire::GbdtLeaf::Kind::kSparseVector;
    wire::TreeSparseVector& one = leaf->sparse_vector.Ensure();
    one.index = {class_id_};
    one.value = {weights[0]};
  }

  LeafPenalty penalty_;
  float complexity_ = 0;
  float min_node_weight_ = 0;
  int32_t class_id_ = -1;
  int32_t column_ = 0;
  int64_t batches_ = 1;
  int64_t strategy_ = kTreePerClass;
  int64_t gradients_ = 1;
  int64_t hessians_ = 1;
  std::vector<Row> rows_;
  mutable StopNowAndThen pause_;
};

Status Candidates::TakeSettings(const KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(penalty_.l1, TreeInput(ctx, "l1_regularization").Float());
  MR_ASSIGN_OR_RETURN(penalty_.l2, TreeInput(ctx, "l2_regularization").Float());
  MR_ASSIGN_OR_RETURN(complexity_, TreeInput(ctx, "tree_complexity_regularization").Float());
  MR_ASSIGN_OR_RETURN(min_node_weight_, TreeInput(ctx, "min_node_weight").Float());
  MR_ASSIGN_OR_RETURN(const int64_t class_id, TreeInput(ctx, "class_id").Int());
  MR_ASSIGN_OR_RETURN(const int64_t column, TreeInput(ctx, "feature_column_group_id").Int());
  MR_ASSIGN_OR_RETURN(strategy_, TreeInput(ctx, "multiclass_strategy").Int());
  MR_ASSIGN_OR_RETURN(batches_, TreeInput(ctx, "num_minibatches").Int());
  class_id_ = static_cast<int32_t>(class_id);
  column_ = static_cast<int32_t>(column);
  if (strategy_ < kTreePerClass || strategy_ > kDiagonalHessian) {
    return InvalidArgument("multiclass_strategy must be 1 to 3, got ", strategy_);
  }
  if (column_ < 0) return InvalidArgument("feature_column_group_id must not be negative, got ", column_);
  const TreeInput learner(ctx, "weak_learner_type");
  if (learner.size() == 0) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const int64_t type, learner.Int());
  if (type == 0) return absl::OkStatus();
  return Unimplemented("weak_learner_type ", type, ": want 0, trees whose nodes are each split by what is best there");
}

Status Candidates::TakeRows(const KernelContext& ctx, const char* buckets) {
  const TreeInput partitions(ctx, "partition_ids"), ids(ctx, buckets);
  const Tensor& gradients = TreeInput(ctx, "gradients")[0];
  const Tensor& hessians = TreeInput(ctx, "hessians")[0];
  MR_RETURN_IF_ERROR(partitions.CheckRank(1));
  const int64_t n = partitions[0].dim(0);
  if (n == 0) return absl::OkStatus();
  if (batches_ < 1) return InvalidArgument("num_minibatches must be positive, got ", batches_);
  MR_RETURN_IF_ERROR(ids.CheckRank(2));
  MR_RETURN_IF_ERROR(ids.CheckDim(0, n));
  MR_RETURN_IF_ERROR(ids.CheckDim(1, 2));
  MR_RETURN_IF_ERROR(TreeInput(ctx, "gradients").CheckNumbers());
  MR_RETURN_IF_ERROR(TreeInput(ctx, "hessians").CheckNumbers());
  const bool is_scalar = strategy_ == kTreePerClass;
  const int rank = is_scalar ? 1 : strategy_ == kFullHessian ? 3 : 2;
  if (gradients.rank() < 1 || gradients.dim(0) != n || hessians.rank() < 1 || hessians.dim(0) != n) {
    return InvalidArgument("gradients and hessians must have ", n, " rows, got shapes ", gradients.shape().ToString(),
                           " and ", hessians.shape().ToString());
  }
  gradients_ = gradients.num_elements() / n;
  hessians_ = hessians.num_elements() / n;
  const int64_t want = strategy_ == kFullHessian ? gradients_ * gradients_ : gradients_;
  if (gradients_ < 1 || hessians_ != want || (is_scalar && gradients_ != 1) ||
      (!is_scalar && hessians.rank() != rank)) {
    return InvalidArgument("gradients of shape ", gradients.shape().ToString(), " and hessians of shape ",
                           hessians.shape().ToString(), " do not fit multiclass_strategy ", strategy_);
  }
  if (class_id_ >= 0 && gradients_ != 1)
    return InvalidArgument("class_id is ", class_id_, ", but gradients are of several");
  const auto* partition = partitions[0].data<int32_t>();
  const auto* id = ids[0].data<int64_t>();
  const auto* gradient = gradients.data<float>();
  const auto* hessian = hessians.data<float>();
  const float scale = 1 / static_cast<float>(batches_);
  StopNowAndThen pause;
  for (int64_t i = 0; i < n; ++i) {
    pause();
    Row& row = rows_.emplace_back(Row{partition[i], id[2 * i + 1], id[2 * i], GradientSums(width())});
    for (int64_t k = 0; k < gradients_; ++k) row.sums[static_cast<size_t>(k)] = gradient[i * gradients_ + k] * scale;
    for (int64_t k = 0; k < hessians_; ++k)
      row.sums[static_cast<size_t>(gradients_ + k)] = hessian[i * hessians_ + k] * scale;
  }
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    return std::tie(a.partition, a.dimension, a.bucket) < std::tie(b.partition, b.dimension, b.bucket);
  });
  return absl::OkStatus();
}

struct Found {
  int32_t partition;
  float gain;
  std::string split;
};

Status Output(KernelContext& ctx, const std::vector<Found>& found) {
  const auto n = std::ssize(found);
  MR_ASSIGN_OR_RETURN(Tensor * partitions, ctx.AllocateOutput(0, Shape::Vector(n)));
  MR_ASSIGN_OR_RETURN(Tensor * gains, ctx.AllocateOutput(1, Shape::Vector(n)));
  MR_ASSIGN_OR_RETURN(Tensor * splits, ctx.AllocateOutput(2, Shape::Vector(n)));
  for (int64_t i = 0; i < n; ++i) {
    const Found& f = found[static_cast<size_t>(i)];
    partitions->mutable_data<int32_t>()[i] = f.partition;
    gains->mutable_data<float>()[i] = f.gain;
    splits->mutable_data<TString>()[i] = TString(f.split);
  }
  return absl::OkStatus();
}

// The rows of each node, one after the other. `split(begin, end, gain, info)` says whether there is a split.
template <typename Fn>
Status ForEachNode(KernelContext& ctx, const Candidates& candidates, Fn split) {
  const std::vector<Candidates::Row>& rows = candidates.rows();
  std::vector<Found> found;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    StopIfAsked();
    while (end < rows.size() && rows[end].partition == rows[begin].partition) ++end;
    float gain = 0;
    wire::GbdtSplitInfo info;
    MR_ASSIGN_OR_RETURN(
        const bool is_split, split(absl::MakeConstSpan(rows).subspan(begin, end - begin), &gain, &info));
    if (is_split) found.push_back({rows[begin].partition, gain, wire::Encode(info)});
  }
  return Output(ctx, found);
}

using Rows = absl::Span<const Candidates::Row>;

StatusOr<float> Boundary(absl::Span<const float> boundaries, int64_t bucket) {
  if (!InRange(bucket, std::ssize(boundaries))) {
    return InvalidArgument("there is bucket ", bucket, ", but bucket_boundaries has ", boundaries.size(), " elements");
  }
  return boundaries[static_cast<size_t>(bucket)];
}

StatusOr<absl::Span<const float>> Boundaries(const KernelContext& ctx) {
  const TreeInput boundaries(ctx, "bucket_boundaries");
  MR_RETURN_IF_ERROR(boundaries.CheckRank(1));
  return boundaries[0].flat<float>();
}

Status DenseSplits(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Candidates candidates, Candidates::Make(ctx, "bucket_ids"));
  MR_ASSIGN_OR_RETURN(const absl::Span<const float> boundaries, Boundaries(ctx));
  return ForEachNode(ctx, candidates, [&](Rows rows, float* gain, wire::GbdtSplitInfo* info) -> StatusOr<bool> {
    GradientSums root(candidates.width()), left(candidates.width());
    for (const Candidates::Row& row : rows) AddTo(&root, row.sums);
    const float root_gain = candidates.Judge(root).gain;
    for (size_t i = 0; i < rows.size(); ++i) {
      MR_ASSIGN_OR_RETURN(const float threshold, Boundary(boundaries, rows[i].bucket));
      AddTo(&left, rows[i].sums);
      if (!candidates.IsBetter(left, Difference(root, left), root_gain, i == 0, gain, info)) continue;
      wire::GbdtNode& node = info->split_node.Ensure();
      node.kind = wire::GbdtNode::Kind::kDenseFloat;
      wire::GbdtFloatSplit& split = node.dense_float_binary_split.Ensure();
      split.feature_column = candidates.column();
      split.threshold = threshold;
      split.dimension_id = static_cast<int32_t>(rows[i].dimension);
    }
    return !rows.empty();
  });
}

// The sums of all examples of a node stand first, under the id of the bias.
StatusOr<const Candidates::Row*> Bias(Rows rows, int64_t id) {
  for (const Candidates::Row& row : rows) {
    if (row.bucket == id && row.dimension == 0) return &row;
  }
  return InvalidArgument("node ", rows[0].partition, " has no sums under the id of the bias, ", id);
}

// Of one dimension: examples that lack it go right, or left. Where none lacks it, only left is asked.
class SparseDimension {
 public:
  SparseDimension(const Candidates& candidates, const GradientSums& root, float root_gain,
                  absl::Span<const float> boundaries)
      : candidates_(candidates), root_(root), root_gain_(root_gain), boundaries_(boundaries) {}

  Status Split(Rows rows, bool* is_first, float* gain, wire::GbdtSplitInfo* info) const {
    GradientSums present(candidates_.width());
    for (const Candidates::Row& row : rows) AddTo(&present, row.sums);
    for (const bool goes_left : {true, false}) {
      GradientSums below(candidates_.width());
      for (const Candidates::Row& row : rows) {
        MR_ASSIGN_OR_RETURN(const float threshold, Boundary(boundaries_, row.bucket));
        AddTo(&below, row.sums);
        const GradientSums right = Difference(goes_left ? present : root_, below);
        const GradientSums left = goes_left ? Difference(root_, right) : below;
        const bool better = candidates_.IsBetter(left, right, root_gain_, *is_first, gain, info);
        *is_first = false;
        if (better) Set(goes_left, threshold, row.dimension, &info->split_node.Ensure());
      }
    }
    return absl::OkStatus();
  }

 private:
  void Set(bool goes_left, float threshold, int64_t dimension, wire::GbdtNode* node) const {
    node->kind = goes_left ? wire::GbdtNode::Kind::kSparseLeft : wire::GbdtNode::Kind::kSparseRight;
    wire::GbdtSparseSplit& sparse =
        (goes_left ? node->sparse_float_binary_split_default_left : node->sparse_float_binary_split_default_right)
            .Ensure();
    wire::GbdtFloatSplit& split = sparse.split.Ensure();
    split.feature_column = candidates_.column();
    split.threshold = threshold;
    split.dimension_id = static_cast<int32_t>(dimension);
  }
  const Candidates& candidates_;
  const GradientSums& root_;
  const float root_gain_;
  const absl::Span<const float> boundaries_;
};

Status SparseSplits(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Candidates candidates, Candidates::Make(ctx, "bucket_ids"));
  MR_ASSIGN_OR_RETURN(const absl::Span<const float> boundaries, Boundaries(ctx));
  MR_ASSIGN_OR_RETURN(const int64_t bias_id, TreeInput(ctx, "bias_feature_id").Int());
  return ForEachNode(ctx, candidates, [&](Rows rows, float* gain, wire::GbdtSplitInfo* info) -> StatusOr<bool> {
    MR_ASSIGN_OR_RETURN(const Candidates::Row* bias, Bias(rows, bias_id));
    const SparseDimension by(candidates, bias->sums, candidates.Judge(bias->sums).gain, boundaries);
    bool is_first = true;
    for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      while (end < rows.size() && rows[end].dimension == rows[begin].dimension) ++end;
      while (begin < end && rows[begin].bucket == bias_id) ++begin;
      MR_RETURN_IF_ERROR(by.Split(rows.subspan(begin, end - begin), &is_first, gain, info));
    }
    return !is_first;
  });
}

Status CategoricalSplits(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Candidates candidates, Candidates::Make(ctx, "feature_ids"));
  MR_ASSIGN_OR_RETURN(const int64_t bias_id, TreeInput(ctx, "bias_feature_id").Int());
  return ForEachNode(ctx, candidates, [&](Rows rows, float* gain, wire::GbdtSplitInfo* info) -> StatusOr<bool> {
    MR_ASSIGN_OR_RETURN(const Candidates::Row* bias, Bias(rows, bias_id));
    const float root_gain = candidates.Judge(bias->sums).gain;
    bool is_first = true;
    for (const Candidates::Row& row : rows) {
      if (&row == bias) continue;
      const bool better =
          candidates.IsBetter(row.sums, Difference(bias->sums, row.sums), root_gain, is_first, gain, info);
      is_first = false;
      if (!better) continue;
      wire::GbdtNode& node = info->split_node.Ensure();
      node.kind = wire::GbdtNode::Kind::kId;
      wire::GbdtIdSplit& split = node.categorical_id_binary_split.Ensure();
      split.feature_column = candidates.column();
      split.feature_id = row.bucket;
    }
    return !is_first;
  });
}

}  // namespace

void RegisterGbdtSplitKernels(KernelRegistry& r) {
  r.AddFn({.op = "BuildDenseInequalitySplits"}, DenseSplits);
  r.AddFn({.op = "BuildSparseInequalitySplits"}, SparseSplits);
  r.AddFn({.op = "BuildCategoricalEqualitySplits"}, CategoricalSplits);
}

}  // namespace millrace
