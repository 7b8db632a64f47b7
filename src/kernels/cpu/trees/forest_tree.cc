// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/forest_tree.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "absl/strings/numbers.h"
#include "base/checked.h"
#include "base/stop_scope.h"

namespace millrace {
namespace {

using Kind = ForestTest::Kind;

StatusOr<int32_t> FeatureOf(const wire::Box<wire::ForestFeatureId>& id) {
  int32_t feature = 0;
  if (!id || !id->id || !absl::SimpleAtoi(id->id->value, &feature) || feature < 0) {
    return InvalidArgument("asks for feature \"", id && id->id ? id->id->value : "", "\", want a number");
  }
  return feature;
}

wire::ForestFeatureId FeatureMessage(int32_t feature) {
  wire::ForestFeatureId id;
  id.id.Ensure().value = absl::StrCat(feature);
  return id;
}

wire::ForestValue ValueMessage(float number) {
  wire::ForestValue value;
  value.kind = wire::ForestValue::Kind::kFloat;
  value.float_value = number;
  return value;
}

StatusOr<ForestTest> TestOf(const wire::ForestInequalityTest& message) {
  ForestTest test;
  MR_ASSIGN_OR_RETURN(test.feature, FeatureOf(message.feature_id));
  if (message.type < 0 || message.type > 3) return InvalidArgument("has inequality ", message.type, ", want 0 to 3");
  test.kind = static_cast<Kind>(message.type);
  if (message.threshold) {
    MR_ASSIGN_OR_RETURN(test.threshold, ForestNumberOf(*message.threshold));
  }
  return test;
}

StatusOr<ForestTest> TestOf(const wire::ForestAny& any) {
  if (any.type_url != wire::ForestMatchingTest::kTypeUrl) {
    return InvalidArgument("has a test of type \"", any.type_url, "\", want MatchingValuesTest");
  }
  wire::ForestMatchingTest message;
  MR_RETURN_IF_ERROR(wire::Decode(any.value, &message));
  ForestTest test;
  test.kind = Kind::kMatches;
  test.inverse = message.inverse;
  MR_ASSIGN_OR_RETURN(test.feature, FeatureOf(message.feature_id));
  for (const wire::ForestValue& v : message.value) {
    MR_ASSIGN_OR_RETURN(const float number, ForestNumberOf(v));
    test.values.push_back(number);
  }
  return test;
}

Status TakeLeaf(const wire::ForestLeaf& leaf, const ForestParams& params, ForestTreeNode* node) {
  const bool is_dense = params.has_dense_leaves();
  if (leaf.kind == wire::ForestLeaf::Kind::kVector && leaf.vector && is_dense) {
    if (std::ssize(leaf.vector->value) > params.outputs) {
      return InvalidArgument("has ", leaf.vector->value.size(), " numbers, want ", params.outputs);
    }
    return ForEachForestNumber(*leaf.vector, [&](int64_t, float number) -> Status {
      node->dense.push_back(number);
      return absl::OkStatus();
    });
  }
  if (leaf.kind == wire::ForestLeaf::Kind::kSparseVector && leaf.sparse_vector && !is_dense) {
    return ForEachForestNumber(*leaf.sparse_vector, [&](int64_t label, float number) -> Status {
      if (label < 0) return InvalidArgument("has a number for class ", label);
      node->sparse[label] = number;
      return absl::OkStatus();
    });
  }
  if (leaf.kind == wire::ForestLeaf::Kind::kNone) return absl::OkStatus();
  return InvalidArgument("is a leaf of another kind than the forest has");
}

Status TakeSplit(const wire::ForestSplitNode& split, int64_t nodes, std::vector<bool>* has_parent,
                 ForestTreeNode* node) {
  node->is_split = true;
  MR_ASSIGN_OR_RETURN(node->test, ForestTestOf(split));
  node->left = split.left_child_id ? split.left_child_id->value : 0;
  node->right = split.right_child_id ? split.right_child_id->value : 0;
  for (const int32_t child : {node->left, node->right}) {
    if (child < 1 || child >= nodes)
      return InvalidArgument("has child ", child, ", want one of nodes 1 to ", nodes - 1);
    if ((*has_parent)[static_cast<size_t>(child)]) {
      return InvalidArgument("has child ", child, ", which is another split's: nodes must make a tree");
    }
    (*has_parent)[static_cast<size_t>(child)] = true;
  }
  return absl::OkStatus();
}

Status TakeNode(const wire::ForestNode& from, int64_t nodes, const ForestParams& params, std::vector<bool>* has_parent,
                ForestTreeNode* node) {
  if (from.kind == wire::ForestNode::Kind::kLeaf && from.leaf) return TakeLeaf(*from.leaf, params, node);
  if (from.kind == wire::ForestNode::Kind::kBinaryNode && from.binary_node) {
    return TakeSplit(*from.binary_node, nodes, has_parent, node);
  }
  return InvalidArgument("is neither a leaf nor a split in two");
}

}  // namespace

bool ForestTest::Holds(float value) const {
  switch (kind) {
    case Kind::kAtMost: return value <= threshold;
    case Kind::kLess: return value < threshold;
    case Kind::kAtLeast: return value >= threshold;
    case Kind::kMore: return value > threshold;
    case Kind::kMatches: break;
  }
  return (std::find(values.begin(), values.end(), value) != values.end()) != inverse;
}

StatusOr<ForestTest> ForestTestOf(const wire::ForestSplitNode& node) {
  using Test = wire::ForestSplitNode::Kind;
  if (node.kind == Test::kInequality && node.inequality_left_child_test)
    return TestOf(*node.inequality_left_child_test);
  if (node.kind == Test::kCustom && node.custom_left_child_test) return TestOf(*node.custom_left_child_test);
  return InvalidArgument("has no test");
}

void SetForestTest(const ForestTest& test, wire::ForestSplitNode* node) {
  if (test.kind != Kind::kMatches) {
    node->kind = wire::ForestSplitNode::Kind::kInequality;
    wire::ForestInequalityTest& message = node->inequality_left_child_test.Ensure();
    message.feature_id.Ensure() = FeatureMessage(test.feature);
    message.type = static_cast<int32_t>(test.kind);
    message.threshold.Ensure() = ValueMessage(test.threshold);
    return;
  }
  wire::ForestMatchingTest message;
  message.feature_id.Ensure() = FeatureMessage(test.feature);
  message.inverse = test.inverse;
  for (const float value : test.values) message.value.push_back(ValueMessage(value));
  node->kind = wire::ForestSplitNode::Kind::kCustom;
  wire::ForestAny& any = node->custom_left_child_test.Ensure();
  any.type_url = wire::ForestMatchingTest::kTypeUrl;
  any.value = wire::Encode(message);
}

StatusOr<float> ForestNumberOf(const wire::ForestValue& value) {
  switch (value.kind) {
    case wire::ForestValue::Kind::kFloat: return value.float_value;
    case wire::ForestValue::Kind::kDouble: return static_cast<float>(value.double_value);
    case wire::ForestValue::Kind::kInt32: return static_cast<float>(value.int32_value);
    case wire::ForestValue::Kind::kInt64: return static_cast<float>(value.int64_value);
    case wire::ForestValue::Kind::kNone: break;
  }
  if (!value.unknown_fields.empty()) return InvalidArgument("has a value that is no number");
  return 0.0f;
}

void AppendForestPart(std::string part, std::string* text) {
  wire::ForestParts parts;
  parts.parts.push_back(std::move(part));
  wire::AppendEncoded(parts, text);
}

void AddForestNumbers(absl::Span<const float> numbers, int64_t count, wire::ForestVector* vector) {
  vector->value.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    vector->value.push_back(ValueMessage(i < std::ssize(numbers) ? numbers[static_cast<size_t>(i)] : 0));
  }
}

