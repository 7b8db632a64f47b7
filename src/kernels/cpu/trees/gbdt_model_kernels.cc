// SPDX-License-Identifier: Apache-2.0
// CPU kernels: ensembles of tf.contrib.boosted_trees, their state and what they predict.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/gbdt_kernels.h"
#include "kernels/cpu/trees/gbdt_model.h"

namespace millrace {
namespace {

constexpr int32_t kWholeTree = 1;

// About how long an example takes in a tree that is balanced.
double TraverseNanoseconds(const wire::GbdtTree& tree) {
  constexpr double kNanosecondsPerNode = 20;
  return kNanosecondsPerNode * static_cast<double>(std::bit_width(tree.nodes.size()));
}

StatusOr<GbdtState> StateFromInputs(const KernelContext& ctx) {
  GbdtState state;
  MR_ASSIGN_OR_RETURN(state.stamp, TreeInput(ctx, "stamp_token").Int());
  const TreeInput config(ctx, "tree_ensemble_config");
  MR_RETURN_IF_ERROR(config.CheckRank(0));
  MR_ASSIGN_OR_RETURN(state.trees, ParseGbdtEnsemble(config[0].data<TString>()->view()));
  return state;
}

Status Create(KernelContext& ctx) {
  const StopAllowed until_it_is_made;
  MR_ASSIGN_OR_RETURN(GbdtState state, StateFromInputs(ctx));
  return MakeTreeResource(ctx, MakeRef<GbdtResource>(std::move(state)));
}

Status Deserialize(KernelContext& ctx) {
  const StopAllowed until_it_is_read;
  MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
  MR_ASSIGN_OR_RETURN(GbdtState read, StateFromInputs(ctx));
  ensemble->Write([&](GbdtState& state) { std::swap(state, read); });
  return absl::OkStatus();
}

Status Stamp(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * stamp, ctx.AllocateOutput(0, Shape()));
  *stamp->mutable_data<int64_t>() = ensemble->Read([](const GbdtState& state) { return state.stamp; });
  return absl::OkStatus();
}

Status Serialize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * stamp, ctx.AllocateOutput(0, Shape()));
  MR_ASSIGN_OR_RETURN(Tensor * config, ctx.AllocateOutput(1, Shape()));
  ensemble->Read([&](const GbdtState& state) {
    *stamp->mutable_data<int64_t>() = state.stamp;
    *config->mutable_data<TString>() = TString(wire::Encode(state.trees));
  });
  return absl::OkStatus();
}

// Of another stamp, nothing.
Status UsedHandlers(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  Tensor& mask = *ctx.mutable_output(1);
  Tensor& count = *ctx.mutable_output(0);
  auto* used = mask.mutable_data<bool>();
  std::fill_n(used, mask.num_elements(), false);
  *count.mutable_data<int64_t>() = 0;
  return ensemble->Read([&](const GbdtState& state) -> Status {
    if (state.stamp != stamp || !state.trees.growing_metadata) return absl::OkStatus();
    for (const int64_t id : state.trees.growing_metadata->used_handler_ids) {
      if (!InRange(id, mask.num_elements())) {
        return InvalidArgument("handler ", id, " is used, but there are ", mask.num_elements());
      }
      used[id] = true;
    }
    *count.mutable_data<int64_t>() = std::ssize(state.trees.growing_metadata->used_handler_ids);
    return absl::OkStatus();
  });
}

class UsedHandlersKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(handlers_, init.Attr<int64_t>("num_all_handlers"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(ctx.AllocateOutput(0, Shape()).status());
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({handlers_}));
    MR_RETURN_IF_ERROR(ctx.AllocateOutput(1, shape).status());
    return UsedHandlers(ctx);
  }

 private:
  int64_t handlers_ = 0;
};

// ---- Predictions ----

