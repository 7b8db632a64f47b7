// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/forest_stats.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace millrace {
namespace {

wire::Box<wire::ForestByDepth> Constant(float value) {
  wire::Box<wire::ForestByDepth> box;
  box.Ensure().kind = wire::ForestByDepth::Kind::kConstant;
  box->constant_value = value;
  return box;
}

wire::ForestSettings Settings(int32_t outputs, float splits, float after) {
  wire::ForestSettings s;
  s.num_outputs = outputs;
  s.max_nodes = 100;
  s.checkpoint_stats = true;
  s.num_splits_to_consider = Constant(splits);
  s.split_after_samples = Constant(after);
  return s;
}

ForestParams Params(const wire::ForestSettings& settings) { return *ParseForestParams(wire::Encode(settings)); }

ForestInput::Feature FeatureOf(const ForestInput& input, int64_t example, int64_t i) {
  return input.FeatureOf(example, i);
}

struct Slot {
  explicit Slot(const wire::ForestSettings& settings) : params(Params(settings)) {}
  void Candidate(const ForestInput& input, int64_t example, int64_t feature, float label) {
    const ForestInput::Feature f = FeatureOf(input, example, feature);
    slot.AddCandidate(params, input, example, &f, false, &label);
  }
  void Example(const ForestInput& input, int64_t example, float label, float weight = 1) {
    slot.AddExample(params, input, example, &label, weight, random);
  }
  size_t size() const { return slot.candidates().size(); }

  ForestParams params;
  ForestSlot slot{0};
  PhiloxWords random{Philox(1, 2)};
};

TEST(ForestStats, CountsClassesOnBothSides) {
  const float data[] = {10, 4, 3, 4, 5, 6};
  const ForestInput input(data, 3, 2);
  Slot s(Settings(2, 2, 2));
  s.Candidate(input, 0, 0, 1);
  EXPECT_FALSE(s.slot.IsReady(s.params));
  s.Candidate(input, 1, 1, 1);
  EXPECT_TRUE(s.slot.IsReady(s.params));
  s.Example(input, 0, 1, 2.5f);
  EXPECT_FALSE(s.slot.IsFinished(s.params));  // one class
  s.Example(input, 1, 0, 20);
  s.Example(input, 2, 1, 1.5f);
  EXPECT_TRUE(s.slot.IsFinished(s.params));
  const ForestCandidate& second = s.slot.candidates()[1];
  EXPECT_EQ(second.left.CountOf(s.params, 0), 20);
  EXPECT_EQ(second.left.CountOf(s.params, 1), 2.5f);
  EXPECT_EQ(s.slot.RightOf(s.params, second).CountOf(s.params, 1), 1.5f);
  EXPECT_EQ(s.slot.Best(s.params), &second);  // all examples are on one side of the first
  const std::string text = s.slot.Message(s.params, 7);
  wire::ForestSlotState state;
  ASSERT_TRUE(wire::Decode(text, &state).ok());
  StatusOr<ForestSlot> back = ForestSlot::Parse(state, s.params);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->Message(s.params, 7), text);
}

TEST(ForestStats, MeansOfTargets) {
  wire::ForestSettings settings = Settings(1, 1, 3);
  settings.leaf_type = 2;
  settings.stats_type = 2;
  settings.is_regression = true;
  const float data[] = {1, 2, 3, 4};
  const ForestInput input(data, 4, 1);
  Slot s(settings);
  s.Candidate(input, 1, 0, 0);
  for (int i = 0; i < 4; ++i) s.Example(input, i, i < 2 ? 1.0f : static_cast<float>(i) * 2);
  EXPECT_TRUE(s.slot.IsFinished(s.params));
  const ForestCandidate* best = s.slot.Best(s.params);
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->left.Leaf(s.params).dense, std::vector<float>({1}));
  EXPECT_EQ(s.slot.RightOf(s.params, *best).Leaf(s.params).dense, std::vector<float>({5}));
  EXPECT_DOUBLE_EQ(s.slot.RightOf(s.params, *best).Impurity(s.params), 1);  // of 4 and 6
}

