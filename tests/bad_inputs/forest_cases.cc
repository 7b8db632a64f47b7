// SPDX-License-Identifier: Apache-2.0
// Random forests: trees and statistics that are none, features, labels and leaves that are not there, settings that fit
// nothing.
#include <functional>
#include <limits>

#include "bad_inputs/harness.h"
#include "wire/forest.h"

namespace millrace::bad_inputs {
namespace {

constexpr int32_t kMost = std::numeric_limits<int32_t>::max(), kLeast = std::numeric_limits<int32_t>::min();
const float kNan = std::numeric_limits<float>::quiet_NaN();

wire::Box<wire::ForestByDepth> Constant(float value) {
  wire::Box<wire::ForestByDepth> box;
  box.Ensure().kind = wire::ForestByDepth::Kind::kConstant;
  box->constant_value = value;
  return box;
}

wire::ForestSettings Settings() {
  wire::ForestSettings s;
  s.num_outputs = 2;
  s.num_features = 2;
  s.max_nodes = 10;
  s.num_splits_to_consider = Constant(1);
  s.split_after_samples = Constant(1);
  return s;
}

wire::ForestNode Leaf() {
  wire::ForestNode node;
  node.kind = wire::ForestNode::Kind::kLeaf;
  node.leaf.Ensure();
  return node;
}

wire::ForestNode Split(const std::string& feature, int32_t left, int32_t right) {
  wire::ForestNode node;
  node.kind = wire::ForestNode::Kind::kBinaryNode;
  wire::ForestSplitNode& split = node.binary_node.Ensure();
  split.left_child_id.Ensure().value = left;
  split.right_child_id.Ensure().value = right;
  split.kind = wire::ForestSplitNode::Kind::kInequality;
  split.inequality_left_child_test.Ensure().feature_id.Ensure().id.Ensure().value = feature;
  return node;
}

std::string Model(std::vector<wire::ForestNode> nodes) {
  wire::ForestModel model;
  model.kind = wire::ForestModel::Kind::kDecisionTree;
  model.decision_tree.Ensure().nodes = std::move(nodes);
  return wire::Encode(model);
}

// One step of a forest's growth, and what it takes. "init" makes a tree and statistics.
struct Forest {
  wire::ForestSettings settings = Settings();
  std::string params;  // instead
  std::string spec = "dense_features_size: 2 dense: [{name: x original_type: 0 size: 2}] sparse: []";
  std::string tree = Model({Split("1", 1, 2), Leaf(), Leaf()});
  std::string stats;
  Dims rows = {3, 2}, sparse_rows = {0, 2}, sparse_values = {0};
  std::vector<int64_t> indices, sparse_shape;
  std::vector<float> labels = {0, 1, 1}, weights;
  std::vector<int32_t> leaves = {1, 2, 1}, finished = {1};

