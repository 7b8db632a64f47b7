// SPDX-License-Identifier: Apache-2.0
// CPU kernels: the labels that a sequence of class scores stands for, by the best class of each step, or by a search
// for the best prefixes (Graves, 2012, section 7.5; a prefix may end in a blank or in its last label).
#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/key_map.h"
#include "kernels/cpu/nn/ctc.h"

namespace millrace {

Status EmitLabels(KernelContext& ctx, const std::vector<std::vector<int64_t>>& labels, int first, int step) {
  int64_t total = 0, longest = 0;
  for (const auto& l : labels) {
    total += static_cast<int64_t>(l.size());
    longest = std::max(longest, static_cast<int64_t>(l.size()));
  }
  MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({total, 2}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(first, matrix));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(first + step, Shape::Vector(total)));
  MR_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(first + 2 * step, Shape::Vector(2)));
  int64_t *at = indices->mutable_data<int64_t>(), *value = values->mutable_data<int64_t>();
  for (size_t b = 0; b < labels.size(); ++b) {
    for (size_t i = 0; i < labels[b].size(); ++i) {
      *at++ = static_cast<int64_t>(b);
      *at++ = static_cast<int64_t>(i);
      *value++ = labels[b][i];
    }
  }
  shape->mutable_data<int64_t>()[0] = static_cast<int64_t>(labels.size());
  shape->mutable_data<int64_t>()[1] = longest;
  return absl::OkStatus();
}

namespace {

template <typename T>
class GreedyKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(merge_, init.Attr<bool>("merge_repeated"));
    if (init.HasAttr("blank_index")) {  // newer graphs may have another blank than the last class
      MR_ASSIGN_OR_RETURN(blank_, init.Attr<int64_t>("blank_index"));
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const CtcInput in, CheckCtcInput(ctx, 1, /*is_decoder=*/true));
    int64_t blank = 0;
    if (!NormalizeIndex(blank_, in.classes, &blank)) {
      return InvalidArgument("blank_index ", blank_, " is none of ", in.classes, " classes");
    }
    MR_ASSIGN_OR_RETURN(const Shape column, Shape::Make({in.batch, 1}));
    MR_ASSIGN_OR_RETURN(Tensor * scores, ctx.AllocateOutput(3, column));
    std::vector<std::vector<int64_t>> labels(static_cast<size_t>(in.batch));
    ctx.ParallelFor(in.batch, static_cast<double>(in.time * in.classes), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        T sum = 0;
        int64_t before = -1;
        for (int64_t t = 0; t < in.lengths[static_cast<size_t>(b)]; ++t) {
          const T* x = ctx.input(0).data<T>() + in.at(t, b);
          const int64_t best = std::max_element(x, x + in.classes) - x;
          sum -= x[best];
          if (best != blank && !(merge_ && best == before)) labels[static_cast<size_t>(b)].push_back(best);
          before = best;
        }
        scores->mutable_data<T>()[b] = sum;
      }
    });
    return EmitLabels(ctx, labels, 0, 1);
  }

 private:
  bool merge_ = false;
  int64_t blank_ = -1;
};

// The prefixes of one sequence, as a tree; those of the beam carry log-probabilities.
class PrefixBeam {
 public:
  struct Score {
    double blank = kNever, label = kNever;  // of the prefix, ending in a blank or in its last label
    double total() const { return LogAdd(blank, label); }
  };

  explicit PrefixBeam(int64_t width) : width_(static_cast<size_t>(width)) {
    nodes_.push_back({-1, -1, {0, kNever}, {}, true});
    beam_.push_back(0);
  }

  // log_probability of each class, the blank last. As in TensorFlow, what is grown first may push a prefix out of the
  // beam before that is grown itself; one that is then no better as a child of its parent is not grown at all.
  void Step(const std::vector<double>& log_probability) {
    const size_t blank = log_probability.size() - 1;
    beam_ = Best();
    Heap kept;
    for (const int64_t id : beam_) {
      Node& n = At(id);
      n.next = {n.now.total() + log_probability[blank], kNever};
      if (n.parent >= 0) {
        double by_label = n.now.label;
        if (const Node& parent = At(n.parent); parent.active) by_label = LogAdd(by_label, Extended(parent, n.label));
        n.next.label = by_label + log_probability[static_cast<size_t>(n.label)];
      }
      kept.emplace(n.next.total(), id);
    }
    for (const int64_t id : beam_) {
      if (!Enters(At(id).now.total(), kept)) continue;
      for (size_t k = 0; k < blank; ++k) {
        const int64_t label = static_cast<int64_t>(k);
        const double score = Extended(At(id), label) + log_probability[k];
        if (Enters(score, kept)) {
          const int64_t child = Child(id, label);
          if (!At(child).active) Push(child, score, kept);
        } else if (At(id).lost_child) {
          const int64_t* child = children_.Find({id, label});
          if (child != nullptr && !At(*child).active) At(*child).now = {};
        }
      }
    }
    Keep(kept);
  }

  // Prefixes from the best one on.
  std::vector<int64_t> Best() const {
    std::vector<int64_t> ids = beam_;
    std::stable_sort(
        ids.begin(), ids.end(), [&](int64_t a, int64_t b) { return At(a).now.total() > At(b).now.total(); });
    return ids;
  }
  double ScoreOf(int64_t id) const { return At(id).now.total(); }
  std::vector<int64_t> LabelsOf(int64_t id, bool merge) const {
    std::vector<int64_t> labels;
    for (; At(id).parent >= 0; id = At(id).parent) {
      if (!merge || labels.empty() || labels.back() != At(id).label) labels.push_back(At(id).label);
    }
    std::reverse(labels.begin(), labels.end());
    return labels;
  }

