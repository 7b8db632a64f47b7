// SPDX-License-Identifier: Apache-2.0
// CPU kernels: ensembles of trees as resources, and their state as text of a message.
#include <algorithm>

#include "kernels/cpu/trees/tree_ensemble.h"
#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {
namespace {

// Inputs 1 and 2.
StatusOr<TreeEnsembleState> StateFromInputs(const KernelContext& ctx) {
  TreeEnsembleState state;
  MR_ASSIGN_OR_RETURN(state.stamp, TreeInput(ctx, "stamp_token").Int());
  const TreeInput serialized(ctx, "tree_ensemble_serialized");
  MR_RETURN_IF_ERROR(serialized.CheckRank(0));
  MR_ASSIGN_OR_RETURN(state.trees, ParseTreeEnsemble(serialized[0].data<TString>()->view()));
  return state;
}

Status Create(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(TreeEnsembleState state, StateFromInputs(ctx));
  return MakeTreeResource(ctx, MakeRef<TreeEnsemble>(std::move(state)));
}

Status Deserialize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<TreeEnsemble> ensemble, FindResource<TreeEnsemble>(ctx, 0));
  MR_ASSIGN_OR_RETURN(TreeEnsembleState read, StateFromInputs(ctx));
  ensemble->Write([&](TreeEnsembleState& state) { std::swap(state, read); });
  return absl::OkStatus();
}

Status Serialize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<TreeEnsemble> ensemble, FindResource<TreeEnsemble>(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * stamp, ctx.AllocateOutput(0, Shape()));
  MR_ASSIGN_OR_RETURN(Tensor * bytes, ctx.AllocateOutput(1, Shape()));
  ensemble->Read([&](const TreeEnsembleState& state) {
    *stamp->mutable_data<int64_t>() = state.stamp;
    *bytes->mutable_data<TString>() = TString(wire::Encode(state.trees));
  });
  return absl::OkStatus();
}

// The last tree counts as finished only where it says so.
int32_t FinalizedTrees(const wire::TreeEnsemble& e) {
  const auto n = static_cast<int32_t>(e.trees.size());
  return n == 0 || MetadataOf(e, e.trees.size() - 1).is_finalized ? n : n - 1;
}

Status GetStates(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<TreeEnsemble> ensemble, FindResource<TreeEnsemble>(ctx, 0));
  Tensor* out[5];
  for (int o = 0; o < 5; ++o) {
    MR_ASSIGN_OR_RETURN(out[o], ctx.AllocateOutput(o, o < 4 ? Shape() : Shape::Vector(2)));
  }
  ensemble->Read([&](const TreeEnsembleState& state) {
    const wire::TreeEnsemble& e = state.trees;
    const wire::TreeGrowingMetadata growing = e.growing_metadata ? *e.growing_metadata : wire::TreeGrowingMetadata();
    *out[0]->mutable_data<int64_t>() = state.stamp;
    *out[1]->mutable_data<int32_t>() = static_cast<int32_t>(e.trees.size());
    *out[2]->mutable_data<int32_t>() = FinalizedTrees(e);
    *out[3]->mutable_data<int32_t>() = static_cast<int32_t>(growing.num_layers_attempted);
    auto* range = out[4]->mutable_data<int32_t>();
    range[0] = growing.last_layer_node_start;
    range[1] = std::max(1, growing.last_layer_node_end);  // there is a root to split before there is a tree
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterTreeEnsembleKernels(KernelRegistry& r) {
  r.Add<TreeHandleKernel<TreeEnsemble>>({.op = "BoostedTreesEnsembleResourceHandleOp"});
  r.AddFn({.op = "IsBoostedTreesEnsembleInitialized"}, TreeResourceExists<TreeEnsemble>);
  r.AddFn({.op = "BoostedTreesCreateEnsemble"}, Create);
  r.AddFn({.op = "BoostedTreesDeserializeEnsemble"}, Deserialize);
  r.AddFn({.op = "BoostedTreesSerializeEnsemble"}, Serialize);
  r.AddFn({.op = "BoostedTreesGetEnsembleStates"}, GetStates);
}

}  // namespace millrace
