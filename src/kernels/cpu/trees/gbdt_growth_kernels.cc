// SPDX-License-Identifier: Apache-2.0
// CPU kernels: ensembles of tf.contrib.boosted_trees grow, layer by layer.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/gbdt_kernels.h"
#include "kernels/cpu/trees/gbdt_model.h"

namespace millrace {
namespace {

constexpr int32_t kPrePrune = 1;
constexpr int32_t kWholeTree = 1;

// What a step makes of an ensemble: the last tree, and what is said of all. It works on copies and puts them in their
// place when all is done: where it has no memory, or is stopped, the ensemble is what it was.
struct Changed {
  explicit Changed(const wire::GbdtEnsemble& e)
      : kept(e.trees.size()), weights(e.tree_weights), metadata(e.tree_metadata), growing(e.growing_metadata) {
    metadata.resize(kept);
  }
  // Of one leaf.
  void AddTree(float weight) {
    weights.push_back(weight);
    metadata.emplace_back();
    wire::GbdtNode& root = tree.emplace().nodes.emplace_back();
    root.kind = wire::GbdtNode::Kind::kLeaf;
    root.leaf.Ensure();
  }
  void TakeLastTree(const wire::GbdtEnsemble& e) {
    tree = e.trees.back();
    --kept;
  }
  void DropTree() {
    tree.reset();
    weights.pop_back();
    metadata.pop_back();
  }
  void Replace(wire::GbdtEnsemble* e) && {
    e->trees.reserve(kept + 1);
    e->trees.resize(kept);
    if (tree) e->trees.push_back(*std::move(tree));
    e->tree_weights = std::move(weights);
    e->tree_metadata = std::move(metadata);
    e->growing_metadata = std::move(growing);
  }

  size_t kept;  // trees before `tree`
  std::optional<wire::GbdtTree> tree;
  std::vector<float> weights;
  std::vector<wire::GbdtTreeMetadata> metadata;
  wire::Box<wire::GbdtGrowingMetadata> growing;
};

StatusOr<int64_t> IntInput(const KernelContext& ctx, const char* name) { return TreeInput(ctx, name).Int(); }

// ---- Bias ----

class CenterBiasKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(epsilon_, init.Attr<float>("centering_epsilon"));
    return GbdtLearnerOf(init).status();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const int64_t stamp, IntInput(ctx, "stamp_token"));
    MR_ASSIGN_OR_RETURN(const int64_t next, IntInput(ctx, "next_stamp_token"));
    const TreeInput updates(ctx, "delta_updates");
    MR_RETURN_IF_ERROR(updates.CheckNumbers());
    const auto delta = updates[0].flat<float>();
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    bool& goes_on = *out->mutable_data<bool>();
    goes_on = std::any_of(delta.begin(), delta.end(), [&](float d) { return std::abs(d) > epsilon_; });
    return ensemble->Write([&](GbdtState& state) -> Status {
      MR_RETURN_IF_ERROR(CheckStamp(state.stamp, stamp));
      MR_RETURN_IF_ERROR(Center(delta, goes_on, &state.trees));
      state.stamp = next;
      return absl::OkStatus();
    });
  }

 private:
  static Status Center(absl::Span<const float> delta, bool goes_on, wire::GbdtEnsemble* e) {
    Changed now(*e);
    if (now.kept == 0) {
      now.AddTree(1);
      wire::GbdtLeaf& leaf = *now.tree->nodes[0].leaf;
      leaf.kind = wire::GbdtLeaf::Kind::kVector;
      leaf.vector.Ensure().value.assign(delta.size(), 0.0f);
      now.metadata[0].num_layers_grown = 1;
      CountUp(&now.growing.Ensure().num_trees_attempted);
      CountUp(&now.growing->num_layers_attempted);
    } else if (now.kept == 1 && e->trees[0].nodes.size() == 1) {
      now.TakeLastTree(*e);
    }
    wire::GbdtNode* root = now.tree ? &now.tree->nodes[0] : nullptr;
    const bool is_bias =
        root != nullptr && root->kind == wire::GbdtNode::Kind::kLeaf && root->leaf &&
        root->leaf->kind == wire::GbdtLeaf::Kind::kVector && root->leaf->vector &&
        root->leaf->vector->value.size() == delta.size();
    if (!is_bias) return InvalidArgument("the ensemble must be one tree, a bias of ", delta.size(), " numbers");
    for (size_t i = 0; i < delta.size(); ++i) root->leaf->vector->value[i] += delta[i];
    now.metadata[0].is_finalized = !goes_on;
    std::move(now).Replace(e);
    return absl::OkStatus();
  }
  float epsilon_ = 0;
};

