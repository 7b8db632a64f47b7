// SPDX-License-Identifier: Apache-2.0
// The ops of tf.contrib.boosted_trees: ensembles and splits that are none, nodes, buckets and examples that are not
// there, sums that do not fit, quantiles of what is no number.
#include <functional>
#include <limits>

#include "bad_inputs/harness.h"
#include "wire/gbdt.h"

namespace millrace::bad_inputs {
namespace {

constexpr int32_t kMost = std::numeric_limits<int32_t>::max(), kLeast = std::numeric_limits<int32_t>::min();
const float kNan = std::numeric_limits<float>::quiet_NaN();

const Attrs kOwnName = {{"container", Str("")}, {"shared_name", Str("x")}};

wire::GbdtNode Leaf(int32_t label = 0) {
  wire::GbdtNode node;
  node.kind = wire::GbdtNode::Kind::kLeaf;
  wire::GbdtLeaf& leaf = node.leaf.Ensure();
  leaf.kind = wire::GbdtLeaf::Kind::kSparseVector;
  leaf.sparse_vector.Ensure().index = {label};
  leaf.sparse_vector->value = {1};
  return node;
}

wire::GbdtNode Split(int32_t column, int32_t left, int32_t right, int32_t dimension = 0) {
  wire::GbdtNode node;
  node.kind = wire::GbdtNode::Kind::kDenseFloat;
  wire::GbdtFloatSplit& split = node.dense_float_binary_split.Ensure();
  split.feature_column = column, split.left_id = left, split.right_id = right, split.dimension_id = dimension;
  return node;
}

std::string Ensemble(std::vector<wire::GbdtNode> nodes, bool is_finalized = false) {
  wire::GbdtEnsemble e;
  e.trees.emplace_back().nodes = std::move(nodes);
  e.tree_weights = {1};
  e.tree_metadata.emplace_back().is_finalized = is_finalized;
  return wire::Encode(e);
}

std::string Learner() {
  wire::GbdtLearner learner;
  learner.num_classes = 2;
  learner.growing_mode = 2;
  return wire::Encode(learner);
}

GraphMaker WithEnsemble(const std::string& state) {
  GraphMaker g;
  g.Op("e", "DecisionTreeEnsembleResourceHandleOp", {}, kOwnName);
  g.I64("stamp", {}, {3}).I64("next", {}, {4}).Strings("state", {}, {state});
  g.Op("init", "CreateTreeEnsembleVariable", {"e", "stamp", "state"});
  return g;
}

TEST(BadInput, GbdtEnsemblesThatAreNone) {
  const auto check = [](const std::string& state, const Codes& codes = kInvalid) {
    GraphMaker g = WithEnsemble("");
    g.Strings("new", {}, {state}).Op("bad", "TreeEnsembleDeserialize", {"e", "stamp", "new"});
    Check(g, codes, How::kConstants);
  };
  check("", kOk);
  check(Ensemble({Split(0, 1, 2), Leaf(), Leaf()}), kOk);
  check("\x0a\xff");
  check(Ensemble({}));
  check(Ensemble({wire::GbdtNode()}));
  check(Ensemble({Leaf(-1)}));
  for (const int32_t child : {0, -1, 3, 1, kMost, kLeast}) {
    check(Ensemble({Split(0, child, 1), Leaf(), Leaf()}));
    check(Ensemble({Split(0, 1, child), Leaf(), Leaf()}));
  }
  wire::GbdtNode uneven = Leaf();
  uneven.leaf->sparse_vector->value.clear();
  check(Ensemble({uneven}));
  wire::GbdtEnsemble e;
  e.trees.emplace_back().nodes = {Leaf()};
  check(wire::Encode(e));  // no weight
  e.tree_weights = {1};
  e.tree_metadata.resize(2);
  check(wire::Encode(e));
  wire::GbdtNode split = Split(0, 1, 2);
  split.node_metadata.Ensure().original_leaf = Leaf().leaf;
  check(Ensemble({split, Leaf(), Leaf()}), kOk);
  split.node_metadata->original_leaf = uneven.leaf;
  check(Ensemble({split, Leaf(), Leaf()}));
  split.node_metadata->original_leaf = Leaf(-1).leaf;
  check(Ensemble({split, Leaf(), Leaf()}));
}

struct Prediction {
  std::string state = Ensemble({Split(0, 1, 2), Leaf(), Leaf()});
  std::string learner = Learner();
  Dims dense = {2, 1}, rows = {1, 2}, values = {1}, shapes = {2};
  std::vector<int64_t> indices = {1, 0}, shape = {2, 3};

