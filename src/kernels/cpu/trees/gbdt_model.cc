// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/gbdt_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/tree_kernels.h"
#include "kernels/shared/philox.h"

namespace millrace {
namespace {

using Kind = wire::GbdtNode::Kind;

const wire::GbdtFloatSplit* FloatSplitOf(const wire::GbdtNode& node) {
  switch (node.kind) {
    case Kind::kDenseFloat: return node.dense_float_binary_split.get();
    case Kind::kSparseLeft:
      return node.sparse_float_binary_split_default_left
                 ? node.sparse_float_binary_split_default_left->split.get()
                 : nullptr;
    case Kind::kSparseRight:
      return node.sparse_float_binary_split_default_right
                 ? node.sparse_float_binary_split_default_right->split.get()
                 : nullptr;
    default: return nullptr;
  }
}

// Whether the message of the kind is there.
bool IsWhole(const wire::GbdtNode& node) {
  if (node.kind == Kind::kLeaf) return static_cast<bool>(node.leaf);
  if (node.kind == Kind::kId) return static_cast<bool>(node.categorical_id_binary_split);
  if (node.kind == Kind::kIdSet) return static_cast<bool>(node.categorical_id_set_membership_binary_split);
  return FloatSplitOf(node) != nullptr;
}

Status CheckLeaf(const wire::GbdtLeaf& leaf) {
  if (leaf.kind != wire::GbdtLeaf::Kind::kSparseVector || !leaf.sparse_vector) return absl::OkStatus();
  const wire::TreeSparseVector& v = *leaf.sparse_vector;
  if (v.index.size() != v.value.size()) {
    return InvalidArgument("has a leaf of ", v.index.size(), " classes with ", v.value.size(), " values");
  }
  for (const int32_t i : v.index) {
    if (i < 0) return InvalidArgument("has a leaf of class ", i);
  }
  return absl::OkStatus();
}

Status CheckNode(const wire::GbdtNode& node, int64_t nodes, std::vector<bool>* has_parent) {
  if (!IsWhole(node)) return InvalidArgument("is neither a leaf nor a split");
  // What a pruned split becomes again.
  if (node.node_metadata && node.node_metadata->original_leaf) {
    MR_RETURN_IF_ERROR(Annotate(CheckLeaf(*node.node_metadata->original_leaf), "was a leaf, and "));
  }
  if (node.kind == Kind::kLeaf) return CheckLeaf(*node.leaf);
  const GbdtChildren children = GbdtChildrenOf(node);
  for (const int32_t child : {children.left, children.right}) {
    if (child < 1 || child >= nodes)
      return InvalidArgument("has child ", child, ", want one of nodes 1 to ", nodes - 1);
    if ((*has_parent)[static_cast<size_t>(child)]) {
      return InvalidArgument("has child ", child, ", which is another split's: nodes must make a tree");
    }
    (*has_parent)[static_cast<size_t>(child)] = true;
  }
  return absl::OkStatus();
}

Status CheckTree(const wire::GbdtTree& tree) {
  if (tree.nodes.empty()) return InvalidArgument("has no nodes, want a root");
  std::vector<bool> has_parent(tree.nodes.size());
  StopNowAndThen pause;
  for (size_t n = 0; n < tree.nodes.size(); ++n) {
    pause();
    MR_RETURN_IF_ERROR(
        Annotate(CheckNode(tree.nodes[n], std::ssize(tree.nodes), &has_parent), absl::StrCat("node ", n, " ")));
  }
  return absl::OkStatus();
}

}  // namespace

GbdtChildren GbdtChildrenOf(const wire::GbdtNode& node) {
  if (const wire::GbdtFloatSplit* split = FloatSplitOf(node)) return {split->left_id, split->right_id};
  if (node.kind == Kind::kId)
    return {node.categorical_id_binary_split->left_id, node.categorical_id_binary_split->right_id};
  if (node.kind != Kind::kIdSet) return {};
  return {node.categorical_id_set_membership_binary_split->left_id,
          node.categorical_id_set_membership_binary_split->right_id};
}

void SetGbdtChildren(GbdtChildren children, wire::GbdtNode* node) {
  if (FloatSplitOf(*node) != nullptr) {
    wire::GbdtFloatSplit& split =
        node->kind == Kind::kDenseFloat ? *node->dense_float_binary_split
        : node->kind == Kind::kSparseLeft
            ? *node->sparse_float_binary_split_default_left->split
            : *node->sparse_float_binary_split_default_right->split;
    split.left_id = children.left, split.right_id = children.right;
  } else if (node->kind == Kind::kId) {
    node->categorical_id_binary_split->left_id = children.left;
    node->categorical_id_binary_split->right_id = children.right;
  } else if (node->kind == Kind::kIdSet) {
    node->categorical_id_set_membership_binary_split->left_id = children.left;
    node->categorical_id_set_membership_binary_split->right_id = children.right;
  }
}

const wire::GbdtTreeMetadata& GbdtMetadataOf(const wire::GbdtEnsemble& ensemble, size_t tree) {
  static const wire::GbdtTreeMetadata& none = *new wire::GbdtTreeMetadata();
  return tree < ensemble.tree_metadata.size() ? ensemble.tree_metadata[tree] : none;
}

size_t GrownGbdtTrees(const wire::GbdtEnsemble& ensemble) {
  const size_t n = ensemble.trees.size();
  return n > 0 && ensemble.growing_metadata ? n - 1 : n;
}

StatusOr<wire::GbdtEnsemble> ParseGbdtEnsemble(absl::string_view bytes) {
  wire::GbdtEnsemble e;
  MR_RETURN_IF_ERROR(wire::Decode(bytes, &e));
  if (e.trees.size() >= std::numeric_limits<int32_t>::max()) return InvalidArgument("the ensemble has too many trees");
  if (e.tree_weights.size() != e.trees.size() || e.tree_metadata.size() > e.trees.size()) {
    return InvalidArgument("the ensemble has ", e.trees.size(), " trees, but ", e.tree_weights.size(),
                           " weights and metadata of ", e.tree_metadata.size());
  }
  for (size_t t = 0; t < e.trees.size(); ++t) {
    MR_RETURN_IF_ERROR(Annotate(CheckTree(e.trees[t]), absl::StrCat("tree ", t, ": ")));
  }
  return e;
}

StatusOr<wire::GbdtLearner> GbdtLearnerOf(const KernelInit& init) {
  MR_ASSIGN_OR_RETURN(const std::string bytes, init.Attr<std::string>("learner_config"));
  wire::GbdtLearner learner;
  MR_RETURN_IF_ERROR(Annotate(wire::Decode(bytes, &learner), "attribute learner_config: "));
  return learner;
}

std::vector<size_t> DroppedTrees(int64_t seed, const wire::GbdtLearner& learner, bool keep_first, size_t trees) {
  std::vector<size_t> dropped;
  if (!learner.learning_rate_tuner || learner.learning_rate_tuner->kind != wire::GbdtLearningRate::Kind::kDropout ||
      !learner.learning_rate_tuner->dropout) {
    return dropped;
  }
  const wire::GbdtDropoutRate& dropout = *learner.learning_rate_tuner->dropout;
  PhiloxWords random(Philox(static_cast<uint64_t>(seed), 0));
  const auto draw = [&] { return static_cast<float>(static_cast<double>(random()) / 4294967296.0); };
  if (draw() < dropout.probability_of_skipping_dropout) return dropped;
  for (size_t t = keep_first ? 1 : 0; t < trees; ++t) {
    if (draw() < dropout.dropout_probability) dropped.push_back(t);
  }
  return dropped;
}

// ---- Features ----

Status GbdtFeatures::TakeSize(int64_t size) {
  if (size_ >= 0 && size_ != size)
    return InvalidArgument("features must be of one batch, got ", size_, " and ", size, " examples");
  size_ = size;
  return absl::OkStatus();
}

template <typename T>
Status GbdtFeatures::TakeSparse(const KernelContext& ctx, const char* prefix,
                                std::vector<std::vector<Entry<T>>>* features) {
  const std::string names[] = {
      absl::StrCat(prefix, "_indices"), absl::StrCat(prefix, "_values"), absl::StrCat(prefix, "_shapes")};
  const TreeInput indices(ctx, names[0].c_str()), values(ctx, names[1].c_str()), shapes(ctx, names[2].c_str());
  MR_RETURN_IF_ERROR(shapes.CheckRank(1));
  MR_RETURN_IF_ERROR(shapes.CheckDim(0, 2));
  MR_RETURN_IF_ERROR(values.CheckRank(1));
  MR_RETURN_IF_ERROR(indices.CheckRank(2));
  MR_RETURN_IF_ERROR(indices.CheckDim(1, 2));
  for (int f = 0; f < values.size(); ++f) {
    const int64_t n = values[f].dim(0);
    if (indices[f].dim(0) != n) {
      return InvalidArgument(names[0], "[", f, "] must have ", n, " rows, got shape ", indices[f].shape().ToString());
    }
    const auto* index = indices[f].data<int64_t>();
    const T* value = values[f].data<T>();
    MR_RETURN_IF_ERROR(TakeSize(shapes[f].data<int64_t>()[0]));
    std::vector<Entry<T>>& entries = features->emplace_back();
    entries.reserve(static_cast<size_t>(n));
    StopNowAndThen pause;
    for (int64_t i = 0; i < n; ++i) {
      pause();
      if (!InRange(index[2 * i], size_) || index[2 * i + 1] < 0) {
        return InvalidArgument(
            names[0], "[", f, "] has [", index[2 * i], ", ", index[2 * i + 1], "] of ", size_, " examples");
      }
      entries.push_back({index[2 * i], index[2 * i + 1], value[i]});
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry<T>& a, const Entry<T>& b) {
      return std::tie(a.example, a.column) < std::tie(b.example, b.column);
    });
  }
  return absl::OkStatus();
}

