// SPDX-License-Identifier: Apache-2.0
// CPU kernels: the next layer of a tree from the best split of each feature at each node, and the bias before all
// trees.
#include <cmath>

#include "kernels/cpu/trees/split_gain.h"
#include "kernels/cpu/trees/tree_ensemble.h"
#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {
namespace {

using Candidates = std::map<int32_t, SplitCandidate>;  // by node

StatusOr<Pruning> PruningOf(int64_t mode) {
  if (mode >= 0 && mode <= 2) return static_cast<Pruning>(mode);
  return InvalidArgument("pruning_mode must be 0 (none), 1 (before) or 2 (after), got ", mode);
}

Status SetSplitType(absl::string_view type, SplitCandidate* c) {
  c->is_categorical = type == kEqualityDefaultRight;
  c->default_right = type == kInequalityDefaultRight;
  if (c->is_categorical || c->default_right || type == kInequalityDefaultLeft) return absl::OkStatus();
  return InvalidArgument("split_types: \"", type, "\" is none of ", kInequalityDefaultLeft, ", ",
                         kInequalityDefaultRight, ", ", kEqualityDefaultRight);
}

// The larger gain; of equal ones the smaller feature, so that the order of the features does not matter.
void KeepBetter(int32_t node, const SplitCandidate& c, Candidates* best) {
  const auto [at, is_new] = best->try_emplace(node, c);
  if (is_new) return;
  SplitCandidate& known = at->second;
  const bool better = GainsAreEqual(c.gain, known.gain) ? c.feature < known.feature : GainIsLarger(c.gain, known.gain);
  if (better) known = c;
}

// The lists of one update. Those that its op does not have are of no size.
struct UpdateInputs {
  explicit UpdateInputs(const KernelContext& ctx)
      : node_ids(ctx, "node_ids"),
        gains(ctx, "gains"),
        thresholds(ctx, "thresholds"),
        left(ctx, "left_node_contribs"),
        right(ctx, "right_node_contribs"),
        dimensions(ctx, "dimension_ids"),
        split_types(ctx, "split_types") {}

  // Feature i's lists must be as long as its nodes.
  Status Check() const {
    for (const TreeInput* list : {&node_ids, &gains, &thresholds, &dimensions, &split_types}) {
      MR_RETURN_IF_ERROR(list->CheckRank(1));
    }
    for (const TreeInput* list : {&left, &right}) MR_RETURN_IF_ERROR(list->CheckRank(2));
    for (const TreeInput* list : {&gains, &left, &right}) MR_RETURN_IF_ERROR(list->CheckNumbers());
    for (int i = 0; i < node_ids.size(); ++i) {
      const int64_t n = node_ids[i].dim(0);
      for (const TreeInput* list : {&gains, &thresholds, &left, &right, &dimensions, &split_types}) {
        if (list->size() > i && (*list)[i].dim(0) != n) {
          return InvalidArgument(
              "feature ", i, " has splits of ", n, " nodes, but a list of shape ", (*list)[i].shape().ToString());
        }
      }
      if (n > 0 && (left[i].dim(1) < 1 || right[i].dim(1) < 1)) {
        return InvalidArgument("feature ", i, " has node contributions without logits");
      }
    }
    return absl::OkStatus();
  }

