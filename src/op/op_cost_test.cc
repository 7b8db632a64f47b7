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

TEST(OpCost, CountsElementsOfTheLargestValueAndBytesOfAll) {
  const AttrMap none;
  const CostContext node{none, {{DType::kFloat, S({10, 10})}, {DType::kInt32, S({})}}, {{DType::kFloat, S({10})}}};
  EXPECT_EQ(ElementCost(node).operations, 100);
  EXPECT_EQ(ElementCost(node).bytes, 4 * 111);
  EXPECT_GT(CostlyElementCost(node).operations, 100);
  EXPECT_EQ(NoCost(node).operations, 0);
  EXPECT_EQ(NoCost(node).bytes, 0);
  EXPECT_EQ(ElementCost({none, {}, {}}).operations, 0);
}

}  // namespace
}  // namespace millrace