StatusOr<GbdtFeatures> GbdtFeatures::Make(const KernelContext& ctx) {
  GbdtFeatures features;
  const TreeInput dense(ctx, "dense_float_features");
  MR_RETURN_IF_ERROR(dense.CheckRank(2));
  for (int f = 0; f < dense.size(); ++f) {
    MR_RETURN_IF_ERROR(features.TakeSize(dense[f].dim(0)));
    features.dense_.push_back({dense[f].data<float>(), dense[f].dim(1)});
  }
  MR_RETURN_IF_ERROR(features.TakeSparse<float>(ctx, "sparse_float_feature", &features.floats_));
  MR_RETURN_IF_ERROR(features.TakeSparse<int64_t>(ctx, "sparse_int_feature", &features.ids_));
  if (features.size_ < 0) return InvalidArgument("there must be features");
  return features;
}

Status GbdtFeatures::Check(const wire::GbdtTree& tree) const {
  StopNowAndThen pause;
  for (const wire::GbdtNode& node : tree.nodes) {
    pause();
    int32_t column = 0;
    int64_t columns = 1;
    if (const wire::GbdtFloatSplit* split = FloatSplitOf(node)) {
      column = split->feature_column;
      columns = node.kind == Kind::kDenseFloat ? std::ssize(dense_) : std::ssize(floats_);
      if (InRange(column, columns) && node.kind == Kind::kDenseFloat &&
          !InRange(split->dimension_id, dense_[static_cast<size_t>(column)].columns)) {
        return InvalidArgument("a tree is split by dimension ", split->dimension_id, " of feature ", column);
      }
    } else if (node.kind == Kind::kId || node.kind == Kind::kIdSet) {
      columns = std::ssize(ids_);
      column = node.kind == Kind::kId ? node.categorical_id_binary_split->feature_column
                                      : node.categorical_id_set_membership_binary_split->feature_column;
    }
    if (!InRange(column, columns))
      return InvalidArgument("a tree is split by feature ", column, " of ", columns, " of its kind");
  }
  return absl::OkStatus();
}