TEST(ForestStats, ThresholdsBetweenExamplesOfTwoClasses) {
  wire::ForestSettings settings = Settings(2, 1, 2);
  settings.initialize_average_splits = true;
  const float data[] = {1, 2, 4};
  const ForestInput input(data, 3, 1);
  Slot s(settings);
  s.Candidate(input, 0, 0, 1);
  s.Candidate(input, 1, 0, 1);
  EXPECT_FALSE(s.slot.IsReady(s.params));
  s.Candidate(input, 2, 0, 0);
  EXPECT_TRUE(s.slot.IsReady(s.params));
  EXPECT_EQ(s.slot.candidates()[0].test.threshold, 2.5f);
}

// After 2n examples the difference of the scores is n^3 / (n + 2)^2 and the bound n sqrt(log(10) / 2n), which is less
// from n = 5 on.
TEST(ForestStats, PrunesByHoeffdingsBound) {
  wire::ForestSettings settings = Settings(2, 2, 2000);
  settings.dominate_fraction = Constant(0.99f);
  settings.pruning_type.Ensure().type = 4;
  settings.pruning_type->prune_every_samples = Constant(1);
  const float data[] = {-1, -1, 1, -1, 0, 0};
  const ForestInput input(data, 3, 2);
  Slot s(settings);
  s.Candidate(input, 2, 0, 0);
  s.Candidate(input, 2, 1, 0);
  for (int n = 1; n < 7; ++n) {
    s.Example(input, 0, 0);
    s.Example(input, 1, 1);
    EXPECT_EQ(s.size(), n < 5 ? 2u : 1u) << n;
  }
  EXPECT_EQ(s.slot.candidates()[0].test.feature, 0);
}

