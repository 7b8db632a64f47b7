// SPDX-License-Identifier: Apache-2.0
// How a random forest finds its splits: each leaf that may grow has a slot, which takes the first examples as the
// candidates to split by, counts what the others say of them, and tells when it has seen enough. Hulten and Domingos,
// "Mining High-Speed Data Streams" (2000), for forests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/cpu/trees/forest_tree.h"
#include "kernels/shared/philox.h"

namespace millrace {

// What is known of examples' labels: the weight of each class, or each target's sum and sum of squares.
class ForestLabelStats {
 public:
  // Labels were checked (ForestLabels).
  void Add(const ForestParams& params, const float* labels, float weight);
  float weight() const { return weight_; }
  // How many are kept, about which a question takes.
  int64_t size() const { return std::ssize(dense_) + std::ssize(sparse_); }
  bool HasSeveralClasses() const;
  float CountOf(const ForestParams& params, int64_t label) const;
  // Calls fn(label, count) for each class that was seen.
  template <typename Fn>
  void ForEachClass(Fn fn) const;
  // Without what is in `part`, which holds some of these examples.
  ForestLabelStats Minus(const ForestLabelStats& part) const;
  // How mixed the labels are: the weight times Gini's impurity of smoothed counts, or the variance of the targets,
  // which TensorFlow does not weigh either.
  double Impurity(const ForestParams& params) const;
  // A leaf that says so.
  ForestTreeNode Leaf(const ForestParams& params) const;

  wire::ForestLeafStats Message(const ForestParams& params, bool with_weight) const;
  static StatusOr<ForestLabelStats> Parse(const wire::ForestLeafStats& message, const ForestParams& params);

 private:
  void AddToFixedSize(int64_t label, float weight, int64_t most);

  float weight_ = 0;
  std::vector<float> dense_;    // by class, or the sums of targets. Empty: zeros
  std::vector<float> squares_;  // of targets
  std::map<int64_t, float> sparse_;
};

struct ForestCandidate {
  ForestTest test;
  ForestLabelStats left;
  ForestLabelStats right;    // only of counts of a fixed size: those of others are what the left is not
  int32_t first_label = -1;  // where the threshold is to be between two examples, of the first of them; -1: it is found
};

class ForestSlot {
 public:
  explicit ForestSlot(int32_t depth) : depth_(depth) {}
  int32_t depth() const { return depth_; }

  // Whether there are candidates enough, so that examples are counted.
  bool IsReady(const ForestParams& params) const;
  // Makes a candidate of the example. `feature`: one that the example has, or null.
  void AddCandidate(const ForestParams& params, const ForestInput& input, int64_t example,
                    const ForestInput::Feature* feature, bool is_categorical, const float* labels);
  void AddExample(const ForestParams& params, const ForestInput& input, int64_t example, const float* labels,
                  float weight, PhiloxWords& random);
  // About how many numbers are looked at for so many examples.
  double WorkOf(const ForestParams& params, int64_t examples) const;
  bool IsFinished(const ForestParams& params) const;
  // The candidate after which labels are least mixed; null where none has examples on both sides.
  const ForestCandidate* Best(const ForestParams& params) const;
  ForestLabelStats RightOf(const ForestParams& params, const ForestCandidate& candidate) const;
  const std::vector<ForestCandidate>& candidates() const { return candidates_; }
  const ForestLabelStats& total() const { return total_; }

  // Encoded, a ForestSlotState.
  std::string Message(const ForestParams& params, int32_t node) const;
  static StatusOr<ForestSlot> Parse(const wire::ForestSlotState& message, const ForestParams& params);

 private:
  double ScoreOf(const ForestParams& params, const ForestCandidate& candidate) const;
  std::vector<double> Scores(const ForestParams& params) const;
  void FillThresholds(const ForestInput& input, int64_t example, int32_t label);
  double HoeffdingBound(const ForestParams& params) const;
  void Prune(const ForestParams& params);
  bool Dominates(const ForestParams& params, PhiloxWords& random) const;
  bool WinsResampled(const ForestParams& params, size_t best, size_t second, PhiloxWords& random) const;

  int32_t depth_ = 0;
  bool is_dominated_ = false;
  int64_t prunings_ = 0;  // how often it was time to prune, and to look for an early end
  int64_t checks_ = 0;
  ForestLabelStats total_;  // of the examples since there were candidates enough
  std::vector<ForestCandidate> candidates_;
};

// By leaves.
struct ForestStatsState {
  ForestParams params;
  std::map<int32_t, ForestSlot> slots;
};
// An empty string makes one slot, of a root.
StatusOr<ForestStatsState> ParseForestStats(absl::string_view bytes, const ForestParams& params);
StatusOr<std::string> SerializeForestStats(const ForestStatsState& state);

class ForestStats final : public ForestResource<ForestStatsState> {
 public:
  static constexpr char kTypeName[] = "FertileStatsResource";
  using ForestResource::ForestResource;
  std::string DebugString() const override;
};

template <typename Fn>
void ForestLabelStats::ForEachClass(Fn fn) const {
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (dense_[i] != 0) fn(static_cast<int64_t>(i), dense_[i]);
  }
  for (const auto& [label, count] : sparse_) fn(label, count);
}

}  // namespace millrace
