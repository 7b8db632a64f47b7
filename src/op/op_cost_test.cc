// SPDX-License-Identifier: Apache-2.0
#include "op/op_cost.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

PartialShape S(std::vector<int64_t> dims) { return PartialShape::Of(std::move(dims)); }

TEST(OpCost, BytesAssumeADimensionThatIsNotKnown) {
  EXPECT_EQ(EstimateBytes(DType::kFloat, S({3, 5})), 60);
  EXPECT_EQ(EstimateBytes(DType::kDouble, S({-1, 4})), 8 * 4 * kAssumedDimension);
  EXPECT_EQ(EstimateBytes(DType::kInt64, S({0, 1 << 30})), 0);
  EXPECT_EQ(EstimateBytes(DType::kString, S({100})), 0);
  // Larger than any integer, and still a number.
  EXPECT_GT(EstimateElements(S({int64_t{1} << 60, int64_t{1} << 60})), 1e36);
}

TEST(OpCost, ProductsCountTwoOperationsForEachTermHoweverTheyAreTransposed) {
  EXPECT_DOUBLE_EQ(EstimateOperations("MatMul", {}, {S({7, 11}), S({11, 13})}, {S({7, 13})}), 2 * 7 * 11 * 13);
  EXPECT_DOUBLE_EQ(EstimateOperations("MatMul", {}, {S({11, 7}), S({13, 11})}, {S({7, 13})}), 2 * 7 * 11 * 13);
  EXPECT_DOUBLE_EQ(
      EstimateOperations("BatchMatMul", {}, {S({5, 7, 11}), S({5, 11, 13})}, {S({5, 7, 13})}), 5 * 2 * 7 * 11 * 13);
  EXPECT_EQ(EstimateOperations("MatMul", {}, {S({0, 11}), S({11, 13})}, {S({0, 13})}), 0);
  EXPECT_EQ(EstimateOperations("BatchMatMul", {}, {S({0, 7, 11}), S({0, 11, 13})}, {S({0, 7, 13})}), 0);
}

TEST(OpCost, AConvolutionAndItsGradientsCostTheSame) {
  const PartialShape image = S({2, 8, 8, 3}), filter = S({5, 5, 3, 16}), result = S({2, 8, 8, 16}), shape = S({4});
  const double want = 2.0 * (2 * 8 * 8 * 16) * (5 * 5 * 3);
  EXPECT_DOUBLE_EQ(EstimateOperations("Conv2D", {}, {image, filter}, {result}), want);
  EXPECT_DOUBLE_EQ(EstimateOperations("Conv2DBackpropInput", {}, {shape, filter, result}, {image}), want);
  EXPECT_DOUBLE_EQ(EstimateOperations("Conv2DBackpropFilter", {}, {image, shape, result}, {filter}), want);
}

TEST(OpCost, OpsThatLookAtNoValueCostNothingAndUnknownOnesAnOperationAnElement) {
  EXPECT_EQ(EstimateOperations("Reshape", {}, {S({1000, 1000})}, {S({1000000})}), 0);
  EXPECT_EQ(EstimateOperations("SomebodysOp", {}, {S({10, 10})}, {S({10})}), 100);
  EXPECT_GT(EstimateOperations("Tanh", {}, {S({10})}, {S({10})}), EstimateOperations("Neg", {}, {S({10})}, {S({10})}));
}

// A hostile graph may give an op fewer inputs than it declares.
TEST(OpCost, TooFewShapesAreNoFault) {
  for (const char* op : {"MatMul", "Conv2D", "MaxPool", "Cholesky", "BlockLSTM", "Tanh"}) {
    EXPECT_EQ(EstimateOperations(op, {}, {}, {}), 0) << op;
    EXPECT_GE(EstimateOperations(op, {}, {S({4})}, {PartialShape()}), 0) << op;
  }
}

}  // namespace
}  // namespace millrace
