// SPDX-License-Identifier: Apache-2.0
// CPU kernels: trees of random forests and the statistics of their leaves as resources, their growth, and what they
// predict.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/trees/forest_stats.h"
#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {
namespace {

constexpr double kNanosecondsPerExample = 200;
constexpr double kNanosecondsPerString = 20;

class ForestKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(params_, ForestParamsOf(init));
    if (!init.HasAttr("input_spec")) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const std::string spec, init.Attr<std::string>("input_spec"));
    MR_ASSIGN_OR_RETURN(spec_, ParseForestInputSpec(spec));
    return absl::OkStatus();
  }

 protected:
  const ForestParams& params() const { return params_; }
  const ForestInputSpec& spec() const { return spec_; }
  // Input `tree_handle`, of such a forest.
  StatusOr<RefPtr<ForestTree>> Tree(const KernelContext& ctx) const {
    MR_ASSIGN_OR_RETURN(RefPtr<ForestTree> tree, FindResource<ForestTree>(ctx, 0));
    MR_RETURN_IF_ERROR(tree->Read([&](const ForestTreeState& t) { return CheckSameForest(t.params, params_); }));
    return tree;
  }
  StatusOr<RefPtr<ForestStats>> Stats(const KernelContext& ctx) const {
    MR_ASSIGN_OR_RETURN(RefPtr<ForestStats> stats, FindResource<ForestStats>(ctx, ctx.input_arg("stats_handle").begin));
    MR_RETURN_IF_ERROR(stats->Read([&](const ForestStatsState& s) { return CheckSameForest(s.params, params_); }));
    return stats;
  }

 private:
  ForestParams params_;
  ForestInputSpec spec_;
};

StatusOr<absl::string_view> TextInput(const KernelContext& ctx, const char* name) {
  const TreeInput input(ctx, name);
  MR_RETURN_IF_ERROR(input.CheckRank(0));
  return input[0].data<TString>()->view();
}

// ---- State ----

class CreateTreeKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const absl::string_view bytes, TextInput(ctx, "tree_config"));
    MR_ASSIGN_OR_RETURN(ForestTreeState state, ParseForestTree(bytes, params()));
    return MakeTreeResource(ctx, MakeRef<ForestTree>(std::move(state)));
  }
};

class DeserializeTreeKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, FindResource<ForestTree>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const absl::string_view bytes, TextInput(ctx, "tree_config"));
    MR_ASSIGN_OR_RETURN(ForestTreeState read, ParseForestTree(bytes, params()));
    tree->Write([&](ForestTreeState& state) { std::swap(state, read); });
    return absl::OkStatus();
  }
};

Status OutputText(KernelContext& ctx, const std::string& text) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() = TString(text);
  return absl::OkStatus();
}

Status SerializeTree(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, FindResource<ForestTree>(ctx, 0));
  return OutputText(ctx, tree->Read(SerializeForestTree));
}

Status TreeSize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, FindResource<ForestTree>(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<int32_t>() =
      tree->Read([](const ForestTreeState& t) { return static_cast<int32_t>(t.nodes.size()); });
  return absl::OkStatus();
}

class FeatureUsageKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, Tree(ctx));
    const int64_t features = params().settings.num_features;
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(features)));
    auto* counts = out->mutable_data<int32_t>();
    std::fill_n(counts, features, 0);
    return tree->Read([&](const ForestTreeState& t) -> Status {
      if (t.last_feature >= features) {
        return InvalidArgument("the tree asks for feature ", t.last_feature, ", but num_features is ", features);
      }
      for (const ForestTreeNode& node : t.nodes) {
        if (node.is_split) ++counts[node.test.feature];
      }
      return absl::OkStatus();
    });
  }
};

class CreateStatsKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const absl::string_view bytes, TextInput(ctx, "stats_config"));
    MR_ASSIGN_OR_RETURN(ForestStatsState state, ParseForestStats(bytes, params()));
    return MakeTreeResource(ctx, MakeRef<ForestStats>(std::move(state)));
  }
};

class DeserializeStatsKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestStats> stats, FindResource<ForestStats>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const absl::string_view bytes, TextInput(ctx, "stats_config"));
    MR_ASSIGN_OR_RETURN(ForestStatsState read, ParseForestStats(bytes, params()));
    stats->Write([&](ForestStatsState& state) { std::swap(state, read); });
    return absl::OkStatus();
  }
};

class SerializeStatsKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestStats> stats, Stats(ctx));
    return OutputText(ctx, stats->Read(SerializeForestStats));
  }
};

// ---- Predictions ----

class PredictForestKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, Tree(ctx));
    MR_ASSIGN_OR_RETURN(const ForestInput input, ForestInput::Make(ctx, spec()));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({input.size(), params().outputs}));
    MR_ASSIGN_OR_RETURN(Tensor * predictions, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(Tensor * paths, ctx.AllocateOutput(1, Shape::Vector(input.size())));
    auto* out = predictions->mutable_data<float>();
    auto* texts = paths->mutable_data<TString>();
    return tree->Read([&](const ForestTreeState& t) -> Status {
      if (t.last_feature >= 0) MR_RETURN_IF_ERROR(input.CheckFeature(t.last_feature));
      const double cost = kNanosecondsPerExample + static_cast<double>(params().outputs);
      ctx.ParallelFor(input.size(), cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          t.Predict(t.Traverse(input, i), out + i * params().outputs);
          if (params().settings.inference_tree_paths) texts[i] = TString(Path(t, input, i));
        }
      });
      return absl::OkStatus();
    });
  }

 private:
  static std::string Path(const ForestTreeState& tree, const ForestInput& input, int64_t example) {
    wire::ForestPath path;
    for (int32_t n = 0;;) {
      path.nodes_visited.push_back(tree.NodeMessage(n));
      const ForestTreeNode& node = tree.nodes[static_cast<size_t>(n)];
      if (!node.is_split) return wire::Encode(path);
      n = node.test.Holds(input, example) ? node.left : node.right;
    }
  }
};

class TraverseKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, Tree(ctx));
    MR_ASSIGN_OR_RETURN(const ForestInput input, ForestInput::Make(ctx, spec()));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(input.size())));
    auto* leaves = out->mutable_data<int32_t>();
    return tree->Read([&](const ForestTreeState& t) -> Status {
      if (t.last_feature >= 0) MR_RETURN_IF_ERROR(input.CheckFeature(t.last_feature));
      ctx.ParallelFor(input.size(), kNanosecondsPerExample, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) leaves[i] = t.Traverse(input, i);
      });
      return absl::OkStatus();
    });
  }
};

// ---- Growth ----

// Inputs leaf_ids, input_labels and input_weights: of each example its leaf, its class or targets, and a weight, 1
// where there are none.
class Labels {
 public:
  static StatusOr<Labels> Make(const KernelContext& ctx, const ForestParams& params) {
    Labels labels;
    const TreeInput leaves(ctx, "leaf_ids"), values(ctx, "input_labels"), weights(ctx, "input_weights");
    MR_RETURN_IF_ERROR(leaves.CheckRank(1));
    labels.size_ = leaves[0].dim(0);
    labels.leaves_ = leaves[0].data<int32_t>();
    labels.width_ = params.is_regression() ? params.outputs : 1;
    labels.labels_ = values[0].data<float>();
    const Tensor& v = values[0];
    const bool fits = v.rank() >= 1 && v.rank() <= 2 && v.dim(0) == labels.size_ &&
                      (v.rank() == 1 ? labels.width_ == 1 : v.dim(1) == labels.width_);
    if (!fits) {
      return InvalidArgument(
          "input_labels must have shape [", labels.size_, ", ", labels.width_, "], got ", v.shape().ToString());
    }
    if (weights[0].num_elements() > 0 || labels.size_ == 0) {
      labels.weights_ = weights[0].data<float>();
      if (weights[0].num_elements() != labels.size_) {
        return InvalidArgument(
            "input_weights must have ", labels.size_, " elements, got shape ", weights[0].shape().ToString());
      }
    }
    MR_RETURN_IF_ERROR(labels.Check(params));
    return labels;
  }
  int64_t size() const { return size_; }
  int32_t leaf(int64_t i) const { return leaves_[i]; }
  const float* of(int64_t i) const { return labels_ + i * width_; }
  int64_t class_of(int64_t i) const { return static_cast<int64_t>(*of(i)); }
  float weight(int64_t i) const { return weights_ == nullptr ? 1 : weights_[i]; }
  Status CheckLeaves(int64_t nodes) const {
    for (int64_t i = 0; i < size_; ++i) {
      if (!InRange(leaves_[i], nodes))
        return InvalidArgument("leaf_ids[", i, "] is ", leaves_[i], ", but the tree has ", nodes, " nodes");
    }
    return absl::OkStatus();
  }

 private:
  Status Check(const ForestParams& params) const {
    const bool is_sparse = params.stats != ForestStatsKind::kDense && !params.has_dense_leaves();
    const auto classes = is_sparse ? 1e9f : static_cast<float>(params.outputs);
    for (int64_t i = 0; i < size_; ++i) {
      for (int64_t k = 0; k < width_; ++k) {
        const float label = of(i)[k];
        const bool good =
            params.is_regression() ? std::isfinite(label) : label >= 0 && label < classes && label == std::floor(label);
        if (!good) {
          return InvalidArgument("input_labels[", i, "] is ", label, ", want ",
                                 params.is_regression() ? "a finite number" : absl::StrCat("a class below ", classes));
        }
      }
      if (!std::isfinite(weight(i)) || weight(i) < 0) {
        return InvalidArgument("input_weights[", i, "] is ", weight(i), ", want a finite number that is not negative");
      }
    }
    return absl::OkStatus();
  }