void AddForestNumbers(const std::map<int64_t, float>& numbers, wire::ForestSparseVector* vector) {
  for (const auto& [key, number] : numbers) vector->sparse_value[key] = ValueMessage(number);
}

int32_t ForestTreeState::Traverse(const ForestInput& input, int64_t example) const {
  int32_t n = 0;
  StopNowAndThen pause;
  while (nodes[static_cast<size_t>(n)].is_split) {
    const ForestTreeNode& node = nodes[static_cast<size_t>(n)];
    pause(1 + std::ssize(node.test.values));
    n = node.test.Holds(input, example) ? node.left : node.right;
  }
  return n;
}

double ForestTreeState::TraverseNanoseconds() const {
  constexpr double kNanosecondsPerNode = 20;
  return kNanosecondsPerNode * static_cast<double>(std::bit_width(nodes.size()));
}

int64_t ForestTreeState::NumLeaves() const {
  return std::count_if(nodes.begin(), nodes.end(), [](const ForestTreeNode& n) { return !n.is_split; });
}

void ForestTreeState::Predict(int32_t leaf, float* out) const {
  const ForestTreeNode& node = nodes[static_cast<size_t>(leaf)];
  std::fill_n(out, params.outputs, 0.0f);
  std::copy(node.dense.begin(), node.dense.end(), out);
  float total = std::accumulate(node.dense.begin(), node.dense.end(), 0.0f);
  for (const auto& [label, weight] : node.sparse) {
    total += weight;
    if (label < params.outputs) out[label] = weight;
  }
  if (params.is_regression() || total <= 0) return;
  for (int64_t i = 0; i < params.outputs; ++i) out[i] /= total;
}

