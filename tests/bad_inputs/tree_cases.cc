// SPDX-License-Identifier: Apache-2.0
// Boosted trees: ensembles that are no trees, nodes and buckets that are not there, sizes that must not be trusted, and
// numbers that are none.
#include <functional>
#include <limits>

#include "bad_inputs/harness.h"
#include "wire/tree_ensemble.h"

namespace millrace::bad_inputs {
namespace {

using absl::StatusCode;
constexpr int32_t kMost = std::numeric_limits<int32_t>::max(), kLeast = std::numeric_limits<int32_t>::min();
const float kNan = std::numeric_limits<float>::quiet_NaN();

// Handle "e" of an ensemble, which "init" makes.
GraphMaker WithEnsemble(const std::string& state) {
  GraphMaker g;
  g.Op("e", "BoostedTreesEnsembleResourceHandleOp", {}, {{"container", Str("")}, {"shared_name", Str("trees")}});
  g.I64("stamp", {}, {3}).Strings("state", {}, {state});
  g.Op("init", "BoostedTreesCreateEnsemble", {"e", "stamp", "state"});
  return g;
}

wire::TreeNode Leaf(float logit) {
  wire::TreeNode node;
  node.kind = wire::TreeNode::Kind::kLeaf;
  node.leaf.Ensure().scalar = logit;
  return node;
}

wire::TreeNode Split(int32_t left, int32_t right) {
  wire::TreeNode node;
  node.kind = wire::TreeNode::Kind::kBucketizedSplit;
  wire::TreeBucketizedSplit& split = node.bucketized_split.Ensure();
  split.threshold = 1;
  split.left_id = left;
  split.right_id = right;
  return node;
}

// One tree: a root with two leaves.
wire::TreeEnsemble Small() {
  wire::TreeEnsemble e;
  e.trees.emplace_back().nodes = {Split(1, 2), Leaf(-1), Leaf(1)};
  e.tree_weights = {1};
  e.tree_metadata.emplace_back();
  return e;
}

void CheckState(const std::string& state, const Codes& codes = kInvalid) {
  GraphMaker g = WithEnsemble("");
  g.Strings("new", {}, {state});
  g.Op("bad", "BoostedTreesDeserializeEnsemble", {"e", "stamp", "new"});
  Check(g, codes, How::kConstants);  // "init" is not fed
}

void RefusesState(const std::function<void(wire::TreeEnsemble&)>& change) {
  wire::TreeEnsemble e = Small();
  change(e);
  CheckState(wire::Encode(e));
}

TEST(BadInput, TreesThatAreNone) {
  CheckState(wire::Encode(Small()), kOk);
  CheckState("\x0a\xff");
  for (const int32_t child : {0, -1, 3, 2, kMost, kLeast}) {
    RefusesState([&](auto& e) { e.trees[0].nodes[0] = Split(child, 2); });
    if (child != 2) RefusesState([&](auto& e) { e.trees[0].nodes[0] = Split(1, child); });
  }
  RefusesState([](auto& e) { e.trees[0].nodes[1] = Split(1, 2); });                                // its own child
  RefusesState([](auto& e) { e.trees[0].nodes = {Split(1, 2), Split(0, 3), Leaf(0), Leaf(0)}; });  // round
  RefusesState([](auto& e) { e.trees[0].nodes = {Split(1, 2), Split(2, 3), Leaf(0), Leaf(0)}; });  // two parents
  RefusesState([](auto& e) { e.trees[0].nodes.clear(); });
  RefusesState([](auto& e) { e.trees[0].nodes[1] = wire::TreeNode(); });
  RefusesState([](auto& e) { e.trees[0].nodes[0].bucketized_split->feature_id = -1; });
  RefusesState([](auto& e) {
    e.trees[0].nodes[0].kind = wire::TreeNode::Kind::kDenseSplit;
    e.trees[0].nodes[0].dense_split.Ensure();
  });
  RefusesState([](auto& e) { e.tree_weights.clear(); });
  RefusesState([](auto& e) { e.tree_metadata.resize(2); });
  RefusesState([](auto& e) { e.tree_metadata[0].post_pruned_nodes_meta.emplace_back().new_node_id = 3; });
}

struct Prediction {
  wire::TreeEnsemble trees = Small();
  Dims examples = {2}, cached = {2};
  std::vector<int32_t> tree_ids = {0, 0}, node_ids = {0, -1};
  int64_t logits = 1;