 private:
  struct Node {
    int64_t parent, label;
    Score now, next;
    bool active;              // in the beam
    bool lost_child = false;  // one that this step pushed out of the beam
  };
  using Entry = std::pair<double, int64_t>;
  using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;  // the worst on top
  Node& At(int64_t id) { return nodes_[static_cast<size_t>(id)]; }
  const Node& At(int64_t id) const { return nodes_[static_cast<size_t>(id)]; }
  // What leads from a prefix to the same one with `label` behind it: a repetition needs a blank between.
  static double Extended(const Node& n, int64_t label) { return n.label == label ? n.now.blank : n.now.total(); }
  int64_t Child(int64_t id, int64_t label) {
    const auto [child, is_new] = children_.Insert({id, label}, static_cast<int64_t>(nodes_.size()));
    if (is_new) nodes_.push_back({id, label, {}, {}, false});
    return child;
  }
  bool Enters(double score, const Heap& kept) const {
    return score > kNever && (kept.size() < width_ || score > kept.top().first);
  }
  void Push(int64_t id, double score, Heap& kept) {
    if (kept.size() == width_) {
      Node& worst = At(kept.top().second);
      worst.active = false;
      if (worst.parent >= 0) At(worst.parent).lost_child = true;
      kept.pop();
    }
    At(id).next = {kNever, score};
    At(id).active = true;
    kept.emplace(score, id);
  }
  void Keep(Heap& kept) {
    for (const int64_t id : beam_) At(id).lost_child = false;
    beam_.clear();
    for (; !kept.empty(); kept.pop()) {
      const int64_t id = kept.top().second;
      At(id).now = At(id).next;
      At(id).lost_child = false;
      beam_.push_back(id);
    }
  }

  size_t width_;
  std::vector<Node> nodes_;
  std::vector<int64_t> beam_;
  KeyMap<std::pair<int64_t, int64_t>> children_;
};

template <typename T>
class BeamKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(width_, init.Attr<int64_t>("beam_width"));
    MR_ASSIGN_OR_RETURN(paths_, init.Attr<int64_t>("top_paths"));
    MR_ASSIGN_OR_RETURN(merge_, init.Attr<bool>("merge_repeated"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (paths_ > width_) return InvalidArgument("top_paths is ", paths_, ", more than beam_width, ", width_);
    MR_ASSIGN_OR_RETURN(const CtcInput in, CheckCtcInput(ctx, 1, /*is_decoder=*/true));
    MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({in.batch, paths_}));
    MR_ASSIGN_OR_RETURN(Tensor * scores, ctx.AllocateOutput(static_cast<int>(3 * paths_), matrix));
    std::vector<std::vector<std::vector<int64_t>>> labels(
        static_cast<size_t>(paths_), std::vector<std::vector<int64_t>>(static_cast<size_t>(in.batch)));
    std::vector<size_t> found(static_cast<size_t>(in.batch));
    const double beam_cost =
        static_cast<double>(in.time * in.classes) * static_cast<double>(std::min<int64_t>(width_, 1000)) * 20;
    ctx.ParallelFor(in.batch, beam_cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const PrefixBeam beam = Search(ctx.input(0), in, b);
        const std::vector<int64_t> best = beam.Best();
        found[static_cast<size_t>(b)] = best.size();
        for (size_t p = 0; p < std::min(best.size(), labels.size()); ++p) {
          labels[p][static_cast<size_t>(b)] = beam.LabelsOf(best[p], merge_);
          scores->mutable_data<T>()[b * paths_ + static_cast<int64_t>(p)] = static_cast<T>(beam.ScoreOf(best[p]));
        }
      }
    });
    for (size_t b = 0; b < found.size(); ++b) {
      if (found[b] < labels.size())
        return InvalidArgument("sequence ", b, " has only ", found[b], " paths, top_paths is ", paths_);
    }
    for (size_t p = 0; p < labels.size(); ++p) {
      MR_RETURN_IF_ERROR(EmitLabels(ctx, labels[p], static_cast<int>(p), static_cast<int>(paths_)));
    }
    return absl::OkStatus();
  }

 private:
  PrefixBeam Search(const Tensor& inputs, const CtcInput& in, int64_t b) const {
    PrefixBeam beam(width_);
    std::vector<double> log_probability(static_cast<size_t>(in.classes));
    for (int64_t t = 0; t < in.lengths[static_cast<size_t>(b)]; ++t) {
      StopIfAsked();
      const T* x = inputs.data<T>() + in.at(t, b);
      const double top = static_cast<double>(*std::max_element(x, x + in.classes));
      double sum = 0;
      for (int64_t k = 0; k < in.classes; ++k) sum += std::exp(static_cast<double>(x[k]) - top);
      for (int64_t k = 0; k < in.classes; ++k)
        log_probability[static_cast<size_t>(k)] = static_cast<double>(x[k]) - top - std::log(sum);
      beam.Step(log_probability);
    }
    return beam;
  }

  int64_t width_ = 1, paths_ = 1;
  bool merge_ = true;
};

}  // namespace

void RegisterCtcDecoders(KernelRegistry& registry) {
  registry.Add<GreedyKernel<float>>({.op = "CTCGreedyDecoder", .types = {{"T", {DType::kFloat}}}});
  registry.Add<GreedyKernel<double>>({.op = "CTCGreedyDecoder", .types = {{"T", {DType::kDouble}}}});
  registry.Add<BeamKernel<float>>({.op = "CTCBeamSearchDecoder", .types = {{"T", {DType::kFloat}}}});
  registry.Add<BeamKernel<double>>({.op = "CTCBeamSearchDecoder", .types = {{"T", {DType::kDouble}}}});
}

}  // namespace millrace