// ---- Growth ----

struct Candidate {
  int64_t handler = 0;
  float gain = 0;
  wire::GbdtSplitInfo info;
};
using BestByNode = std::map<int32_t, Candidate>;

StatusOr<wire::GbdtSplitInfo> ParseSplit(absl::string_view bytes) {
  wire::GbdtSplitInfo info;
  MR_RETURN_IF_ERROR(wire::Decode(bytes, &info));
  if (!info.split_node || info.split_node->kind == wire::GbdtNode::Kind::kLeaf || !info.left_child ||
      !info.right_child) {
    return InvalidArgument("is no split with two leaves");
  }
  // A tree of three nodes is what it would make.
  wire::GbdtEnsemble e;
  e.tree_weights.push_back(1);
  e.trees.emplace_back().nodes.resize(3);
  std::vector<wire::GbdtNode>& nodes = e.trees[0].nodes;
  nodes[0] = *info.split_node;
  SetGbdtChildren({1, 2}, &nodes[0]);
  for (const size_t n : {1, 2}) nodes[n].kind = wire::GbdtNode::Kind::kLeaf;
  nodes[1].leaf = info.left_child;
  nodes[2].leaf = info.right_child;
  MR_RETURN_IF_ERROR(ParseGbdtEnsemble(wire::Encode(e)).status());
  return info;
}

class GrowKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(learner_, GbdtLearnerOf(init));
    MR_ASSIGN_OR_RETURN(has_bias_, init.Attr<bool>("center_bias"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const StopAllowed until_it_has_grown;
    MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const int64_t stamp, IntInput(ctx, "stamp_token"));
    MR_ASSIGN_OR_RETURN(const int64_t next, IntInput(ctx, "next_stamp_token"));
    Step step;
    MR_ASSIGN_OR_RETURN(step.learning_rate, TreeInput(ctx, "learning_rate").Float());
    MR_ASSIGN_OR_RETURN(step.dropout_seed, IntInput(ctx, "dropout_seed"));
    MR_ASSIGN_OR_RETURN(step.max_depth, IntInput(ctx, "max_tree_depth"));
    MR_ASSIGN_OR_RETURN(const int64_t kind, IntInput(ctx, "weak_learner_type"));
    if (kind != 0)
      return Unimplemented("weak_learner_type ", kind, ": want 0, trees whose nodes are split each by its best");
    MR_ASSIGN_OR_RETURN(const BestByNode best, Best(ctx));
    return ensemble->Write([&](GbdtState& state) -> Status {
      MR_RETURN_IF_ERROR(CheckStamp(state.stamp, stamp));
      MR_RETURN_IF_ERROR(Check(best, state.trees));
      Grow(best, step, state.trees).Replace(&state.trees);
      state.stamp = next;
      return absl::OkStatus();
    });
  }

 private:
  struct Step {
    float learning_rate = 0;
    int64_t dropout_seed = 0;
    int64_t max_depth = 0;
  };
  bool prunes_before() const { return learner_.pruning_mode == kPrePrune; }

  // Of each node the candidate that gains most; of equal ones the first.
  StatusOr<BestByNode> Best(const KernelContext& ctx) const {
    const TreeInput nodes(ctx, "partition_ids"), gains(ctx, "gains"), splits(ctx, "splits");
    MR_RETURN_IF_ERROR(nodes.CheckRank(1));
    MR_RETURN_IF_ERROR(gains.CheckRank(1));
    MR_RETURN_IF_ERROR(splits.CheckRank(1));
    MR_RETURN_IF_ERROR(gains.CheckNumbers());
    std::map<int32_t, std::pair<int, int64_t>> places;
    StopNowAndThen pause;
    for (int h = 0; h < nodes.size(); ++h) {
      const int64_t n = nodes[h].dim(0);
      if (gains[h].dim(0) != n || splits[h].dim(0) != n) {
        return InvalidArgument(
            "handler ", h, " has ", n, " nodes, ", gains[h].dim(0), " gains and ", splits[h].dim(0), " splits");
      }
      const auto gain = [&](std::pair<int, int64_t> p) { return gains[p.first].data<float>()[p.second]; };
      for (int64_t i = 0; i < n; ++i) {
        pause();
        if (prunes_before() && gain({h, i}) <= 0) continue;
        const auto [at, is_new] = places.emplace(nodes[h].data<int32_t>()[i], std::pair(h, i));
        if (!is_new && gain({h, i}) > gain(at->second)) at->second = {h, i};
      }
    }
    BestByNode best;
    for (const auto& [node, place] : places) {
      StopIfAsked();
      StatusOr<wire::GbdtSplitInfo> info = ParseSplit(splits[place.first].data<TString>()[place.second].view());
      if (!info.ok()) return Annotate(info.status(), absl::StrCat("splits[", place.first, "][", place.second, "] "));
      best[node] = {place.first, gains[place.first].data<float>()[place.second], *std::move(info)};
    }
    return best;
  }

  static bool GrowsNew(const wire::GbdtEnsemble& e) {
    return e.trees.empty() || GbdtMetadataOf(e, e.trees.size() - 1).is_finalized;
  }
  static Status Check(const BestByNode& best, const wire::GbdtEnsemble& e) {
    for (const auto& [node, candidate] : best) {
      const bool is_leaf =
          GrowsNew(e) ? node == 0
                      : InRange(node, std::ssize(e.trees.back().nodes)) &&
                            e.trees.back().nodes[static_cast<size_t>(node)].kind == wire::GbdtNode::Kind::kLeaf;
      if (!is_leaf) return InvalidArgument("node ", node, " is to be split, but is no leaf of the tree that grows");
    }
    if (!GrowsNew(e) && e.trees.back().nodes.size() + 2 * best.size() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("the tree has too many nodes");
    }
    return absl::OkStatus();
  }

  Changed Grow(const BestByNode& best, const Step& step, const wire::GbdtEnsemble& e) const {
    Changed now(e);
    wire::GbdtGrowingMetadata& growing = now.growing.Ensure();
    const bool is_new = GrowsNew(e);
    if (is_new) CountUp(&growing.num_trees_attempted);
    CountUp(&growing.num_layers_attempted);
    if (best.empty()) return now;
    if (is_new) {
      now.AddTree(step.learning_rate);
      now.metadata.back().num_tree_weight_updates = 1;
    } else {
      now.TakeLastTree(e);
    }
    for (const auto& [node, candidate] : best) {
      StopIfAsked();
      Split(node, candidate, &*now.tree);
      Use(candidate.handler, &growing);
    }
    wire::GbdtTreeMetadata& metadata = now.metadata.back();
    CountUp(&metadata.num_layers_grown);
    if (metadata.num_layers_grown < std::max<int64_t>(step.max_depth, 1)) return now;
    if (!prunes_before()) Prune(&*now.tree);
    if (now.tree->nodes.size() == 1) {
      now.DropTree();
      return now;
    }
    metadata.is_finalized = true;
    WeighAfterDropout(step, &now);
    return now;
  }

  // Where layers add up, children begin with what the leaf had.
  void Split(int32_t node, const Candidate& candidate, wire::GbdtTree* tree) const {
    const auto left = static_cast<int32_t>(tree->nodes.size());
    wire::GbdtLeaf before;
    if (tree->nodes[static_cast<size_t>(node)].leaf) before = *tree->nodes[static_cast<size_t>(node)].leaf;
    for (const auto* child : {&candidate.info.left_child, &candidate.info.right_child}) {
      wire::GbdtNode& leaf = tree->nodes.emplace_back();
      leaf.kind = wire::GbdtNode::Kind::kLeaf;
      leaf.leaf = *child;
      if (learner_.growing_mode != kWholeTree) AddLeaf(before, leaf.leaf.get());
    }
    wire::GbdtNode split = *candidate.info.split_node;
    SetGbdtChildren({left, left + 1}, &split);
    split.node_metadata.Ensure().gain = candidate.gain;
    if (!prunes_before()) split.node_metadata->original_leaf.Ensure() = std::move(before);
    tree->nodes[static_cast<size_t>(node)] = std::move(split);
  }
  static void AddLeaf(const wire::GbdtLeaf& from, wire::GbdtLeaf* to) {
    using Kind = wire::GbdtLeaf::Kind;
    if (from.kind == Kind::kVector && from.vector && to->kind == Kind::kVector && to->vector) {
      const std::vector<float>& values = from.vector->value;
      to->vector->value.resize(std::max(values.size(), to->vector->value.size()));
      for (size_t i = 0; i < values.size(); ++i) to->vector->value[i] += values[i];
    } else if (from.kind == Kind::kSparseVector && from.sparse_vector && to->kind == Kind::kSparseVector &&
               to->sparse_vector) {
      AddSparse(*from.sparse_vector, &*to->sparse_vector);
    }
  }
  // A class that `to` has several times is counted where it stands first.
  static void AddSparse(const wire::TreeSparseVector& from, wire::TreeSparseVector* to) {
    std::map<int32_t, size_t> places;
    StopNowAndThen pause;
    for (size_t k = 0; k < to->index.size(); ++k) {
      pause();
      places.emplace(to->index[k], k);
    }
    for (size_t k = 0; k < from.index.size(); ++k) {
      pause();
      const auto [at, is_new] = places.emplace(from.index[k], to->index.size());
      if (!is_new) {
        to->value[at->second] += from.value[k];
        continue;
      }
      to->index.push_back(from.index[k]);
      to->value.push_back(from.value[k]);
    }
  }

  void Use(int64_t handler, wire::GbdtGrowingMetadata* growing) const {
    if (!learner_.constraints || learner_.constraints->max_number_of_unique_feature_columns <= 0) return;
    std::vector<int64_t>& used = growing->used_handler_ids;
    const auto at = std::lower_bound(used.begin(), used.end(), handler);
    if (at == used.end() || *at != handler) used.insert(at, handler);
  }

  // Splits that lost, and have no split below that won, become the leaves that they were.
  static void Prune(wire::GbdtTree* tree) {
    std::vector<wire::GbdtNode>& nodes = tree->nodes;
    const std::vector<size_t> order = FromRoot(nodes);
    StopNowAndThen pause;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      pause();
      wire::GbdtNode& node = nodes[*at];
      if (node.kind == wire::GbdtNode::Kind::kLeaf) continue;
      const GbdtChildren children = GbdtChildrenOf(node);
      const auto is_leaf = [&](int32_t c) { return nodes[static_cast<size_t>(c)].kind == wire::GbdtNode::Kind::kLeaf; };
      const bool lost = !node.node_metadata || node.node_metadata->gain < 0;
      if (lost && is_leaf(children.left) && is_leaf(children.right)) {
        wire::GbdtNode leaf;
        leaf.kind = wire::GbdtNode::Kind::kLeaf;
        leaf.leaf.Ensure();
        if (node.node_metadata && node.node_metadata->original_leaf) leaf.leaf = node.node_metadata->original_leaf;
        node = std::move(leaf);
      } else if (node.node_metadata) {
        node.node_metadata->original_leaf.reset();
      }
    }
    Compact(&nodes);
  }
  // The nodes that a way leads to, each before its children, wherever these are kept.
  static std::vector<size_t> FromRoot(const std::vector<wire::GbdtNode>& nodes) {
    std::vector<size_t> order = {0};
    StopNowAndThen pause;
    for (size_t k = 0; k < order.size(); ++k) {
      pause();
      const wire::GbdtNode& node = nodes[order[k]];
      if (node.kind == wire::GbdtNode::Kind::kLeaf) continue;
      const GbdtChildren children = GbdtChildrenOf(node);
      for (const int32_t child : {children.left, children.right}) order.push_back(static_cast<size_t>(child));
    }
    return order;
  }
  // Leaves out the nodes that no way leads to.
  static void Compact(std::vector<wire::GbdtNode>* nodes) {
    std::vector<size_t> kept = FromRoot(*nodes);
    std::sort(kept.begin(), kept.end());
    std::vector<int32_t> place(nodes->size(), -1);
    for (size_t k = 0; k < kept.size(); ++k) place[kept[k]] = static_cast<int32_t>(k);
    std::vector<wire::GbdtNode> rest;
    rest.reserve(kept.size());
    for (const size_t n : kept) {
      wire::GbdtNode& node = rest.emplace_back(std::move((*nodes)[n]));
      if (node.kind == wire::GbdtNode::Kind::kLeaf) continue;
      const GbdtChildren c = GbdtChildrenOf(node);
      SetGbdtChildren({place[static_cast<size_t>(c.left)], place[static_cast<size_t>(c.right)]}, &node);
    }
    *nodes = std::move(rest);
  }

  // The new tree and those that were left out while it grew share what these weighed (Rashmi and Gilad-Bachrach,
  // "DART", 2015).
  void WeighAfterDropout(const Step& step, Changed* now) const {
    const std::vector<size_t> dropped = DroppedTrees(step.dropout_seed, learner_, has_bias_, now->kept);
    if (dropped.empty()) return;
    const auto k = static_cast<float>(dropped.size());
    for (const size_t t : dropped) {
      now->weights[t] *= k / (k + 1);
      CountUp(&now->metadata[t].num_tree_weight_updates);
    }
    now->weights.back() /= k + 1;
    CountUp(&now->metadata.back().num_tree_weight_updates);
  }

  wire::GbdtLearner learner_;
  bool has_bias_ = false;
};