  TreeInput node_ids, gains, thresholds, left, right, dimensions, split_types;
};

Status FindBest(const KernelContext& ctx, float learning_rate, Candidates* best) {
  const UpdateInputs in(ctx);
  MR_RETURN_IF_ERROR(in.Check());
  const TreeInput feature_ids(ctx, "feature_ids");
  MR_RETURN_IF_ERROR(feature_ids.CheckRank(1));
  MR_RETURN_IF_ERROR(feature_ids.CheckDim(0, in.node_ids.size()));
  for (int i = 0; i < in.node_ids.size(); ++i) {
    const int64_t width_left = in.left[i].dim(1), width_right = in.right[i].dim(1);
    for (int64_t k = 0; k < in.node_ids[i].dim(0); ++k) {
      SplitCandidate c;
      c.feature = feature_ids[0].data<int32_t>()[i];
      c.gain = in.gains[i].data<float>()[k];
      c.threshold = in.thresholds[i].data<int32_t>()[k];
      c.left = learning_rate * in.left[i].data<float>()[k * width_left];
      c.right = learning_rate * in.right[i].data<float>()[k * width_right];
      if (in.dimensions.size() > 0) c.dimension = in.dimensions[i].data<int32_t>()[k];
      if (in.split_types.size() > 0) {
        MR_RETURN_IF_ERROR(SetSplitType(in.split_types[i].data<TString>()[k].view(), &c));
      }
      KeepBetter(in.node_ids[i].data<int32_t>()[k], c, best);
    }
  }
  return absl::OkStatus();
}

class UpdateKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    if (!init.HasAttr("pruning_mode")) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const int64_t mode, init.Attr<int64_t>("pruning_mode"));
    MR_ASSIGN_OR_RETURN(pruning_, PruningOf(mode));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<TreeEnsemble> ensemble, FindResource<TreeEnsemble>(ctx, 0));
    GrowthOptions options{.pruning = pruning_};
    MR_ASSIGN_OR_RETURN(const int64_t depth, TreeInput(ctx, "max_depth").Int());
    options.max_depth = static_cast<int32_t>(depth);
    const TreeInput mode(ctx, "pruning_mode");
    if (mode.size() > 0) {
      MR_ASSIGN_OR_RETURN(const int64_t number, mode.Int());
      MR_ASSIGN_OR_RETURN(options.pruning, PruningOf(number));
    }
    MR_ASSIGN_OR_RETURN(options.learning_rate, TreeInput(ctx, "learning_rate").Float());
    Candidates best;
    MR_RETURN_IF_ERROR(FindBest(ctx, options.learning_rate, &best));
    return ensemble->Write([&](TreeEnsembleState& state) { return GrowLayer(best, options, &state); });
  }

 private:
  Pruning pruning_ = Pruning::kNone;
};

StatusOr<float> OneMean(const KernelContext& ctx, const char* name) {
  const TreeInput in(ctx, name);
  MR_RETURN_IF_ERROR(in.CheckRank(2));
  MR_RETURN_IF_ERROR(in.CheckNumbers());
  if (in[0].num_elements() == 1) return *in[0].data<float>();
  return InvalidArgument(name, " must have one logit, got shape ", in[0].shape().ToString());
}

Status CenterBias(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<TreeEnsemble> ensemble, FindResource<TreeEnsemble>(ctx, 0));
  MR_ASSIGN_OR_RETURN(const float gradient, OneMean(ctx, "mean_gradients"));
  MR_ASSIGN_OR_RETURN(const float hessian, OneMean(ctx, "mean_hessians"));
  LeafPenalty penalty;
  MR_ASSIGN_OR_RETURN(penalty.l1, TreeInput(ctx, "l1").Float());
  MR_ASSIGN_OR_RETURN(penalty.l2, TreeInput(ctx, "l2").Float());
  const float by = BestLeaf(gradient, hessian, penalty).weight;
  MR_ASSIGN_OR_RETURN(
      const bool goes_on, ensemble->Write([&](TreeEnsembleState& state) { return AddBias(by, &state); }));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<bool>() = goes_on;
  return absl::OkStatus();
}

}  // namespace

void RegisterTreeGrowthKernels(KernelRegistry& r) {
  r.Add<UpdateKernel>({.op = "BoostedTreesUpdateEnsemble"});
  r.Add<UpdateKernel>({.op = "BoostedTreesUpdateEnsembleV2"});
  r.AddFn({.op = "BoostedTreesCenterBias"}, CenterBias);
}

}  // namespace millrace