void ForestTreeNode::Count(const ForestParams& params, int64_t label, float weight) {
  if (!params.has_dense_leaves()) {
    sparse[label] += weight;
    return;
  }
  dense.resize(static_cast<size_t>(params.outputs));
  dense[static_cast<size_t>(label)] += weight;
}

void ForestTreeState::Reserve(size_t more) {
  const size_t wanted = nodes.size() + more;
  if (wanted > nodes.capacity()) nodes.reserve(std::max(wanted, 2 * nodes.size()));
}

void ForestTreeState::Split(int32_t leaf, ForestTest test, ForestTreeNode left, ForestTreeNode right) {
  const auto first = static_cast<int32_t>(nodes.size());
  Reserve(2);
  nodes.push_back(std::move(left));
  nodes.push_back(std::move(right));
  ForestTreeNode split;
  split.is_split = true;
  split.left = first;
  split.right = first + 1;
  split.test = std::move(test);
  last_feature = std::max(last_feature, split.test.feature);
  nodes[static_cast<size_t>(leaf)] = std::move(split);
}

wire::ForestNode ForestTreeState::NodeMessage(int32_t n) const {
  const ForestTreeNode& node = nodes[static_cast<size_t>(n)];
  wire::ForestNode message;
  if (n != 0) message.node_id.Ensure().value = n;
  if (node.is_split) {
    message.kind = wire::ForestNode::Kind::kBinaryNode;
    wire::ForestSplitNode& split = message.binary_node.Ensure();
    split.left_child_id.Ensure().value = node.left;
    split.right_child_id.Ensure().value = node.right;
    SetForestTest(node.test, &split);
    return message;
  }
  message.kind = wire::ForestNode::Kind::kLeaf;
  wire::ForestLeaf& leaf = message.leaf.Ensure();
  if (params.has_dense_leaves()) {
    leaf.kind = wire::ForestLeaf::Kind::kVector;
    AddForestNumbers(node.dense, params.outputs, &leaf.vector.Ensure());
  } else {
    leaf.kind = wire::ForestLeaf::Kind::kSparseVector;
    AddForestNumbers(node.sparse, &leaf.sparse_vector.Ensure());
  }
  return message;
}

StatusOr<ForestTreeState> ParseForestTree(absl::string_view bytes, const ForestParams& params) {
  ForestTreeState state;
  state.params = params;
  if (bytes.empty()) {
    state.nodes.emplace_back();
    return state;
  }
  wire::ForestModel model;
  MR_RETURN_IF_ERROR(wire::Decode(bytes, &model));
  if (!model.decision_tree || model.decision_tree->nodes.empty())
    return InvalidArgument("there is no tree, want one with a root");
  const std::vector<wire::ForestNode>& nodes = model.decision_tree->nodes;
  if (nodes.size() > std::numeric_limits<int32_t>::max()) return InvalidArgument("the tree has too many nodes");
  std::vector<bool> has_parent(nodes.size());
  StopNowAndThen pause;
  for (size_t n = 0; n < nodes.size(); ++n) {
    pause();
    ForestTreeNode& node = state.nodes.emplace_back();
    MR_RETURN_IF_ERROR(
        Annotate(TakeNode(nodes[n], std::ssize(nodes), params, &has_parent, &node), absl::StrCat("node ", n, " ")));
    if (node.is_split) state.last_feature = std::max(state.last_feature, node.test.feature);
  }
  if (params.has_dense_leaves()) MR_RETURN_IF_ERROR(CheckForestNumbers(state.NumLeaves(), params));
  return state;
}

std::string SerializeForestTree(const ForestTreeState& state) {
  std::string nodes, model;
  for (size_t n = 0; n < state.nodes.size(); ++n) {
    StopIfAsked();
    AppendForestPart(wire::Encode(state.NodeMessage(static_cast<int32_t>(n))), &nodes);
  }
  AppendForestPart(std::move(nodes), &model);
  return model;
}

std::string ForestTree::DebugString() const {
  return Read([](const ForestTreeState& state) { return absl::StrCat("a tree of ", state.nodes.size(), " nodes"); });
}

}  // namespace millrace
