// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.h"

#include <gtest/gtest.h>

#include "graph/gradient.h"
#include "graph/test_ops.h"

namespace millrace {
namespace {

TEST(GraphBuilderTest, NamesScopesAndPlaces) {
  Graph graph(&TestOps());
  GraphBuilder b(&graph);
  const Output x = TestInput(b, "x", DType::kFloat);
  const GraphBuilder layer = b.Scope("layer").WithDevice("/cpu:0").At("model.py:7");
  EXPECT_EQ(layer.Identity(x).node->name(), "layer/Identity");
  EXPECT_EQ(layer.Identity(x).node->name(), "layer/Identity_1");
  EXPECT_EQ(b.Scope("layer").scope(), "layer_1");
  EXPECT_EQ(b.ScopeExact("layer").WithName("y").Identity(x).node->name(), "layer/y");
  x.node->set_device("/gpu:1");
  Node* n = layer.WithControl({x.node}).ColocateWith(x.node).WithName("z").OpNode("NoOp", {});
  ASSERT_NE(n, nullptr);
  EXPECT_EQ(n->device(), "/gpu:1");  // of the node that it is beside, as in TensorFlow
  EXPECT_EQ(n->location(), "model.py:7");
  EXPECT_EQ(n->control_inputs(), std::vector<Node*>{x.node});
  EXPECT_EQ(*n->Attr<std::vector<std::string>>("_class"), std::vector<std::string>{"loc:@x"});
}

TEST(GraphBuilderTest, ErrorsStick) {
  Graph graph(&TestOps());
  GraphBuilder b(&graph);
  const GraphBuilder copy = b.Scope("s");
  const Output bad = copy.Op("Nonsense", {});
  EXPECT_FALSE(bad);
  EXPECT_EQ(b.status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(b.Add(bad, bad));
  EXPECT_FALSE(b.Scalar(1.0f));
  EXPECT_EQ(b.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(graph.nodes().empty());
}

TEST(GraphBuilderTest, MakesNumbersOfEveryType) {
  Graph graph(&TestOps());
  GraphBuilder b(&graph);
  for (DType t : NumberTypes()) {
    const Output o = b.ScalarOf(t, 3);
    ASSERT_TRUE(o) << DTypeName(t) << b.status();
    EXPECT_EQ(o.dtype(), t);
  }
  EXPECT_TRUE(*graph.ConstantValue(b.ScalarOf(DType::kBool, 1))->ScalarValue<bool>());
  EXPECT_EQ(*graph.ConstantValue(b.ScalarOf(DType::kInt8, 1e9))->ScalarValue<int8_t>(), 127);
  EXPECT_FALSE(b.ScalarOf(DType::kString, 1));
}

TEST(GradientHelpersTest, SkipsSumsThatStaticShapesRuleOut) {
  Graph graph(&TestOps());
  GraphBuilder b(&graph);
  const Output x = TestInput(b, "x", DType::kFloat, PartialShape::Of({2, 3}));
  const Output y = TestInput(b, "y", DType::kFloat, PartialShape::Of({2, 3}));
  const auto [gx, gy] = Unbroadcast(b, x, y, y, x);
  EXPECT_EQ(gx, y);
  EXPECT_EQ(gy, x);
  EXPECT_EQ(SumToShapeOf(b, x, y), x);
  EXPECT_EQ(graph.nodes().size(), 2u);
}

}  // namespace
}  // namespace millrace
