// SPDX-License-Identifier: Apache-2.0
// CPU kernels: trees of random forests and the statistics of their leaves as resources, their growth, and what they
// predict.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/trees/forest_stats.h"
#include "kernels/cpu/trees/tree_kernels.h"

namespace millrace {
namespace {

constexpr double kNanosecondsPerExample = 100;
constexpr double kNanosecondsPerString = 20;
constexpr int64_t kMostPathBytes = int64_t{1} << 30;  // of a batch
// Numbers looked at, for about a tenth of a second. Who does more works on copies, so that it may stop.
constexpr double kMuchWork = 1e7;

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
  // Calls fn, which gives a Status, with the tree, or the statistics, of input `handle`. That they are of such a forest
  // holds only meanwhile: another step may put those of another one in their place.
  template <typename T, typename Fn>
  Status Read(const KernelContext& ctx, const char* handle, Fn fn) const {
    MR_ASSIGN_OR_RETURN(const RefPtr<T> found, FindResource<T>(ctx, ctx.input_arg(handle).begin));
    return found->Read([&](const auto& state) { return Checked(state, fn); });
  }
  template <typename T, typename Fn>
  Status Write(const KernelContext& ctx, const char* handle, Fn fn) const {
    MR_ASSIGN_OR_RETURN(const RefPtr<T> found, FindResource<T>(ctx, ctx.input_arg(handle).begin));
    return found->Write([&](auto& state) { return Checked(state, fn); });
  }

 private:
  template <typename State, typename Fn>
  Status Checked(State& state, Fn& fn) const {
    MR_RETURN_IF_ERROR(CheckSameForest(state.params, params_));
    return fn(state);
  }
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
    const StopAllowed until_it_is_made;
    MR_ASSIGN_OR_RETURN(const absl::string_view bytes, TextInput(ctx, "tree_config"));
    MR_ASSIGN_OR_RETURN(ForestTreeState state, ParseForestTree(bytes, params()));
    return MakeTreeResource(ctx, MakeRef<ForestTree>(std::move(state)));
  }
};

class DeserializeTreeKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const StopAllowed until_it_is_read;
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
  const StopAllowed as_it_only_reads;
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
    const int64_t features = params().settings.num_features;
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(features)));
    auto* counts = out->mutable_data<int32_t>();
    std::fill_n(counts, features, 0);
    return Read<ForestTree>(ctx, "tree_handle", [&](const ForestTreeState& t) -> Status {
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
    const StopAllowed until_they_are_made;
    MR_ASSIGN_OR_RETURN(const absl::string_view bytes, TextInput(ctx, "stats_config"));
    MR_ASSIGN_OR_RETURN(ForestStatsState state, ParseForestStats(bytes, params()));
    return MakeTreeResource(ctx, MakeRef<ForestStats>(std::move(state)));
  }
};

class DeserializeStatsKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const StopAllowed until_they_are_read;
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
    const StopAllowed as_it_only_reads;
    std::string text;
    MR_RETURN_IF_ERROR(Read<ForestStats>(ctx, "stats_handle", [&](const ForestStatsState& s) -> Status {
      MR_ASSIGN_OR_RETURN(text, SerializeForestStats(s));
      return absl::OkStatus();
    }));
    return OutputText(ctx, text);
  }
};

// ---- Predictions ----

class PredictForestKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const StopAllowed as_it_only_reads;
    MR_ASSIGN_OR_RETURN(const ForestInput input, ForestInput::Make(ctx, spec()));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({input.size(), params().outputs}));
    MR_ASSIGN_OR_RETURN(Tensor * predictions, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(Tensor * paths, ctx.AllocateOutput(1, Shape::Vector(input.size())));
    auto* out = predictions->mutable_data<float>();
    auto* texts = paths->mutable_data<TString>();
    return Read<ForestTree>(ctx, "tree_handle", [&](const ForestTreeState& t) -> Status {
      if (t.last_feature >= 0) MR_RETURN_IF_ERROR(input.CheckFeature(t.last_feature));
      const double cost = kNanosecondsPerExample + t.TraverseNanoseconds() + static_cast<double>(params().outputs);
      std::atomic<int64_t> path_bytes = 0;
      ctx.ParallelFor(input.size(), cost, [&](int64_t begin, int64_t end) {
        StopNowAndThen pause;
        for (int64_t i = begin; i < end; ++i) {
          const int32_t leaf = t.Traverse(input, i);
          pause(params().outputs + std::ssize(t.nodes[static_cast<size_t>(leaf)].sparse));
          t.Predict(leaf, out + i * params().outputs);
          if (params().settings.inference_tree_paths) texts[i] = TString(Path(t, input, i, &path_bytes));
        }
      });
      if (path_bytes <= kMostPathBytes) return absl::OkStatus();
      return ResourceExhausted("the paths of ", input.size(), " examples take more than ", kMostPathBytes, " bytes");
    });
  }

 private:
  // The nodes that an example passes. `bytes` are of all paths; when they are too many, a path ends before its leaf.
  static std::string Path(const ForestTreeState& tree, const ForestInput& input, int64_t example,
                          std::atomic<int64_t>* bytes) {
    std::string path;
    for (int32_t n = 0; *bytes <= kMostPathBytes;) {
      StopIfAsked();
      const size_t before = path.size();
      AppendForestPart(wire::Encode(tree.NodeMessage(n)), &path);
      *bytes += static_cast<int64_t>(path.size() - before);
      const ForestTreeNode& node = tree.nodes[static_cast<size_t>(n)];
      if (!node.is_split) break;
      n = node.test.Holds(input, example) ? node.left : node.right;
    }
    return path;
  }
};

