// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/match.h"
#include "graph/test_ops.h"

namespace millrace {
namespace {

class GraphTest : public ::testing::Test {
 protected:
  std::string ErrorOf(NodeSpec spec) {
    const int before = graph_.num_node_ids();
    auto node = graph_.AddNode(std::move(spec));
    EXPECT_FALSE(node.ok());
    EXPECT_EQ(graph_.num_node_ids(), before) << "an error changed the graph";
    return std::string(node.status().message());
  }
  Output Float(const char* name, PartialShape shape = {}) {
    return TestInput(b_, name, DType::kFloat, std::move(shape));
  }
  NodeSpec Spec(const char* name, const char* op, std::vector<Output> inputs, AttrMap attrs = {}) {
    NodeSpec s;
    s.name = name;
    s.op = op;
    s.inputs = std::move(inputs);
    s.attrs = std::move(attrs);
    return s;
  }

  Graph graph_{&TestOps()};
  GraphBuilder b_{&graph_};
};

TEST_F(GraphTest, InfersTypesLengthsAndDefaults) {
  const Output x = Float("x"), y = Float("y");
  auto sum = graph_.AddNode(Spec("s", "AddN", {x, y}));
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(*(*sum)->Attr<int64_t>("N"), 2);
  EXPECT_EQ(*(*sum)->Attr<DType>("T"), DType::kFloat);
  auto many = graph_.AddNode(Spec("m", "IdentityN", {x, (*sum)->output(0), b_.Scalar<int32_t>(1)}));
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ((*many)->num_outputs(), 3);
  EXPECT_EQ((*many)->output_type(2), DType::kInt32);
  auto mm = graph_.AddNode(Spec("mm", "MatMul", {x, y}));
  ASSERT_TRUE(mm.ok());
  EXPECT_FALSE(*(*mm)->Attr<bool>("transpose_a"));
  EXPECT_EQ(x.node->consumers().size(), 3u);
}

TEST_F(GraphTest, SaysWhatIsWrong) {
  const Output x = Float("x", PartialShape::Of({2, 3})), i = b_.Scalar<int32_t>(1);
  EXPECT_EQ(ErrorOf(Spec("x", "NoOp", {})), "Duplicate node name in graph: 'x'");
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("a:b", "NoOp", {})), "not a valid node name"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("_SOURCE", "NoOp", {})), "not a valid node name"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec(std::string(70000, 'a').c_str(), "NoOp", {})), "exceeds the limit"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("n", "Nonsense", {})), "Op type not registered 'Nonsense'"));
  EXPECT_EQ(ErrorOf(Spec("n", "AddV2", {x})), "NodeDef 'n': op AddV2 takes 2 inputs, got 1");
  EXPECT_EQ(ErrorOf(Spec("n", "AddV2", {x, i})),
            "Input 1 of node n was passed int32 from Const:0 incompatible with expected float.");
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("n", "Identity", {Output{x.node, 7}})),
                                "Connecting to invalid output 7 of source node x which has 1 outputs."));
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("n", "Identity", {Output{x.node, -1}})), "invalid output -1"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("n", "Identity", {Output{}})), "input 0 is missing"));
  const Output s = b_.Const(Tensor::Scalar(TString("s")));
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("n", "AddV2", {s, s})),
                                "attribute 'T' of op AddV2 has value string, which is not in its allowed list"));
  EXPECT_EQ(ErrorOf(Spec("n", "MatMul", {x, x})),
            "Dimensions must be equal, but are 3 and 2 (inner dimension) for 'n' (op: 'MatMul') with input shapes: "
            "[2,3], [2,3].");
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("n", "TwoLists", {x, x})), "several lists"));
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(Spec("n", "AddN", {x, x}, {{"N", AttrValue(int64_t{250'000'000})}})), "needs 250000000"));
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(Spec("n", "Identity", {x}, {{"T", AttrValue(PlaceholderAttr{"T"})}})), "placeholder"));
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(Spec("n", "Const", {}, {{"dtype", AttrValue(DType::kFloat)}, {"value", AttrValue(Tensor::Scalar(1))}})),
      "attribute 'dtype' says float"));
}

TEST_F(GraphTest, ReferencesFeedValuesButNotTheOtherWay) {
  const Output v = b_.Op("VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
  const Output x = Float("x");
  EXPECT_EQ(v.dtype(), MakeRefType(DType::kFloat));
  EXPECT_TRUE(graph_.AddNode(Spec("ok", "AddV2", {v, x})).ok());
  EXPECT_TRUE(graph_.AddNode(Spec("assign", "Assign", {v, x})).ok());
  EXPECT_TRUE(absl::StrContains(ErrorOf(Spec("bad", "Assign", {x, x})), "incompatible with expected float_ref"));
}

TEST_F(GraphTest, UnknownOpsGrowOutputs) {
  auto odd = graph_.AddUnknownNode(Spec("odd", "Odd", {}));
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ((*odd)->num_outputs(), 0);
  ASSERT_TRUE(graph_.AddNode(Spec("n", "Identity", {Output{*odd, 3}}, {{"T", AttrValue(DType::kInt8)}})).ok());
  EXPECT_EQ((*odd)->num_outputs(), 4);
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(Spec("m", "Identity", {Output{*odd, 65536}}, {{"T", AttrValue(DType::kInt8)}})), "invalid output"));
}

