// SPDX-License-Identifier: Apache-2.0
// The generated typed functions: one op of each form that they have.
#include "millrace/ops.h"

#include <gtest/gtest.h>

#include "millrace/millrace.h"

namespace {

namespace ops = millrace::ops;
using millrace::DType;
using millrace::Graph;
using millrace::Output;
using millrace::Scope;
using millrace::Session;
using millrace::Shape;
using millrace::Tensor;

class TypedOps : public testing::Test {
 protected:
  std::vector<float> Floats(Output fetch) {
    EXPECT_TRUE(graph_.status().ok()) << graph_.status().message();
    auto out = Session(graph_).Run({}, {fetch});
    EXPECT_TRUE(out.ok()) << out.status().message();
    if (!out.ok()) return {};
    auto values = (*out)[0].values<float>();
    EXPECT_TRUE(values.ok()) << values.status().message();
    return values.ok() ? *values : std::vector<float>();
  }
  Graph graph_;
  Scope scope_{graph_};
  const Tensor square_ = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
};

TEST_F(TypedOps, OneOutputWithOptions) {
  const Output plain = ops::MatMul(scope_, square_, square_);
  const Output turned = ops::MatMul(scope_.WithName("turned"), square_, square_, {.transpose_b = true});
  EXPECT_EQ(turned.name(), "turned:0");
  EXPECT_EQ(Floats(plain), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(Floats(turned), (std::vector<float>{5, 11, 11, 25}));
}

TEST_F(TypedOps, ListOfOutputs) {
  const std::vector<Output> rows = ops::Split(scope_, 0, square_, 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(Floats(rows[1]), (std::vector<float>{3, 4}));
}

TEST_F(TypedOps, ListOfInputs) {
  const Output a = scope_.Const(square_);
  EXPECT_EQ(Floats(ops::ConcatV2(scope_, {a, a}, 1)), (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
}

TEST_F(TypedOps, SeveralNamedOutputs) {
  const auto [op, values, indices] = ops::TopKV2(scope_, Tensor::Of<float>({3}, {1, 3, 2}), 2, {.sorted = true});
  EXPECT_EQ(op.type(), "TopKV2");
  EXPECT_EQ(indices.dtype(), DType::kInt32);
  EXPECT_EQ(Floats(values), (std::vector<float>{3, 2}));
}

TEST_F(TypedOps, RequiredAttributes) {
  const Tensor image = Tensor::Of<float>({1, 2, 2, 1}, {1, 2, 3, 4}), filter = Tensor::Of<float>({1, 1, 1, 1}, {2});
  const Output same = ops::Conv2D(scope_, image, filter, {1, 1, 1, 1}, "SAME");
  const Output strided = ops::Conv2D(scope_, image, filter, {1, 2, 2, 1}, "VALID", {.dilations = {1, 1, 1, 1}});
  EXPECT_EQ(Floats(same), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(Floats(strided), (std::vector<float>{2}));
}

TEST_F(TypedOps, ShapeAttributes) {
  const Output known = ops::Placeholder(scope_, DType::kFloat, {.shape = Shape{2, 3}});
  const Output unknown = ops::Placeholder(scope_, DType::kFloat);
  Shape shape;
  ASSERT_TRUE(graph_.ShapeOf(known, &shape));
  EXPECT_EQ(shape, (Shape{2, 3}));
  EXPECT_FALSE(graph_.ShapeOf(unknown, &shape));
}

TEST_F(TypedOps, Composites) {
  const Output kept = ops::Dropout(scope_, square_, 0.0f);
  EXPECT_EQ(Floats(kept), (std::vector<float>{1, 2, 3, 4}));
  const auto clipped = ops::ClipByGlobalNorm(scope_, {scope_.Const(Tensor::Of<float>({2}, {3, 4}))}, 1.0f);
  ASSERT_EQ(clipped.list_clipped.size(), 1u);
  EXPECT_EQ(Floats(clipped.global_norm), (std::vector<float>{5}));
}

TEST_F(TypedOps, ErrorsStayInTheGraph) {
  const auto made = ops::TopKV2(scope_, Tensor(1.0f), 2);
  EXPECT_FALSE(made.op);
  EXPECT_FALSE(made.values);
  EXPECT_TRUE(ops::Split(scope_, 0, square_, 2).empty());
  EXPECT_EQ(graph_.status().code(), TF_INVALID_ARGUMENT);
}

}  // namespace