class TraverseKernel final : public ForestKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const StopAllowed as_it_only_reads;
    MR_ASSIGN_OR_RETURN(const ForestInput input, ForestInput::Make(ctx, spec()));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(input.size())));
    auto* leaves = out->mutable_data<int32_t>();
    return Read<ForestTree>(ctx, "tree_handle", [&](const ForestTreeState& t) -> Status {
      if (t.last_feature >= 0) MR_RETURN_IF_ERROR(input.CheckFeature(t.last_feature));
      ctx.ParallelFor(input.size(), kNanosecondsPerExample + t.TraverseNanoseconds(), [&](int64_t begin, int64_t end) {
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
    StopNowAndThen pause;
    for (int64_t i = 0; i < size_; ++i) {
      pause();
      if (!InRange(leaves_[i], nodes))
        return InvalidArgument("leaf_ids[", i, "] is ", leaves_[i], ", but the tree has ", nodes, " nodes");
    }
    return absl::OkStatus();
  }

 private:
  Status Check(const ForestParams& params) const {
    const bool is_sparse = params.stats != ForestStatsKind::kDense && !params.has_dense_leaves();
    const auto classes = is_sparse ? 1e9f : static_cast<float>(params.outputs);
    StopNowAndThen pause;
    for (int64_t i = 0; i < size_; ++i) {
      pause(width_);
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
    const StopAllowed as_leaves_are_copies;
    MR_ASSIGN_OR_RETURN(const Labels labels, Labels::Make(ctx, params()));
    return Write<ForestTree>(ctx, "tree_handle", [&](ForestTreeState& t) -> Status {
      MR_RETURN_IF_ERROR(labels.CheckLeaves(std::ssize(t.nodes)));
      if (params().is_regression()) return absl::OkStatus();
      std::map<int32_t, ForestTreeNode> leaves;
      StopNowAndThen pause;
      for (int64_t i = 0; i < labels.size(); ++i) {
        pause();
        // A leaf that another step has split meanwhile has its counts already.
        const ForestTreeNode& node = t.nodes[static_cast<size_t>(labels.leaf(i))];
        if (node.is_split) continue;
        auto at = leaves.find(labels.leaf(i));
        if (at == leaves.end()) {
          pause(node.dense.empty() ? params().outputs : std::ssize(node.dense));
          at = leaves.emplace(labels.leaf(i), node).first;
        }
        at->second.Count(params(), labels.class_of(i), labels.weight(i));
      }
      for (auto& [leaf, node] : leaves) t.nodes[static_cast<size_t>(leaf)] = std::move(node);
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
    // A leaf of the batch that may grow.
    struct Leaf {
      ForestSlot* slot;
      bool was_ready;  // before the batch
      int64_t examples;
      std::optional<ForestSlot> copy;  // that `slot` is, where the batch is much work
    };
    struct Batch {
      const ForestInput& input;
      const Labels& labels;
      std::map<int32_t, Leaf> leaves;
    };
    void FindLeaves(ForestStatsState& stats, Batch* batch) const;
    void AddAll(ForestStatsState& stats, Batch* batch, PhiloxWords& random) const;
    void Add(const Batch& batch, int64_t example, const ForestParams& params, const Leaf& leaf,
             PhiloxWords& random) const;
    void Start(const Batch& batch, int64_t example, ForestSlot& slot, PhiloxWords& random) const;
  };
  Forest forest_;
};

Status ProcessInputKernel::Forest::Compute(KernelContext& ctx, ProcessInputKernel& random) const {
  std::optional<StopAllowed> while_it_reads(std::in_place);
  MR_ASSIGN_OR_RETURN(const ForestInput input, ForestInput::Make(ctx, spec()));
  MR_ASSIGN_OR_RETURN(const Labels labels, Labels::Make(ctx, params()));
  if (labels.size() != input.size()) {
    return InvalidArgument("there are ", input.size(), " examples, but ", labels.size(), " leaf_ids");
  }
  MR_RETURN_IF_ERROR(Read<ForestTree>(
      ctx, "tree_handle", [&](const ForestTreeState& t) { return labels.CheckLeaves(std::ssize(t.nodes)); }));
  std::vector<int32_t> finished;
  PhiloxWords words(random.Reserve(input.size() + 1));
  MR_RETURN_IF_ERROR(Write<ForestStats>(ctx, "stats_handle", [&](ForestStatsState& s) -> Status {
    Batch batch{input, labels, {}};
    FindLeaves(s, &batch);
    while_it_reads.reset();
    AddAll(s, &batch, words);
    for (const auto& [number, leaf] : batch.leaves) {
      if (leaf.slot->IsFinished(s.params)) finished.push_back(number);
    }
    return absl::OkStatus();
  }));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(std::ssize(finished))));
  std::copy(finished.begin(), finished.end(), out->mutable_data<int32_t>());
  return absl::OkStatus();
}

// Examples of a leaf that another step has split meanwhile are passed over.
void ProcessInputKernel::Forest::FindLeaves(ForestStatsState& stats, Batch* batch) const {
  StopNowAndThen pause;
  for (int64_t i = 0; i < batch->labels.size(); ++i) {
    pause();
    const int32_t number = batch->labels.leaf(i);
    auto at = batch->leaves.find(number);
    if (at == batch->leaves.end()) {
      const auto found = stats.slots.find(number);
      if (found == stats.slots.end()) continue;
      pause(std::ssize(found->second.candidates()));
      at = batch->leaves.emplace(number, Leaf{&found->second, found->second.IsReady(stats.params), 0, {}}).first;
    }
    ++at->second.examples;
  }
}

void ProcessInputKernel::Forest::AddAll(ForestStatsState& stats, Batch* batch, PhiloxWords& random) const {
  double work = 0;
  for (const auto& [number, leaf] : batch->leaves) work += leaf.slot->WorkOf(stats.params, leaf.examples);
  std::optional<StopAllowed> as_they_are_copies;
  StopNowAndThen pause;
  if (work > kMuchWork) {
    as_they_are_copies.emplace();
    for (auto& [number, leaf] : batch->leaves) {
      StopIfAsked();
      leaf.slot = &leaf.copy.emplace(*leaf.slot);
    }
  }
  for (int64_t i = 0; i < batch->labels.size(); ++i) {
    const auto at = batch->leaves.find(batch->labels.leaf(i));
    if (at == batch->leaves.end()) continue;
    pause(1 + std::ssize(at->second.slot->candidates()));
    Add(*batch, i, stats.params, at->second, random);
  }
  for (auto& [number, leaf] : batch->leaves) {
    if (!leaf.copy) continue;
    leaf.slot = &stats.slots.find(number)->second;
    *leaf.slot = *std::move(leaf.copy);
  }
}

void ProcessInputKernel::Forest::Add(const Batch& batch, int64_t example, const ForestParams& params, const Leaf& leaf,
                                     PhiloxWords& random) const {
  if (!leaf.slot->IsReady(params)) {
    Start(batch, example, *leaf.slot, random);
  } else if (leaf.was_ready || !params.settings.collate_examples) {
    leaf.slot->AddExample(params, batch.input, example, batch.labels.of(example), batch.labels.weight(example), random);
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
    const StopAllowed until_all_splits_are_found;
    const TreeInput finished(ctx, "finished_nodes");
    MR_RETURN_IF_ERROR(finished.CheckRank(1));
    return Write<ForestTree>(ctx, "tree_handle", [&](ForestTreeState& t) -> Status {
      return Write<ForestStats>(ctx, "stats_handle", [&](ForestStatsState& s) -> Status {
        Growth growth;
        MR_RETURN_IF_ERROR(Find(finished[0].flat<int32_t>(), t, s, &growth));
        t.Reserve(2 * growth.splits.size());
        Grow(std::move(growth), t, s);
        return absl::OkStatus();
      });
    });
  }

 private:
  struct Split {
    int32_t leaf;
    ForestTest test;
    ForestTreeNode left, right;
  };
  struct Growth {
    std::vector<Split> splits;
    std::vector<int32_t> anew;            // leaves that have no good candidate: they begin anew
    std::map<int32_t, ForestSlot> slots;  // of the new leaves
  };

  // Changes neither tree nor statistics.
  Status Find(absl::Span<const int32_t> finished, const ForestTreeState& tree, const ForestStatsState& stats,
              Growth* growth) const {
    StopNowAndThen pause;
    for (size_t i = 0; i < finished.size(); ++i) {
      pause();
      if (!InRange(finished[i], std::ssize(tree.nodes))) {
        return InvalidArgument(
            "finished_nodes[", i, "] is ", finished[i], ", but the tree has ", tree.nodes.size(), " nodes");
      }
    }
    const int64_t leaves = tree.NumLeaves();
    auto first = std::ssize(tree.nodes);
    std::set<int32_t> seen;
    for (const int32_t leaf : finished) {
      pause();
      if (first >= params().settings.max_nodes) break;
      const auto found = stats.slots.find(leaf);
      if (found == stats.slots.end() || tree.nodes[static_cast<size_t>(leaf)].is_split || !seen.insert(leaf).second)
        continue;
      const ForestCandidate* best = found->second.Best(stats.params);
      if (best == nullptr) {
        growth->anew.push_back(leaf);
        continue;
      }
      if (params().has_dense_leaves())
        MR_RETURN_IF_ERROR(CheckForestNumbers(leaves + std::ssize(growth->splits) + 1, params()));
      pause(params().has_dense_leaves() ? params().outputs : 1);
      const ForestLabelStats right = found->second.RightOf(stats.params, *best);
      growth->splits.push_back({leaf, best->test, best->left.Leaf(tree.params), right.Leaf(tree.params)});
      const int32_t depth = found->second.depth();
      for (int child = 0; child < 2; ++child, ++first) {
        growth->slots.emplace(
            static_cast<int32_t>(first), ForestSlot(depth < std::numeric_limits<int32_t>::max() ? depth + 1 : depth));
      }
    }
    return absl::OkStatus();
  }

  // Wants no memory: the tree has room for the new nodes.
  static void Grow(Growth growth, ForestTreeState& tree, ForestStatsState& stats) {
    for (const int32_t leaf : growth.anew) {
      ForestSlot& slot = stats.slots.find(leaf)->second;
      slot = ForestSlot(slot.depth());
    }
    for (Split& split : growth.splits) {
      tree.Split(split.leaf, std::move(split.test), std::move(split.left), std::move(split.right));
      stats.slots.erase(split.leaf);
    }
    stats.slots.merge(growth.slots);
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