int32_t GbdtFeatures::Traverse(const wire::GbdtTree& tree, int64_t example) const {
  int32_t n = 0;
  StopNowAndThen pause;
  while (tree.nodes[static_cast<size_t>(n)].kind != Kind::kLeaf) {
    const wire::GbdtNode& node = tree.nodes[static_cast<size_t>(n)];
    const GbdtChildren children = GbdtChildrenOf(node);
    pause();
    n = GoesLeft(node, example) ? children.left : children.right;
  }
  return n;
}

bool GbdtFeatures::GoesLeft(const wire::GbdtNode& node, int64_t example) const {
  if (node.kind == Kind::kDenseFloat) {
    const wire::GbdtFloatSplit& split = *node.dense_float_binary_split;
    const Dense& dense = dense_[static_cast<size_t>(split.feature_column)];
    return dense.values[example * dense.columns + split.dimension_id] <= split.threshold;
  }
  if (const wire::GbdtFloatSplit* split = FloatSplitOf(node))
    return GoesLeft(*split, node.kind == Kind::kSparseLeft, example);
  if (node.kind == Kind::kId) {
    const wire::GbdtIdSplit& split = *node.categorical_id_binary_split;
    return AnyId(split.feature_column, example, 1, [&](int64_t id) { return id == split.feature_id; });
  }
  const wire::GbdtIdSetSplit& split = *node.categorical_id_set_membership_binary_split;
  return AnyId(split.feature_column, example, std::ssize(split.feature_ids), [&](int64_t id) {
    return std::find(split.feature_ids.begin(), split.feature_ids.end(), id) != split.feature_ids.end();
  });
}

bool GbdtFeatures::GoesLeft(const wire::GbdtFloatSplit& split, bool without, int64_t example) const {
  const std::vector<Entry<float>>& entries = floats_[static_cast<size_t>(split.feature_column)];
  const int64_t column = split.dimension_id;
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), std::tie(example, column),
      [](const Entry<float>& e, const std::tuple<const int64_t&, const int64_t&>& want) {
        return std::tie(e.example, e.column) < want;
      });
  const bool found = at != entries.end() && at->example == example && at->column == column;
  return found ? at->value <= split.threshold : without;
}

template <typename Fn>
bool GbdtFeatures::AnyId(int32_t column, int64_t example, int64_t rounds, Fn matches) const {
  const std::vector<Entry<int64_t>>& entries = ids_[static_cast<size_t>(column)];
  auto at = std::lower_bound(
      entries.begin(), entries.end(), example, [](const Entry<int64_t>& e, int64_t want) { return e.example < want; });
  StopNowAndThen pause;
  for (; at != entries.end() && at->example == example; ++at) {
    pause(rounds);
    if (matches(at->value)) return true;
  }
  return false;
}

}  // namespace millrace