  int64_t size_ = 0;
  int64_t width_ = 1;
  const int32_t* leaves_ = nullptr;
  const float* labels_ = nullptr;
  const float* weights_ = nullptr;
};

class UpdateModelKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, Tree(ctx));
    MR_ASSIGN_OR_RETURN(const Labels labels, Labels::Make(ctx, params()));
    return tree->Write([&](ForestTreeState& t) -> Status {
      MR_RETURN_IF_ERROR(labels.CheckLeaves(std::ssize(t.nodes)));
      for (int64_t i = 0; i < labels.size(); ++i) {
        // A leaf that another step has split meanwhile has its counts already.
        if (t.params.is_regression() || t.nodes[static_cast<size_t>(labels.leaf(i))].is_split) continue;
        t.Update(labels.leaf(i), labels.class_of(i), labels.weight(i));
      }
      return absl::OkStatus();
    });
  }
};

class ProcessInputKernel final : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const int64_t seed, init.Attr<int64_t>("random_seed"));
    Start(init, seed, 0);
    return forest_.Init(init);
  }
  Status Compute(KernelContext& ctx) override { return forest_.Compute(ctx, *this); }

 private:
  class Forest final : public ForestKernel {
   public:
    Status Compute(KernelContext&) override { return absl::OkStatus(); }
    Status Compute(KernelContext& ctx, ProcessInputKernel& random) const;

   private:
    struct Batch {
      const ForestInput& input;
      const Labels& labels;
      std::map<int32_t, bool> was_ready;  // of leaves that were seen, before the batch
    };
    void Add(Batch& batch, int64_t example, ForestStatsState& stats, PhiloxWords& random) const;
    void Start(const Batch& batch, int64_t example, ForestSlot& slot, PhiloxWords& random) const;
  };
  Forest forest_;
};

Status ProcessInputKernel::Forest::Compute(KernelContext& ctx, ProcessInputKernel& random) const {
  MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, Tree(ctx));
  MR_ASSIGN_OR_RETURN(const RefPtr<ForestStats> stats, Stats(ctx));
  MR_ASSIGN_OR_RETURN(const ForestInput input, ForestInput::Make(ctx, spec()));
  MR_ASSIGN_OR_RETURN(const Labels labels, Labels::Make(ctx, params()));
  if (labels.size() != input.size()) {
    return InvalidArgument("there are ", input.size(), " examples, but ", labels.size(), " leaf_ids");
  }
  const auto nodes = tree->Read([](const ForestTreeState& t) { return std::ssize(t.nodes); });
  MR_RETURN_IF_ERROR(labels.CheckLeaves(nodes));
  std::vector<int32_t> finished;
  PhiloxWords words(random.Reserve(input.size() + 1));
  stats->Write([&](ForestStatsState& s) {
    Batch batch{input, labels, {}};
    StopNowAndThen pause;
    for (int64_t i = 0; i < input.size(); ++i) {
      pause(64);
      Add(batch, i, s, words);
    }
    for (const auto& [leaf, was_ready] : batch.was_ready) {
      const auto slot = s.slots.find(leaf);
      if (slot != s.slots.end() && slot->second.IsFinished(s.params)) finished.push_back(leaf);
    }
  });
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(std::ssize(finished))));
  std::copy(finished.begin(), finished.end(), out->mutable_data<int32_t>());
  return absl::OkStatus();
}

// Examples of a leaf that another step has split meanwhile are passed over.
void ProcessInputKernel::Forest::Add(Batch& batch, int64_t example, ForestStatsState& stats,
                                     PhiloxWords& random) const {
  const int32_t leaf = batch.labels.leaf(example);
  const auto found = stats.slots.find(leaf);
  if (found == stats.slots.end()) return;
  ForestSlot& slot = found->second;
  const bool is_ready = slot.IsReady(stats.params);
  const bool was_ready = batch.was_ready.emplace(leaf, is_ready).first->second;
  if (!is_ready) {
    Start(batch, example, slot, random);
  } else if (was_ready || !stats.params.settings.collate_examples) {
    slot.AddExample(stats.params, batch.input, example, batch.labels.of(example), batch.labels.weight(example), random);
  }
}