TEST_F(GraphTest, UniqueNamesIgnoreCase) {
  EXPECT_EQ(graph_.UniqueName("Add"), "Add");
  EXPECT_EQ(graph_.UniqueName("add"), "add_1");
  EXPECT_EQ(graph_.UniqueName("ADD"), "ADD_2");
  ASSERT_TRUE(graph_.AddNode(Spec("k_1", "NoOp", {})).ok());
  EXPECT_EQ(graph_.UniqueName("k"), "k");
  EXPECT_EQ(graph_.UniqueName("K"), "K_2");
}

TEST_F(GraphTest, KnowsSmallIntegerValues) {
  const Output x = Float("x", PartialShape::Of({-1, 3, 5}));
  const Output shape = b_.Shape(x);
  EXPECT_EQ(graph_.ConstantValue(shape), nullptr);
  const auto element = [&](int i) {
    return b_.Op("StridedSlice", {shape, b_.Vector<int32_t>({i}), b_.Vector<int32_t>({i + 1}), b_.Vector<int32_t>({1})},
                 {{"shrink_axis_mask", 1}});
  };
  const Output rows = element(0), three = element(1), five = element(2);
  EXPECT_EQ(graph_.ConstantValue(rows), nullptr);
  ASSERT_NE(graph_.ConstantValue(five), nullptr);
  EXPECT_EQ(*graph_.ConstantValue(five)->IntScalar(), 5);
  const Output product = b_.Mul(three, five);
  const Output packed = b_.Op("Pack", {Arg(std::vector<Output>{rows, product})});
  const Output y = b_.Reshape(x, packed);
  ASSERT_TRUE(b_.status().ok()) << b_.status();
  EXPECT_EQ(y.shape().ToString(), "[?,15]");
  const Output joined =
      b_.Op("ConcatV2", {Arg(std::vector<Output>{b_.Vector<int32_t>({7}), packed}), b_.Scalar<int32_t>(0)});
  EXPECT_EQ(b_.Reshape(x, joined).shape().ToString(), "[7,?,15]");

  ASSERT_TRUE(graph_.RefineShape(x, PartialShape::Of({2, 3, 5})).ok());
  ASSERT_NE(graph_.ConstantValue(packed), nullptr);
  EXPECT_EQ(*graph_.ConstantValue(packed)->IntValues(), (std::vector<int64_t>{2, 15}));
  EXPECT_FALSE(graph_.RefineShape(x, PartialShape::Of({4, 3, 5})).ok());
}

TEST_F(GraphTest, LongChainsOfIntegersDoNotRecurse) {
  Output v = b_.Shape(Float("x"));
  for (int i = 0; i < 100000; ++i) v = b_.Identity(v);
  ASSERT_TRUE(graph_.RefineShape(graph_.Find("x")->output(0), PartialShape::Of({2})).ok());
  graph_.ConstantValue(v);
}

TEST_F(GraphTest, OrdersByConstruction) {
  const Output a = Float("a"), c = Float("c"), d = b_.Identity(a), e = b_.Identity(c);
  graph_.AddControlEdge(e.node, d.node);
  graph_.AddControlEdge(e.node, d.node);
  EXPECT_EQ(d.node->control_inputs().size(), 1u);
  auto order = TopologicalOrder(graph_);
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(*order, (std::vector<Node*>{a.node, c.node, e.node, d.node}));
  graph_.AddControlEdge(d.node, c.node);
  const Status s = TopologicalOrder(graph_).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(s.message(), "cycle"));
}

TEST_F(GraphTest, RewiresAndRemoves) {
  const Output a = Float("a"), c = Float("c"), d = b_.Add(a, a), e = b_.Identity(d);
  ASSERT_TRUE(graph_.ReplaceUses(a, c).ok());
  EXPECT_TRUE(a.node->consumers().empty());
  EXPECT_EQ(c.node->consumers().size(), 2u);
  EXPECT_FALSE(graph_.SetInput(e.node, 0, b_.Scalar<int32_t>(1)).ok());
  ASSERT_TRUE(graph_.SetInput(e.node, 0, c).ok());
  graph_.RemoveNode(d.node);
  EXPECT_EQ(graph_.Find("AddV2"), nullptr);
  for (const Node* n : graph_.nodes()) ASSERT_NE(n, nullptr);
  EXPECT_EQ(graph_.nodes().size(), 4u);
}

TEST_F(GraphTest, RollsBack) {
  const Output a = Float("a");
  const int mark = graph_.num_node_ids();
  const Output d = b_.Add(a, b_.Identity(a));
  graph_.AddControlEdge(d.node, a.node);
  graph_.RollbackTo(mark);
  EXPECT_EQ(graph_.nodes(), std::vector<Node*>{a.node});
  EXPECT_TRUE(a.node->consumers().empty() && a.node->control_inputs().empty());
  EXPECT_EQ(graph_.UniqueName("AddV2"), "AddV2");
}

TEST_F(GraphTest, BuildsTenThousandNodesQuickly) {
  const auto start = std::chrono::steady_clock::now();
  Output v = Float("x", PartialShape::Of({32, 32}));
  const Output w = Float("w", PartialShape::Of({32, 32}));
  for (int i = 0; i < 10000; ++i) v = i % 2 ? b_.Add(v, w) : b_.MatMul(v, w);
  ASSERT_TRUE(b_.status().ok()) << b_.status();
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 1e4;
  RecordProperty("us_per_node", std::to_string(us));
  EXPECT_LT(us, 500) << "something is quadratic";
}

}  // namespace
}  // namespace millrace