  void CheckAll(const Codes& codes) const {
    for (const std::string op : {"BoostedTreesPredict", "BoostedTreesExampleDebugOutputs"}) {
      GraphMaker g = WithEnsemble(wire::Encode(trees));
      g.I32("buckets", examples, {1, 2}).Op("bad", op, {"e", "buckets"}, Attributes());
      Check(g, codes, How::kConstants);
    }
    CheckTraining(codes);
  }
  void CheckTraining(const Codes& codes) const {
    GraphMaker g = WithEnsemble(wire::Encode(trees));
    g.I32("buckets", examples, {1, 2}).I32("tree_ids", cached, tree_ids).I32("node_ids", cached, node_ids);
    g.Op("bad", "BoostedTreesTrainingPredict", {"e", "tree_ids", "node_ids", "buckets"}, Attributes());
    Check(g, codes, How::kConstants);
  }
  Attrs Attributes() const { return {{"num_bucketized_features", Int(1)}, {"logits_dimension", Int(logits)}}; }
};

void RefusesPrediction(const std::function<void(Prediction&)>& change) {
  Prediction p;
  change(p);
  p.CheckAll(kInvalid);
}
void RefusesTraining(const std::function<void(Prediction&)>& change) {
  Prediction p;
  change(p);
  p.CheckTraining(kInvalid);
}

TEST(BadInput, PredictionsOfTreesThatDoNotFit) {
  Prediction().CheckAll(kOk);
  for (const int32_t feature : {1, kMost}) {
    RefusesPrediction([&](auto& p) { p.trees.trees[0].nodes[0].bucketized_split->feature_id = feature; });
  }
  for (const int64_t logits : {int64_t{0}, int64_t{-1}, int64_t{2}, INT64_MIN}) {
    RefusesPrediction([&](auto& p) { p.logits = logits; });
  }
  for (const Dims& examples : {Dims{}, Dims{2, 1}}) RefusesPrediction([&](auto& p) { p.examples = examples; });
  for (const int32_t id : {1, -1, kMost, kLeast}) RefusesTraining([&](auto& p) { p.tree_ids = {0, id}; });
  for (const int32_t id : {3, kMost}) RefusesTraining([&](auto& p) { p.node_ids = {0, id}; });
  RefusesTraining([](auto& p) { p.cached = {3}; });
  // A node that was pruned has changes of another width.
  RefusesTraining([](auto& p) {
    p.trees.tree_metadata[0].is_finalized = true;
    p.trees.tree_metadata[0].post_pruned_nodes_meta.resize(1);
  });
}

// An ensemble with a root takes a split of it.
struct Update {
  std::vector<int32_t> features = {0}, nodes = {0}, thresholds = {1};
  std::vector<float> gains = {1}, left = {1}, right = {1};
  std::vector<std::string> types = {"INEQUALITY_DEFAULT_LEFT"};
  Dims contribs = {1, 1};
  float rate = 1;
  int32_t pruning = 0;
  std::string state;

