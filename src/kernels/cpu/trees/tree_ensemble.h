// SPDX-License-Identifier: Apache-2.0
// An ensemble of decision trees that is grown layer by layer, as a resource. Its state is the message that checkpoints
// hold. What came from outside was checked by ParseTreeEnsemble: every tree has a root, every split two children of its
// own, so a way from a root ends in a leaf.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernel/resource_manager.h"
#include "wire/tree_ensemble.h"

namespace millrace {

StatusOr<wire::TreeEnsemble> ParseTreeEnsemble(absl::string_view bytes);

struct TreeEnsembleState {
  int64_t stamp = -1;  // changes with every update
  wire::TreeEnsemble trees;
};

class TreeEnsemble final : public Resource {
 public:
  static constexpr char kTypeName[] = "BoostedTreesEnsembleResource";

  explicit TreeEnsemble(TreeEnsembleState state) : state_(std::move(state)) {}
  std::string DebugString() const override;

  template <typename Fn>
  auto Read(Fn fn) const {
    absl::ReaderMutexLock lock(&mu_);
    return fn(static_cast<const TreeEnsembleState&>(state_));
  }
  template <typename Fn>
  auto Write(Fn fn) {
    absl::MutexLock lock(&mu_);
    return fn(state_);
  }

 private:
  mutable absl::Mutex mu_;
  TreeEnsembleState state_ ABSL_GUARDED_BY(mu_);
};

// ---- Reading ----

// What a split looks at, and its children; none of a leaf.
struct TreeSplit {
  bool is_split = false;
  bool is_categorical = false;
  int32_t feature = 0;
  int32_t threshold = 0;  // or the value
  int32_t left = 0;
  int32_t right = 0;

  bool GoesLeft(int32_t bucket) const { return is_categorical ? bucket == threshold : bucket <= threshold; }
};
TreeSplit SplitOf(const wire::TreeNode& node);
// The logits of a leaf, or those that a split had when it was one; empty where it never had any.
absl::Span<const float> LogitsOf(const wire::TreeNode& node);
// What there is to know of tree t; of those beyond what the message tells, nothing.
const wire::TreeMetadata& MetadataOf(const wire::TreeEnsemble& ensemble, size_t t);

// ---- Growing ----

enum class Pruning : int32_t { kNone = 0, kBefore = 1, kAfter = 2 };

struct SplitCandidate {
  int32_t feature = 0;
  int32_t dimension = 0;
  int32_t threshold = 0;
  float gain = 0;
  float left = 0;  // what the children's logits add to the node's
  float right = 0;
  bool is_categorical = false;
  bool default_right = false;
};

struct GrowthOptions {
  float learning_rate = 0;
  int32_t max_depth = 0;
  Pruning pruning = Pruning::kNone;
};

// Splits nodes of the last tree. A tree of max_depth layers is finished, and the next begins. Changes nothing where it
// fails.
Status GrowLayer(const std::map<int32_t, SplitCandidate>& best_by_node, const GrowthOptions& options,
                 TreeEnsembleState* state);
// Adds to the logit of the first tree's root. Returns whether that still changed it by more than a hundredth.
StatusOr<bool> AddBias(float by, TreeEnsembleState* state);

}  // namespace millrace
