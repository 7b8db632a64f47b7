// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "passes/pipeline.h"

namespace millrace {
namespace {

Status ShapeFromAttr(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, shape);
  return absl::OkStatus();
}
Status AnyShape(ShapeContext&) { return absl::OkStatus(); }

class SimplifyArithmeticTest : public ::testing::Test {
 protected:
  SimplifyArithmeticTest() {
    registry_.Add("Source() -> (y:f32) | shape:shape | S").Shape(ShapeFromAttr);
    registry_.Add("Const() -> (output:dtype) | value:tensor; dtype:type").Traits({OpTrait::kConstant}).Shape(AnyShape);
    Binary("Mul").Traits({OpTrait::kOneIsNeutral, OpTrait::kOneIsNeutralLeft});
    Binary("Sub").Traits({OpTrait::kZeroIsNeutral});
    Binary("RealDiv").Traits({OpTrait::kOneIsNeutral});
    Binary("Use");
    Binary("Add");
    registry_.Add("RandomUniform() -> (y:f32) | shape:shape | S").Shape(ShapeFromAttr);
    EXPECT_TRUE(registry_.status().ok()) << registry_.status();
    graph_ = std::make_unique<Graph>(&registry_);
  }
  OpDeclaration Binary(const char* op) {
    return registry_.Add(absl::StrCat(op, "(x:f32, y:f32) -> (z:f32)")).Shape(AnyShape);
  }
  Output Add(NodeSpec spec) {
    auto node = graph_->AddNode(std::move(spec));
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? (*node)->output(0) : Output{};
  }
  Output Source(PartialShape shape) {
    return Add({.name = graph_->UniqueName("source"), .op = "Source", .attrs = {{"shape", shape}}});
  }
  Output Const(Tensor value) {
    return Add({.name = graph_->UniqueName("const"),
                .op = "Const",
                .attrs = {{"value", std::move(value)}, {"dtype", DType::kFloat}}});
  }
  // What stands, after the pass, where op(x, y) stood.
  Output Simplified(const char* op, Output x, Output y) {
    const Output z = Add({.name = graph_->UniqueName("z"), .op = op, .inputs = {x, y}});
    const Output use = Add({.name = graph_->UniqueName("use"), .op = "Use", .inputs = {z, z}});
    EXPECT_TRUE(SimplifyArithmetic(*graph_).ok());
    return use.node->input(0);
  }
  static PartialShape Dims(std::vector<int64_t> dims) { return *PartialShape::Make(dims); }

  OpRegistry registry_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(SimplifyArithmeticTest, GivesBackTheOperandThatIsNotChanged) {
  const Output x = Source(Dims({2, 3}));
  const Output one = Const(Tensor::Scalar(1.0f)), ones = Const(Tensor::Vector<float>({1, 1, 1}));
  const Output zero = Const(Tensor::Scalar(0.0f));
  EXPECT_EQ(Simplified("Mul", x, one), x);
  EXPECT_EQ(Simplified("Mul", one, x), x);
  EXPECT_EQ(Simplified("Mul", x, ones), x);
  EXPECT_EQ(Simplified("RealDiv", x, one), x);
  EXPECT_EQ(Simplified("Sub", x, zero), x);
}

TEST_F(SimplifyArithmeticTest, AddsNoZeroToRandomNumbers) {
  const Output zero = Const(Tensor::Scalar(0.0f));
  const Output drawn = Add({.name = "drawn", .op = "RandomUniform", .attrs = {{"shape", Dims({2, 3})}}});
  EXPECT_EQ(Simplified("Add", drawn, zero), drawn);
  EXPECT_EQ(Simplified("Add", zero, drawn), drawn);
  EXPECT_NE(Simplified("Add", drawn, Const(Tensor::Scalar(1.0f))), drawn);
  const Output x = Source(Dims({2, 3}));
  EXPECT_NE(Simplified("Add", x, zero), x);  // -0 + 0 is 0
}

TEST_F(SimplifyArithmeticTest, KeepsWhatComputes) {
  const Output x = Source(Dims({2, 3}));
  const Output one = Const(Tensor::Scalar(1.0f));
  EXPECT_NE(Simplified("Mul", x, Const(Tensor::Scalar(2.0f))), x);
  EXPECT_NE(Simplified("Mul", x, Const(Tensor::Vector<float>({1, 1, 2}))), x);
  EXPECT_NE(Simplified("RealDiv", one, x), x);
  EXPECT_NE(Simplified("Sub", Const(Tensor::Scalar(0.0f)), x), x);
  EXPECT_NE(Simplified("Sub", x, Const(Tensor::Scalar(-0.0f))), x);  // -0 - -0 is 0
}

TEST_F(SimplifyArithmeticTest, KeepsWhatMayBroadcast) {
  const Output ones = Const(Tensor::Vector<float>({1, 1, 1}));
  for (const PartialShape& shape : {Dims({2, 1}), Dims({2, -1}), Dims({}), PartialShape::Unknown()}) {
    const Output x = Source(shape);
    EXPECT_NE(Simplified("Mul", x, ones), x) << shape.ToString();
  }
  const Output x = Source(PartialShape::Unknown());
  EXPECT_EQ(Simplified("Mul", x, Const(Tensor::Scalar(1.0f))), x);
  const Output y = Source(Dims({-1, 1}));
  EXPECT_EQ(Simplified("Mul", y, Const(Tensor::Vector<float>({1}))), y);
}

TEST_F(SimplifyArithmeticTest, KeepsAnOrderThatSomebodyWants) {
  const Output x = Source(Dims({}));
  const Output one = Const(Tensor::Scalar(1.0f));
  const Output first = Source(Dims({}));
  const Output z = Add({.name = "z", .op = "Mul", .inputs = {x, one}, .control_inputs = {first.node}});
  const Output use = Add({.name = "use", .op = "Use", .inputs = {z, z}});
  ASSERT_TRUE(SimplifyArithmetic(*graph_).ok());
  EXPECT_EQ(use.node->input(0), z);
}

}  // namespace
}  // namespace millrace