  void Check(const Codes& codes = kInvalid) const {
    const auto length = [](const auto& v) { return Dims{static_cast<int64_t>(v.size())}; };
    GraphMaker g = WithEnsemble(state);
    g.I32("features", length(features), features).I32("nodes", length(nodes), nodes).F32("gains", length(gains), gains);
    g.I32("thresholds", length(thresholds), thresholds).F32("left", contribs, left).F32("right", contribs, right);
    g.I32("dimensions", length(nodes)).Strings("types", length(types), types);
    g.I32("depth", {}, {3}).F32("rate", {}, {rate}).I32("pruning", {}, {pruning});
    g.Op("bad", "BoostedTreesUpdateEnsembleV2",
         {"e", "features", "dimensions", "nodes", "gains", "thresholds", "left", "right", "types", "depth", "rate",
          "pruning"},
         {{"num_features", Int(1)}});
    bad_inputs::Check(g, codes, How::kConstants);
  }
};

void RefusesUpdate(const std::function<void(Update&)>& change) {
  Update u;
  change(u);
  u.Check();
}

TEST(BadInput, TreesGrownWhereTheyCannot) {
  Update().Check(kOk);
  for (const int32_t node : {1, -1, kMost, kLeast}) RefusesUpdate([&](auto& u) { u.nodes = {node}; });
  RefusesUpdate([](auto& u) { u.state = wire::Encode(Small()); });  // its root has been split
  RefusesUpdate([](auto& u) { u.features = {-1}; });
  RefusesUpdate([](auto& u) { u.features = {0, 1}; });
  RefusesUpdate([](auto& u) { u.gains = {kNan}; });
  RefusesUpdate([](auto& u) { u.left = {kNan}; });
  RefusesUpdate([](auto& u) { u.rate = kNan; });
  RefusesUpdate([](auto& u) { u.gains = {1, 2}; });
  RefusesUpdate([](auto& u) { u.thresholds = {}; });
  RefusesUpdate([](auto& u) { u.contribs = {1, 0}; });
  RefusesUpdate([](auto& u) { u.contribs = {1}; });
  RefusesUpdate([](auto& u) { u.types = {"left"}; });
  for (const int32_t mode : {-1, 3, kMost}) RefusesUpdate([&](auto& u) { u.pruning = mode; });
}

TEST(BadInput, SumsOfNodesAndBucketsOutOfRange) {
  const auto check = [](std::vector<int32_t> nodes, std::vector<float> gradients, std::vector<int32_t> buckets,
                        const Dims& rows, const Codes& codes) {
    GraphMaker g;
    g.I32("nodes", {2}, std::move(nodes)).F32("gradients", rows, std::move(gradients)).F32("hessians", {2, 1}, {1});
    g.I32("buckets", {2}, std::move(buckets));
    g.Op("bad", "BoostedTreesMakeStatsSummary", {"nodes", "gradients", "hessians", "buckets"},
         {{"max_splits", Int(2)}, {"num_buckets", Int(3)}, {"num_features", Int(1)}});
    Check(g, codes);
  };
  check({0, 1}, {1}, {0, 2}, {2, 1}, kOk);
  for (const int32_t bad : {-1, 3, kMost, kLeast}) {
    check({0, bad}, {1}, {0, 2}, {2, 1}, kInvalid);
    check({0, 1}, {1}, {0, bad}, {2, 1}, kInvalid);
  }
  check({0, 1}, {1, kNan}, {0, 2}, {2, 1}, kInvalid);
  for (const Dims& rows : {Dims{}, Dims{2}, Dims{3, 1}, Dims{2, 0}, Dims{2, 2}}) {
    check({0, 1}, {1}, {0, 2}, rows, kInvalid);
  }
  GraphMaker g;
  g.I32("nodes", {1}).F32("one", {1, 1}).I32("indices", {1, 2}).I32("values", {1}).I32("shape", {2}, {1, -1});
  g.Op("bad", "BoostedTreesSparseAggregateStats", {"nodes", "one", "one", "indices", "values", "shape"},
       {{"max_splits", Int(1)}, {"num_buckets", Int(1)}});
  Check(g);
}

TEST(BadInput, SplitsOfNodesThatAreNotThere) {
  const auto check = [](std::vector<int32_t> range, const Dims& stats, int64_t logits, const Codes& codes) {
    GraphMaker g;
    g.I32("range", {2}, std::move(range)).F32("stats", stats, {1}).F32("zero", {});
    g.Op("bad", "BoostedTreesCalculateBestFeatureSplit", {"range", "stats", "zero", "zero", "zero", "zero"},
         {{"logits_dimension", Int(logits)}, {"split_type", Str("inequality")}});
    Check(g, codes);
  };
  check({0, 2}, {2, 1, 3, 2}, 1, kOk);
  check({1, 0}, {2, 1, 3, 2}, 1, kOk);  // none
  for (const auto& range : {std::vector<int32_t>{0, 3}, {-1, 1}, {kLeast, kMost}}) {
    check(range, {2, 1, 3, 2}, 1, kInvalid);
  }
  for (const Dims& stats : {Dims{2, 1, 3}, Dims{2, 0, 3, 2}, Dims{2, 1, 0, 2}, Dims{2, 1, 3, 1}, Dims{2, 1, 3, 3}}) {
    check({0, 2}, stats, 1, kInvalid);
  }
  check({0, 2}, {2, 1, 3, 2}, INT64_MAX, kInvalid);
}

TEST(BadInput, QuantilesOfNothingThatIsANumber) {
  const auto create = [](float epsilon, int64_t streams, int64_t most) {
    GraphMaker g;
    g.Op("q", "BoostedTreesQuantileStreamResourceHandleOp", {}, {{"container", Str("")}, {"shared_name", Str("q")}});
    g.F32("epsilon", {}, {epsilon}).I64("streams", {}, {streams});
    g.Op("bad", "BoostedTreesCreateQuantileStreamResource", {"q", "epsilon", "streams"}, {{"max_elements", Int(most)}});
    return g;
  };
  Check(create(0.1f, 2, INT64_MAX), kOk);
  for (const float epsilon : {0.0f, -1.0f, 1.0f, kNan}) Check(create(epsilon, 2, 100));
  for (const int64_t n : {int64_t{-1}, int64_t{1} << 40, INT64_MIN}) Check(create(0.1f, n, 100));
  for (const int64_t n : {int64_t{0}, int64_t{-1}, INT64_MIN}) Check(create(0.1f, 2, n));
  const auto summaries = [](float value, const Dims& weights) {
    GraphMaker g;
    g.F32("values", {3}, {1, value}).F32("weights", weights, {1}).F32("epsilon", {}, {0.1f});
    g.Op("bad", "BoostedTreesMakeQuantileSummaries", {"values", "weights", "epsilon"}, {{"num_features", Int(1)}});
    return g;
  };
  Check(summaries(2, {3}), kOk);
  Check(summaries(kNan, {3}));
  Check(summaries(2, {2}));
  GraphMaker g = create(0.1f, 1, 100);
  g.def().node.back().name = "init";
  g.I64("buckets", {}, {INT64_MAX});
  g.Op("bad", "BoostedTreesQuantileStreamResourceFlush", {"q", "buckets"}, {{"generate_quantiles", Bool(true)}});
  Check(g, kInvalid, How::kConstants);
}

}  // namespace
}  // namespace millrace::bad_inputs