// The weights of trees: of those that are averaged over the last ensembles, as often as they are in one of these.
std::vector<float> Weights(const wire::GbdtEnsemble& e, const wire::GbdtLearner& learner, bool averages) {
  std::vector<float> weights = e.tree_weights;
  if (!averages || !learner.averaging_config || weights.empty()) return weights;
  const auto n = static_cast<double>(weights.size());
  const wire::GbdtAveraging& config = *learner.averaging_config;
  const double wanted =
      config.kind == wire::GbdtAveraging::Kind::kLastPart
          ? n * static_cast<double>(config.average_last_percent_trees)
          : static_cast<double>(config.average_last_n_trees);
  if (!(wanted > 0)) return weights;
  const double ensembles = std::clamp(std::floor(wanted), 1.0, n);
  for (double i = n - ensembles + 1; i < n; ++i) {
    weights[static_cast<size_t>(i)] *= static_cast<float>((n - i) / ensembles);
  }
  return weights;
}

class PredictionKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(learner_, GbdtLearnerOf(init));
    MR_ASSIGN_OR_RETURN(drops_, init.Attr<bool>("apply_dropout"));
    MR_ASSIGN_OR_RETURN(averages_, init.Attr<bool>("apply_averaging"));
    MR_ASSIGN_OR_RETURN(has_bias_, init.Attr<bool>("center_bias"));
    MR_ASSIGN_OR_RETURN(const bool reduces, init.Attr<bool>("reduce_dim"));
    if (learner_.num_classes < 2) return InvalidArgument("num_classes must be at least 2, got ", learner_.num_classes);
    classes_ = static_cast<int64_t>(learner_.num_classes) - (reduces ? 1 : 0);
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const StopAllowed as_it_only_reads;
    MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const int64_t seed, TreeInput(ctx, "seed").Int());
    MR_ASSIGN_OR_RETURN(const GbdtFeatures features, GbdtFeatures::Make(ctx));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({features.size(), classes_}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    auto* predictions = out->mutable_data<float>();
    std::fill_n(predictions, out->num_elements(), 0.0f);
    return ensemble->Read([&](const GbdtState& state) {
      return Predict(ctx, state.trees, seed, features, predictions);
    });
  }

 private:
  Status Predict(KernelContext& ctx, const wire::GbdtEnsemble& e, int64_t seed, const GbdtFeatures& features,
                 float* out) const {
    std::vector<float> weights = Weights(e, learner_, averages_);
    const std::vector<size_t> dropped =
        drops_ ? DroppedTrees(seed, learner_, has_bias_, GrownGbdtTrees(e)) : std::vector<size_t>();
    MR_RETURN_IF_ERROR(OutputDropped(ctx, dropped, weights));
    std::vector<bool> counts(e.trees.size(), true);
    for (const size_t t : dropped) counts[t] = false;
    double cost = 0;
    for (size_t t = 0; t < e.trees.size(); ++t) {
      cost += TraverseNanoseconds(e.trees[t]);
      if (learner_.growing_mode == kWholeTree && t < e.tree_metadata.size() && !e.tree_metadata[t].is_finalized)
        counts[t] = false;
      MR_RETURN_IF_ERROR(features.Check(e.trees[t]));
      MR_RETURN_IF_ERROR(CheckLeaves(e.trees[t]));
    }
    int32_t* leaves = nullptr;
    const auto trees = std::ssize(e.trees);
    if (ctx.num_outputs() > 2) {
      MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({features.size(), trees}));
      MR_ASSIGN_OR_RETURN(Tensor * index, ctx.AllocateOutput(2, shape));
      leaves = index->mutable_data<int32_t>();
    }
    ctx.ParallelFor(features.size(), cost, [&](int64_t begin, int64_t end) {
      StopNowAndThen pause;
      for (int64_t i = begin; i < end; ++i) {
        for (size_t t = 0; t < e.trees.size(); ++t) {
          pause();
          const int32_t leaf = counts[t] || leaves != nullptr ? features.Traverse(e.trees[t], i) : 0;
          if (leaves != nullptr) leaves[i * trees + static_cast<int64_t>(t)] = leaf;
          if (counts[t]) pause(Add(*e.trees[t].nodes[static_cast<size_t>(leaf)].leaf, weights[t], out + i * classes_));
        }
      }
    });
    return absl::OkStatus();
  }
  Status CheckLeaves(const wire::GbdtTree& tree) const {
    StopNowAndThen pause;
    for (const wire::GbdtNode& node : tree.nodes) {
      pause();
      if (node.kind != wire::GbdtNode::Kind::kLeaf) continue;
      const wire::GbdtLeaf& leaf = *node.leaf;
      if (leaf.kind == wire::GbdtLeaf::Kind::kVector && leaf.vector && std::ssize(leaf.vector->value) > classes_) {
        return InvalidArgument("a leaf has ", leaf.vector->value.size(), " numbers, want at most ", classes_);
      }
      if (leaf.kind != wire::GbdtLeaf::Kind::kSparseVector || !leaf.sparse_vector) continue;
      for (const int32_t c : leaf.sparse_vector->index) {
        if (!InRange(c, classes_)) return InvalidArgument("a leaf is of class ", c, " of ", classes_);
      }
    }
    return absl::OkStatus();
  }
  // Returns how many numbers there were.
  static int64_t Add(const wire::GbdtLeaf& leaf, float weight, float* out) {
    if (leaf.kind == wire::GbdtLeaf::Kind::kVector && leaf.vector) {
      for (size_t c = 0; c < leaf.vector->value.size(); ++c) out[c] += weight * leaf.vector->value[c];
      return std::ssize(leaf.vector->value);
    }
    if (leaf.kind == wire::GbdtLeaf::Kind::kSparseVector && leaf.sparse_vector) {
      const wire::TreeSparseVector& v = *leaf.sparse_vector;
      for (size_t k = 0; k < v.index.size(); ++k) out[v.index[k]] += weight * v.value[k];
      return std::ssize(v.index);
    }
    return 0;
  }
  static Status OutputDropped(KernelContext& ctx, const std::vector<size_t>& dropped,
                              const std::vector<float>& weights) {
    const auto n = std::ssize(dropped);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({2, n}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, shape));
    auto* to = out->mutable_data<float>();
    for (int64_t k = 0; k < n; ++k) {
      to[k] = static_cast<float>(dropped[static_cast<size_t>(k)]);
      to[n + k] = weights[dropped[static_cast<size_t>(k)]];
    }
    return absl::OkStatus();
  }

  wire::GbdtLearner learner_;
  bool drops_ = false;
  bool averages_ = false;
  bool has_bias_ = false;
  int64_t classes_ = 1;
};

