// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/tree_ensemble.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/tree_pruning.h"

namespace millrace {
namespace {

using Kind = wire::TreeNode::Kind;

Status CheckSplit(const wire::Tree& tree, size_t n, std::vector<bool>* has_parent) {
  const auto nodes = std::ssize(tree.nodes);
  const TreeSplit split = SplitOf(tree.nodes[n]);
  if (split.feature < 0) return InvalidArgument("is split by feature ", split.feature, ", which is negative");
  for (const int32_t child : {split.left, split.right}) {
    if (child < 1 || child >= nodes) {
      return InvalidArgument("has child ", child, ", want one of nodes 1 to ", nodes - 1);
    }
    if ((*has_parent)[static_cast<size_t>(child)]) {
      return InvalidArgument("has child ", child, ", which is another split's: nodes must make a tree");
    }
    (*has_parent)[static_cast<size_t>(child)] = true;
  }
  return absl::OkStatus();
}

// No node has two parents and the root none, so no way from the root comes back.
Status CheckTree(const wire::Tree& tree) {
  if (tree.nodes.empty()) return InvalidArgument("has no nodes, want a root");
  std::vector<bool> has_parent(tree.nodes.size());
  StopNowAndThen pause;
  for (size_t n = 0; n < tree.nodes.size(); ++n) {
    pause();
    const wire::TreeNode& node = tree.nodes[n];
    Status s;
    if (node.kind == Kind::kBucketizedSplit || node.kind == Kind::kCategoricalSplit) {
      s = CheckSplit(tree, n, &has_parent);
    } else if (node.kind != Kind::kLeaf) {
      s = InvalidArgument("is ", node.kind == Kind::kNone ? "nothing" : "a dense split",
                          ", want a leaf or a bucketized or categorical split");
    }
    if (!s.ok()) return Annotate(s, absl::StrCat("node ", n, " "));
  }
  return absl::OkStatus();
}

Status CheckPruned(const wire::TreeMetadata& metadata, const wire::Tree& tree) {
  for (const wire::TreePrunedNode& p : metadata.post_pruned_nodes_meta) {
    if (!InRange(p.new_node_id, std::ssize(tree.nodes))) {
      return InvalidArgument("has a pruned node that became node ", p.new_node_id, " of ", tree.nodes.size());
    }
  }
  return absl::OkStatus();
}

Status CheckEnsemble(const wire::TreeEnsemble& e) {
  if (e.trees.size() >= std::numeric_limits<int32_t>::max()) return InvalidArgument("has too many trees");
  if (e.tree_weights.size() != e.trees.size()) {
    return InvalidArgument("has ", e.tree_weights.size(), " weights, want one for each of ", e.trees.size(), " trees");
  }
  if (e.tree_metadata.size() > e.trees.size()) {
    return InvalidArgument("has metadata of ", e.tree_metadata.size(), " trees, but ", e.trees.size(), " trees");
  }
  for (size_t t = 0; t < e.trees.size(); ++t) {
    MR_RETURN_IF_ERROR(Annotate(CheckTree(e.trees[t]), absl::StrCat("tree ", t, ": ")));
    MR_RETURN_IF_ERROR(Annotate(CheckPruned(MetadataOf(e, t), e.trees[t]), absl::StrCat("tree ", t, " ")));
  }
  return absl::OkStatus();
}

// Counters of messages from outside may stand anywhere.
template <typename T>
void CountUp(T* counter) {
  if (*counter < std::numeric_limits<T>::max()) ++*counter;
}

// Of one leaf.
void AddTree(float logit, wire::TreeEnsemble* e) {
  e->tree_metadata.resize(e->trees.size());
  wire::TreeNode& root = e->trees.emplace_back().nodes.emplace_back();
  root.kind = Kind::kLeaf;
  root.leaf.Ensure().scalar = logit;
  e->tree_weights.push_back(1);
  e->tree_metadata.emplace_back();
}

// A finished tree leaves the next one's root behind, and only what begins a tree is counted as an attempt at one.
void CountAttempt(wire::TreeEnsemble& e) {
  wire::TreeGrowingMetadata& growing = e.growing_metadata.Ensure();
  CountUp(&growing.num_layers_attempted);
  const size_t n = e.trees.size();
  const bool begins = n == 0 || ((n == 1 || MetadataOf(e, n - 2).is_finalized) && e.trees[n - 1].nodes.size() == 1);
  if (begins) CountUp(&growing.num_trees_attempted);
}

void AddLeaf(float logit, wire::Tree* tree) {
  wire::TreeNode& node = tree->nodes.emplace_back();
  node.kind = Kind::kLeaf;
  node.leaf.Ensure().scalar = logit;
}

void SplitNode(size_t n, const SplitCandidate& c, wire::Tree* tree) {
  const auto left = static_cast<int32_t>(tree->nodes.size());
  const float before = tree->nodes[n].leaf->scalar;
  AddLeaf(before + c.left, tree);
  AddLeaf(before + c.right, tree);
  wire::TreeNode& node = tree->nodes[n];
  wire::TreeNodeMetadata& metadata = node.metadata.Ensure();
  if (n != 0 || before != 0) metadata.original_leaf = std::move(node.leaf);
  metadata.gain = c.gain;
  node.leaf.reset();
  if (c.is_categorical) {
    node.kind = Kind::kCategoricalSplit;
    wire::TreeCategoricalSplit& split = node.categorical_split.Ensure();
    split.feature_id = c.feature;
    split.value = c.threshold;
    split.dimension_id = c.dimension;
    split.left_id = left;
    split.right_id = left + 1;
  } else {
    node.kind = Kind::kBucketizedSplit;
    wire::TreeBucketizedSplit& split = node.bucketized_split.Ensure();
    split.feature_id = c.feature;
    split.threshold = c.threshold;
    split.dimension_id = c.dimension;
    split.default_direction = c.default_right ? 1 : 0;
    split.left_id = left;
    split.right_id = left + 1;
  }
}

// Nodes that are to be split must be leaves of one logit of the tree that grows.
Status CheckCanSplit(const std::map<int32_t, SplitCandidate>& best, const wire::TreeEnsemble& e) {
  const int64_t nodes = e.trees.empty() ? 1 : std::ssize(e.trees.back().nodes);
  if (nodes + 2 * std::ssize(best) > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("the tree has ", nodes, " nodes, too many to split ", best.size(), " of them");
  }
  for (const auto& [n, candidate] : best) {
    if (!InRange(n, nodes)) return InvalidArgument("node ", n, " is to be split, but the tree has ", nodes, " nodes");
    if (candidate.feature < 0) return InvalidArgument("feature ", candidate.feature, " is negative");
    if (e.trees.empty()) continue;
    const wire::TreeNode& node = e.trees.back().nodes[static_cast<size_t>(n)];
    if (node.kind != Kind::kLeaf) return InvalidArgument("node ", n, " is to be split, but has been already");
    if (node.leaf->kind != wire::TreeLeaf::Kind::kNone) {
      return InvalidArgument("node ", n, " is to be split, but has a vector of logits: want one logit");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string TreeEnsemble::DebugString() const {
  return absl::StrCat("TreeEnsemble[size=", Read([](const TreeEnsembleState& s) { return s.trees.trees.size(); }), "]");
}

StatusOr<wire::TreeEnsemble> ParseTreeEnsemble(absl::string_view bytes) {
  wire::TreeEnsemble e;
  MR_RETURN_IF_ERROR(Annotate(wire::Decode(bytes, &e), "Unable to parse tree ensemble proto: "));
  MR_RETURN_IF_ERROR(Annotate(CheckEnsemble(e), "Not a tree ensemble: it "));
  return e;
}

TreeSplit SplitOf(const wire::TreeNode& node) {
  if (node.kind == Kind::kBucketizedSplit) {
    const wire::TreeBucketizedSplit& s = *node.bucketized_split;
    return {true, false, s.feature_id, s.threshold, s.left_id, s.right_id};
  }
  if (node.kind == Kind::kCategoricalSplit) {
    const wire::TreeCategoricalSplit& s = *node.categorical_split;
    return {true, true, s.feature_id, s.value, s.left_id, s.right_id};
  }
  return {};
}

absl::Span<const float> LogitsOf(const wire::TreeNode& node) {
  const wire::TreeLeaf* leaf = nullptr;
  if (node.kind == Kind::kLeaf) {
    leaf = node.leaf.get();
  } else if (node.metadata) {
    leaf = node.metadata->original_leaf.get();
  }
  if (leaf == nullptr) return {};
  if (leaf->kind == wire::TreeLeaf::Kind::kVector) return leaf->vector->value;
  return absl::MakeConstSpan(&leaf->scalar, 1);
}

const wire::TreeMetadata& MetadataOf(const wire::TreeEnsemble& e, size_t t) {
  static const auto& none = *new wire::TreeMetadata;
  return t < e.tree_metadata.size() ? e.tree_metadata[t] : none;
}

Status GrowLayer(const std::map<int32_t, SplitCandidate>& best, const GrowthOptions& options,
                 TreeEnsembleState* state) {
  wire::TreeEnsemble& e = state->trees;
  MR_RETURN_IF_ERROR(CheckCanSplit(best, e));
  CountUp(&state->stamp);
  CountAttempt(e);
  if (e.trees.empty()) AddTree(0, &e);
  if (best.empty()) return absl::OkStatus();
  const size_t t = e.trees.size() - 1;
  wire::Tree& tree = e.trees[t];
  const auto nodes_before = static_cast<int32_t>(tree.nodes.size());
  for (const auto& [n, candidate] : best) {
    if (options.pruning == Pruning::kBefore && candidate.gain < 0) continue;
    SplitNode(static_cast<size_t>(n), candidate, &tree);
  }
  // The same nodes are tried again where none was split.
  if (std::ssize(tree.nodes) == nodes_before) return absl::OkStatus();
  wire::TreeGrowingMetadata& growing = *e.growing_metadata;
  e.tree_metadata.resize(e.trees.size());
  wire::TreeMetadata& metadata = e.tree_metadata[t];
  CountUp(&metadata.num_layers_grown);
  growing.last_layer_node_start = nodes_before;
  growing.last_layer_node_end = static_cast<int32_t>(tree.nodes.size());
  if (metadata.num_layers_grown < options.max_depth) return absl::OkStatus();
  metadata.is_finalized = true;
  if (options.pruning == Pruning::kAfter) PruneTree(&tree, &metadata);
  AddTree(0, &e);
  growing.last_layer_node_start = 0;
  growing.last_layer_node_end = 1;
  return absl::OkStatus();
}

StatusOr<bool> AddBias(float by, TreeEnsembleState* state) {
  constexpr float kLittle = 0.01f;
  wire::TreeEnsemble& e = state->trees;
  if (e.trees.empty()) {
    CountUp(&state->stamp);
    AddTree(by, &e);
    return true;
  }
  wire::TreeNode& root = e.trees[0].nodes[0];
  if (root.kind != Kind::kLeaf || root.leaf->kind != wire::TreeLeaf::Kind::kNone) {
    return InvalidArgument("A bias is the one logit of the first tree's root, which has been split or has a vector");
  }
  CountUp(&state->stamp);
  float& logit = root.leaf->scalar;
  const bool changes = std::abs(by / logit) > kLittle;
  logit += by;
  return changes;
}

}  // namespace millrace