void ProcessInputKernel::Forest::Start(const Batch& batch, int64_t example, ForestSlot& slot,
                                       PhiloxWords& random) const {
  const int64_t features = batch.input.NumFeatures(example);
  ForestInput::Feature feature;
  if (features > 0) {
    const uint64_t drawn = Below32(random, static_cast<uint32_t>(std::min<int64_t>(features, 0xffffffff)));
    feature = batch.input.FeatureOf(example, static_cast<int64_t>(drawn));
  }
  slot.AddCandidate(params(), batch.input, example, features > 0 ? &feature : nullptr,
                    spec().IsCategorical(feature.number), batch.labels.of(example));
}

class GrowTreeKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestTree> tree, Tree(ctx));
    MR_ASSIGN_OR_RETURN(const RefPtr<ForestStats> stats, Stats(ctx));
    const TreeInput finished(ctx, "finished_nodes");
    MR_RETURN_IF_ERROR(finished.CheckRank(1));
    const auto* nodes = finished[0].data<int32_t>();
    return tree->Write([&](ForestTreeState& t) -> Status {
      return stats->Write([&](ForestStatsState& s) -> Status {
        for (int64_t i = 0; i < finished[0].dim(0); ++i) {
          if (!InRange(nodes[i], std::ssize(t.nodes))) {
            return InvalidArgument(
                "finished_nodes[", i, "] is ", nodes[i], ", but the tree has ", t.nodes.size(), " nodes");
          }
        }
        for (int64_t i = 0; i < finished[0].dim(0) && std::ssize(t.nodes) < params().settings.max_nodes; ++i) {
          Grow(nodes[i], t, s);
        }
        return absl::OkStatus();
      });
    });
  }

 private:
  // A leaf that has no good candidate begins anew.
  void Grow(int32_t leaf, ForestTreeState& tree, ForestStatsState& stats) const {
    const auto found = stats.slots.find(leaf);
    if (found == stats.slots.end() || tree.nodes[static_cast<size_t>(leaf)].is_split) return;
    const int32_t depth = found->second.depth();
    const ForestCandidate* best = found->second.Best(stats.params);
    if (best == nullptr) {
      found->second = ForestSlot(depth);
      return;
    }
    const auto first = static_cast<int32_t>(tree.nodes.size());
    const ForestLabelStats right = found->second.RightOf(stats.params, *best);
    tree.Split(leaf, best->test, best->left.Leaf(tree.params), right.Leaf(tree.params));
    stats.slots.erase(found);
    for (const int32_t child : {first, first + 1}) {
      stats.slots.emplace(child, ForestSlot(depth < std::numeric_limits<int32_t>::max() ? depth + 1 : depth));
    }
  }
};

// By the hash of libstdc++, as TensorFlow: trees of both ask for the same numbers.
Status StringsToFloats(KernelContext& ctx) {
  const Tensor& strings = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, strings.shape()));
  const auto* from = strings.data<TString>();
  auto* to = out->mutable_data<float>();
  ctx.ParallelFor(strings.num_elements(), kNanosecondsPerString, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const absl::string_view text = from[i].view();
      to[i] = static_cast<float>(std::hash<std::string_view>()(std::string_view(text.data(), text.size())));
    }
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterForestKernels(KernelRegistry& r) {
  r.Add<TreeHandleKernel<ForestTree>>({.op = "DecisionTreeResourceHandleOp"});
  r.AddFn({.op = "TreeIsInitializedOp"}, TreeResourceExists<ForestTree>);
  r.Add<CreateTreeKernel>({.op = "CreateTreeVariable"});
  r.AddFn({.op = "TreeSerialize"}, SerializeTree);
  r.Add<DeserializeTreeKernel>({.op = "TreeDeserialize"});
  r.AddFn({.op = "TreeSize"}, TreeSize);
  r.Add<FeatureUsageKernel>({.op = "FeatureUsageCounts"});
  r.Add<TreeHandleKernel<ForestStats>>({.op = "FertileStatsResourceHandleOp"});
  r.AddFn({.op = "FertileStatsIsInitializedOp"}, TreeResourceExists<ForestStats>);
  r.Add<CreateStatsKernel>({.op = "CreateFertileStatsVariable"});
  r.Add<SerializeStatsKernel>({.op = "FertileStatsSerialize"});
  r.Add<DeserializeStatsKernel>({.op = "FertileStatsDeserialize"});
  r.Add<PredictForestKernel>({.op = "TreePredictionsV4"});
  r.Add<TraverseKernel>({.op = "TraverseTreeV4"});
  r.Add<UpdateModelKernel>({.op = "UpdateModelV4"});
  r.Add<ProcessInputKernel>({.op = "ProcessInputV4"});
  r.Add<GrowTreeKernel>({.op = "GrowTreeV4"});
  r.AddFn({.op = "ReinterpretStringToFloat"}, StringsToFloats);
}

}  // namespace millrace
