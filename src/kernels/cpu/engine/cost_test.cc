// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/cost.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

PartialShape S(std::vector<int64_t> dims) { return PartialShape::Of(std::move(dims)); }

OpCost Of(CostFunction cost, std::vector<PartialShape> inputs, std::vector<PartialShape> outputs,
          const AttrMap& attrs = {}) {
  CostContext node{attrs, {}, {}};
  for (PartialShape& s : inputs) node.inputs.push_back({DType::kFloat, std::move(s)});
  for (PartialShape& s : outputs) node.outputs.push_back({DType::kFloat, std::move(s)});
  return cost(node);
}
double Operations(CostFunction cost, std::vector<PartialShape> inputs, std::vector<PartialShape> outputs) {
  return Of(cost, std::move(inputs), std::move(outputs)).operations;
}

TEST(Cost, ProductsCountTwoOperationsForEachTermHoweverTheyAreTransposed) {
  EXPECT_DOUBLE_EQ(Operations(ProductCost, {S({7, 11}), S({11, 13})}, {S({7, 13})}), 2 * 7 * 11 * 13);
  EXPECT_DOUBLE_EQ(Operations(ProductCost, {S({11, 7}), S({13, 11})}, {S({7, 13})}), 2 * 7 * 11 * 13);
  EXPECT_DOUBLE_EQ(Operations(ProductCost, {S({5, 7, 11}), S({5, 11, 13})}, {S({5, 7, 13})}), 5 * 2 * 7 * 11 * 13);
  EXPECT_EQ(Operations(ProductCost, {S({0, 11}), S({11, 13})}, {S({0, 13})}), 0);
  EXPECT_EQ(Operations(ProductCost, {S({0, 7, 11}), S({0, 11, 13})}, {S({0, 7, 13})}), 0);
  EXPECT_EQ(Of(ProductCost, {S({7, 11}), S({11, 13})}, {S({7, 13})}).bytes, 4 * (7 * 11 + 11 * 13 + 7 * 13));
}

TEST(Cost, AConvolutionAndItsGradientsCostTheSame) {
  const PartialShape image = S({2, 8, 8, 3}), filter = S({5, 5, 3, 16}), result = S({2, 8, 8, 16}), shape = S({4});
  const double want = 2.0 * (2 * 8 * 8 * 16) * (5 * 5 * 3);
  EXPECT_DOUBLE_EQ(Operations(ConvolutionCost, {image, filter}, {result}), want);
  EXPECT_DOUBLE_EQ(Operations(ConvolutionCost, {shape, filter, result}, {image}), want);
  EXPECT_DOUBLE_EQ(Operations(ConvolutionCost, {image, shape, result}, {filter}), want);
  EXPECT_DOUBLE_EQ(Operations(FusedConvolutionCost, {image, filter, S({16})}, {result}), want);
}

TEST(Cost, WhatIsTakenFromALargeValueCostsWhatIsTaken) {
  const OpCost cost = Of(TakeCost, {S({1000000, 64}), S({8})}, {S({8, 64})});
  EXPECT_EQ(cost.operations, 8 * 64);
  EXPECT_EQ(cost.bytes, 2 * 4 * 8 * 64);
}

TEST(Cost, WindowsAndMatrices) {
  const AttrMap ksize = {{"ksize", std::vector<int64_t>{1, 3, 3, 1}}};
  EXPECT_EQ(Of(WindowCost, {S({1, 9, 9, 2})}, {S({1, 3, 3, 2})}, ksize).operations, 9 * 18);
  EXPECT_EQ(Operations(CubicCost, {S({4, 10, 10})}, {S({4, 10, 10})}), 4 * 1000);
  EXPECT_EQ(Operations(CellCost, {S({3, 7}), S({12, 20}), S({20})}, {S({3, 5})}), 2 * 3 * 12 * 20);
}

}  // namespace
}  // namespace millrace
