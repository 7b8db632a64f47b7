// SPDX-License-Identifier: Apache-2.0
// CPU kernels: the way of examples through an ensemble of trees, and the sums of their leaves' logits.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cpu/trees/tree_ensemble.h"
#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {
namespace {

constexpr double kNanosecondsPerTree = 30;

// A vector of buckets for each feature, all of one batch.
class Examples {
 public:
  static StatusOr<Examples> Make(const KernelContext& ctx) {
    const TreeInput in(ctx, "bucketized_features");
    MR_RETURN_IF_ERROR(in.CheckRank(1));
    MR_RETURN_IF_ERROR(in.CheckDim(0, in[0].dim(0)));
    Examples examples;
    examples.size_ = in[0].dim(0);
    for (int i = 0; i < in.size(); ++i) examples.buckets_.push_back(in[i].data<int32_t>());
    return examples;
  }
  int64_t size() const { return size_; }

  // Where the example goes from a split.
  Status Step(const TreeSplit& split, int64_t example, size_t* node) const {
    if (!InRange(split.feature, std::ssize(buckets_))) {
      return InvalidArgument("a tree is split by feature ", split.feature, ", but ", buckets_.size(), " are given");
    }
    const int32_t bucket = buckets_[static_cast<size_t>(split.feature)][example];
    *node = static_cast<size_t>(split.GoesLeft(bucket) ? split.left : split.right);
    return absl::OkStatus();
  }

 private:
  int64_t size_ = 0;
  std::vector<const int32_t*> buckets_;
};

Status CheckWidth(absl::Span<const float> logits, int64_t want) {
  if (std::ssize(logits) == want) return absl::OkStatus();
  return InvalidArgument("a tree's node has ", logits.size(), " logits, want ", want);
}

// Calls `fn(example)` for each example; returns the first error.
template <typename Fn>
Status ForEachExample(KernelContext& ctx, int64_t n, size_t trees, Fn fn) {
  absl::Mutex mu;
  Status first;
  ctx.ParallelFor(n, kNanosecondsPerTree * static_cast<double>(trees), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Status s = fn(i);
      if (s.ok()) continue;
      absl::MutexLock lock(&mu);
      first.Update(Annotate(s, absl::StrCat("example ", i, ": ")));
      return;
    }
  });
  return first;
}

class PredictionKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(width_, init.Attr<int64_t>("logits_dimension"));
    if (width_ < 1) return InvalidArgument("logits_dimension must be positive, got ", width_);
    return absl::OkStatus();
  }

 protected:
  int64_t width() const { return width_; }
  StatusOr<float*> Logits(KernelContext& ctx, int64_t n) const {
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, width_}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    auto* logits = out->mutable_data<float>();
    std::fill_n(logits, shape.num_elements(), 0.0f);
    return logits;
  }
  // From node `*node` of the tree to a leaf, whose logits it returns.
  StatusOr<absl::Span<const float>> Descend(const wire::Tree& tree, const Examples& examples, int64_t example,
                                            size_t* node) const {
    for (;;) {
      const TreeSplit split = SplitOf(tree.nodes[*node]);
      if (!split.is_split) break;
      MR_RETURN_IF_ERROR(examples.Step(split, example, node));
    }
    const absl::Span<const float> logits = LogitsOf(tree.nodes[*node]);
    MR_RETURN_IF_ERROR(CheckWidth(logits, width_));
    return logits;
  }

 private:
  int64_t width_ = 1;
};

class PredictKernel final : public PredictionKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<TreeEnsemble> ensemble, FindResource<TreeEnsemble>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const Examples examples, Examples::Make(ctx));
    MR_ASSIGN_OR_RETURN(float* const logits, Logits(ctx, examples.size()));
    return ensemble->Read([&](const TreeEnsembleState& state) {
      const wire::TreeEnsemble& e = state.trees;
      return ForEachExample(ctx, examples.size(), e.trees.size(), [&](int64_t i) -> Status {
        float* const sums = logits + i * width();
        for (size_t t = 0; t < e.trees.size(); ++t) {
          size_t node = 0;
          MR_ASSIGN_OR_RETURN(const auto leaf, Descend(e.trees[t], examples, i, &node));
          for (size_t k = 0; k < leaf.size(); ++k) sums[k] += e.tree_weights[t] * leaf[k];
        }
        return absl::OkStatus();
      });
    });
  }
};