  void Check(const Codes& codes = kInvalid) const {
    for (const std::string op :
         {"GradientTreesPrediction", "GradientTreesPredictionVerbose", "GradientTreesPartitionExamples"}) {
      GraphMaker g = WithEnsemble(state);
      g.I64("seed", {}, {1}).F32("x", dense, {1}).I64("i", rows, indices).F32("v", values, {1}).I64("w", values, {1});
      g.I64("s", shapes, shape);
      Attrs attrs = {{"num_dense_float_features", Int(1)},
                     {"num_sparse_float_features", Int(1)},
                     {"num_sparse_int_features", Int(1)}};
      std::vector<std::string> inputs = {"e", "seed", "x", "i", "v", "s", "i", "w", "s"};
      if (op == "GradientTreesPartitionExamples") {
        inputs.erase(inputs.begin() + 1);
      } else {
        attrs.emplace_back("learner_config", Str(learner));
        for (const char* name : {"apply_dropout", "apply_averaging", "center_bias", "reduce_dim"})
          attrs.emplace_back(name, Bool(true));
      }
      g.Op("bad", op, inputs, attrs);
      bad_inputs::Check(g, codes, How::kConstants);
    }
  }
};

void RefusesPrediction(const std::function<void(Prediction&)>& change) {
  Prediction p;
  change(p);
  p.Check();
}

TEST(BadInput, GbdtFeatures) {
  Prediction().Check(kOk);
  for (const int32_t column : {-1, 1, kMost, kLeast}) {
    RefusesPrediction([&](auto& p) { p.state = Ensemble({Split(column, 1, 2), Leaf(), Leaf()}); });
    RefusesPrediction([&](auto& p) { p.state = Ensemble({Split(0, 1, 2, column), Leaf(), Leaf()}); });
  }
  for (const Dims& dims : {Dims{2}, Dims{3, 1}, Dims{2, 0}, Dims{2, 1, 1}})
    RefusesPrediction([&](auto& p) { p.dense = dims; });
  for (const int64_t bad : {int64_t{-1}, int64_t{2}, INT64_MAX, INT64_MIN})
    RefusesPrediction([&](auto& p) { p.indices = {bad, 0}; });
  RefusesPrediction([](auto& p) { p.indices = {0, -1}; });
  RefusesPrediction([](auto& p) { p.rows = {1, 3}; });
  RefusesPrediction([](auto& p) { p.values = {2}; });
  RefusesPrediction([](auto& p) { p.shapes = {3}; });
  for (const int64_t n : {int64_t{-1}, int64_t{3}, INT64_MAX}) RefusesPrediction([&](auto& p) { p.shape = {n, 3}; });
}

TEST(BadInput, GbdtLearners) {
  const auto check = [](const std::string& learner, int32_t label, const Codes& codes) {
    GraphMaker g = WithEnsemble(Ensemble({Leaf(label)}));
    g.I64("seed", {}, {1}).F32("x", {2, 1}, {1});
    Attrs attrs = {{"num_dense_float_features", Int(1)}, {"learner_config", Str(learner)}};
    for (const char* name : {"num_sparse_float_features", "num_sparse_int_features"}) attrs.emplace_back(name, Int(0));
    for (const char* name : {"apply_dropout", "apply_averaging", "center_bias", "reduce_dim"})
      attrs.emplace_back(name, Bool(true));
    g.Op("bad", "GradientTreesPrediction", {"e", "seed", "x"}, attrs);
    Check(g, codes, How::kConstants);
  };
  check(Learner(), 0, kOk);
  for (const int32_t label : {1, kMost}) check(Learner(), label, kInvalid);
  check("\x0a\xff", 0, kInvalid);
  check("", 0, kInvalid);
  wire::GbdtLearner learner;
  learner.num_classes = std::numeric_limits<uint32_t>::max();
  check(wire::Encode(learner), 0, kTooLarge);
  learner.num_classes = 2;
  for (const float n : {0.0f, -1.0f, 1e30f, kNan}) {
    learner.averaging_config.Ensure().kind = wire::GbdtAveraging::Kind::kLastTrees;
    learner.averaging_config->average_last_n_trees = n;
    check(wire::Encode(learner), 0, kOk);
  }
}

struct Growth {
  std::string state, split;
  std::vector<int32_t> nodes = {0};
  std::vector<float> gains = {1};
  int64_t stamp = 3;
  int32_t kind = 0, depth = 2;
  Dims splits = {1};
  bool predicts = false;