  GraphMaker Graph() const {
    const auto length = [](const auto& v) { return Dims{static_cast<int64_t>(v.size())}; };
    GraphMaker g;
    const wire::AttrValue made = Str(wire::Encode(settings));
    g.Op("t", "DecisionTreeResourceHandleOp", {}, {{"container", Str("")}, {"shared_name", Str("t")}});
    g.Op("s", "FertileStatsResourceHandleOp", {}, {{"container", Str("")}, {"shared_name", Str("s")}});
    g.Strings("tree", {}, {tree}).Strings("stats", {}, {stats});
    g.Op("make_tree", "CreateTreeVariable", {"t", "tree"}, {{"params", made}});
    g.Op("make_stats", "CreateFertileStatsVariable", {"s", "stats"}, {{"params", made}});
    g.Op("init", "NoOp", {"^make_tree", "^make_stats"});
    g.F32("x", rows, {1}).I64("i", sparse_rows, indices).F32("v", sparse_values, {1});
    g.I64("d", length(sparse_shape), sparse_shape).F32("labels", length(labels), labels);
    g.F32("weights", length(weights), weights).I32("leaves", length(leaves), leaves);
    g.I32("finished", length(finished), finished);
    return g;
  }
  Attrs Attributes(bool with_spec) const {
    Attrs attrs = {{"params", Str(params.empty() ? wire::Encode(settings) : params)}};
    if (with_spec) attrs.emplace_back("input_spec", Str(spec));
    return attrs;
  }
  void Predict(const Codes& codes = kInvalid) const {
    for (const std::string op : {"TreePredictionsV4", "TraverseTreeV4"}) {
      GraphMaker g = Graph();
      g.Op("bad", op, {"t", "x", "i", "v", "d"}, Attributes(true));
      Check(g, codes, How::kConstants);
    }
  }
  void Process(const Codes& codes = kInvalid) const {
    GraphMaker g = Graph();
    Attrs attrs = Attributes(true);
    attrs.emplace_back("random_seed", Int(1));
    g.Op("bad", "ProcessInputV4", {"t", "s", "x", "i", "v", "d", "labels", "weights", "leaves"}, attrs);
    Check(g, codes, How::kConstants);
  }
  void Update(const Codes& codes = kInvalid) const {
    GraphMaker g = Graph();
    g.Op("bad", "UpdateModelV4", {"t", "leaves", "labels", "weights"}, Attributes(false));
    Check(g, codes, How::kConstants);
  }
  void Grow(const Codes& codes = kInvalid) const {
    GraphMaker g = Graph();
    g.Op("bad", "GrowTreeV4", {"t", "s", "finished"}, Attributes(false));
    Check(g, codes, How::kConstants);
  }
  void Everything(const Codes& codes) const {
    Predict(codes);
    Process(codes);
    Update(codes);
    Grow(codes);
  }
};

using Change = std::function<void(Forest&)>;
Forest With(const Change& change) {
  Forest f;
  change(f);
  return f;
}

void CheckState(const std::string& op, const std::string& state, const Codes& codes = kInvalid) {
  GraphMaker g = Forest().Graph();
  g.Strings("new", {}, {state});
  g.Op("bad", op, {op == "TreeDeserialize" ? "t" : "s", "new"}, {{"params", Str(wire::Encode(Settings()))}});
  Check(g, codes, How::kConstants);
}

TEST(BadInput, ForestTreesThatAreNone) {
  const std::string op = "TreeDeserialize";
  CheckState(op, "", kOk);
  CheckState(op, Model({Split("0", 1, 2), Leaf(), Leaf()}), kOk);
  CheckState(op, "\x0a\xff");
  CheckState(op, Model({}));
  CheckState(op, Model({wire::ForestNode()}));
  for (const int32_t child : {0, -1, 3, 1, kMost, kLeast}) {
    CheckState(op, Model({Split("0", child, 1), Leaf(), Leaf()}));
    CheckState(op, Model({Split("0", 1, child), Leaf(), Leaf()}));
  }
  for (const char* feature : {"", "-1", "x", "2147483648", "1e3"})
    CheckState(op, Model({Split(feature, 1, 2), Leaf(), Leaf()}));
  wire::ForestNode strange = Split("0", 1, 2);
  strange.binary_node->inequality_left_child_test->type = 4;
  CheckState(op, Model({strange, Leaf(), Leaf()}));
  strange.binary_node->kind = wire::ForestSplitNode::Kind::kCustom;
  strange.binary_node->custom_left_child_test.Ensure().type_url = "of something else";
  CheckState(op, Model({strange, Leaf(), Leaf()}));
  wire::ForestNode wide = Leaf();
  wide.leaf->kind = wire::ForestLeaf::Kind::kVector;
  wide.leaf->vector.Ensure().value.resize(3);
  CheckState(op, Model({wide}));
  wide.leaf->kind = wire::ForestLeaf::Kind::kSparseVector;
  wide.leaf->sparse_vector.Ensure();
  CheckState(op, Model({wide}));
}

TEST(BadInput, ForestStatisticsThatAreNone) {
  const std::string op = "FertileStatsDeserialize";
  CheckState(op, "", kOk);
  CheckState(op, "\x0a\xff");
  const auto check = [&](const std::function<void(wire::ForestSlotState&)>& change, const Codes& codes = kInvalid) {
    wire::ForestStatsState state;
    wire::ForestSlotState& slot = state.node_to_slot.emplace_back();
    slot.node_id = 1;
    slot.candidates.emplace_back().split = Split("0", 1, 2).binary_node;
    change(slot);
    CheckState(op, wire::Encode(state), codes);
  };
  check([](auto&) {}, kOk);
  check([](auto& s) { s.node_id = -1; });
  check([](auto& s) { s.depth = -1; });
  check([](auto& s) { s.candidates[0].split.reset(); });
  check([](auto& s) { s.candidates.push_back(s.candidates[0]); });
  check([](auto& s) {
    s.candidates[0].left_stats.Ensure().kind = wire::ForestLeafStats::Kind::kRegression;
    s.candidates[0].left_stats->regression.Ensure();
  });
  check([](auto& s) {
    wire::ForestLeafStats& total = s.post_init_leaf_stats.Ensure();
    total.kind = wire::ForestLeafStats::Kind::kClassification;
    total.classification.Ensure().kind = wire::ForestClassStats::Kind::kDense;
    total.classification->dense_counts.Ensure().value.resize(3);
  });
  wire::ForestStatsState twice;
  twice.node_to_slot.resize(2);
  CheckState(op, wire::Encode(twice));
}

TEST(BadInput, ForestSettings) {
  Forest().Everything(kOk);
  With([](Forest& f) { f.params = "\x0a\xff"; }).Everything(kInvalid);
  const auto other = [](const std::function<void(wire::ForestSettings&)>& change) {
    wire::ForestSettings s = Settings();
    change(s);
    With([&](Forest& f) { f.params = wire::Encode(s); }).Everything(kInvalid);
  };
  for (const int32_t n : {0, -1, 3, kMost, kLeast}) other([&](auto& s) { s.num_outputs = n; });
  for (const int32_t n : {1, 2, 3, -1, kMost}) other([&](auto& s) { s.leaf_type = n; });
  for (const int32_t n : {1, 2, 3, 4, 5, kLeast}) other([&](auto& s) { s.stats_type = n; });
  for (const int32_t n : {-1, kLeast}) {
    other([&](auto& s) { s.num_features = n; });
    other([&](auto& s) { s.max_nodes = n; });
    other([&](auto& s) { s.inequality_test_type = n; });
    other([&](auto& s) { s.collection_type = n; });
    other([&](auto& s) { s.finish_type.Ensure().type = n; });
    other([&](auto& s) { s.pruning_type.Ensure().type = n; });
  }
  other([](auto& s) { s.finish_type.Ensure().type = 2; });  // without the fraction
  other([](auto& s) { s.pruning_type.Ensure().type = 4; });
  for (const char* spec : {"x", "dense: [{", "dense_features_size: -1", "dense_features_size: 3"}) {
    With([&](Forest& f) { f.spec = spec; }).Predict();
    With([&](Forest& f) { f.spec = spec; }).Process();
  }
  // Candidates without end are not made.
  With([](Forest& f) {
    f.settings.num_splits_to_consider = Constant(std::numeric_limits<float>::infinity());
  }).Everything(kOk);
  With([](Forest& f) { f.settings.num_splits_to_consider = Constant(kNan); }).Everything(kOk);
}

TEST(BadInput, ForestFeatures) {
  for (const Dims& rows : {Dims{3}, Dims{3, 1}, Dims{3, 2, 1}, Dims{3, 3}}) {
    With([&](Forest& f) { f.rows = rows; }).Predict();
    With([&](Forest& f) { f.rows = rows; }).Process();
  }
  With([](Forest& f) { f.rows = {0}; }).Predict();  // neither dense nor sparse ones
  With([](Forest& f) { f.tree = Model({Split("2", 1, 2), Leaf(), Leaf()}); }).Predict();
  With([](Forest& f) { f.tree = Model({Split("2147483647", 1, 2), Leaf(), Leaf()}); }).Predict();
  const auto sparse = [](std::vector<int64_t> indices, std::vector<int64_t> shape, const Codes& codes) {
    const Forest f = With([&](Forest& forest) {
      forest.sparse_rows = {1, 2};
      forest.sparse_values = {1};
      forest.indices = std::move(indices);
      forest.sparse_shape = std::move(shape);
    });
    f.Predict(codes);
    f.Process(codes);
  };
  sparse({2, 4}, {3, 5}, kOk);
  for (const int64_t bad : {int64_t{-1}, int64_t{5}, INT64_MAX, INT64_MIN}) {
    sparse({bad, 0}, {3, 5}, kInvalid);
    sparse({0, bad}, {3, 5}, kInvalid);
  }
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3}, {3, 5, 1}, {2, 5}, {-1, 5}, {3, -1}, {3, INT64_MAX}, {INT64_MAX, 5}}) {
    sparse({0, 0}, shape, kInvalid);
  }
  With([](Forest& f) { f.sparse_values = {2}; }).Predict();
  With([](Forest& f) { f.sparse_rows = {1, 3}, f.sparse_values = {1}, f.sparse_shape = {3, 5}; }).Predict();
}