TEST(ForestStats, EndsEarlyWhereOneCandidateDominates) {
  for (const int32_t type : {0, 2, 3}) {
    wire::ForestSettings settings = Settings(2, 2, 2000);
    settings.dominate_fraction = Constant(0.99f);
    settings.min_split_samples = Constant(15);
    settings.finish_type.Ensure().type = type;
    settings.finish_type->check_every_steps = Constant(5);
    const float data[] = {-1, -1, 1, -1, 0, 0};
    const ForestInput input(data, 3, 2);
    Slot s(settings);
    s.Candidate(input, 2, 0, 0);
    s.Candidate(input, 2, 1, 0);
    for (int i = 0; i < 100; ++i) {
      s.Example(input, i % 2, static_cast<float>(i % 2));
      if (i < 14) {
        EXPECT_FALSE(s.slot.IsFinished(s.params)) << i;
      }
    }
    EXPECT_EQ(s.slot.IsFinished(s.params), type != 0) << type;
  }
  wire::ForestSettings incomplete = Settings(2, 2, 2000);
  incomplete.finish_type.Ensure().type = 2;
  EXPECT_EQ(ParseForestParams(wire::Encode(incomplete)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ForestStats, CountsOfAFixedSizeAreNear) {
  wire::ForestSettings settings = Settings(20, 2, 2000);
  settings.leaf_type = 1;
  settings.stats_type = 4;
  settings.num_classes_to_track = 5;
  const ForestParams params = Params(settings);
  ForestLabelStats stats;
  for (int i = 1; i <= 10; ++i) {
    const auto label = static_cast<float>(i);
    stats.Add(params, &label, label);
  }
  for (int i = 1; i <= 10; ++i) EXPECT_NEAR(stats.CountOf(params, i), i, 3.5) << i;
  int tracked = 0;
  stats.ForEachClass([&](int64_t, float) { ++tracked; });
  EXPECT_EQ(tracked, 5);
}

TEST(ForestParams, NumbersByDepth) {
  wire::Box<wire::ForestByDepth> p;
  EXPECT_EQ(AtDepth(p, 3), 0);
  p = Constant(10);
  EXPECT_EQ(AtDepth(p, 100), 10);
  p->kind = wire::ForestByDepth::Kind::kLinear;
  wire::ForestLinear& line = p->linear.Ensure();
  line.y_intercept = 100, line.slope = -10, line.min_val = 23, line.max_val = 90;
  EXPECT_EQ(AtDepth(p, 0), 90);
  EXPECT_EQ(AtDepth(p, 2), 80);
  EXPECT_EQ(AtDepth(p, 30), 23);
  p->kind = wire::ForestByDepth::Kind::kExponential;
  wire::ForestExponential& exponential = p->exponential.Ensure();
  exponential.bias = 100, exponential.base = 10, exponential.multiplier = -1, exponential.depth_multiplier = 1;
  EXPECT_EQ(AtDepth(p, 0), 99);
  EXPECT_EQ(AtDepth(p, 2), 0);
  p->kind = wire::ForestByDepth::Kind::kThreshold;
  wire::ForestThreshold& threshold = p->threshold.Ensure();
  threshold.on_value = 100, threshold.off_value = 10, threshold.threshold = 5;
  EXPECT_EQ(AtDepth(p, 4), 10);
  EXPECT_EQ(AtDepth(p, 5), 100);
}

TEST(ForestParams, ColumnsOfTheInput) {
  const StatusOr<ForestInputSpec> spec = ParseForestInputSpec(
      "dense_features_size: 3 dense: [{name: a original_type: 1 size: 2}{name: b: {c} original_type: 0 size: 1}] "
      "sparse: [{name: all_sparse original_type: 1 size: -1}]");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->dense_features, 3);
  EXPECT_TRUE(spec->IsCategorical(1));
  EXPECT_FALSE(spec->IsCategorical(2));
  EXPECT_TRUE(spec->IsCategorical(3));
  for (const char* bad : {"dense", "dense: [", "dense: [{name: a original_type: 2 size: 1}]", "dense_features_size: -1",
                          "x: 1", "dense_features_size: 99999999999999999999"}) {
    EXPECT_EQ(ParseForestInputSpec(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

// A step that splits many leaves does not move all others for each.
TEST(ForestTree, GrowsInLinearTime) {
  constexpr int32_t kSplits = 300'000;
  const ForestParams params = Params(Settings(2, 2, 2));
  ForestTreeState tree = *ParseForestTree("", params);
  for (int32_t i = 0; i < kSplits; ++i) tree.Split(2 * i, ForestTest(), {}, {});
  EXPECT_EQ(tree.nodes.size(), size_t{2 * kSplits + 1});
  EXPECT_EQ(tree.NumLeaves(), kSplits + 1);
}

// What TensorFlow 1.15.5 wrote of a tree with a split by a category.
TEST(ForestTree, TestsOfCategories) {
  const ForestParams params = Params(Settings(2, 2, 2));
  ForestTreeState tree = *ParseForestTree("", params);
  ForestTest test;
  test.kind = ForestTest::Kind::kMatches;
  test.values = {2};
  test.feature = 1;
  ForestTreeNode left;
  left.dense = {3, 1};
  tree.Split(0, test, left, {});
  const wire::ForestNode root = tree.NodeMessage(0);
  EXPECT_EQ(root.binary_node->custom_left_child_test->value, absl::HexStringToBytes("0a050a030a013112050d00000040"));
  const StatusOr<ForestTreeState> back = ParseForestTree(SerializeForestTree(tree), params);
  ASSERT_TRUE(back.ok()) << back.status();
  const float data[] = {0, 2, 0, 3};
  const ForestInput input(data, 2, 2);
  EXPECT_EQ(back->Traverse(input, 0), 1);
  EXPECT_EQ(back->Traverse(input, 1), 2);
  float out[2];
  back->Predict(1, out);
  EXPECT_EQ(out[0], 0.75f);
  back->Predict(2, out);
  EXPECT_EQ(out[0], 0);  // nothing is known
}

}  // namespace
}  // namespace millrace
