// SPDX-License-Identifier: Apache-2.0
// Ensembles of tf.contrib.boosted_trees, as resources. What came from outside was checked by ParseGbdtEnsemble: every
// tree has a root, and the children of its splits make a tree.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernel/kernel.h"
#include "kernel/resource_manager.h"
#include "wire/gbdt.h"

namespace millrace {

StatusOr<wire::GbdtEnsemble> ParseGbdtEnsemble(absl::string_view bytes);

// The children of a split, in its message; none of a leaf.
struct GbdtChildren {
  int32_t left = 0;
  int32_t right = 0;
};
GbdtChildren GbdtChildrenOf(const wire::GbdtNode& node);
void SetGbdtChildren(GbdtChildren children, wire::GbdtNode* node);
const wire::GbdtTreeMetadata& GbdtMetadataOf(const wire::GbdtEnsemble& ensemble, size_t tree);

struct GbdtState {
  int64_t stamp = 0;
  wire::GbdtEnsemble trees;
};

class GbdtResource final : public Resource {
 public:
  static constexpr char kTypeName[] = "DecisionTreeEnsembleResource";
  explicit GbdtResource(GbdtState state) : state_(std::move(state)) {}
  std::string DebugString() const override { return "DecisionTreeEnsemble"; }

  template <typename Fn>
  auto Read(Fn fn) const {
    absl::ReaderMutexLock lock(&mu_);
    return fn(static_cast<const GbdtState&>(state_));
  }
  template <typename Fn>
  auto Write(Fn fn) {
    absl::MutexLock lock(&mu_);
    return fn(state_);
  }

 private:
  mutable absl::Mutex mu_;
  GbdtState state_ ABSL_GUARDED_BY(mu_);
};

// The attribute `learner_config`.
StatusOr<wire::GbdtLearner> GbdtLearnerOf(const KernelInit& init);

// How many trees may be left out: not the last one of an ensemble that grows layer by layer, as its message says.
size_t GrownGbdtTrees(const wire::GbdtEnsemble& ensemble);
// Which of the first trees are left out, by a seed; none where the learner asks for no dropout. The first is kept where
// it is a bias.
std::vector<size_t> DroppedTrees(int64_t seed, const wire::GbdtLearner& learner, bool keep_first, size_t trees);

// The features of a batch.
class GbdtFeatures {
 public:
  static StatusOr<GbdtFeatures> Make(const KernelContext& ctx);
  int64_t size() const { return size_; }
  // InvalidArgument where a tree is split by a feature that is not there.
  Status Check(const wire::GbdtTree& tree) const;
  // The leaf that an example comes to. The tree was checked.
  int32_t Traverse(const wire::GbdtTree& tree, int64_t example) const;

 private:
  struct Dense {
    const float* values;
    int64_t columns;
  };
  template <typename T>
  struct Entry {
    int64_t example;
    int64_t column;
    T value;
  };
  template <typename T>
  Status TakeSparse(const KernelContext& ctx, const char* prefix, std::vector<std::vector<Entry<T>>>* features);
  Status TakeSize(int64_t size);
  bool GoesLeft(const wire::GbdtNode& node, int64_t example) const;
  bool GoesLeft(const wire::GbdtFloatSplit& split, bool without, int64_t example) const;
  template <typename Fn>
  bool AnyId(int32_t column, int64_t example, int64_t rounds, Fn matches) const;

  int64_t size_ = -1;
  std::vector<Dense> dense_;
  std::vector<std::vector<Entry<float>>> floats_;  // of each feature, by examples and columns
  std::vector<std::vector<Entry<int64_t>>> ids_;
};

}  // namespace millrace