TEST(BadInput, ForestLabelsAndLeaves) {
  const auto both = [](const Change& change, const Codes& codes = kInvalid) {
    With(change).Process(codes);
    With(change).Update(codes);
  };
  for (const float label : {-1.0f, 2.0f, 0.5f, 1e30f, kNan}) both([&](Forest& f) { f.labels = {0, 1, label}; });
  both([](Forest& f) { f.labels = {0, 1}; });
  for (const float weight : {-1.0f, kNan, std::numeric_limits<float>::infinity()}) {
    both([&](Forest& f) { f.weights = {1, 1, weight}; });
  }
  both([](Forest& f) { f.weights = {1, 1}; });
  both([](Forest& f) { f.leaves = {1, 2}; });
  for (const int32_t leaf : {-1, 3, kMost, kLeast}) {
    both([&](Forest& f) { f.leaves = {0, 1, leaf}; });
    With([&](Forest& f) { f.finished = {0, leaf}; }).Grow();
  }
  both([](Forest& f) { f.leaves = {0, 0, 0}; }, kOk);  // a split: another step was faster
  With([](Forest& f) { f.finished = {1, 1, 0, 2}; }).Grow(kOk);
}

// Each left child is a leaf, each right one splits again.
std::string Chain(int32_t splits) {
  std::vector<wire::ForestNode> nodes;
  for (int32_t i = 0; i < splits; ++i) {
    nodes.push_back(Split("0", 2 * i + 1, 2 * i + 2));
    nodes.back().binary_node->inequality_left_child_test->threshold.Ensure().kind = wire::ForestValue::Kind::kFloat;
    nodes.back().binary_node->inequality_left_child_test->threshold->float_value = -1;
    nodes.push_back(Leaf());
  }
  nodes.push_back(Leaf());
  return Model(std::move(nodes));
}