  Growth() { SetSplit(Split(0, 0, 0), Leaf()); }
  void SetSplit(const wire::GbdtNode& node, const wire::GbdtNode& leaf) {
    wire::GbdtSplitInfo info;
    info.split_node.Ensure() = node;
    info.left_child = info.right_child = leaf.leaf;
    split = wire::Encode(info);
  }
  void Check(const Codes& codes = kInvalid) const {
    const auto length = [](const auto& v) { return Dims{static_cast<int64_t>(v.size())}; };
    GraphMaker g = WithEnsemble(state);
    if (predicts) g.def().node.back().name = "made";
    g.I64("now", {}, {stamp})
        .F32("rate", {}, {1})
        .I64("seed", {}, {1})
        .I32("depth", {}, {depth})
        .I32("kind", {}, {kind});
    g.I32("nodes", length(nodes), nodes).F32("gains", length(gains), gains).Strings("splits", splits, {split});
    g.Op(predicts ? "init" : "bad", "GrowTreeEnsemble",
         {"e", "now", "next", "rate", "seed", "depth", "kind", "nodes", "gains", "splits"},
         {{"learner_config", Str(Learner())}, {"num_handlers", Int(1)}, {"center_bias", Bool(false)}});
    if (predicts) Predict(&g);
    bad_inputs::Check(g, codes, How::kConstants);
  }
  // Of the ensemble that has grown.
  static void Predict(GraphMaker* g) {
    g->def().node.back().input.push_back("^made");
    Attrs attrs = {{"num_dense_float_features", Int(1)}, {"learner_config", Str(Learner())}};
    for (const char* name : {"num_sparse_float_features", "num_sparse_int_features"}) attrs.emplace_back(name, Int(0));
    for (const char* name : {"apply_dropout", "apply_averaging", "center_bias", "reduce_dim"})
      attrs.emplace_back(name, Bool(true));
    g->F32("x", {2, 1}, {-1, 10}).Op("bad", "GradientTreesPrediction", {"e", "seed", "x"}, attrs);
  }
};

void RefusesGrowth(const std::function<void(Growth&)>& change) {
  Growth growth;
  change(growth);
  growth.Check();
}

TEST(BadInput, GbdtGrowth) {
  Growth().Check(kOk);
  for (const int32_t node : {1, -1, kMost, kLeast}) RefusesGrowth([&](auto& g) { g.nodes = {node}; });
  RefusesGrowth([](auto& g) { g.state = Ensemble({Split(0, 1, 2), Leaf(), Leaf()}); });  // its root has been split
  RefusesGrowth([](auto& g) { g.stamp = 2; });
  RefusesGrowth([](auto& g) { g.gains = {kNan}; });
  RefusesGrowth([](auto& g) { g.gains = {1, 2}; });
  RefusesGrowth([](auto& g) { g.splits = {2}; });
  RefusesGrowth([](auto& g) { g.splits = {}; });
  for (const char* split : {"", "\x0a\xff"}) RefusesGrowth([&](auto& g) { g.split = split; });
  // Pruned, with children that stand before their parents.
  Growth shuffled;
  wire::GbdtNode root = Split(0, 3, 2), below = Split(0, 1, 4);
  root.node_metadata.Ensure().gain = below.node_metadata.Ensure().gain = 1;
  shuffled.state = Ensemble({root, Leaf(), Leaf(), below, Leaf()});
  shuffled.nodes = {2};
  shuffled.gains = {-1};
  shuffled.depth = 1;
  shuffled.predicts = true;
  shuffled.Check(kOk);
  shuffled.gains = {1};
  shuffled.Check(kOk);
  Growth uneven;
  wire::GbdtNode split = Split(0, 0, 0), none = Leaf();
  none.leaf->sparse_vector->value.clear();
  split.node_metadata.Ensure().original_leaf = none.leaf;
  uneven.SetSplit(split, Leaf());
  uneven.Check();
  Growth oblivious;
  oblivious.kind = 1;
  oblivious.Check({absl::StatusCode::kUnimplemented});
}

// Layers whose leaves have many classes add up.
TEST(BadInput, GbdtLeavesOfManyClasses) {
  constexpr int32_t kClasses = 200'000;
  const auto leaf = [](int32_t first) {
    wire::GbdtNode node = Leaf();
    for (int32_t c = 1; c < kClasses; ++c) {
      node.leaf->sparse_vector->index.push_back(first + c);
      node.leaf->sparse_vector->value.push_back(1);
    }
    return node;
  };
  Growth growth;
  growth.state = Ensemble({leaf(0)});
  growth.SetSplit(Split(0, 0, 0), leaf(kClasses));
  growth.Check(kOk);
}

TEST(BadInput, GbdtSumsThatDoNotFit) {
  const auto check = [](const Dims& nodes, const Dims& features, const Dims& gradients, const Codes& codes) {
    for (const bool is_tensor : {false, true}) {
      const std::string kind = is_tensor ? "Tensor" : "Scalar";
      GraphMaker g;
      g.Op("a", "StatsAccumulator" + kind + "ResourceHandleOp", {}, kOwnName);
      g.I64("stamp", {}, {1}).I64("none", {0});
      std::vector<std::string> made = {"a", "stamp"};
      if (is_tensor) made.insert(made.end(), {"none", "none"});
      g.Op("init", "CreateStatsAccumulator" + kind, made);
      g.I32("nodes", nodes).I64("features", features).F32("gradients", gradients);
      g.Op("bad", "StatsAccumulator" + kind + "Add", {"a", "stamp", "nodes", "features", "gradients", "gradients"},
           {{"num_resource_handles", Int(1)}});
      Check(g, codes, How::kConstants);
      GraphMaker summary;
      summary.I32("nodes", nodes).I64("features", features).F32("gradients", gradients);
      summary.Op("bad", "StatsAccumulator" + kind + "MakeSummary", {"nodes", "features", "gradients", "gradients"});
      Check(summary, gradients.size() > 1 && gradients[0] == nodes[0] ? kOk : codes);
    }
  };
  check({2}, {2, 2}, {2}, kOk);
  check({0}, {1, 0}, {0}, kOk);
  for (const Dims& dims : {Dims{}, Dims{2, 1}, Dims{3}}) check(dims, {2, 2}, {2}, kInvalid);
  for (const Dims& dims : {Dims{}, Dims{2}, Dims{2, 1}, Dims{3, 2}, Dims{2, 2, 1}}) check({2}, dims, {2}, kInvalid);
  for (const Dims& dims : {Dims{}, Dims{3}, Dims{2, 1}}) check({2}, {2, 2}, dims, kInvalid);
  GraphMaker g;
  g.Op("a", "StatsAccumulatorTensorResourceHandleOp", {}, kOwnName);
  g.I64("stamp", {}, {1}).I64("huge", {2}, {INT64_MAX, 2});
  g.Op("bad", "CreateStatsAccumulatorTensor", {"a", "stamp", "huge", "huge"});
  Check(g, kInvalid, How::kConstants);
}

TEST(BadInput, GbdtCountersFromOutside) {
  GraphMaker g;
  g.Op("a", "StatsAccumulatorScalarResourceHandleOp", {}, kOwnName);
  g.I64("stamp", {}, {1}).I64("updates", {}, {INT64_MAX}).I32("nodes", {1}).I64("features", {1, 2}).F32("sum", {1});
  g.Op("made", "CreateStatsAccumulatorScalar", {"a", "stamp"});
  g.Op("init", "StatsAccumulatorScalarDeserialize",
       {"a", "stamp", "updates", "nodes", "features", "sum", "sum", "^made"});
  g.Op("bad", "StatsAccumulatorScalarAdd", {"a", "stamp", "nodes", "features", "sum", "sum"},
       {{"num_resource_handles", Int(1)}});
  Check(g, kOk, How::kConstants);
}

// Squares of hessians are solved, diagonals need none.
TEST(BadInput, GbdtHessiansOfManyClasses) {
  const auto splits = [](int64_t classes, const Dims& hessian, int32_t strategy) {  // of as many nodes as hessians
    const int64_t n = hessian[0];
    GraphMaker g;
    g.I64("n", {}, {1})
        .I32("nodes", {n}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
        .I64("buckets", {n, 2})
        .F32("g", {n, classes}, {1})
        .F32("h", hessian, {0, 1})
        .F32("limits", {2}, {1, 2})
        .F32("zero", {})
        .I32("none", {}, {-1})
        .I32("column", {}, {0})
        .I32("strategy", {}, {strategy});
    g.Op("bad", "BuildDenseInequalitySplits",
         {"n", "nodes", "buckets", "g", "h", "limits", "none", "column", "zero", "zero", "zero", "zero", "strategy",
          "column"});
    return g;
  };
  Check(splits(1'000'000, {1, 1'000'000}, 3), kOk);
  CheckEndless(splits(1500, {16, 1500, 1500}, 2));
}

TEST(BadInput, GbdtTreesThatAreDeep) {
  std::vector<wire::GbdtNode> nodes;
  for (int32_t i = 0; i < 50'000; ++i) {
    nodes.push_back(Split(0, 2 * i + 1, 2 * i + 2));
    nodes.back().dense_float_binary_split->threshold = -1;
    nodes.push_back(Leaf());
  }
  nodes.push_back(Leaf());
  for (const std::string op : {"GradientTreesPrediction", "GradientTreesPartitionExamples"}) {
    GraphMaker g = WithEnsemble(Ensemble(nodes));
    g.I64("seed", {}, {1}).F32("x", {200'000, 1}, {1});
    Attrs attrs = {{"num_dense_float_features", Int(1)}};
    for (const char* name : {"num_sparse_float_features", "num_sparse_int_features"}) attrs.emplace_back(name, Int(0));
    std::vector<std::string> inputs = {"e", "x"};
    if (op == "GradientTreesPrediction") {
      inputs.insert(inputs.begin() + 1, "seed");
      attrs.emplace_back("learner_config", Str(Learner()));
      for (const char* name : {"apply_dropout", "apply_averaging", "center_bias", "reduce_dim"})
        attrs.emplace_back(name, Bool(true));
    }
    g.Op("bad", op, inputs, attrs);
    CheckEndless(g);
  }
}

TEST(BadInput, GbdtSplitsOfNodesAndBuckets) {
  struct Sums {
    std::vector<int64_t> buckets = {-1, 0, 0, 0, 1, 0};
    std::vector<float> gradients = {1, 2, 3};
    Dims rows = {3}, hessians = {3};
    int64_t batches = 1;
    int32_t class_id = -1, column = 0, strategy = 1, kind = 0;
    void Check(const Codes& codes) const {
      for (const std::string op : {"BuildSparseInequalitySplits", "BuildCategoricalEqualitySplits"}) {
        GraphMaker g;
        const bool is_sparse = op == "BuildSparseInequalitySplits";
        g.I64("n", {}, {batches})
            .I32("nodes", {3})
            .I64("buckets", {3, 2}, buckets)
            .F32("g", rows, gradients)
            .F32("h", hessians, {1});
        g.F32("limits", {2}, {1, 2}).I32("class", {}, {class_id}).I32("column", {}, {column}).I64("bias", {}, {-1});
        g.F32("zero", {}).I32("strategy", {}, {strategy}).I32("kind", {}, {kind});
        std::vector<std::string> inputs = {"n", "nodes", "buckets", "g", "h"};
        if (is_sparse) inputs.push_back("limits");
        inputs.insert(inputs.end(), {"class", "column", "bias", "zero", "zero", "zero", "zero", "strategy"});
        if (!is_sparse) inputs.push_back("kind");
        g.Op("bad", op, inputs);
        bad_inputs::Check(g, codes);
      }
    }
  };
  const auto refuses = [](const std::function<void(Sums&)>& change) {
    Sums sums;
    change(sums);
    sums.Check(kInvalid);
  };
  Sums().Check(kOk);
  refuses([](Sums& s) { s.buckets = {0, 0, 0, 1, 1, 0}; });  // no bias
  refuses([](Sums& s) { s.gradients = {1, kNan, 3}; });
  refuses([](Sums& s) { s.rows = {2}; });
  refuses([](Sums& s) { s.rows = {3, 2}; });
  refuses([](Sums& s) { s.hessians = {3, 2}; });
  for (const int64_t n : {int64_t{0}, int64_t{-1}, INT64_MIN}) refuses([&](Sums& s) { s.batches = n; });
  for (const int32_t n : {0, 4, -1, kMost}) refuses([&](Sums& s) { s.strategy = n; });
  for (const int32_t n : {-1, kLeast}) refuses([&](Sums& s) { s.column = n; });
  GraphMaker g;
  g.I64("n", {}, {1})
      .I32("nodes", {1})
      .F32("g", {1}, {1})
      .F32("limits", {2}, {1, 2})
      .F32("zero", {})
      .I32("one", {}, {1});
  g.I64("buckets", {1, 2}, {2, 0}).I32("none", {}, {0});
  g.Op("bad", "BuildDenseInequalitySplits",
       {"n", "nodes", "buckets", "g", "g", "limits", "none", "none", "zero", "zero", "zero", "zero", "one", "none"});
  Check(g);  // there are two buckets
}

TEST(BadInput, GbdtQuantiles) {
  const auto create = [](float epsilon, int64_t quantiles, int64_t most) {
    GraphMaker g;
    g.Op("q", "QuantileStreamResourceHandleOp", {}, kOwnName);
    g.I64("stamp", {}, {1});
    g.Op("bad", "CreateQuantileAccumulator", {"q", "stamp"},
         {{"epsilon", Float(epsilon)},
          {"num_quantiles", Int(quantiles)},
          {"max_elements", Int(most)},
          {"generate_quantiles", Bool(true)},
          {"container", Str("")},
          {"shared_name", Str("")}});
    return g;
  };
  Check(create(0.1f, 3, 100), kOk, How::kConstants);
  for (const float epsilon : {0.0f, -1.0f, 1.0f, kNan}) Check(create(epsilon, 3, 100), kInvalid, How::kConstants);
  for (const int64_t n : {int64_t{1}, int64_t{-1}, INT64_MAX, INT64_MIN})
    Check(create(0.1f, n, 100), kInvalid, How::kConstants);
  for (const int64_t n : {int64_t{0}, INT64_MIN}) Check(create(0.1f, 3, n), kInvalid, How::kConstants);
  const auto add = [&](const std::string& summary, const Codes& codes) {
    GraphMaker g = create(0.1f, 3, 100);
    g.def().node.back().name = "init";
    g.Strings("summary", {}, {summary});
    g.Op("bad", "QuantileAccumulatorAddSummaries", {"q", "stamp", "summary"}, {{"num_resource_handles", Int(1)}});
    Check(g, codes, How::kConstants);
  };
  wire::GbdtQuantileSummary summary;
  summary.entries.emplace_back().weight = 1;
  add(wire::Encode(summary), kOk);
  add("\x0a\xff", kInvalid);
  summary.entries[0].value = kNan;
  add(wire::Encode(summary), kInvalid);
  {  // Each of them is merged with all before.
    wire::GbdtQuantileStream stream;
    for (int i = 0; i < 300'000; ++i) {
      wire::GbdtQuantileEntry& entry = stream.summaries.emplace_back().entries.emplace_back();
      entry.value = static_cast<float>(i), entry.weight = entry.max_rank = 1;
    }
    GraphMaker g = create(1e-20f, 3, 1'000'000);
    g.def().node.back().name = "init";
    g.Strings("stream", {}, {wire::Encode(stream)}).Bools("ready", {}).F32("buckets", {0});
    g.Op("bad", "QuantileAccumulatorDeserialize", {"q", "stamp", "stream", "ready", "buckets"});
    CheckEndless(g);
  }
  const auto summaries = [](float value, const Dims& weights, int64_t example, const Codes& codes) {
    GraphMaker g;
    g.F32("x", {3, 1}, {1, value})
        .I64("i", {1, 2}, {example, 0})
        .F32("v", {1}, {1})
        .I64("s", {2}, {3, 1})
        .F32("w", weights, {1});
    g.Op("bad", "MakeQuantileSummaries", {"x", "i", "v", "s", "w"},
         {{"num_dense_features", Int(1)}, {"num_sparse_features", Int(1)}, {"epsilon", Float(0.1f)}});
    Check(g, codes);
  };
  summaries(2, {3, 1}, 2, kOk);
  summaries(kNan, {3, 1}, 2, kInvalid);
  summaries(2, {2, 1}, 1, kInvalid);
  for (const int64_t bad : {int64_t{-1}, int64_t{3}, INT64_MAX}) summaries(2, {3, 1}, bad, kInvalid);
}

}  // namespace
}  // namespace millrace::bad_inputs