// The leaves of the last tree that examples are in while it grows.
Status Partition(KernelContext& ctx) {
  const StopAllowed as_it_only_reads;
  MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
  MR_ASSIGN_OR_RETURN(const GbdtFeatures features, GbdtFeatures::Make(ctx));
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({features.size()}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  auto* leaves = out->mutable_data<int32_t>();
  std::fill_n(leaves, features.size(), 0);
  return ensemble->Read([&](const GbdtState& state) -> Status {
    const wire::GbdtEnsemble& e = state.trees;
    if (e.trees.empty() || GbdtMetadataOf(e, e.trees.size() - 1).is_finalized) return absl::OkStatus();
    MR_RETURN_IF_ERROR(features.Check(e.trees.back()));
    ctx.ParallelFor(features.size(), TraverseNanoseconds(e.trees.back()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) leaves[i] = features.Traverse(e.trees.back(), i);
    });
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterGbdtModelKernels(KernelRegistry& r) {
  r.Add<TreeHandleKernel<GbdtResource>>({.op = "DecisionTreeEnsembleResourceHandleOp"});
  r.AddFn({.op = "TreeEnsembleIsInitializedOp"}, TreeResourceExists<GbdtResource>);
  r.AddFn({.op = "CreateTreeEnsembleVariable"}, Create);
  r.AddFn({.op = "TreeEnsembleStampToken"}, Stamp);
  r.AddFn({.op = "TreeEnsembleSerialize"}, Serialize);
  r.AddFn({.op = "TreeEnsembleDeserialize"}, Deserialize);
  r.Add<UsedHandlersKernel>({.op = "TreeEnsembleUsedHandlers"});
  r.Add<PredictionKernel>({.op = "GradientTreesPrediction"});
  r.Add<PredictionKernel>({.op = "GradientTreesPredictionVerbose"});
  r.AddFn({.op = "GradientTreesPartitionExamples"}, Partition);
}

}  // namespace millrace