// While kernels work with a tree and statistics of two classes, another step makes those of a thousand of them.
TEST(BadInput, ForestsThatAnotherStepReplaces) {
  constexpr int32_t kExamples = 500, kEntries = 20000;  // to sort, between a look at the tree and its use
  for (const bool few : {true, false}) {
    SCOPED_TRACE(few);
    Forest f;
    wire::ForestSettings many = f.settings;
    many.num_outputs = 1000;
    if (!few) std::swap(f.settings, many);
    f.rows = {kExamples, 2};
    f.sparse_rows = {kEntries, 2};
    f.sparse_values = {kEntries};
    f.sparse_shape = {kExamples, 5};
    for (int32_t i = 0; i < kEntries; ++i) f.indices.insert(f.indices.end(), {i * 7 % kExamples, i % 5});
    f.labels.assign(kExamples, static_cast<float>(f.settings.num_outputs - 1));
    f.leaves.assign(kExamples, 1);
    wire::ForestStatsState slots;
    slots.node_to_slot.emplace_back().node_id = 1;
    f.stats = wire::Encode(slots);
    GraphMaker g = f.Graph();
    std::string last = "init";
    for (const auto& [name, settings] : {std::pair("other", many), std::pair("same", f.settings)}) {
      const Attrs params = {{"params", Str(wire::Encode(settings))}};
      const std::string tree = absl::StrCat(name, "_tree");
      g.Op(tree, "TreeDeserialize", {"t", "tree", "^" + last}, params);
      g.Op(name, "FertileStatsDeserialize", {"s", "stats", "^" + tree}, params);
      last = name;
    }
    const Attrs attrs = f.Attributes(true);
    Attrs seeded = attrs;
    seeded.emplace_back("random_seed", Int(1));
    g.Op("predict", "TreePredictionsV4", {"t", "x", "i", "v", "d"}, attrs);
    g.Op(
        "process", "ProcessInputV4", {"t", "s", "x", "i", "v", "d", "labels", "weights", "leaves", "^predict"}, seeded);
    g.Op("update", "UpdateModelV4", {"t", "leaves", "labels", "weights"}, f.Attributes(false));
    g.Op("grow", "GrowTreeV4", {"t", "s", "finished", "^update"}, f.Attributes(false));
    CheckAtOnce(g, "process", "same", 100, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
    CheckAtOnce(g, "grow", "same", 100, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
  }
}

TEST(BadInput, ForestsOfManyClasses) {
  constexpr int32_t kMany = 1 << 20;
  const Codes too_large = {absl::StatusCode::kResourceExhausted};
  Forest f;
  f.settings.num_outputs = kMany;
  f.settings.checkpoint_stats = true;
  const Attrs params = f.Attributes(false);
  GraphMaker g = f.Graph();
  g.Strings("new", {}, {Chain(400)}).Op("bad", "TreeDeserialize", {"t", "new"}, params);
  Check(g, too_large, How::kConstants);
  wire::ForestStatsState slots;
  for (int32_t n = 0; n < 400; ++n) slots.node_to_slot.emplace_back().node_id = n;
  f.stats = wire::Encode(slots);
  g = f.Graph();
  g.Op("bad", "FertileStatsSerialize", {"s"}, params);
  Check(g, too_large, How::kConstants);
}

TEST(BadInput, ForestsThatTakeLong) {
  {  // A deep tree, and the paths through it.
    Forest f;
    f.tree = Chain(50000);
    f.rows = {200000, 2};
    for (const bool with_paths : {false, true}) {
      f.settings.inference_tree_paths = with_paths;
      GraphMaker g = f.Graph();
      g.Op("bad", "TreePredictionsV4", {"t", "x", "i", "v", "d"}, f.Attributes(true));
      CheckEndless(g);
    }
  }
  {  // Draws from counts of many classes.
    Forest f;
    f.settings.num_outputs = 1 << 20;
    f.settings.num_splits_to_consider = f.settings.split_after_samples = Constant(2);
    f.settings.finish_type.Ensure().type = 3;
    f.settings.dominate_fraction = Constant(1);
    f.settings.min_split_samples = Constant(0);
    f.rows = {100, 2};
    f.labels.assign(100, 1);
    f.leaves.assign(100, 0);
    GraphMaker g = f.Graph();
    Attrs attrs = f.Attributes(true);
    attrs.emplace_back("random_seed", Int(1));
    g.Op("bad", "ProcessInputV4", {"t", "s", "x", "i", "v", "d", "labels", "weights", "leaves"}, attrs);
    CheckEndless(g);
  }
  {  // Times that are infinite.
    Forest f;
    f.settings.num_splits_to_consider = Constant(1);
    f.settings.pruning_type.Ensure().type = 1;
    f.settings.pruning_type->prune_every_samples = Constant(std::numeric_limits<float>::infinity());
    f.labels.assign(3, 1);
    f.leaves.assign(3, 0);
    f.weights.assign(3, std::numeric_limits<float>::max());
    f.Process(kOk);
  }
}

}  // namespace
}  // namespace millrace::bad_inputs
