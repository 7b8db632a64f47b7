// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/tree_pruning.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cpu/trees/tree_ensemble.h"

namespace millrace {
namespace {

using Kind = wire::TreeNode::Kind;

// The node that a pruned one became a part of, and by how much the logits differ there.
struct Merged {
  bool is_gone = false;
  size_t into = 0;
  std::vector<float> changes;
};

// From the root to the leaves.
std::vector<size_t> NodesDownward(const wire::Tree& tree) {
  std::vector<size_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const TreeSplit split = SplitOf(tree.nodes[order[i]]);
    if (!split.is_split) continue;
    order.push_back(static_cast<size_t>(split.left));
    order.push_back(static_cast<size_t>(split.right));
  }
  return order;
}

bool IsLeaf(const wire::Tree& tree, int32_t n) { return tree.nodes[static_cast<size_t>(n)].kind == Kind::kLeaf; }

void TakeBack(size_t n, wire::Tree* tree, std::vector<Merged>* merged) {
  wire::TreeNode& node = tree->nodes[n];
  const TreeSplit split = SplitOf(node);
  const absl::Span<const float> before = LogitsOf(node);
  for (const int32_t child : {split.left, split.right}) {
    Merged& m = (*merged)[static_cast<size_t>(child)];
    m.is_gone = true;
    m.into = n;
    const absl::Span<const float> logits = LogitsOf(tree->nodes[static_cast<size_t>(child)]);
    for (size_t i = 0; i < logits.size(); ++i) m.changes.push_back((i < before.size() ? before[i] : 0) - logits[i]);
  }
  wire::TreeNode leaf;
  leaf.kind = Kind::kLeaf;
  leaf.leaf = std::move(node.metadata->original_leaf);
  leaf.leaf.Ensure();
  leaf.unknown_fields = std::move(node.unknown_fields);
  node = std::move(leaf);
}

void SetChildren(wire::TreeNode* node, const std::vector<int32_t>& number) {
  const auto renumber = [&](int32_t* child) { *child = number[static_cast<size_t>(*child)]; };
  if (node->kind == Kind::kBucketizedSplit) {
    renumber(&node->bucketized_split->left_id);
    renumber(&node->bucketized_split->right_id);
  } else if (node->kind == Kind::kCategoricalSplit) {
    renumber(&node->categorical_split->left_id);
    renumber(&node->categorical_split->right_id);
  }
}

}  // namespace

void PruneTree(wire::Tree* tree, wire::TreeMetadata* metadata) {
  std::vector<Merged> merged(tree->nodes.size());
  const std::vector<size_t> downward = NodesDownward(*tree);
  bool any = false;
  for (auto n = downward.rbegin(); n != downward.rend(); ++n) {
    const wire::TreeNode& node = tree->nodes[*n];
    const TreeSplit split = SplitOf(node);
    const bool loses = split.is_split && node.metadata && node.metadata->gain < 0;
    if (!loses || !IsLeaf(*tree, split.left) || !IsLeaf(*tree, split.right)) continue;
    TakeBack(*n, tree, &merged);
    any = true;
  }
  if (!any) return;

  std::vector<int32_t> number(merged.size());  // of those that stay
  int32_t next = 0;
  for (size_t n = 0; n < merged.size(); ++n) {
    if (!merged[n].is_gone) number[n] = next++;
  }
  size_t logits = 1;
  for (const Merged& m : merged) logits = std::max(logits, m.changes.size());
  std::vector<wire::TreeNode> kept;
  kept.reserve(static_cast<size_t>(next));
  for (size_t n = 0; n < merged.size(); ++n) {
    wire::TreePrunedNode& where = metadata->post_pruned_nodes_meta.emplace_back();
    where.logit_change.resize(logits);
    size_t at = n;
    for (; merged[at].is_gone; at = merged[at].into) {
      for (size_t i = 0; i < merged[at].changes.size(); ++i) where.logit_change[i] += merged[at].changes[i];
    }
    where.new_node_id = number[at];
    if (merged[n].is_gone) continue;
    SetChildren(&tree->nodes[n], number);
    kept.push_back(std::move(tree->nodes[n]));
  }
  tree->nodes = std::move(kept);
}

}  // namespace millrace