// Goes on from where an example was when it was asked for last: what it had then is known, and only what has been added
// is given.
class TrainingPredictKernel final : public PredictionKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<TreeEnsemble> ensemble, FindResource<TreeEnsemble>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const Examples examples, Examples::Make(ctx));
    const TreeInput trees(ctx, "cached_tree_ids"), nodes(ctx, "cached_node_ids");
    for (const TreeInput* in : {&trees, &nodes}) {
      MR_RETURN_IF_ERROR(in->CheckRank(1));
      MR_RETURN_IF_ERROR(in->CheckDim(0, examples.size()));
    }
    const auto *tree_of = trees[0].data<int32_t>(), *node_of = nodes[0].data<int32_t>();
    MR_ASSIGN_OR_RETURN(float* const logits, Logits(ctx, examples.size()));
    MR_ASSIGN_OR_RETURN(Tensor * tree_ids, ctx.AllocateOutput(1, Shape::Vector(examples.size())));
    MR_ASSIGN_OR_RETURN(Tensor * node_ids, ctx.AllocateOutput(2, Shape::Vector(examples.size())));
    auto *new_tree = tree_ids->mutable_data<int32_t>(), *new_node = node_ids->mutable_data<int32_t>();
    return ensemble->Read([&](const TreeEnsembleState& state) {
      const wire::TreeEnsemble& e = state.trees;
      if (e.trees.empty()) {
        std::copy_n(tree_of, examples.size(), new_tree);
        std::fill_n(new_node, examples.size(), 0);
        return absl::OkStatus();
      }
      std::fill_n(new_tree, examples.size(), static_cast<int32_t>(e.trees.size() - 1));
      return ForEachExample(ctx, examples.size(), e.trees.size(), [&](int64_t i) {
        return GoOn(e, examples, i, tree_of[i], node_of[i], logits + i * width(), &new_node[i]);
      });
    });
  }

 private:
  // The node that a cached one has become, and in `*changes` what to add to the logits that it had.
  Status Find(const wire::TreeEnsemble& e, size_t tree, int32_t cached, size_t* node,
              std::vector<float>* changes) const {
    const wire::TreeMetadata& metadata = MetadataOf(e, tree);
    const auto& pruned = metadata.post_pruned_nodes_meta;
    const bool was_pruned = metadata.is_finalized && !pruned.empty();
    const int64_t nodes = was_pruned ? std::ssize(pruned) : std::ssize(e.trees[tree].nodes);
    if (!InRange(cached, nodes)) {
      return InvalidArgument("cached node ", cached, " is none of the ", nodes, " nodes of tree ", tree);
    }
    *node = static_cast<size_t>(cached);
    if (was_pruned) {
      const wire::TreePrunedNode& p = pruned[*node];
      MR_RETURN_IF_ERROR(CheckWidth(p.logit_change, width()));
      std::copy(p.logit_change.begin(), p.logit_change.end(), changes->begin());
      *node = static_cast<size_t>(p.new_node_id);
    }
    const absl::Span<const float> had = LogitsOf(e.trees[tree].nodes[*node]);
    if (had.empty()) return absl::OkStatus();
    MR_RETURN_IF_ERROR(CheckWidth(had, width()));
    for (size_t k = 0; k < had.size(); ++k) (*changes)[k] -= had[k];
    return absl::OkStatus();
  }

  Status GoOn(const wire::TreeEnsemble& e, const Examples& examples, int64_t i, int32_t cached_tree,
              int32_t cached_node, float* sums, int32_t* new_node) const {
    if (!InRange(cached_tree, std::ssize(e.trees))) {
      return InvalidArgument("cached tree ", cached_tree, " is none of ", e.trees.size(), " trees");
    }
    const auto first = static_cast<size_t>(cached_tree);
    size_t node = 0;
    std::vector<float> changes(static_cast<size_t>(width()));
    if (cached_node >= 0) MR_RETURN_IF_ERROR(Find(e, first, cached_node, &node, &changes));
    for (size_t t = first; t < e.trees.size(); ++t) {
      if (t != first) node = 0;
      MR_ASSIGN_OR_RETURN(const auto leaf, Descend(e.trees[t], examples, i, &node));
      for (size_t k = 0; k < leaf.size(); ++k) {
        sums[k] += e.tree_weights[t] * (changes[k] + leaf[k]);
        changes[k] = 0;
      }
    }
    *new_node = static_cast<int32_t>(node);
    return absl::OkStatus();
  }
};

class DebugOutputsKernel final : public PredictionKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(PredictionKernel::Init(init));
    if (width() == 1) return absl::OkStatus();
    return InvalidArgument("Currently only one dimensional outputs are supported: logits_dimension is ", width());
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<TreeEnsemble> ensemble, FindResource<TreeEnsemble>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const Examples examples, Examples::Make(ctx));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(examples.size())));
    auto* texts = out->mutable_data<TString>();
    return ensemble->Read([&](const TreeEnsembleState& state) -> Status {
      const wire::TreeEnsemble& e = state.trees;
      if (e.trees.empty()) return FailedPrecondition("the ensemble has no trees yet: there is nothing to tell");
      return ForEachExample(ctx, examples.size(), e.trees.size(), [&](int64_t i) -> Status {
        MR_ASSIGN_OR_RETURN(const wire::TreeDebugOutput way, Way(e, examples, i));
        texts[i] = TString(wire::Encode(way));
        return absl::OkStatus();
      });
    });
  }

 private:
  static StatusOr<float> LogitOf(const wire::TreeEnsemble& e, size_t tree, size_t node) {
    const absl::Span<const float> logits = LogitsOf(e.trees[tree].nodes[node]);
    if (logits.empty()) return 0.0f;
    MR_RETURN_IF_ERROR(CheckWidth(logits, 1));
    return e.tree_weights[tree] * logits[0];
  }
  static StatusOr<wire::TreeDebugOutput> Way(const wire::TreeEnsemble& e, const Examples& examples, int64_t i) {
    wire::TreeDebugOutput way;
    MR_ASSIGN_OR_RETURN(float logit, LogitOf(e, 0, 0));
    way.logits_path.push_back(logit);
    float before = 0;  // the leaves of the trees before this one
    for (size_t t = 0; t < e.trees.size(); ++t) {
      size_t node = 0;
      for (;;) {
        const TreeSplit split = SplitOf(e.trees[t].nodes[node]);
        if (!split.is_split) break;
        way.feature_ids.push_back(split.feature);
        MR_RETURN_IF_ERROR(examples.Step(split, i, &node));
        MR_ASSIGN_OR_RETURN(logit, LogitOf(e, t, node));
        way.logits_path.push_back(logit + before);
      }
      if (t == 0 || node > 0) before += logit;
    }
    return way;
  }
};

}  // namespace

void RegisterTreePredictionKernels(KernelRegistry& r) {
  r.Add<PredictKernel>({.op = "BoostedTreesPredict"});
  r.Add<TrainingPredictKernel>({.op = "BoostedTreesTrainingPredict"});
  r.Add<DebugOutputsKernel>({.op = "BoostedTreesExampleDebugOutputs"});
}

}  // namespace millrace