// Of another stamp, zeros.
Status Stats(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<GbdtResource> ensemble, FindResource<GbdtResource>(ctx, 0));
  MR_ASSIGN_OR_RETURN(const int64_t stamp, IntInput(ctx, "stamp_token"));
  int64_t stats[6] = {};
  ensemble->Read([&](const GbdtState& state) {
    if (state.stamp != stamp) return;
    const wire::GbdtEnsemble& e = state.trees;
    for (size_t t = 0; t < e.trees.size(); ++t) {
      stats[0] += GbdtMetadataOf(e, t).is_finalized ? 1 : 0;
      stats[1] += GbdtMetadataOf(e, t).num_layers_grown;
    }
    stats[2] = std::ssize(e.trees);
    stats[3] = e.trees.empty() ? 0 : GbdtMetadataOf(e, e.trees.size() - 1).num_layers_grown;
    if (e.growing_metadata) {
      stats[4] = e.growing_metadata->num_trees_attempted;
      stats[5] = e.growing_metadata->num_layers_attempted;
    }
  });
  for (int o = 0; o < 6; ++o) {
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape()));
    *out->mutable_data<int64_t>() = stats[o];
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterGbdtGrowthKernels(KernelRegistry& r) {
  r.Add<CenterBiasKernel>({.op = "CenterTreeEnsembleBias"});
  r.Add<GrowKernel>({.op = "GrowTreeEnsemble"});
  r.AddFn({.op = "TreeEnsembleStats"}, Stats);
}

}  // namespace millrace
